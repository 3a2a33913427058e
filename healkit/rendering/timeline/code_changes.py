"""Code in a timeline: a patch's diff, and the failing line."""

from __future__ import annotations

import difflib
import re
from typing import Any

_FRAME = re.compile(r'^ *File "<[^>"]+>", line (\d+)', re.MULTILINE)


def difference(before: str, after: str) -> str:
    """Write the unified diff of two codes without its two head lines; empty where nothing differs."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    return "\n".join(list(lines)[2:])


def failing_line(failure: dict[str, Any]) -> int | None:
    """Find the innermost line of the tool's own code in a recorded failure, from 1."""
    frames = failure.get("frames")
    own = [f for f in frames if isinstance(f, dict) and f.get("in_tool")] if isinstance(frames, list) else []
    if own and isinstance(own[-1].get("lineno"), int):
        return int(own[-1]["lineno"])
    found = _FRAME.findall(str(failure.get("traceback") or ""))
    return int(found[-1]) if found else None
