"""Command line, called in this process."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import pytest

from healkit.faces.cli import main


@dataclass(frozen=True)
class Done:
    """Output of a command and its exit code; the names are those of `subprocess.CompletedProcess`."""

    stdout: str
    stderr: str
    returncode: int


def call(*words: str, stdin: str = "") -> Done:
    """Run `healkit WORDS…` in this process, with its own streams instead of a terminal.

    An exception that healkit does not catch fails the test. Tests of signals, of a terminal, or of a whole process start
    a process instead.
    """
    printed, told = io.BytesIO(), io.BytesIO()
    code: object = 0
    with pytest.MonkeyPatch.context() as process:
        process.setattr(sys, "argv", ["healkit", *words])
        process.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        process.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="utf-8", write_through=True))
        process.setattr(sys, "stderr", io.TextIOWrapper(told, encoding="utf-8", write_through=True))
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        return Done(printed.getvalue().decode(), told.getvalue().decode(), _exit_status(code))


def _exit_status(code: object) -> int:
    """As Python itself ends with it."""
    if code is None:
        return 0
    return code if isinstance(code, int) else 1
