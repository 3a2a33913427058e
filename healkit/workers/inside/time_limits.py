"""Time limits that Python code can be stopped by.

An alarm signal raises `TimeIsUp` wherever Python code is running; a hang in C code does not notice, and for that
`faulthandler` dumps the stack to the crash file from a thread of its own before the host kills the process.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the built-in module behind `signal` has no stubs
import contextlib
import faulthandler
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any


class TimeIsUp(BaseException):
    """The deadline has passed. Not an `Exception`, so that `except Exception` in a tool does not swallow it."""


#: Without the wrapper in `signal`, which looks for an enumeration's member for each handler; that took half the time of
#: setting a deadline. It takes plain numbers only.
_set_handler, _ALARM, _DEFAULT = _signal.signal, int(signal.SIGALRM), int(signal.SIG_DFL)
#: After the first alarm the next ones follow at this distance, for code that swallows even BaseException.
_REPEAT_S = 0.05
#: The stack is dumped a little later than the alarm: it is needed only if the alarm was not heard.
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
