"""Commands of the data views: list, show, export, remove."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from healkit.commands import options
from healkit.commands.options import word
from healkit.commands.table import Answer, Command, Group, Json

if TYPE_CHECKING:
    from healkit.parts.views.view_records import DataView
    from healkit.services import Services

Name = Annotated[str, word("the view's name", "NAME")]


def list_views(services: Services, limit: Annotated[int, options.LIMIT] = 50) -> Answer:
    """List the views, newest first."""
    views = services.views.list(limit)
    return Answer(views.card, lambda: [*map(_json, views)], table=True)


def show_view(services: Services, name: Name) -> Answer:
    """Show what a view contains: its columns and its first rows."""
    return Answer(lambda: services.views.card(name), lambda: _json(services.views.get(name)), table=True)


def export_view(
    services: Services, name: Name, file: Annotated[Path, word("a new file: .parquet or .csv", "FILE")]
) -> Answer:
    """Write a view's data to a file."""
    written = services.views.export(name, file)
    return Answer(said=f"{written} written", data=lambda: {"file": written, "view": name})


def remove_view(services: Services, name: Name) -> Answer:
    """Remove a view; executions that refer to it cannot be run again."""
    services.views.remove(name)
    return Answer(said=f"view {name} removed", data=lambda: {"removed": name})


def _json(view: DataView) -> Json:
    return {
        "viewName": view.name, "createdBy": view.created_by, "createdAt": view.created_at, "rowCount": view.row_count,
        "columns": [{"name": c.name, "dtype": c.dtype, "nulls": c.nulls} for c in view.columns],
        "kind": view.kind, "shape": view.shape, "sha256": view.sha256, "sizeBytes": view.size_bytes,
        "file": view.file, "references": view.references,
    }  # fmt: skip


GROUP = Group(
    "Frames and arrays that tools took or returned; without a command, the list.",
    {
        "list": Command(list_views),
        "show": Command(show_view),
        "export": Command(export_view),
        "remove": Command(remove_view),
    },
)
COMMANDS = {"views": GROUP}
