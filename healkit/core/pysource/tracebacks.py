"""Tracebacks: read, written, and compared by fingerprints.

They come from exceptions or from faulthandler.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import TracebackException
from types import TracebackType

from healkit.core.contracts.failure import FRAMES_MAX, LINKED_MAX, Failure, Frame, Link
from healkit.core.wire.encoding import int_text

#: Python's text for an exception whose `str()` failed.
_NO_TEXT = "<exception str() failed>"
#: Attributes of exceptions, read without running code of the exception's class.
_BASE = BaseException.__dict__
_CAUSE, _CONTEXT, _SUPPRESSED = (
    _BASE[name].__get__ for name in ("__cause__", "__context__", "__suppress_context__")
)
traceback_of = _BASE["__traceback__"].__get__


def read_traceback(error: BaseException) -> TracebackException:
    """Read an exception for its text and frames; of a stack that is too deep, only both ends.

    Since Python 3.12, this suggests similar names, and so runs the `__dir__` of an object that lacks an attribute. If
    that tries to end the process, the exception is read again without a suggestion.
    """
    with _shortened(error):
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


def message_of(error: BaseException) -> str:
    """Return an exception's message; if its own code fails to make it, the exception's argument or the reason."""
    try:
        return str(error)
    except Exception as trouble:  # noqa: BLE001 - a foreign __str__ may raise anything
        arguments = _BASE["args"].__get__(error)
        if type(error).__str__ in {BaseException.__str__, Exception.__str__} and len(arguments) == 1:
            value = arguments[0]
            if type(value) is int:
                return int_text(value)
        return f"<no message: {type(trouble).__name__} while it was read>"


def traceback_text(exception: TracebackException, message: str) -> str:
    """Return a traceback as Python prints it; `message` replaces a message that Python could not read."""
    return "".join(exception.format()).replace(_NO_TEXT, message)


def linked_to(error: BaseException) -> list[tuple[Link, BaseException]]:
    """Return the causes of an exception, the nearest first, and the members of a group."""
    links: list[tuple[Link, BaseException]] = []
    visited = {id(error)}

    def follow(one: BaseException) -> None:
        if isinstance(one, BaseExceptionGroup):
            for member in BaseExceptionGroup.exceptions.__get__(one):
                add("member", member)
        if (cause := _CAUSE(one)) is not None:
            add("cause", cause)
        elif (context := _CONTEXT(one)) is not None and not _SUPPRESSED(one):
            add("context", context)

    def add(link: Link, one: BaseException) -> None:
        if id(one) in visited or len(links) == LINKED_MAX:
            return
        visited.add(id(one))
        if not isinstance(one, BaseExceptionGroup):
            links.append((link, one))
        follow(one)

    follow(error)
    return links


@contextmanager
def _shortened(error: BaseException) -> Iterator[None]:
    """Temporarily remove the middle of a stack that is too deep, in this exception and all linked ones."""
    whole: list[tuple[BaseException, TracebackType | None]] = []
    for exception in (error, *(linked for _, linked in linked_to(error))):
        stack = traceback_of(exception)
        ends = _ends_of(stack)
        if ends is not stack:
            whole.append((exception, stack))
            _BASE["__traceback__"].__set__(exception, ends)
    try:
        yield
    finally:
        for exception, stack in whole:
            _BASE["__traceback__"].__set__(exception, stack)


def _ends_of(outermost: TracebackType | None) -> TracebackType | None:
    """Return a traceback with both ends of a stack that is longer than `FRAMES_MAX`; a shorter one is unchanged."""
    entries, entry = 0, outermost
    while entry is not None:
        entries, entry = entries + 1, entry.tb_next
    if entries <= FRAMES_MAX:
        return outermost
    ends, entry = list[TracebackType](), outermost
    for number in range(entries):
        assert entry is not None
        if number < FRAMES_MAX // 2 or number >= entries - FRAMES_MAX // 2:
            ends.append(entry)
        entry = entry.tb_next
    result: TracebackType | None = None
    for entry in reversed(ends):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


_FAULTHANDLER_FRAME = re.compile(
    r'^  File "(?P<file>[^"]*)", line (?P<line>\d{1,9}) in (?P<name>.+)$', re.MULTILINE
)


def frames_from_faulthandler(text: str, filename: str, source: str) -> list[Frame]:
    """Read the tool's frames from a dump of CPython's `faulthandler`, outermost first.

    After a crash, or if a hang in C code blocks Python, this dump is the only source. It lists the most recent call
    first and has no source lines, so these come from `source`.
    """
    lines = source.splitlines()
    frames = [
        Frame(filename, int(m["line"]), m["name"], _line(lines, int(m["line"])), in_tool=True)
        for m in _FAULTHANDLER_FRAME.finditer(text)
        if m["file"] == filename
    ]
    return frames[::-1]


def format_frames(frames: list[Frame], last_line: str) -> str:
    """Format frames like a Python traceback that ends in `last_line`."""
    parts = ["Traceback (most recent call last):"] if frames else []
    for frame in frames:
        parts.append(f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}')
        if frame.line:
            parts.append(f"    {frame.line.strip()}")
    return "\n".join([*parts, last_line])


def _line(lines: list[str], lineno: int) -> str:
    return lines[lineno - 1] if 0 < lineno <= len(lines) else ""


# Fingerprints: one name for all instances of one failure.
#
# A fingerprint consists of the exception's type, the tool's own frames (function and code line each) and the message
# without its variable parts. Line numbers, revisions, libraries' frames and values are left out. So a comment above the
# line, another input, or other paths on another machine give the same fingerprint. A helper that raises two messages
# from one line gives two.
#
# The number in front is the version of the algorithm. Fingerprints of two versions are never equal, so a change never
# mixes groups. Sentry groups by the same parts (stack trace in the app, type, parameterised message).

FINGERPRINT_VERSION = "v1"
#: Codes of executions that were stopped from outside, whose stack is random.
_STOPPED = {"TOOL_TIMEOUT", "TOOL_CPU_LIMIT", "TOOL_KILLED", "TOOL_OUT_OF_MEMORY", "WORKER_LOST"}
_MESSAGE_MAX_CHARS = 2000
#: Variable part of a message → its replacement, tried in this order; each row has an example.
_VARIABLE: tuple[tuple[str, str, str], ...] = (
    ("url", r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", "https://host.example/a?b=1"),
    ("email", r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b", "ada@example.org"),
    # A quote inside a word is an apostrophe: can't.
    ("value", r"""(?<!\w)(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`[^`\n]*`)(?!\w)""", "'x'"),
    (
        "path",
        r"(?<![\w<])(?:[A-Za-z]:\\|~?/|\.{1,2}/)[^\s'\":,;()\[\]<>]*[^\s'\":,;()\[\]<>.]",
        "/data/a.csv",
    ),
    (
        "uuid",
        r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
        "0190163d-8694-739b-aea5-966c26f8ad90",
    ),
    ("address", r"\b0[xX][0-9a-fA-F]+\b", "0x7f3a5c1b2d90"),
    (
        "time",
        r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b",
        "2026-01-02T03:04:05Z",
    ),
    ("ip", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "127.0.0.1:8080"),
    # Only with digits and letters: "deadbeef" and "facade" may be words.
    ("hash", r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b", "9f86d081884c7d65"),
    ("number", r"(?<![\w.])[-+]?\d[\d_]*(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?j?(?!\w)", "1,234.5"),
    # Numbered names: worker_12, column3.
    ("number", r"(?<=[A-Za-z_])\d+\b", "row17"),
)


_ANY = re.compile("|".join(f"(?P<{name}{i}>{pattern})" for i, (name, pattern, _) in enumerate(_VARIABLE)))


_SEVERAL = re.compile(r"(<\w+>)(?:,?\s+<\w+>)+|(<\w+>)(?:\s*[,:]\s*<\w+>)+")


def fingerprint(failure: Failure) -> str:
    """Return `v1:` and 16 hexadecimal digits; equal for failures of the same group."""
    parts = [failure.code, failure.ename, *_own_frames(failure), normalise(failure.evalue)]
    digest = hashlib.sha256("\n".join(parts).encode(errors="backslashreplace")).hexdigest()
    return f"{FINGERPRINT_VERSION}:{digest[:16]}"


def normalise(message: str) -> str:
    """Replace paths, quoted values, numbers, times and ids in a message by `<path>`, `<value>`, `<number>` and so on.

    Several in a row become one, so lists of three and of four values give the same message.
    """
    short = message[:_MESSAGE_MAX_CHARS]
    marked = _ANY.sub(lambda match: f"<{str(match.lastgroup).rstrip('0123456789')}>", short)
    return _SEVERAL.sub("<values>", " ".join(marked.split()))


def _own_frames(failure: Failure) -> list[str]:
    """Return the tool's own frames, outermost first; each function and line once, however deep the recursion."""
    lines = [f"{frame.name}|{' '.join(frame.line.split())}" for frame in failure.frames if frame.in_tool]
    if failure.code in _STOPPED:
        return lines[:1]
    # The depth of a mutual recursion does not matter, but the line where it ended does; except if the depth
    # itself was the failure.
    ended = [] if failure.ename == "RecursionError" else lines[-1:]
    return [*dict.fromkeys(lines), *ended]
