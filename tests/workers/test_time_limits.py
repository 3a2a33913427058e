"""Alarms of candidates: how long a check may take.

Also on a busy machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from healkit.workers.inside.time_limits import Alarm, TimeIsUp, waited_s

LIMIT_S = 0.01
BUSY = "while True: pass"


@pytest.fixture
def one_busy_processor() -> Iterator[None]:
    """Share one processor with twenty processes that never rest."""
    before = os.sched_getaffinity(0)
    one = min(before)
    os.sched_setaffinity(0, {one})
    busy = [subprocess.Popen([sys.executable, "-S", "-c", BUSY]) for _ in range(20)]
    yield
    os.sched_setaffinity(0, before)
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


@pytest.mark.slow
@pytest.mark.usefixtures("one_busy_processor")
def test_waiting_for_the_processor_is_not_late() -> None:
    """On a busy machine a right candidate counted as late, and an equally right one was met first."""
    assert [rings(LIMIT_S / 2) for _ in range(20)] == [False] * 20
