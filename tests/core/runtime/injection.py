"""Errors raised in one function of healkit's at a time.

A profile of calls is not mocked code: every function runs as it is, until the one that is asked for is entered.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import healkit
from healkit.core.runtime import background

_ROOT = Path(healkit.__file__).parent
_PARTS = ("core", "parts/runs", "parts/traces", "parts/views", "parts/trials")
_FOLDERS = tuple(f"{_ROOT / part}/" for part in _PARTS)
#: What waits for an execution and hands it out; it comes before the start, and after the finish.
_AROUND = ("core/runtime/background.py", "core/runtime/runner.py:Runner.perform")
_START = "core/runtime/executor.py:Executor.perform"


class Injection:
    """Tracer of the calls that are made after an execution has been asked for, on every thread that starts under it.

    `names` are the functions that were entered. At the first call of `target`, `act` is called in its place.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.target = ""
        self.act: Callable[[], None] = self.fail
        self.acted = False
        self._began = False

    def begin(self, target: str = "", act: Callable[[], None] | None = None) -> None:
        """Wait for the next execution, and act at the first call of that function.

        A thread in which the tracer has raised is traced no more, so that healkit's loop gets it again, and new threads
        to wait in.
        """
        loop = background.loop._running()
        loop.call_soon_threadsafe(sys.settrace, self)
        loop._default_executor = None  # type: ignore[attr-defined]  # a new one is made when it is needed
        self.target, self.act, self.acted, self._began = target, act or self.fail, False, False

    def end(self) -> None:
        """Let everything pass from here on."""
        self.target, self._began = "", False

    @staticmethod
    def fail() -> None:
        """Raise an error that no function of healkit expects."""
        raise ArithmeticError("injected")

    def __call__(self, frame: FrameType, _event: str, _arg: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_FOLDERS):
            return None
        name = f"{code.co_filename.removeprefix(f'{_ROOT}/')}:{code.co_qualname}"
        if name == _START:
            self._began = True
        elif self._began and not name.startswith(_AROUND):
            self.names.add(name)
            if name == self.target and not self.acted:
                self.acted = True
                self.act()
        return None


@contextlib.contextmanager
def injection() -> Iterator[Injection]:
    """Trace every thread that starts in this block; healkit's own must not run yet."""
    made = Injection()
    before = threading.gettrace()
    threading.settrace(made)
    try:
        yield made
    finally:
        threading.settrace(before)  # type: ignore[arg-type]  # what it was
        assert sys.gettrace() is not made
