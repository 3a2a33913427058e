"""A timeline as text, and as a card that needs neither kernel nor script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from healkit.rendering import markup as m
from healkit.rendering import plain
from healkit.rendering.markup import visible

_COLOURS = {
    "good": (m.GREEN, m.GREEN_SOFT),
    "warn": (m.AMBER, m.AMBER_SOFT),
    "bad": (m.RED, m.RED_SOFT),
    "": (m.INK, m.SOFT),
}
#: What a card holds at most, in characters and in parts of a step; a saved notebook should not grow much by it. The
#: widget and the run folder have it all.
_CARD_MAX_CHARS, _ROWS_MAX, _DIFF_LINES_MAX, _CHIPS_MAX = 22_000, 8, 60, 20


def timeline_text(story: Mapping[str, Any], width: int | None = None) -> str:
    """One line a step, with its sentences, its failed checks and its diff below it."""
    lines = [_title(story)]
    if story["attempts"]:
        lines.append("     " + "   ".join(visible(_chip(attempt)) for attempt in story["attempts"]))
    for number, step in enumerate(story["steps"], 1):
        lines.append(f"{number:>3}  {_mark(step)} {visible(step['title'])}")
        lines += [f"       {visible(said)}" for said in step["text"]]
        lines += [f"       {_row_text(row)}" for row in _worth_showing(step)]
        lines += [f"       {visible(line)}" for line in _diff_lines(step)]
    lines += [f"  – {visible(problem)}" for problem in story["problems"]]
    return "\n".join(line if width is None else line[: max(width, 40)] for line in lines)


def timeline_html(story: Mapping[str, Any]) -> str:
    """The same as a card: the attempts as a strip, and each step as a fold."""
    attempts, tone = story["attempts"][:_CHIPS_MAX], _tone(story)
    chips = [m.chip(_chip(attempt), *_COLOURS.get(attempt["tone"], _COLOURS[""])) for attempt in attempts]
    spaced = [part for chip in chips for part in (chip, m.Html(" "))]
    head = m.heading("", _title(story), *_COLOURS[tone], m.tag("div", *spaced) if spaced else m.Html(""))
    problems = [m.tag("div", m.muted(problem)) for problem in story["problems"][:_ROWS_MAX]]
    return m.card(head, m.section(*_within(story["steps"]), *problems), accent=_COLOURS[tone][0])


def _title(story: Mapping[str, Any]) -> str:
    what = (
        f"{story['label'] or 'A run'}, step by step" if story["profile"] == "heal" else "A run, step by step"
    )
    counted = plain.count(len(story["steps"]), "step")
    unfinished = "" if story["finished"] else ", and no end"
    return f"{what}: {counted}{unfinished} (run {visible(story['run_id'])})"


def _tone(story: Mapping[str, Any]) -> str:
    """How it went, as far as it is decided."""
    decided = [step["tone"] for step in story["steps"] if step["kind"] in ("decided", "recovered", "halted")]
    return str(decided[-1]) if decided else ""


def _chip(attempt: Mapping[str, Any]) -> str:
    by = f" · {attempt['advisor']}" if attempt["advisor"] else ""
    decided = f" ({attempt['decision']})" if attempt["decision"] else ""
    return f"{attempt['number']} {attempt['mark']} {attempt['words']}{by}{decided}"


def _mark(step: Mapping[str, Any]) -> str:
    return {"good": "✓", "bad": "✗", "warn": "!"}.get(step["tone"], "·")


def _worth_showing(step: Mapping[str, Any]) -> list[dict[str, str]]:
    """The checks that did not pass; of those that did, how many is said with them."""
    return [row for row in step.get("checks", ()) if row["mark"] != "✓"][:_ROWS_MAX]


def _row_text(row: Mapping[str, str]) -> str:
    wanted = f", wanted {row['wanted']}" if row["wanted"] else ""
    got = f": {row['got']}" if row["got"] else ""
    what = f" {row['what']}" if row["what"] else ""
    return visible(f"{row['mark']} {row['origin']}{what} {row['outcome']}{got}{wanted}")


def _diff_lines(step: Mapping[str, Any]) -> Iterator[str]:
    lines = str(step.get("diff") or "").splitlines()
    yield from lines[:_DIFF_LINES_MAX]
    if len(lines) > _DIFF_LINES_MAX:
        yield f"… {plain.count(len(lines) - _DIFF_LINES_MAX, 'more line')}"


def _within(steps: Sequence[Mapping[str, Any]]) -> list[m.Html]:
    """The steps within a card's size: in full as far as there is room, then one line each, then counted.

    What was decided about comes first: a card that has room for one patch shows that one.
    """
    decided = {step.get("attempt") for step in steps if step["kind"] in ("decided", "recovered")} - {None}
    drawn = [_line_html(number, step) for number, step in enumerate(steps, 1)]
    room = _CARD_MAX_CHARS - sum(map(len, drawn))
    for at in sorted(range(len(steps)), key=lambda at: (steps[at].get("attempt") not in decided, at)):
        full = _step_html(at + 1, steps[at])
        more = len(full) - len(drawn[at])
        if more <= room:
            drawn[at], room = full, room - more
    while room < 0:
        room += len(drawn.pop())
    if left := len(steps) - len(drawn):
        drawn.append(m.tag("div", m.muted(f"… {plain.count(left, 'more step')}")))
    return drawn


def _head(number: int, step: Mapping[str, Any]) -> m.Html:
    ink, _ = _COLOURS.get(step["tone"], _COLOURS[""])
    said = f"{_mark(step)} {plain.one_line(step['title'], 300)}"
    return m.join([m.muted(f"{number} "), m.tag("b", m.ticked(said), style=f"color:{ink}")])


def _line_html(number: int, step: Mapping[str, Any]) -> m.Html:
    return m.tag("div", _head(number, step), style="padding:2px 0")


def _step_html(number: int, step: Mapping[str, Any]) -> m.Html:
    below = [m.tag("div", m.ticked(said)) for said in step["text"]]
    names = ("mark", "origin", "what", "outcome", "wanted", "got")
    rows = [tuple(row[name] for name in names) for row in _worth_showing(step)]
    below += [m.table(("", "check", "with", "came to", "wanted", "got"), rows)] if rows else []
    if diff := [_diff_line(line) for line in _diff_lines(step)]:
        style = f"{m.MONO};color:{m.INK};background-color:{m.SOFT};margin:2px 0;padding:4px 8px"
        below.append(m.tag("pre", *diff, style=f"{style};white-space:pre-wrap;overflow-wrap:anywhere"))
    if said := " · ".join(f"{name} {value}" for name, value in step["facts"] if name != "code"):
        below.append(m.tag("div", m.muted(said)))
    if not below:
        return _line_html(number, step)
    summary = m.tag("summary", _head(number, step), style="cursor:pointer")
    opened = step["kind"] in ("proposed", "decided", "halted")
    inner = m.tag("div", *below, style=f"margin:2px 0 6px 18px;color:{m.INK}")
    return m.tag("details", summary, inner, open=opened, style="padding:2px 0")


def _diff_line(line: str) -> m.Html:
    """One line of a diff, told apart by its sign, its element and its colour."""
    looks = {"+": ("ins", m.GREEN, m.GREEN_SOFT), "-": ("del", m.RED, m.RED_SOFT)}
    if line[:1] not in looks:
        return m.join([line, "\n"])
    name, ink, paper = looks[line[0]]
    style = f"color:{ink};background-color:{paper};text-decoration:none"
    return m.join([m.tag(name, line, style=style), "\n"])
