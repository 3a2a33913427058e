"""Fingerprints: one name for all the failures that are the same failure.

Exception type plus the tool's own frames, each as function and code line. Line numbers and messages are left
out: a comment added above, or another value in the message, does not make it another failure.
"""

from __future__ import annotations

import hashlib

from healkit.contracts.failure import Failure

VERSION = 1


def fingerprint(failure: Failure) -> str:
    """`1:` and 16 hexadecimal digits; equal for failures that should be grouped."""
    own = [frame for frame in failure.frames if frame.in_tool]
    parts = [failure.code, failure.ename]
    previous = ""
    for frame in own:
        part = f"{frame.name}|{' '.join(frame.line.split())}"
        if part != previous:  # a recursion's depth is not part of what went wrong
            parts.append(part)
        previous = part
    if not own:
        parts.append(failure.evalue if failure.code != "TOOL_EXCEPTION" else "")
    digest = hashlib.sha256("\n".join(parts).encode(errors="backslashreplace")).hexdigest()
    return f"{VERSION}:{digest[:16]}"
