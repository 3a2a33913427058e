"""What a card adds when it is drawn right after the failure.

An `Execution` read back from the log has no live variables. While the failed frame still exists, a notebook's card
shows them, says what was hidden of them, and how often this has happened.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from healkit.config import ExplainLevel
from healkit.contracts.post_mortem import Local
from healkit.rendering import markup as m
from healkit.rendering import plain
from healkit.rendering.markup import Html, visible

#: More than so many locals are folded.
_OPEN_MAX = 6
_TEXT_MAX = 12


@dataclasses.dataclass(frozen=True)
class Aside:
    """What else is known at the moment of a failure.

    locals: the variables of the innermost own frame, cleaned already. hidden: how many values were taken out of them.
    history: how often it happened, as one sentence. tip: shown once, at the end. explained: at most so far, if given.
    why and mend: what is known better than the tables of explanations know it, in the place of their words.
    """

    locals: Sequence[Local] = ()
    hidden: int = 0
    history: str = ""
    tip: str = ""
    explained: ExplainLevel = "fix"
    why: str = ""
    mend: str = ""


def history_line(count: int, first_seen: datetime, cured_by: int | None) -> str:
    """`7th time since Tue 17 Nov 2026; last cured by revision 2`, or an empty text for the first time."""
    if count < 2:
        return ""
    since = f"{_ordinal(count)} time since {first_seen.strftime('%a')} {first_seen.day} {first_seen.strftime('%b %Y')}"
    return since + (f"; last cured by revision {cured_by}" if cured_by is not None else "; not cured yet")


def hidden_line(hidden: int) -> str:
    """`2 values hidden: looked like secrets`, or an empty text."""
    looked = "they looked like secrets" if hidden > 1 else "it looked like a secret"
    return f"{plain.count(hidden, 'value')} hidden: {looked}" if hidden else ""


def locals_lines(aside: Aside) -> list[str]:
    """The locals as lines of text, aligned."""
    if not aside.locals:
        return []
    rows = [_row(one) for one in aside.locals[:_TEXT_MAX]]
    lines = plain.text_table(("locals", "type", "value"), rows).splitlines()
    more = len(aside.locals) - _TEXT_MAX
    lines += [f"… {plain.count(more, 'more variable')}"] if more > 0 else []
    lines += [hidden_line(aside.hidden)] if aside.hidden else []
    return [visible(line) for line in lines]


def locals_section(aside: Aside) -> Html:
    """The locals as a table; many of them are folded."""
    if not aside.locals:
        return Html("")
    rows = [(m.chip(name), m.muted(kind), m.chip(value)) for name, kind, value in map(_row, aside.locals)]
    parts: list[str] = [m.table(("local", "type", "value"), rows[:_OPEN_MAX], narrow_first=True)]
    if len(rows) > _OPEN_MAX:
        more = plain.count(len(rows) - _OPEN_MAX, "more variable")
        parts.append(m.fold(more, m.table((), rows[_OPEN_MAX:], narrow_first=True)))
    if aside.hidden:
        parts.append(m.tag("div", hidden_line(aside.hidden), style=f"color:{m.AMBER}"))
    return m.section(*parts)


def _row(one: Local) -> tuple[str, str, str]:
    shape = "" if one.shape is None else f" {tuple(one.shape)}"
    return (
        plain.one_line(one.name, 40),
        plain.one_line(f"{one.type}{shape}", 60),
        plain.one_line(one.repr, 160),
    )


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
