"""Writer of documents as static HTML.

The HTML is readable without a kernel, in an untrusted notebook, on light and on dark pages. Each part of a document has
one function here, and each look one style. Subjects contain no HTML.

An untrusted notebook removes `<style>`, scripts, SVG, roles and `var()`, so every element has its own colours. A card
sets both background and text colour, and so is readable on light and dark pages. Each literal colour is followed by its
variant from the page's theme. A trusted notebook in JupyterLab and pages by nbconvert use the variant. If JupyterLab's
variables are not defined, the literal colour is used. All text is escaped, including text from a worker, unless it is
`Html` already. So escaping cannot be forgotten.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from functools import cache

from healkit.core.rendering import cleaning
from healkit.core.rendering.document import (
    Card,
    Cell,
    Code,
    Diff,
    Document,
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
    Tone,
)
from healkit.core.rendering.plain import count, one_line, visible
from healkit.plain_text import TICKED


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


INK, PAPER, SOFT, LINE, MUTED = "#1f2328", "#ffffff", "#f4f5f7", "#d5d9df", "#57606a"
RED, RED_SOFT = "#a8201a", "#fdeceb"
GREEN, GREEN_SOFT = "#176639", "#e5f4ea"
AMBER, AMBER_SOFT = "#7a4a00", "#fff3da"
BLUE, BLUE_SOFT = "#0a4f94", "#e8f1fb"
PURPLE, PURPLE_SOFT = "#6b2ba0", "#f3eafc"
MARK = "#ffe08a"
#: Tone → text and background colour.
TONES: dict[Tone, tuple[str, str]] = {
    "": (LINE, PAPER),
    "good": (GREEN, GREEN_SOFT),
    "warn": (AMBER, AMBER_SOFT),
    "bad": (RED, RED_SOFT),
    "info": (BLUE, BLUE_SOFT),
    "ai": (PURPLE, PURPLE_SOFT),
    "quiet": (MUTED, SOFT),
    "ink": (INK, SOFT),
}
#: Each colour in the theme: the page's own colours for text and background, and mixtures with them, which are
#: readable on both. A name must not contain a colour's name: in an untrusted notebook, JupyterLab would keep
#: `var(--hk-red)` but remove its definition.
_THEME = {
    INK: ("ink", f"var(--jp-content-font-color1,{INK})"),
    PAPER: ("paper", f"var(--jp-layout-color0,{PAPER})"),
    SOFT: ("soft", "color-mix(in srgb,var(--hk-ink) 7%,var(--hk-paper))"),
    LINE: ("line", "color-mix(in srgb,var(--hk-ink) 22%,var(--hk-paper))"),
    MUTED: ("muted", "color-mix(in srgb,var(--hk-ink) 72%,var(--hk-paper))"),
    RED: ("bad", "color-mix(in srgb,#e5231b 60%,var(--hk-ink))"),
    RED_SOFT: ("bad-soft", "color-mix(in srgb,#e5231b 12%,var(--hk-paper))"),
    GREEN: ("good", "color-mix(in srgb,#12a150 58%,var(--hk-ink))"),
    GREEN_SOFT: ("good-soft", "color-mix(in srgb,#12a150 12%,var(--hk-paper))"),
    AMBER: ("warn", "color-mix(in srgb,#c98500 58%,var(--hk-ink))"),
    AMBER_SOFT: ("warn-soft", "color-mix(in srgb,#e09600 13%,var(--hk-paper))"),
    BLUE: ("info", "color-mix(in srgb,#1a73d9 60%,var(--hk-ink))"),
    BLUE_SOFT: ("info-soft", "color-mix(in srgb,#1a73d9 12%,var(--hk-paper))"),
    PURPLE: ("ai", "color-mix(in srgb,#a24df0 60%,var(--hk-ink))"),
    PURPLE_SOFT: ("ai-soft", "color-mix(in srgb,#a24df0 13%,var(--hk-paper))"),
    MARK: ("mark", "color-mix(in srgb,#f2b600 38%,var(--hk-paper))"),
}
_LITERAL = re.compile("|".join(_THEME))
MONO = "font-family:monospace;font-size:12px"
_CARD = (
    f"background-color:{PAPER};color:{INK};border:1px solid {LINE};border-radius:6px;max-width:1200px;"
    "margin:6px 0;font-family:sans-serif;font-family:var(--jp-ui-font-family,sans-serif)"
    ";font-size:13px;line-height:1.45;overflow:hidden;overflow-wrap:anywhere"
)
#: Theme colours of a card. Those of `ai` are only defined in such a card, to keep other cards small.
_AI = {PURPLE, PURPLE_SOFT}
_DEFINED = ";".join(f"--hk-{name}:{value}" for key, (name, value) in _THEME.items() if key not in _AI)
_DEFINED_AI = ";".join(f"--hk-{name}:{value}" for name, value in (_THEME[key] for key in sorted(_AI)))
#: Mark → the paths of its picture and its colour, visible on light and dark: few fonts have these characters.
_PICTURES = {
    "🛡": (
        "%23239159",
        (
            "<path d='M8 1 2.5 3v5c0 3.4 2.4 5.9 5.5 7 3.1-1.1 5.5-3.6 5.5-7V3z'/>"
            "<path d='m5.3 8 2 2 3.4-4' fill='none' stroke='white' stroke-width='1.6'/>"
        ),
    ),
    "🗄": (
        "%232f7fd0",
        (
            "<path d='M2.5 3.5v9c0 1.2 2.5 2.2 5.5 2.2s5.5-1 5.5-2.2v-9z'/>"
            "<ellipse cx='8' cy='3.5' rx='5.5' ry='2.2' stroke='white' stroke-width='.8'/>"
            "<path d='M2.5 8c0 1.2 2.5 2.2 5.5 2.2s5.5-1 5.5-2.2' fill='none' stroke='white' stroke-width='.8'/>"
        ),
    ),
}
_TAG = re.compile(r"<[^>]*>")
#: A cell with more characters is prose: it may break anywhere, but keeps a readable width.
_PROSE_LEAST_CHARS = 40
_LINES: dict[LineLook, str] = {
    "": "",
    "note": f"background-color:{AMBER_SOFT};color:{AMBER};padding:5px 12px",
    "quiet": f"color:{MUTED}",
    "warn": f"color:{AMBER}",
    "hint": "margin-top:4px",
    "frame": "margin-top:3px",
    "command": "display:inline-block;margin:3px 16px 3px 0",
    "tip": "margin-top:6px",
    "step": "padding:2px 0",
    "wrapped": "overflow-wrap:anywhere",
}
_LAST_SECTION = f"padding:6px 12px 10px 12px;background-color:{PAPER};color:{INK}"
_STEP_BODY = f"margin:2px 0 6px 18px;color:{INK}"
_COMPACT_DIFF = (
    f"{MONO};color:{INK};background-color:{SOFT};margin:2px 0;padding:4px 8px"
    ";white-space:pre-wrap;overflow-wrap:anywhere"
)
_DIFF_LINE = f"{MONO};margin:0;white-space:pre-wrap;overflow-wrap:anywhere;padding:0 8px"


def html_of(document: Document) -> Html:
    """Return the document as HTML: one element for each card, with its own colours."""
    document = cleaning.document(document)
    cards = document if isinstance(document, tuple) else (document,)
    return join(map(_card, cards))


def _card(card: Card) -> Html:
    ink, paper = TONES[card.tone]
    head = []
    if card.title:
        head = [heading(card.mark, card.title, ink, paper, *map(_part, card.below))]
    return card_frame(*head, *map(_block, card.parts), accent=ink, label=_label(card))


def _label(card: Card) -> str:
    """Return a card's name for a screen reader, with the tool's name if a terminal's first line has it."""
    return one_line((card.line or card.title).removeprefix(card.mark).strip(), 100)


def _block(part: Part) -> Html:
    """Return a part of a card, with its padding."""
    if isinstance(part, Only):
        return _block(part.part) if part.form == "html" else Html("")
    stands_alone = isinstance(part, Section | Diff) or (isinstance(part, Line) and part.look == "note")
    return _part(part) if stands_alone else section(_part(part))


def _part(part: Part) -> Html:
    match part:
        case Line(content, "bare"):
            return _inline(content)
        case Line(content, look):
            return tag("div", _inline(content), style=_LINES[look])
        case Items(items):
            return tag("ul", *(tag("li", ticked(item)) for item in items), style="margin:2px 0")
        case Code(text, height):
            return block(text, max_height=f"{height}px" if height else "")
        case Diff():
            return _diff(part)
        case Table():
            rows = ([_cell(cell) for cell in row] for row in part.rows)
            return table(part.headers, rows, narrow_first=part.narrow_first)
        case Facts(rows):
            return facts((name, value if isinstance(value, str) else _part(value)) for name, value in rows)
        case Fold():
            return _fold(part)
        case Section(parts, is_last):
            inner = map(_part, parts)
            return tag("div", *inner, style=_LAST_SECTION) if is_last else section(*inner)
        case Only(form, inner):
            return _part(inner) if form == "html" else Html("")
        case Steps():
            return _steps(part)
        case Card():
            return _card(part)
        case _:
            return _inline(part)


def _inline(content: Inline) -> Html:
    if isinstance(content, Span):
        return _span(content)
    if isinstance(content, str):
        return join((content,))
    return join([_span(span) if isinstance(span, Span) else span for span in content])


def _span(span: Span) -> Html:
    text, (ink, paper) = span.text, TONES[span.tone]
    match span.look:
        case "code":
            return chip(text, ink, paper) if span.tone else chip(text)
        case "label":
            return chip(text, ink, PAPER)
        case "ticked":
            return ticked(text)
        case "quiet":
            return muted(text)
        case "strong":
            return tag("b", ticked(text), style=f"color:{ink}" if span.tone else "")
        case "state":
            return tag("b", text, style=f"color:{ink};white-space:nowrap")
        case "mark":
            style = f"color:{INK};background-color:{MARK};padding:1px 4px"
            return tag("mark", text, style=style)
        case "struck":
            return tag("del", text, style=f"color:{MUTED};text-decoration:line-through")
        case "moment":
            return moment(text)
        case "unbroken":
            return unbroken(text)
        case _:
            return join([text])


def _cell(cell: Cell) -> str:
    """Return a cell; plain words remain text, which the table measures."""
    return cell if isinstance(cell, str) else join(map(_part, cell if isinstance(cell, tuple) else (cell,)))


def _fold(part: Fold) -> Html:
    body: Iterable[Html] = map(_part, part.body)
    if part.look != "step":
        return fold(_inline(part.summary), *body, is_open=part.is_open)
    summary = tag("summary", _inline(part.summary), style="cursor:pointer")
    inner = tag("div", *body, style=_STEP_BODY)
    place = "padding:2px 0"
    if part.tone:
        ink, paper = TONES[part.tone]
        place = (
            f"padding:3px 8px;margin:2px 0;border-left:4px solid {ink};background-color:{paper};color:{INK}"
        )
    return tag("details", summary, inner, open=part.is_open, style=place)


def _steps(steps: Steps) -> Html:
    """Return steps within a card's size limit: in full while there is room, then one line each, then counted.

    Steps of rank 0 are always in full; the last of the other steps are shortened to make room.
    """
    drawn = {at: _part(step.brief) for at, step in enumerate(steps.steps)}
    room = steps.max_chars - sum(map(len, drawn.values()))
    removable = [at for at in drawn if steps.steps[at].rank]
    for at in sorted(drawn, key=lambda at: (steps.steps[at].rank, at)):
        full = _part(steps.steps[at].full)
        more = len(full) - len(drawn[at])
        if more <= room or not steps.steps[at].rank:
            drawn[at], room = full, room - more
    gap = len(drawn)
    while room < 0 and removable:
        gap = removable.pop()
        room += len(drawn.pop(gap))
    if dropped_count := len(steps.steps) - len(drawn):
        drawn[gap] = tag("div", muted(f"… {count(dropped_count, 'more step')}"))
    return join(drawn[at] for at in sorted(drawn))


def _diff(diff: Diff) -> Html:
    if diff.compact:
        return tag("pre", *map(_compact_line, diff.text.splitlines()), style=_COMPACT_DIFF)
    lines = []
    for line in diff.text.rstrip("\n").split("\n"):
        name, ink, paper = _side(line)
        colours = f"color:{ink};background-color:{paper}"
        text = tag(name, line or " ", style=f"{colours};text-decoration:none")
        lines.append(tag("div", text, style=f"{_DIFF_LINE};{colours}"))
    return join(lines)


def _compact_line(line: str) -> Html:
    if line[:1] not in ("+", "-"):
        return join([line, "\n"])
    name, ink, paper = ("ins", GREEN, GREEN_SOFT) if line[0] == "+" else ("del", RED, RED_SOFT)
    style = f"color:{ink};background-color:{paper};text-decoration:none"
    return join([tag(name, line, style=style), "\n"])


def _side(line: str) -> tuple[str, str, str]:
    """Return the element, text colour and background of one line of a diff."""
    if line.startswith(("+++", "---", "@@")):
        return "span", MUTED, SOFT
    if line.startswith("+"):
        return "ins", GREEN, GREEN_SOFT
    if line.startswith("-"):
        return "del", RED, RED_SOFT
    if line.startswith("!"):  # a note above the diff: the patch affects more than this
        return "strong", RED, PAPER
    return "span", INK, PAPER


# Elements.


def tag(name: str, *children: str, style: str = "", **attributes: str | bool) -> Html:
    """Build one element; children that are not `Html` are escaped. A True attribute has no value."""
    parts = [f'style="{html.escape(themed(style))}"'] if style else []
    for key, value in attributes.items():
        if value is True:
            parts.append(key)
        elif value is not False:
            parts.append(f'{key}="{html.escape(value)}"')
    opening = " ".join([name, *parts])
    return Html(f"<{opening}>{join(children)}</{name}>")


@cache
def themed(style: str) -> str:
    """Return the style, repeating each declaration of our colours with the page's theme."""
    declarations = []
    for declaration in style.split(";"):
        declarations.append(declaration)
        if not declaration.startswith("--") and _LITERAL.search(declaration):
            declarations.append(_LITERAL.sub(lambda m: f"var(--hk-{_THEME[m[0]][0]})", declaration))
    return ";".join(declarations)


def join(children: Iterable[str]) -> Html:
    """Concatenate children; those that are not `Html` are escaped."""
    text = ""
    for child in children:
        text += child if isinstance(child, Html) else html.escape(visible(child))
    return Html(text)


def card_frame(*children: str, accent: str = LINE, label: str = "") -> Html:
    """Build the frame of a card, with its own colours and a bar that shows the outcome.

    label: Its name for a screen reader, which can then go from card to card.
    """
    defined = f"{_DEFINED};{_DEFINED_AI}" if accent in _AI else _DEFINED
    style = f"{defined};{_CARD};border-left:5px solid {accent}"
    return tag("div", *children, style=style, **({"role": "region", "aria-label": label} if label else {}))


def heading(mark: str, text: str, colour: str, background: str, *below: str) -> Html:
    """Build the first line of a card: a mark and a sentence, and the parts directly below."""
    style = f"color:{colour};font-size:15px;overflow-wrap:anywhere"
    # A heading by its role: to an element such as h3, JupyterLab adds a link and an entry in the table of
    # contents.
    line = tag("div", tag("b", picture(mark), f" {text}"), style=style, role="heading", **{"aria-level": "3"})
    return tag("div", line, *below, style=f"background-color:{background};color:{INK};padding:8px 12px")


def picture(mark: str) -> str:
    """Return a mark, as a picture if it has one; a page without pictures shows the character."""
    if mark not in _PICTURES:
        return mark
    colour, paths = _PICTURES[mark]
    begin = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='{colour}'>"
    source = f"data:image/svg+xml,{begin}{paths}</svg>"
    place = "display:inline;vertical-align:-2px;margin:0;max-width:none"
    image = tag("img", src=source, alt=mark, width="16", height="16", style=place)
    return Html(image.removesuffix("</img>"))


def section(*children: str) -> Html:
    """Build a block of a card with its usual padding."""
    return tag("div", *children, style=f"padding:6px 12px;background-color:{PAPER};color:{INK}")


def muted(text: str) -> Html:
    """Build secondary text, with a contrast of 6 to 1."""
    return tag("span", text, style=f"color:{MUTED}")


def chip(text: str, colour: str = INK, background: str = SOFT) -> Html:
    """Build a short code-like word with its own colours."""
    style = f"{MONO};color:{colour};background-color:{background};border:1px solid {LINE};border-radius:4px"
    return tag("code", text, style=f"{style};padding:1px 6px;white-space:pre-wrap")


def ticked(text: str) -> Html:
    """Build text with the parts in backticks as code."""
    pieces = TICKED.split(text)
    if len(pieces) > 1:
        pieces = [chip(piece) if i % 2 else piece for i, piece in enumerate(pieces)]
    return join(pieces)


def block(text: str, *, max_height: str = "") -> Html:
    """Build preformatted text that wraps, so that a long line never widens the page."""
    scroll = f";max-height:{max_height};overflow:auto" if max_height else ""
    style = f"{MONO};color:{INK};background-color:{SOFT};padding:6px 8px;margin:2px 0;border-radius:4px"
    focus = {"tabindex": "0"} if max_height else {}  # so that the arrow keys can scroll it
    return tag("pre", text, style=f"{style};white-space:pre-wrap;overflow-wrap:anywhere{scroll}", **focus)


def fold(summary: str, *children: str, is_open: bool = False) -> Html:
    """Build a part that opens on a click, without a script."""
    head = tag("summary", summary, style=f"cursor:pointer;color:{MUTED}")
    return tag("details", head, *children, open=is_open, style="margin:2px 0")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, narrow_first: bool = False) -> Html:
    """Build a table whose rows have their own colours, since a page's zebra stripes may be dark under dark text.

    A table with headers does not break words; a card that is too narrow scrolls it.
    """
    cell = "text-align:left;vertical-align:top;padding:3px 10px 3px 0;line-height:1.5"
    cell += ";border:0;white-space:normal"
    wraps = ("overflow-wrap:break-word", "overflow-wrap:anywhere;min-width:16em")
    if not headers:
        wraps = ("overflow-wrap:anywhere",) * 2
    row_style = f"background-color:{PAPER};color:{INK};border:0;border-bottom:1px solid {LINE}"
    head = tag(
        "tr",
        *(
            tag("th", h, style=f"{cell};{wraps[0]};color:{MUTED};font-weight:normal", scope="col")
            for h in headers
        ),
        style=row_style,
    )
    body = []
    for row in rows:
        looks = [f"{cell};{wraps[_is_prose(item)]}" for item in row]
        styles = [f"{look};width:110px" if narrow_first and i == 0 else look for i, look in enumerate(looks)]
        cells = [tag("td", item, style=look) for item, look in zip(row, styles, strict=True)]
        if narrow_first and not headers:
            cells[0] = tag("th", row[0], style=f"{styles[0]};font-weight:normal", scope="row")
        body.append(tag("tr", *cells, style=row_style))
    parts = [tag("thead", head)] if headers else []
    style = "table-layout:auto;border-collapse:collapse;margin:0;font-size:12px;border:0;width:100%"
    element = tag("table", *parts, tag("tbody", *body), style=style)
    return tag("div", element, style="overflow-x:auto") if headers else element


def moment(text: str) -> Html:
    """Build a time from the text of `plain.moment`; a narrow column breaks it only between day and time."""
    day, _, time = text.partition(" ")
    return join([unbroken(day), " ", unbroken(time)])


def unbroken(text: str) -> Html:
    """Build text that stays on one line."""
    return tag("span", text, style="white-space:nowrap")


def _is_prose(cell: str) -> bool:
    text = _TAG.sub("", cell) if isinstance(cell, Html) else cell
    return len(text) >= _PROSE_LEAST_CHARS


def facts(rows: Iterable[tuple[str, str]]) -> Html:
    """Build names and values, one pair per line."""
    style = f"color:{MUTED};white-space:nowrap;padding-right:12px"
    return table((), ((tag("span", name, style=style), value) for name, value in rows), narrow_first=True)
