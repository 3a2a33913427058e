"""Data views as cards: the list, and one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from healkit.core.rendering import execution_card, plain
from healkit.core.rendering.document import Card, Facts, Part, Section, Span, Table
from healkit.parts.views.view_records import DataView

_VIEWS = ("view", "kind", "shape", "size", "made by", "when", "runs")


_VIEW_COLUMNS = ("column", "dtype", "nulls")


#: Columns of which a card shows the first rows.
_COLUMNS_MAX = 12


def views(views: Sequence[DataView]) -> Card:
    """Build the list of views, newest first as given."""
    if not views:
        return Card(parts=("No data views. Frames and arrays that tools take or return are kept as views.",))
    rows = [
        (
            Span(view.name, "code"),
            view.kind,
            Span(shape_text(view), "unbroken"),
            Span("evicted" if view.file is None else size_text(view.size_bytes), "unbroken"),
            view.created_by,
            Span(plain.moment(view.created_at), "moment"),
            f"{view.references:,}",
        )
        for view in views
    ]
    return Card(tone="info", parts=(Table(_VIEWS, rows),))


def view(view: DataView, preview: Mapping[str, Any] | None = None) -> Card:
    """Build the card of one view: what it contains, its columns, and its first rows if there is a preview."""
    file = "evicted" if view.file is None else f"{view.file} ({size_text(view.size_bytes)})"
    facts = Facts(
        [
            ("kind", f"{view.kind}, {shape_text(view)}"),
            ("made by", f"{view.created_by}, {plain.moment(view.created_at)}"),
            ("runs", f"{view.references:,} on record"),
            ("file", Span(file, "code")),
            ("sha256", Span(view.sha256, "code")),
        ]
    )
    parts: list[Part] = [facts]
    if view.columns:
        rows = [(Span(column.name, "code"), column.dtype, f"{column.nulls:,}") for column in view.columns]
        parts.append(Section((Table(_VIEW_COLUMNS, rows),)))
    if preview and preview.get("columns"):
        names = [str(name) for name in preview["columns"][:_COLUMNS_MAX]]
        first = [[plain.value_text(cell, 60) for cell in row[:_COLUMNS_MAX]] for row in preview["first"]]
        parts.append(Section((Table(names, first),), is_last=True))
    return Card(f"View {view.name}", tone="info", parts=parts)


def shape_text(view: DataView) -> str:
    """Write a view's shape: `1,000 rows × 3 columns`, or an array's sizes."""
    if view.columns and len(view.shape) == 2:
        rows, columns = view.shape
        return f"{plain.count(rows, 'row')} × {plain.count(columns, 'column')}"
    return execution_card.shape_text(view.shape) or "one value"


def size_text(size_bytes: int) -> str:
    """Write a file's size: `12.3 MB`, `4.5 KB`."""
    unit, name = (2**20, "MB") if size_bytes >= 2**20 else (2**10, "KB")
    return f"{size_bytes / unit:,.1f} {name}"
