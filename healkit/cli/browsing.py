"""Commands that only look: errors, doctor."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from healkit.cli.common import (
    OK,
    TOOL_FAILED,
    DbOption,
    JsonOption,
    command,
    execution_json,
    open_healkit,
    print_json,
    say,
    terminal_width,
)
from healkit.parsing import parse_since

PersonaFilter = Annotated[
    str | None, typer.Option("--persona", help="Only of this persona.", show_default=False)
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="2h, 3d, or a date or time in ISO 8601.", show_default=False
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="At most so many rows.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    command(app, "errors")(errors)
    command(app, "doctor")(doctor)


def errors(
    tool: Annotated[str | None, typer.Argument(help="Only of this tool.", show_default=False)] = None,
    last: Annotated[bool, typer.Option("--last", help="The newest one, with its full traceback.")] = False,
    persona: PersonaFilter = None,
    since: SinceOption = None,
    notebook: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the newest one as a notebook that runs without healkit.",
            show_default=False,
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option(help="Print the newest one as a bug report.")] = False,
    limit: LimitOption = 20,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Failures on record, newest first."""
    from healkit.rendering import execution, listings, text_of

    last = last or markdown or notebook is not None

    moment = None if since is None else parse_since(since)
    with open_healkit(db, create=False) as healkit:
        rows = healkit.executions(
            status="FAILURE",
            tried=False,
            tool=tool,
            persona=persona,
            since=moment,
            limit=1 if last else limit,
        )
        if as_json:
            found = [execution_json(row) for row in rows]
            print_json((found[0] if found else None) if last else found)
        elif not rows:
            report = healkit.last_error_report(tool)
            typer.echo(report if report.startswith("No errors found") else "No errors found that match.")
        elif last:
            shown = healkit.execution(rows[0].log_id) if rows[0].log_id is not None else None
            if notebook is not None and shown is not None:
                say(f"{shown.to_notebook(notebook, replay=healkit.replay_of(shown))} written")
            elif markdown:
                typer.echo((shown or rows[0]).to_markdown())
            if notebook is not None or markdown:
                return OK
            typer.echo(text_of(execution.card(shown or rows[0], face="terminal")))
            typer.echo(f"\n{rows[0].failure.traceback if rows[0].failure else ''}".rstrip())
        else:
            typer.echo(text_of(listings.executions(rows), terminal_width()))
    return OK


def doctor(as_json: JsonOption = False, db: DbOption = None) -> int:
    """What isolation this machine can enforce, tried for real. Exit 1 if tools get no boundary here."""
    from healkit.config import Config
    from healkit.doctor import examine
    from healkit.errors import DatabaseError
    from healkit.rendering import reports, text_of

    report = examine(Config.from_environment())
    try:
        with open_healkit(db, create=False) as healkit:
            status = healkit.status()
        database = {"url": status.url, "problem": status.problem}
    except DatabaseError as error:
        database = {"url": db or "", "problem": f"{error.code}: {error}"}
    if as_json:
        print_json({**dataclasses.asdict(report), "ok": report.ok, "database": database})
    else:
        typer.echo(text_of(reports.doctor(report)))
        typer.echo(" ".join(f"Database: {database['url']} {database['problem'] or '(in order)'}".split()))
    return OK if report.ok else TOOL_FAILED
