"""An alarm that is set for each of thousands of checks.

As `deadline`, without its nesting: two system calls a check. It rings again and again, because code may catch even
what is no `Exception`; code that catches it for ever is its watcher's to kill.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from healkit.workers.inside.deadline import TimeIsUp

_REPEAT_S = 0.01
_setitimer, _signal, _REAL, _ALARM = signal.setitimer, signal.signal, signal.ITIMER_REAL, signal.SIGALRM


class Alarm:
    """Raises `TimeIsUp` in the main thread, from `set` until `stop`; `rang` says whether it has."""

    def __init__(self) -> None:
        self.rang = False
        self._armed = False

    def set(self, timeout_s: float) -> None:
        """Ring after that long, and then again and again."""
        self.rang = False
        self._armed = True
        _signal(_ALARM, self._ring)  # each time, because the code before may have taken the signal
        _setitimer(_REAL, timeout_s, _REPEAT_S)

    def stop(self) -> None:
        """Ring no more. What rings while this is being said raises `TimeIsUp` for the last time."""
        self._armed = False
        _setitimer(_REAL, 0)

    def _ring(self, _number: int, _frame: FrameType | None) -> Any:
        self.rang = True
        if self._armed:
            raise TimeIsUp
