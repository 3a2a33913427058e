"""A unified diff of two codes."""

from __future__ import annotations

import difflib


def unified_diff(before: str, after: str, old_label: str, new_label: str) -> str:
    """The diff with lines that end, whether or not the code's last line does; empty where nothing differs."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old_label, new_label, lineterm="")
    return "".join(f"{line}\n" for line in lines)
