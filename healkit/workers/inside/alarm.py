"""An alarm that is set for each of thousands of checks.

As `deadline`, without its nesting: a few system calls a check. It goes by the time that the process computes, so that a
busy machine makes no check late, and by the clock for what waits. It rings again and again, because code may catch even
what is no `Exception`; code that catches it for ever is its watcher's to kill.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from healkit.workers.inside.deadline import TimeIsUp

_REPEAT_S = 0.01
#: By the clock a check may take so many times its limit, and so much more: it is not to be taken for late for others.
_WAIT_TIMES, _WAIT_MORE_S = 3.0, 0.03
_setitimer, _signal = signal.setitimer, signal.signal
_CLOCK, _RUNG_BY_CLOCK = signal.ITIMER_REAL, signal.SIGALRM
_COMPUTING, _RUNG_BY_COMPUTING = signal.ITIMER_PROF, signal.SIGPROF


def waited_s(timeout_s: float) -> float:
    """How long a check with that limit of computing time may take by the clock, in seconds."""
    return timeout_s * _WAIT_TIMES + _WAIT_MORE_S


class Alarm:
    """Raises `TimeIsUp` in the main thread, from `set` until `stop`; `rang` says whether it has."""

    def __init__(self) -> None:
        self.rang = False
        self._armed = False

    def set(self, timeout_s: float) -> None:
        """Ring after that much computing, or some times that by the clock, and then again and again."""
        self.rang = False
        self._armed = True
        _signal(_RUNG_BY_CLOCK, self._ring)  # each time, because the code before may have taken the signals
        _signal(_RUNG_BY_COMPUTING, self._ring)
        _setitimer(_COMPUTING, timeout_s, _REPEAT_S)
        _setitimer(_CLOCK, waited_s(timeout_s), _REPEAT_S)

    def stop(self) -> None:
        """Ring no more. What rings while this is being said raises `TimeIsUp` for the last time."""
        self._armed = False
        _setitimer(_CLOCK, 0)
        _setitimer(_COMPUTING, 0)

    def _ring(self, _number: int, _frame: FrameType | None) -> Any:
        self.rang = True
        if self._armed:
            raise TimeIsUp
