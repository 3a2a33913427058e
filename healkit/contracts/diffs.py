"""Unified diff of two codes."""

from __future__ import annotations

import difflib


def unified_diff(before: str, after: str, old_label: str, new_label: str) -> str:
    """Return the diff with a line end on each line, even if the code's last line has none; empty for equal codes."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old_label, new_label, lineterm="")
    return "".join(f"{line}\n" for line in lines)
