"""Capturing what a tool prints and raises.

Tracebacks are reduced to frames of the tool and of the libraries it called.
"""

from __future__ import annotations

import linecache
import os
import traceback
from typing import ClassVar

from healkit.contracts.failure import FACT_MAX_CHARS, Failure, Frame, read_traceback
from healkit.contracts.tools import EntryRef
from healkit.workers.inside.time_limits import TimeIsUp, deadline

#: Files whose frames are ours or the kernel's: they tell a tool's author nothing.
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_OWN_PARTS = (f"{os.sep}ipykernel{os.sep}", f"{os.sep}IPython{os.sep}core{os.sep}interactiveshell.py")
#: Module name of a tool's code. Registered, because dataclasses look their module up.
TOOL_MODULE = "__healkit_tool__"
_TRACEBACK_MAX_CHARS = 200_000
_MESSAGE_MAX_CHARS = 10_000
_FRAMES_MAX = 200
_LAST_WORDS_CHARS = 4000
_DESCRIBE_S = 0.5


OVER_LIMIT = "the tool printed more than it may; what came after the limit is dropped"


class OutputLimit(Exception):
    """Output over the tool's limit."""

    __module__ = "builtins"  # so that a traceback shows the bare name


class Output:
    """Output budget shared by stdout and stderr, and the place of their last words; one for each process.

    What C code writes to a descriptor may arrive on a thread that must go on reading, or the tool would block on a full
    pipe; such a stream drops what is over the budget, and `exceeded` tells the runner.
    """

    left_chars: ClassVar[int | None] = None
    exceeded: ClassVar[bool] = False
    #: Whether anything was written or displayed.
    shown: ClassVar[bool] = False
    #: Text that a buffer still holds is lost in a crash, so the end of each write goes here at once.
    crash_fd: ClassVar[int | None] = None

    @classmethod
    def admit(cls, text: str) -> bool:
        """Return whether there is room for the text, and take it off the budget."""
        cls.shown = True
        if cls.left_chars is not None:
            cls.left_chars -= len(text)
            if cls.left_chars < 0:
                cls.exceeded = True
                return False
        return True

    @classmethod
    def remember(cls, text: str, limit: int = _LAST_WORDS_CHARS) -> None:
        """Write the end of a text where the host finds it, whatever becomes of this process."""
        if cls.crash_fd is not None:
            os.write(cls.crash_fd, text[-limit:].encode(errors="backslashreplace"))


def show_source(entry: EntryRef, code: str) -> None:
    """Let tracebacks find the tool's source lines under its label; before the code is compiled."""
    lines = code.splitlines(keepends=True)
    linecache.cache[entry.filename] = (len(code), None, lines, entry.filename)


def describe(value: object) -> str:
    """`repr(value)` in at most half a second and 2,000 characters; never raises."""
    try:
        with deadline(_DESCRIBE_S):
            text = repr(value)
    except TimeIsUp:
        return f"<{type(value).__qualname__} object, its repr takes too long>"
    except BaseException as error:  # noqa: BLE001 - whatever a foreign __repr__ raises
        return f"<{type(value).__qualname__} object, its repr raises {type(error).__name__}>"
    return text if len(text) <= 2000 else f"{text[:2000]}… [{len(text):,} characters]"


def to_failure(error: BaseException, entry: EntryRef, timeout_s: float) -> Failure:
    """Return the exception as data, without our own frames; never raises for a hostile one."""
    try:
        with deadline(2.0):
            told = read_traceback(error)
            _cut_own_frames(told, set())
            text = "".join(told.format()).replace(f"{TOOL_MODULE}.", "")
            frames = [_frame(summary, entry.filename) for summary in told.stack]
            if isinstance(error, SyntaxError) and error.filename == entry.filename:
                frames.append(
                    Frame(entry.filename, error.lineno or 1, "<module>", error.text or "", in_tool=True)
                )
            message = str(error)
    except BaseException as trouble:  # noqa: BLE001 - its __str__ raises, or takes too long
        frames, message = [], f"<no message: {type(trouble).__name__} while it was read>"
        text = f"{type(error).__name__}: {message}"
    code, hint = _classify(error, timeout_s)
    near, known, facts = _observed(error, entry.filename)
    if isinstance(error, TimeIsUp):
        message = f"still running after {timeout_s:g} s"
        text = f"{text.rstrip().rpartition(chr(10))[0]}\nTimeoutError: {message}".lstrip()
    ename = "TimeoutError" if isinstance(error, TimeIsUp) else _type_name(error)
    return Failure(
        code=code,
        ename=ename,
        evalue=safe(message, _MESSAGE_MAX_CHARS),
        traceback=safe(text.rstrip(), _TRACEBACK_MAX_CHARS),
        frames=_thin(frames),
        hint=hint,
        near=near,
        known=known,
        facts=facts,
    )


def _classify(error: BaseException, timeout_s: float) -> tuple[str, str]:
    """Return the outcome's code and the next step, from the exception's type."""
    if isinstance(error, TimeIsUp):
        return (
            "TOOL_TIMEOUT",
            f"Give it more than {timeout_s:g} s (timeout=…), or look at the line where it was.",
        )
    if isinstance(error, MemoryError):
        return "TOOL_OUT_OF_MEMORY", "Give it more memory (grant memory_mb=…), or let it hold less at once."
    if isinstance(error, OutputLimit):
        return (
            "TOOL_OUTPUT_LIMIT",
            "Let it print less, or return what matters; HEALKIT_OUTPUT_MAX_BYTES is the limit.",
        )
    if isinstance(error, PermissionError):
        return "TOOL_EXCEPTION", (
            "A worker has no network, starts no process and sees only its scratch folder. Grant the tool a path "
            "(read=…, write=…), or let it call a function of yours (hk.provide)."
        )
    if isinstance(error, FileNotFoundError):
        return (
            "TOOL_EXCEPTION",
            "If the file exists outside, the worker cannot see it: grant the tool that path (read=…).",
        )
    return "TOOL_EXCEPTION", ""


def _observed(error: BaseException, tool_filename: str) -> tuple[list[str], list[str], dict[str, str]]:
    """Return the names near the one that was not found, those that exist, and the facts about the values at hand."""
    try:  # not above: no worker should wait for it to start
        from healkit.facts import observe, suggestions
    except Exception:  # noqa: BLE001 - the tool may have left no memory or no file to import with
        return [], [], {}
    innermost, told = None, error.__traceback__
    while told is not None:
        innermost = told if told.tb_frame.f_code.co_filename == tool_filename else innermost
        told = told.tb_next
    try:
        with deadline(_DESCRIBE_S):
            near, known = suggestions(error, innermost)
            facts = observe(error, innermost)
            return (
                [safe(name, 100) for name in near],
                [safe(name, 100) for name in known],
                {name: safe(fact, FACT_MAX_CHARS) for name, fact in facts.items()},
            )
    except TimeIsUp:
        return [], [], {}


def _cut_own_frames(told: traceback.TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    told.stack = traceback.StackSummary.from_list([f for f in told.stack if not is_own(f.filename)])
    for linked in (told.__cause__, told.__context__, *(told.exceptions or [])):
        if linked is not None:
            _cut_own_frames(linked, seen)


def is_own(filename: str) -> bool:
    """Return whether a file is ours or the kernel's, so that its frames are left out."""
    return filename.startswith(_OWN_FOLDER) or any(part in filename for part in _OWN_PARTS)


def _frame(summary: traceback.FrameSummary, tool_filename: str) -> Frame:
    return Frame(
        filename=safe(summary.filename, 1000),
        lineno=summary.lineno or 0,
        name=safe(summary.name, 200),
        line=safe(summary.line or "", 500),
        in_tool=summary.filename == tool_filename,
    )


def _thin(frames: list[Frame]) -> list[Frame]:
    """Keep both ends of a stack that is too deep to keep whole; a recursion repeats itself anyway."""
    half = _FRAMES_MAX // 2
    return frames if len(frames) <= _FRAMES_MAX else frames[:half] + frames[-half:]


def _type_name(error: BaseException) -> str:
    kind = type(error)
    plain = kind.__module__ in {"builtins", TOOL_MODULE}
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


def safe(text: str, limit: int) -> str:
    """Text that can be encoded, without its middle when it is longer than `limit` characters."""
    text = text.encode(errors="backslashreplace").decode()
    return (
        text
        if len(text) <= limit
        else f"{text[: limit // 2]}\n… [{len(text):,} characters]\n{text[-limit // 2 :]}"
    )
