"""Writer of documents as static HTML.

The HTML reads without a kernel, in an untrusted notebook, on light and on dark pages. Each part of a document has one
function here, and each look one style; a subject knows no HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from healkit.rendering import cleaning
from healkit.rendering import markup as m
from healkit.rendering.document import (
    Card,
    Cell,
    Code,
    Diff,
    Document,
    Fact,
    Facts,
    Fold,
    Inline,
    Items,
    Line,
    LineLook,
    Only,
    Part,
    Section,
    Span,
    Steps,
    Table,
)
from healkit.rendering.markup import Html
from healkit.rendering.plain import count, one_line

_MONO_LINE = f"{m.MONO};margin-top:4px;white-space:pre-wrap;overflow-wrap:anywhere"
_LINES: dict[LineLook, str] = {
    "": "",
    "note": f"background-color:{m.AMBER_SOFT};color:{m.AMBER};padding:5px 12px",
    "quiet": f"color:{m.MUTED}",
    "warn": f"color:{m.AMBER}",
    "failing": _MONO_LINE,
    "hint": "margin-top:4px",
    "frame": "margin-top:3px",
    "command": "display:inline-block;margin:3px 16px 3px 0",
    "tip": "margin-top:6px",
    "step": "padding:2px 0",
    "wrapped": "overflow-wrap:anywhere",
}
_LAST_SECTION = f"padding:6px 12px 10px 12px;background-color:{m.PAPER};color:{m.INK}"
_STEP_BODY = f"margin:2px 0 6px 18px;color:{m.INK}"
_COMPACT_DIFF = (
    f"{m.MONO};color:{m.INK};background-color:{m.SOFT};margin:2px 0;padding:4px 8px"
    ";white-space:pre-wrap;overflow-wrap:anywhere"
)
_DIFF_LINE = f"{m.MONO};margin:0;white-space:pre-wrap;overflow-wrap:anywhere;padding:0 8px"


def html_of(document: Document) -> Html:
    """Write the document as HTML: one element for each card, which brings its own colours."""
    document = cleaning.document(document)
    cards = document if isinstance(document, tuple) else (document,)
    return m.join(map(_card, cards))


def _card(card: Card) -> Html:
    ink, paper = m.TONES[card.tone]
    head = []
    if card.title:
        head = [m.heading(card.mark, card.title, ink, paper, *map(_part, card.below))]
    return m.card(*head, *map(_block, card.parts), accent=ink, label=_label(card))


def _label(card: Card) -> str:
    """Name the card for a screen reader, with the tool's name where a terminal's first line has it."""
    return one_line((card.line or card.title).removeprefix(card.mark).strip(), 100)


def _block(part: Part) -> Html:
    """Write a part of a card, with its padding."""
    if isinstance(part, Only):
        return _block(part.part) if part.form == "html" else Html("")
    stands_alone = isinstance(part, Section | Diff) or (isinstance(part, Line) and part.look == "note")
    return _part(part) if stands_alone else m.section(_part(part))


def _part(part: Part) -> Html:
    match part:
        case Line(content, "bare"):
            return _inline(content)
        case Line(content, look):
            return m.tag("div", _inline(content), style=_LINES[look])
        case Items(items):
            return m.tag("ul", *(m.tag("li", m.ticked(item)) for item in items), style="margin:2px 0")
        case Code(text, height):
            return m.block(text, max_height=f"{height}px" if height else "")
        case Diff():
            return _diff(part)
        case Table():
            rows = ([_cell(cell) for cell in row] for row in part.rows)
            return m.table(part.headers, rows, narrow_first=part.narrow_first)
        case Facts(rows):
            return m.facts((name, _fact(value)) for name, value in rows)
        case Fold():
            return _fold(part)
        case Section(parts, is_last):
            inner = map(_part, parts)
            return m.tag("div", *inner, style=_LAST_SECTION) if is_last else m.section(*inner)
        case Only(form, inner):
            return _part(inner) if form == "html" else Html("")
        case Steps():
            return _steps(part)
        case Card():
            return _card(part)
        case _:
            return _inline(part)


def _inline(content: Inline) -> Html:
    spans: Sequence[str | Span] = content if isinstance(content, tuple) else (content,)
    return m.join(_span(span) if isinstance(span, Span) else span for span in spans)


def _span(span: Span) -> Html:
    text, (ink, paper) = span.text, m.TONES[span.tone]
    match span.look:
        case "code":
            return m.chip(text, ink, paper) if span.tone else m.chip(text)
        case "label":
            return m.chip(text, ink, m.PAPER)
        case "ticked":
            return m.ticked(text)
        case "quiet":
            return m.muted(text)
        case "strong":
            return m.tag("b", m.ticked(text), style=f"color:{ink}" if span.tone else "")
        case "state":
            return m.tag("b", text, style=f"color:{ink};white-space:nowrap")
        case "mark":
            style = f"color:{m.INK};background-color:{m.MARK};padding:1px 4px"
            return m.tag("mark", text, style=style)
        case "struck":
            return m.tag("del", text, style=f"color:{m.MUTED};text-decoration:line-through")
        case "moment":
            return m.moment(text)
        case "unbroken":
            return m.unbroken(text)
        case _:
            return m.join([text])


def _cell(cell: Cell) -> str:
    """Write a cell; plain words stay text, which the table measures."""
    return cell if isinstance(cell, str) else m.join(map(_part, cell if isinstance(cell, tuple) else (cell,)))


def _fact(fact: Fact) -> str:
    return fact if isinstance(fact, str) else _part(fact)


def _fold(fold: Fold) -> Html:
    body: Iterable[Html] = map(_part, fold.body)
    if fold.look != "step":
        return m.fold(_inline(fold.summary), *body, is_open=fold.is_open)
    summary = m.tag("summary", _inline(fold.summary), style="cursor:pointer")
    inner = m.tag("div", *body, style=_STEP_BODY)
    place = "padding:2px 0"
    if fold.tone:
        ink, paper = m.TONES[fold.tone]
        place = (
            f"padding:3px 8px;margin:2px 0;border-left:4px solid {ink};background-color:{paper};color:{m.INK}"
        )
    return m.tag("details", summary, inner, open=fold.is_open, style=place)


def _steps(steps: Steps) -> Html:
    """Write steps within a card's size: in full as far as there is room, then one line each, then counted.

    Steps of rank 0 are always in full; the last of the others make room for them.
    """
    drawn = {at: _part(step.brief) for at, step in enumerate(steps.steps)}
    room = steps.max_chars - sum(map(len, drawn.values()))
    others = [at for at in drawn if steps.steps[at].rank]
    for at in sorted(drawn, key=lambda at: (steps.steps[at].rank, at)):
        full = _part(steps.steps[at].full)
        more = len(full) - len(drawn[at])
        if more <= room or not steps.steps[at].rank:
            drawn[at], room = full, room - more
    gap = len(drawn)
    while room < 0 and others:
        gap = others.pop()
        room += len(drawn.pop(gap))
    if left := len(steps.steps) - len(drawn):
        drawn[gap] = m.tag("div", m.muted(f"… {count(left, 'more step')}"))
    return m.join(drawn[at] for at in sorted(drawn))


def _diff(diff: Diff) -> Html:
    if diff.compact:
        return m.tag("pre", *map(_compact_line, diff.text.splitlines()), style=_COMPACT_DIFF)
    lines = []
    for line in diff.text.rstrip("\n").split("\n"):
        name, ink, paper = _side(line)
        colours = f"color:{ink};background-color:{paper}"
        text = m.tag(name, line or " ", style=f"{colours};text-decoration:none")
        lines.append(m.tag("div", text, style=f"{_DIFF_LINE};{colours}"))
    return m.join(lines)


def _compact_line(line: str) -> Html:
    if line[:1] not in ("+", "-"):
        return m.join([line, "\n"])
    name, ink, paper = ("ins", m.GREEN, m.GREEN_SOFT) if line[0] == "+" else ("del", m.RED, m.RED_SOFT)
    style = f"color:{ink};background-color:{paper};text-decoration:none"
    return m.join([m.tag(name, line, style=style), "\n"])


def _side(line: str) -> tuple[str, str, str]:
    """Return element, ink and paper of one line of a diff."""
    if line.startswith(("+++", "---", "@@")):
        return "span", m.MUTED, m.SOFT
    if line.startswith("+"):
        return "ins", m.GREEN, m.GREEN_SOFT
    if line.startswith("-"):
        return "del", m.RED, m.RED_SOFT
    return "span", m.INK, m.PAPER
