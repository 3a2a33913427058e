"""The one mistake in SQL that no database complains of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit, apply_edits

_EQUALS_NULL = re.compile(r"(?P<sign>=|<>|!=)(?P<gap>\s*)(?P<null>NULL)\b", re.IGNORECASE)
_TEXT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_SET = re.compile(r"\bSET\b(?![^;]*\bWHERE\b)", re.IGNORECASE)


def mended(code: str) -> Iterator[tuple[str, str]]:
    """Other statements with what was changed: in SQL nothing equals NULL, not even NULL."""
    quoted = [match.span() for match in _TEXT.finditer(code)]
    edits = []
    for match in _EQUALS_NULL.finditer(code):
        start, end = match.span("sign")
        if any(a <= start < b for a, b in quoted) or _SET.search(code[:start]):
            continue
        word = "IS" if match["sign"] == "=" else "IS NOT"
        edits.append(Edit(start, end, f"{word}{'' if match['gap'] else ' '}"))
    if edits:
        yield apply_edits(code, edits), "In SQL nothing equals NULL; `IS NULL` asks for it."
