"""Alarms of candidates: how long a check may take.

Also on a busy machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import wait_until

from healkit.contracts.healing import Batch, BatchCheck
from healkit.contracts.tools import EntryRef
from healkit.workers.inside.batch import BatchServer, ResultBuffer, _computed_s
from healkit.workers.inside.capture import Alarm, TimeIsUp, waited_s

LIMIT_S = 0.01
BUSY = "while True: pass"


@pytest.fixture
def busy_processor() -> Iterator[int]:
    """Keep one processor busy with twenty processes that never rest; yield its number."""
    number = min(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-S", "-c", BUSY]) for _ in range(20)]
    for process in busy:
        os.sched_setaffinity(process.pid, {number})
    yield number
    for process in busy:
        process.kill()
        process.wait()


def compute(seconds: float) -> None:
    """Use the processor for so long."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def rings(seconds: float, doing: Callable[[float], None] = compute) -> bool:
    """Return whether the alarm rings while something is done for so long."""
    alarm = Alarm()
    try:
        alarm.set(LIMIT_S)
        doing(seconds)
        alarm.stop()
    except TimeIsUp:
        alarm.stop()
    return alarm.rang


def test_computing_longer_than_the_limit_rings() -> None:
    assert rings(3.0)


def test_sleeping_rings_by_the_clock() -> None:
    began = time.monotonic()
    assert rings(30.0, time.sleep)
    assert time.monotonic() - began >= waited_s(LIMIT_S)


@pytest.fixture
def server(tmp_path: Path) -> BatchServer:
    batch = Batch(
        entry=EntryRef("f", "default", 1, ""),
        code="def f():\n    return 1\n",
        checks=[BatchCheck(timeout_s=1.0)],
        every=False,
        memory_bytes=0,
        result_max_bytes=0,
        output_max_bytes=0,
    )
    return BatchServer(batch, lambda _: os._exit(1), lambda _: None, str(tmp_path))


@pytest.mark.parametrize(
    ("took_s", "computed_s", "stuck"),
    [(3.0, 1.1, False), (3.4, 1.1, True), (3.4, 0.2, False), (16.0, 0.2, False), (16.5, 0.2, True)],
)
def test_a_child_that_hardly_computed_gets_five_times_as_long(
    server: BatchServer, took_s: float, computed_s: float, stuck: bool
) -> None:
    """With a limit of 1 s, a check may sleep for 3.03 s; its child is watched for 0.25 s more."""
    buffer = ResultBuffer(1, 1)
    buffer.at(0, 0, running=True)
    assert server._is_stuck(buffer, took_s, computed_s) is stuck
    buffer.close()


def test_the_computing_time_of_a_child_does_not_grow_while_it_is_stopped() -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", BUSY])
    wait_until(lambda: _computed_s(child.pid) > 0.05)
    child.send_signal(signal.SIGSTOP)
    wait_until(lambda: Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "T")
    stopped = _computed_s(child.pid)
    time.sleep(0.2)
    assert _computed_s(child.pid) == stopped
    child.kill()
    child.wait()


#: In a process without other threads, as a candidate's is: waiting for another thread is a kind of sleep.
ALONE = """
import os, sys
from test_time_limits import LIMIT_S, rings
os.sched_setaffinity(0, {int(sys.argv[1])})
print([rings(LIMIT_S / 2) for _ in range(20)])
"""


@pytest.mark.slow
def test_waiting_for_the_processor_is_not_late(busy_processor: int) -> None:
    """On a busy machine a right candidate counted as late, and an equally right one was met first."""
    here = Path(__file__).parent
    alone = subprocess.run(
        [sys.executable, "-c", ALONE, str(busy_processor)],
        env={**os.environ, "PYTHONPATH": f"{here}:{here.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.stdout.strip() == str([False] * 20), alone
