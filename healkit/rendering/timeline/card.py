"""Card of a timeline, which needs neither kernel nor script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from healkit.rendering import plain
from healkit.rendering.document import (
    Card,
    Diff,
    Fold,
    Line,
    Only,
    Part,
    Section,
    Span,
    Step,
    Steps,
    Table,
    Tone,
)

_TONES: dict[str, Tone] = {"good": "good", "warn": "warn", "bad": "bad", "": "ink"}
#: Limits of a card, in characters and in parts of a step; the widget and the run folder have it all.
_CARD_MAX_CHARS, _ROWS_MAX, _DIFF_LINES_MAX, _CHIPS_MAX = 22_000, 8, 60, 20
#: Column at which a step's text begins in a terminal, right of its number and its mark.
_INDENT = 7


def card(story: Mapping[str, Any]) -> Card:
    """Build a story's card: the attempts as a strip, and each step as a fold.

    A story with a `total` of steps has only the first of them, for a class. A card without room for every step in
    full shows the decided patch and the end in full.
    """
    found = story["steps"]
    decided = {step.get("attempt") for step in found if step["kind"] in ("decided", "recovered")} - {None}
    steps = [
        _step(number, step, rank=int(step.get("attempt") not in decided and number < len(found)))
        for number, step in enumerate(found, 1)
    ]
    problems = story["problems"]
    lines: list[Part] = [Only("html", Line(Span(problem, "quiet"))) for problem in problems[:_ROWS_MAX]]
    lines += [Only("text", Line(f"– {problem}")) for problem in problems]
    parts = (Section((Steps(steps, _CARD_MAX_CHARS), *lines)),)
    return Card(
        _title(story), tone=_tone(story), below=_chips(story["attempts"]), parts=parts, line=_title(story)
    )


def _title(story: Mapping[str, Any]) -> str:
    what = f"{story['label'] or 'A run'}" if story["profile"] == "heal" else "A run"
    counted = plain.count(story.get("total", len(story["steps"])), "step")
    if "total" in story:
        counted += "; the patches show as the class gets there"
    unfinished = "" if story["finished"] else ", and no end"
    return f"{what}, step by step: {counted}{unfinished} (run {story['run_id']})"


def _tone(story: Mapping[str, Any]) -> Tone:
    """Pick the tone by the outcome, as far as it is decided."""
    decided = [step["tone"] for step in story["steps"] if step["kind"] in ("decided", "recovered", "halted")]
    return _TONES[decided[-1] if decided else ""]


def _chips(attempts: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Show the attempts in one line; a page has the first of them only."""
    if not attempts:
        return []
    shown = [(_chip(attempt), _TONES.get(attempt["tone"], "ink")) for attempt in attempts]
    spaced = [part for words, tone in shown[:_CHIPS_MAX] for part in (Span(words, "code", tone), " ")]
    line = Line("   ".join(words for words, _ in shown), indent=5)
    return [Only("text", line), Only("html", Line(tuple(spaced)))]


def _chip(attempt: Mapping[str, Any]) -> str:
    by = f" · {attempt['advisor']}" if attempt["advisor"] else ""
    decided = f" ({attempt['decision']})" if attempt["decision"] else ""
    return f"{attempt['number']} {attempt['mark']} {attempt['words']}{by}{decided}"


def _step(number: int, step: Mapping[str, Any], rank: int) -> Step:
    mark = {"good": "✓", "bad": "✗", "warn": "!"}.get(step["tone"], "·")
    said = f"{mark} {plain.one_line(step['title'], 300)}"
    spoken = f"{number:>3}  {mark} {step['title']}"
    head = (
        Span(f"{number} ", "quiet", plain=""),
        Span(said, "strong", _TONES.get(step["tone"], "ink"), spoken),
    )
    brief = Line(head, "step", indent=0)
    below = _below(step)
    if not below:
        return Step(brief, brief, rank)
    is_open = step["kind"] in ("proposed", "decided", "halted")
    return Step(Fold(head, below, "both", is_open, "step", indent=0), brief, rank)


def _below(step: Mapping[str, Any]) -> list[Part]:
    """Show a step's text, its failed checks, its diff and its facts; the facts on a page only."""
    below: list[Part] = [Line(Span(said, "ticked"), indent=_INDENT) for said in step["text"]]
    if rows := [row for row in step.get("checks", ()) if row["mark"] != "✓"][:_ROWS_MAX]:
        names = ("mark", "origin", "what", "outcome", "wanted", "got")
        cells = [tuple(row[name] for name in names) for row in rows]
        below.append(Only("html", Table(("", "check", "with", "came to", "wanted", "got"), cells)))
        below += [Only("text", Line(_check(row), indent=_INDENT)) for row in rows]
    if lines := str(step.get("diff") or "").splitlines():
        more = len(lines) - _DIFF_LINES_MAX
        shown = [*lines[:_DIFF_LINES_MAX], *([f"… {plain.count(more, 'more line')}"] if more > 0 else [])]
        below.append(Diff("\n".join(shown), compact=True, indent=_INDENT))
    if said := " · ".join(f"{name} {value}" for name, value in step["facts"] if name != "code"):
        below.append(Only("html", Line(Span(said, "quiet"))))
    return below


def _check(row: Mapping[str, str]) -> str:
    wanted = f", wanted {row['wanted']}" if row["wanted"] else ""
    got = f": {row['got']}" if row["got"] else ""
    what = f" {row['what']}" if row["what"] else ""
    return f"{row['mark']} {row['origin']}{what} {row['outcome']}{got}{wanted}"
