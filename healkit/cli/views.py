"""Commands of the data views: list, show, export, remove."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from healkit import options
from healkit.cli.command import (
    HELP_OPTIONS,
    OK,
    DbOption,
    JsonOption,
    alone,
    command,
    open_healkit,
    print_json,
    put,
    terminal_width,
    typed,
)
from healkit.contracts.data import DataView

app = typer.Typer(
    help="Frames and arrays that tools were given or returned; without a command, the list.",
    context_settings=HELP_OPTIONS,
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The view's name.")]
LimitOption = Annotated[int, typed(options.LIMIT, min=1)]


def list_views(limit: LimitOption = 50, as_json: JsonOption = False, db: DbOption = None) -> int:
    """List the views, newest first."""
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        found = healkit.views.list(limit)
    if as_json:
        print_json([_json(view) for view in found])
    else:
        put(text_of(found.card(), terminal_width()))
    return OK


def show(name: NameArgument, as_json: JsonOption = False, db: DbOption = None) -> int:
    """Show what a view holds: its columns and its first rows."""
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        if as_json:
            print_json(_json(healkit.views.get(name)))
        else:
            put(text_of(healkit.views.card(name), terminal_width()))
    return OK


def export(
    name: NameArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file: .parquet or .csv.")],
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Write a view's data to a file."""
    with open_healkit(db, create=False) as healkit:
        written = healkit.views.export(name, file)
    if as_json:
        print_json({"file": written, "view": name})
    else:
        put(f"{written} written")
    return OK


def remove(name: NameArgument, as_json: JsonOption = False, db: DbOption = None) -> int:
    """Remove a view; executions that refer to it cannot be run again."""
    with open_healkit(db, create=False) as healkit:
        healkit.views.remove(name)
    if as_json:
        print_json({"removed": name})
    else:
        put(f"view {name} removed")
    return OK


def _json(view: DataView) -> dict[str, Any]:
    return {
        "viewName": view.name, "createdBy": view.created_by, "createdAt": view.created_at, "rowCount": view.row_count,
        "columns": [{"name": c.name, "dtype": c.dtype, "nulls": c.nulls} for c in view.columns],
        "kind": view.kind, "shape": view.shape, "sha256": view.sha256, "sizeBytes": view.size_bytes,
        "file": view.file, "references": view.references,
    }  # fmt: skip


command(app, "list")(list_views)
command(app, "show")(show)
command(app, "export")(export)
command(app, "remove")(remove)
alone(app, list_views)
