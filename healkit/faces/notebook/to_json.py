"""Writer of documents as JSON, for a page that draws them.

JupyterLab's extension draws this form with its own elements (`js/lab/src/card.ts`). So no text can become markup, even
in an untrusted notebook. It has the same content as the HTML: parts only for terminals are left out.

A part is a text, a list of adjacent parts, or an object with one key that names it. Its other keys are the properties
that differ from their default.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from healkit.core.rendering import cleaning
from healkit.core.rendering.document import (
    Card,
    Code,
    Diff,
    Document,
    Facts,
    Fold,
    Items,
    Line,
    Only,
    Section,
    Span,
    Steps,
    Table,
)
from healkit.core.rendering.plain import visible

Json = str | list[Any] | dict[str, Any]


def json_of(document: Document) -> list[Json]:
    """Return the cards of a document; their text is cleaned, as in the other forms."""
    document = cleaning.document(document)
    return _list(document if isinstance(document, tuple) else (document,))


def _list(parts: Iterable[object]) -> list[Json]:
    return [_part(part) for part in parts if not (isinstance(part, Only) and part.form == "text")]


def _part(part: Any) -> Json:
    match part:
        case str():
            return visible(part)
        case tuple() | list():
            return _list(part)
        case Span(text, look, tone):
            return _object("span", visible(text), look=look, tone=tone)
        case Line(content, look):
            return _object("line", _part(content), look=look)
        case Items(items):
            return _object("items", _list(items))
        case Code(text, height):
            return _object("code", visible(text), max_height_px=height)
        case Diff(text, compact):
            return _object("diff", visible(text), compact=compact)
        case Table(headers, rows):
            more = {"headers": _list(headers), "narrow_first": part.narrow_first}
            return _object("table", [_list(row) for row in rows], **more)
        case Facts(rows):
            return _object("facts", [_list(row) for row in rows])
        case Fold(summary, body):
            fields = {"body": _list(body), "open": part.is_open, "look": part.look, "tone": part.tone}
            return _object("fold", _part(summary), **fields)
        case Section(parts, is_last):
            return _object("section", _list(parts), last=is_last)
        case Only():
            return _part(part.part)
        case Steps(steps):
            return _list(step.full for step in steps)
        case Card():
            head = {"mark": part.mark, "tone": part.tone, "line": visible(part.line or "")}
            return _object(
                "card", visible(part.title), **head, below=_list(part.below), parts=_list(part.parts)
            )
        case _:
            raise TypeError(f"A document has no part of the type {type(part).__name__}.")


def _object(kind: str, content: Json, **more: Any) -> Json:
    return {kind: content} | {name: value for name, value in more.items() if value}
