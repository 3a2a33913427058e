"""Aside of a card that is drawn right after the failure.

An `Execution` read back from the log has no live variables. While the failed frame still exists, a notebook's card
shows them, says what was hidden of them, and how often this has happened.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from healkit.config import ExplainLevel
from healkit.contracts.post_mortem import Local
from healkit.rendering import plain
from healkit.rendering.document import Fold, Line, Only, Part, Section, Span, Table

#: Number of locals that a page shows unfolded; a terminal shows more, and counts the rest.
_OPEN_MAX, _TEXT_MAX = 6, 12


@dataclasses.dataclass(frozen=True)
class Aside:
    """Further facts at the moment of a failure.

    locals: the variables of the innermost own frame, already cleaned. hidden: how many values were taken out of them.
    history: how often it happened, as one sentence. tip: shown once, at the end. explained: the most that is explained,
    if given. why and fix: better words than those of the failure catalogue, in their place.
    """

    locals: Sequence[Local] = ()
    hidden: int = 0
    history: str = ""
    tip: str = ""
    explained: ExplainLevel = "fix"
    why: str = ""
    fix: str = ""


def history_line(count: int, first_seen: datetime, resolved_by: str) -> str:
    """Say how often it happened: `7th time since Tue 17 Nov 2026; last resolved by f v2`; "" for the first time.

    resolved_by: the label of the revision that resolved it last; empty where none has.
    """
    if count < 2:
        return ""
    since = f"{_ordinal(count)} time since {first_seen.strftime('%a')} {first_seen.day} {first_seen.strftime('%b %Y')}"
    return since + (f"; last resolved by {resolved_by}" if resolved_by else "; not resolved")


def locals_of(aside: Aside) -> list[Part]:
    """Build the table of the locals, and what was hidden of them; empty where there are none."""
    if not aside.locals:
        return []
    rows = [row_of(one, 60, 160) for one in aside.locals]
    more, folded = len(rows) - _TEXT_MAX, len(rows) - _OPEN_MAX
    parts: list[Part] = [
        Only("text", Table(("locals", "type", "value"), rows[:_TEXT_MAX], indent=2)),
        Only("html", Table(("local", "type", "value"), rows[:_OPEN_MAX], narrow_first=True)),
    ]
    if more > 0:
        parts.append(Only("text", Line(f"… {plain.count(more, 'more variable')}")))
    if folded > 0:
        rest = Table((), rows[_OPEN_MAX:], narrow_first=True)
        parts.append(Fold(plain.count(folded, "more variable"), (rest,)))
    if aside.hidden:
        looked = "they looked like secrets" if aside.hidden > 1 else "it looked like a secret"
        parts.append(Line(f"{plain.count(aside.hidden, 'value')} hidden: {looked}", "warn"))
    return [Section(parts)]


def row_of(one: Local, type_chars: int, value_chars: int) -> tuple[Span, Span, Span]:
    """Build a row of one variable: its name, its type with its shape, and the beginning of its text."""
    shape = "" if one.shape is None else f" {tuple(one.shape)}"
    return (
        Span(plain.one_line(one.name, 40), "code"),
        Span(plain.one_line(f"{one.type}{shape}", type_chars), "quiet"),
        Span(plain.one_line(one.repr, value_chars), "code"),
    )


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
