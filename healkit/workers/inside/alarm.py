"""An alarm that is set for each of thousands of checks.

As `deadline`, without its nesting: a few system calls a check. It goes by the time that the process computes, so that a
busy machine makes no check late, and by the clock for what waits. It rings again and again, because code may catch even
what is no `Exception`; code that catches it for ever is its watcher's to kill.

The clock's timer does both: one that goes by computing rings only at one of the kernel's ticks. At 250 of them a second
it was 4 to 6 ms late in the middle of 60 tries, and this one 0.2 ms; most checks may take 5 ms.
"""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Any

from healkit.workers.inside.time_limits import TimeIsUp

#: How often it is looked at from the limit on, by the clock, whether so much was computed; and how often it rings then.
_LOOK_S, _REPEAT_S = 0.001, 0.01
#: By the clock a check may take so many times its limit, and so much more: it is not to be taken for late for others.
_WAIT_TIMES, _WAIT_MORE_S = 3.0, 0.03
_setitimer, _signal, _CLOCK, _RUNG = signal.setitimer, signal.signal, signal.ITIMER_REAL, signal.SIGALRM
_computed_s, _now_s = time.process_time, time.monotonic


def waited_s(timeout_s: float) -> float:
    """How long a check with that limit of computing time may take by the clock, in seconds."""
    return timeout_s * _WAIT_TIMES + _WAIT_MORE_S


class Alarm:
    """Raises `TimeIsUp` in the main thread, from `set` until `stop`; `rang` says whether it has."""

    def __init__(self) -> None:
        self.rang = False
        self._armed = False
        self._most_computed_s = self._latest_s = 0.0

    def set(self, timeout_s: float) -> None:
        """Ring after that much computing, or some times that by the clock, and then again and again."""
        self.rang = False
        self._armed = True
        self._most_computed_s, self._latest_s = _computed_s() + timeout_s, _now_s() + waited_s(timeout_s)
        _signal(_RUNG, self._ring)  # each time, because the code before may have taken the signal
        _setitimer(_CLOCK, timeout_s, _LOOK_S)

    def stop(self) -> None:
        """Ring no more. What rings while this is being said raises `TimeIsUp` for the last time."""
        self._armed = False
        _setitimer(_CLOCK, 0)

    def _ring(self, _number: int, _frame: FrameType | None) -> Any:
        if not self.rang:
            if _computed_s() < self._most_computed_s and _now_s() < self._latest_s:
                return  # somebody else had the processor meanwhile
            self.rang = True
            _setitimer(_CLOCK, _REPEAT_S, _REPEAT_S)
        if self._armed:
            raise TimeIsUp
