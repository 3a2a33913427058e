"""Writer of documents as plain text.

For a terminal, a log or `str()`. All text is made `visible`, so text from a worker cannot move the cursor or colour the
line around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
    Only,
    Part,
    Section,
    Span,
    Steps,
    Table,
)
from healkit.core.rendering.plain import text_table, visible
from healkit.plain_text import untick

#: Indentation of code in a fact.
_MARGIN = "    │ "


def text_of(document: Document, width: int | None = None) -> str:
    """Return the document as lines; if `width` is given, a table's widest column is cut to it."""
    document = cleaning.document(document)
    cards = document if isinstance(document, tuple) else (document,)
    return "\n".join(line for card in cards for line in _card(card, width))


def words_of(content: Inline) -> str:
    """Return the words of a line or a cell, without their looks."""
    if isinstance(content, tuple):
        return "".join(map(words_of, content))
    if isinstance(content, Span):
        if content.plain is not None:
            return visible(content.plain)
        content = untick(content.text) if content.look in ("ticked", "strong") else content.text
    return visible(content)


def _card(card: Card, width: int | None) -> Iterator[str]:
    first = f"{card.mark} {card.title}" if card.mark else card.title
    first = first if card.line is None else card.line
    if first:
        yield visible(first)
    yield from _parts(card.below, width)
    yield from _parts(card.parts, width)


def _parts(parts: Iterable[Part], width: int | None) -> Iterator[str]:
    for part in parts:
        yield from _lines(part, width)


def _lines(part: Part, width: int | None) -> Iterator[str]:
    match part:
        case Line():
            yield from _line(part)
        case Items(items):
            yield from (f"  – {visible(untick(item))}" for item in items)
        case Code(text) | Diff(text):
            yield from _indented(visible(text.rstrip()).lstrip("\n"), part.indent)
        case Table():
            yield from _table(part, width)
        case Facts(rows):
            for name, value in rows:
                yield from _fact(part, name, value)
        case Fold(summary, body, terminal):
            if terminal in ("summary", "both"):
                yield from _indented(words_of(summary), part.indent)
            if terminal in ("body", "both"):
                yield from _parts(body, width)
        case Section(parts):
            yield from _parts(parts, width)
        case Only(form, inner):
            yield from _lines(inner, width) if form == "text" else ()
        case Steps(steps):
            yield from _parts((step.full for step in steps), width)
        case Card():
            yield from _card(part, width)
        case _:
            yield words_of(part)


def _line(line: Line) -> Iterator[str]:
    words = words_of(line.content)
    if line.label is None:
        yield from _indented(words, line.indent) if words else ()
    else:
        yield f"{'':{line.indent}}{line.label:<10} {words}"


def _fact(facts: Facts, name: str, value: Inline | Code) -> Iterator[str]:
    margin = " " * facts.indent
    match value:
        case Code(text):
            yield f"{margin}{name}"
            yield from (f"{_MARGIN}{line}" for line in visible(text).splitlines())
        case _:
            for number, line in enumerate(words_of(value).split("\n")):
                yield f"{margin}{'' if number else name:<{facts.width}} {line}"


def _table(table: Table, width: int | None) -> Iterator[str]:
    if not table.headers:
        for row in table.rows:
            yield from _indented(" ".join(map(_cell, row)).rstrip(), table.indent)
        return
    order = list(range(len(table.headers)))
    if table.cut:
        order.append(order.pop(list(table.headers).index(table.cut)))
    rows = ([_cell(row[at]) for at in order] for row in table.rows)
    yield from _indented(text_table([table.headers[at] for at in order], rows, width), table.indent)


def _cell(cell: Cell) -> str:
    """Return a cell's words; the parts below them start a new line."""
    parts: Sequence[Part] = cell if isinstance(cell, tuple) else (cell,)
    words = ""
    for part in parts:
        if isinstance(part, str | Span):
            words += words_of(part)
        else:
            words += "".join(f"\n{line}" for line in _lines(part, None))
    return words


def _indented(text: str, by: int) -> Iterator[str]:
    return (f"{'':{by}}{line}" for line in text.split("\n"))
