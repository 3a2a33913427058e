"""Time limits that Python code can be stopped by.

An alarm signal raises `TimeIsUp` wherever Python code is running. A hang in C code does not react; for that,
`faulthandler` dumps the stack to the crash file from a thread of its own before the host kills the process.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the built-in module behind `signal` has no stubs
import contextlib
import faulthandler
import resource
import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any


class TimeIsUp(BaseException):
    """End of a deadline. Not an `Exception`, so that `except Exception` in a tool does not swallow it."""


#: Without the wrapper in `signal`, which looks for an enumeration's member for each handler; that took half the time of
#: setting a deadline. It takes plain numbers only.
_set_handler, _ALARM, _DEFAULT = _signal.signal, int(signal.SIGALRM), int(signal.SIG_DFL)
#: Interval of repeated alarms, for code that swallows even BaseException.
_REPEAT_S = 0.05
#: The stack is dumped only if the alarm had no effect in this time.
_DUMP_AFTER_S = 0.1


@contextlib.contextmanager
def deadline(timeout_s: float, crash_fd: int | None = None) -> Iterator[None]:
    """Raise `TimeIsUp` in the body after that long; main thread only. Deadlines nest: the outer one is restored."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeIsUp

    previous_handler: Any = _set_handler(_ALARM, ring)
    remaining_s, repeat_s = signal.setitimer(signal.ITIMER_REAL, timeout_s, _REPEAT_S)
    if crash_fd is not None:
        faulthandler.dump_traceback_later(timeout_s + _DUMP_AFTER_S, exit=False, file=crash_fd)
    try:
        yield
    finally:
        _silence()
        if crash_fd is not None:
            faulthandler.cancel_dump_traceback_later()
        _set_handler(_ALARM, previous_handler or _DEFAULT)
        if remaining_s:
            signal.setitimer(signal.ITIMER_REAL, remaining_s, repeat_s)


def _silence() -> None:
    """Stop the alarm; a late one may ring inside this very call."""
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            return
        except TimeIsUp:
            continue


#: Interval of checks whether the computing time is used up, and of alarms once it is.
_LOOK_S, _REPEAT_S = 0.001, 0.01
#: Wall time allowed to code that sleeps: so many times the limit, and so much more.
_WAIT_TIMES, _WAIT_MORE_S = 3.0, 0.03
_setitimer, _signal, _CLOCK, _RUNG = signal.setitimer, signal.signal, signal.ITIMER_REAL, signal.SIGALRM
_computed_s, _now_s = time.process_time, time.monotonic


def _sleeps() -> int:
    """Return how often this thread has given the processor away by itself, to sleep or to wait for something."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def waited_s(timeout_s: float) -> float:
    """Return how long a check that sleeps may take by the clock, in seconds, for its limit of computing time."""
    return timeout_s * _WAIT_TIMES + _WAIT_MORE_S


class Alarm:
    """Raises `TimeIsUp` in the main thread, from `set` until `stop`; `rang` says whether it has."""

    def __init__(self) -> None:
        self.rang = False
        self._armed = False
        self._most_computed_s = self._latest_s = 0.0
        self._slept = 0

    def set(self, timeout_s: float) -> None:
        """Ring after that much computing, or some times that by the clock if it sleeps, and then again and again."""
        self.rang = False
        self._armed = True
        self._most_computed_s, self._latest_s = _computed_s() + timeout_s, _now_s() + waited_s(timeout_s)
        self._slept = _sleeps()
        _signal(_RUNG, self._ring)  # each time, because earlier code may have replaced the handler
        _setitimer(_CLOCK, timeout_s, _LOOK_S)

    def stop(self) -> None:
        """Ring no more. What rings while this is being said raises `TimeIsUp` for the last time."""
        self._armed = False
        _setitimer(_CLOCK, 0)

    def _ring(self, _number: int, _frame: FrameType | None) -> Any:
        if not self.rang:
            early = _now_s() < self._latest_s or _sleeps() == self._slept
            if early and _computed_s() < self._most_computed_s:
                return  # another process had the processor meanwhile
            self.rang = True
            _setitimer(_CLOCK, _REPEAT_S, _REPEAT_S)
        if self._armed:
            raise TimeIsUp
