"""Reason of a search's patch: the lines that it changes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

#: The most characters of a line, and the most places, in the reason of a patch.
_LINE_MAX_CHARS, _PLACES_MAX = 70, 3


def explain(before: str, after: str, made_by: Sequence[str]) -> str:
    """Return which lines change, and by which kinds of edits, in one sentence."""
    old, new = before.splitlines(), after.splitlines()
    places = []
    for kind, low, high, other_low, other_high in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            continue
        out, come = _shown(old[low:high]), _shown(new[other_low:other_high])
        if kind == "insert":
            places.append(f"adds {come} {f'after line {low}' if low else 'at the top'}")
        elif kind == "delete":
            places.append(f"removes {out} in line {low + 1}")
        else:
            places.append(f"line {low + 1}: {out} becomes {come}")
    more = f"; and {len(places) - _PLACES_MAX} more" if len(places) > _PLACES_MAX else ""
    text = "; ".join(places[:_PLACES_MAX]) or "only the layout changes"
    return f"{text[0].upper()}{text[1:]}{more} ({', then '.join(made_by)})."


def _shown(lines: Sequence[str]) -> str:
    """Write lines on one, as Python could stand there: `if not games: return 0`."""
    text = "; ".join(line.strip() for line in lines if line.strip()).replace(":; ", ": ")
    return f"`{text if len(text) <= _LINE_MAX_CHARS else text[: _LINE_MAX_CHARS - 1] + '…'}`"
