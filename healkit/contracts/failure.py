"""Python traceback as data.

The worker makes it, the host stores and renders it. The text is the one Python itself would have printed
with healkit's own frames taken out; the frames are the same thing for programs (folding, fingerprints,
search). Words are Jupyter's: `ename` is the exception's type name, `evalue` its message.
"""

from __future__ import annotations

import re
from traceback import TracebackException

import msgspec

#: Bounds of what a failure says about names and values at hand.
NEAR_MAX, KNOWN_MAX, FACTS_MAX, FACT_MAX_CHARS = 3, 8, 12, 300


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """Frame of a failure, outermost first in its list.

    `lineno` counts from 1. `in_tool` is true for the vault entry's own code, false for libraries'.
    """

    filename: str
    lineno: int
    name: str
    line: str = ""
    in_tool: bool = False


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reason why an execution has no value.

    `code` is from the closed catalogue in `healkit.errors` and says how the execution ended (`TOOL_EXCEPTION`,
    `TOOL_TIMEOUT`, …). `traceback` is the full text. `hint` is the next step. Where a name, a key or a file was not
    found, `near` are similar ones, and `known` the first that exist. `facts` are short texts that were read off the
    values at hand, by name; `about` says which sentence of the failure catalogue they are for.
    """

    code: str
    ename: str
    evalue: str
    traceback: str
    frames: list[Frame] = []
    hint: str = ""
    near: list[str] = []
    known: list[str] = []
    facts: dict[str, str] = {}

    @property
    def summary(self) -> str:
        """Line that a person looks for first: `ZeroDivisionError: division by zero`."""
        return f"{self.ename}: {self.evalue}" if self.evalue else self.ename

    @property
    def tool_frame(self) -> Frame | None:
        """Innermost frame of the tool's own code, where its author would look."""
        return next((frame for frame in reversed(self.frames) if frame.in_tool), None)


def read_traceback(error: BaseException) -> TracebackException:
    """Read an exception for its text and frames.

    Since Python 3.12 this guesses the name that was meant, for which it runs the `__dir__` of an object that lacks an
    attribute. Where that tries to end the process, the exception is read without the guess.
    """
    try:
        return TracebackException.from_exception(error, compact=True)
    except SystemExit:
        if not isinstance(error, AttributeError):
            raise
        name, error.name = error.name, None
        try:
            return TracebackException.from_exception(error, compact=True)
        finally:
            error.name = name


_FAULTHANDLER_FRAME = re.compile(
    r'^  File "(?P<file>[^"]*)", line (?P<line>\d{1,9}) in (?P<name>.+)$', re.MULTILINE
)


def frames_from_faulthandler(text: str, filename: str, source: str) -> list[Frame]:
    """Read the tool's frames from a dump of CPython's `faulthandler`, outermost first.

    There is only that dump after a crash, or when a hang in C code kept Python from running. It lists the most recent
    call first and holds no source lines, so those are taken from `source`.
    """
    lines = source.splitlines()
    found = [
        Frame(filename, int(m["line"]), m["name"], _line(lines, int(m["line"])), in_tool=True)
        for m in _FAULTHANDLER_FRAME.finditer(text)
        if m["file"] == filename
    ]
    return found[::-1]


def format_frames(frames: list[Frame], last_line: str) -> str:
    """Format frames in the layout of a Python traceback, ending in `last_line`."""
    parts = ["Traceback (most recent call last):"] if frames else []
    for frame in frames:
        parts.append(f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}')
        if frame.line:
            parts.append(f"    {frame.line.strip()}")
    return "\n".join([*parts, last_line])


def _line(lines: list[str], lineno: int) -> str:
    return lines[lineno - 1] if 0 < lineno <= len(lines) else ""
