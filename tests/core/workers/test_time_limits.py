"""Alarms of candidates: how long a check may take."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from programs import python

from healkit.core.workers.inside.capture import Alarm, Output, TimeIsUp

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
    alone = python(ALONE, busy_processor, env={**os.environ, "PYTHONPATH": f"{here}:{here.parents[1]}"})
    assert alone.stdout.strip() == str([False] * 20), alone


def test_a_flood_of_short_writes_meets_its_own_limit_before_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """T11: each write costs microseconds, so `while True: print("x")` took more than the 30 s to print 10 MB."""
    monkeypatch.setattr(Output, "left_chars", 100)
    monkeypatch.setattr(Output, "exceeded", False)
    assert [Output.admit("x") for _ in range(7)] == [True] * 6 + [False]
