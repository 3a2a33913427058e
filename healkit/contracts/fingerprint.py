"""Fingerprints: one name for all instances of one failure.

Made of the exception's type, the tool's own frames (function and code line each) and the message without everything
that changes from run to run. Line numbers, revisions, libraries' frames and values are left out: a comment added above,
another input, or another machine's paths do not make another failure. A helper that raises two messages from one line
does make two.

The number in front is the algorithm's: fingerprints of two versions are never equal, so a change never mixes groups.
Sentry's grouping is built of the same parts (stack trace in the app, type, parameterised message).
"""

from __future__ import annotations

import hashlib
import re

from healkit.contracts.failure import Failure

VERSION = "v1"

#: Endings of executions stopped from outside, whose stack is random.
_STOPPED = {"TOOL_TIMEOUT", "TOOL_CPU_LIMIT", "TOOL_KILLED", "TOOL_OUT_OF_MEMORY", "WORKER_LOST"}

_MESSAGE_MAX_CHARS = 2000

#: Varying part of a message → its replacement, tried in this order; each row has an example.
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
    """Return `v1:` and 16 hexadecimal digits; equal for failures that should be grouped."""
    parts = [failure.code, failure.ename, *_stack(failure), normalise(failure.evalue)]
    digest = hashlib.sha256("\n".join(parts).encode(errors="backslashreplace")).hexdigest()
    return f"{VERSION}:{digest[:16]}"


def normalise(message: str) -> str:
    """Replace paths, quoted values, numbers, times and ids of a message by `<path>`, `<value>`, `<number>` and so on.

    Several in a row become one: a list of three values and one of four give the same message.
    """
    short = message[:_MESSAGE_MAX_CHARS]
    marked = _ANY.sub(lambda match: f"<{str(match.lastgroup).rstrip('0123456789')}>", short)
    return _SEVERAL.sub("<values>", " ".join(marked.split()))


def _stack(failure: Failure) -> list[str]:
    """Return the tool's own frames, outermost first, each function and line once however deep it recurses."""
    own = [f"{frame.name}|{' '.join(frame.line.split())}" for frame in failure.frames if frame.in_tool]
    if failure.code in _STOPPED:
        return own[:1]
    # How deep two functions called each other is no part of what went wrong, where it ended is; unless the depth
    # itself was the failure.
    ended = [] if failure.ename == "RecursionError" else own[-1:]
    return [*dict.fromkeys(own), *ended]
