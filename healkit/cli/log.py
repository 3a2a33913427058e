"""Commands on the log: list, sum up, move, prune; errors.

`healkit log` alone lists; its subcommands change or move what is on record.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from healkit import options
from healkit.cli.command import (
    HELP_OPTIONS,
    OK,
    DbOption,
    JsonOption,
    alone,
    command,
    execution_json,
    open_healkit,
    print_json,
    put,
    say,
    takes,
    terminal_width,
    typed,
    wrong,
)
from healkit.contracts.execution import Filters
from healkit.parsing import check_tallied, parse_age, read_filters
from healkit.rendering import plain

if TYPE_CHECKING:
    from healkit.runtime.execution import Execution

#: What lists the refused calls.
_REFUSED = "healkit log --status refused"
_BY = ("persona", "revision", "day")

app = typer.Typer(
    help="Every execution on record, newest first; or what a subcommand says.", context_settings=HELP_OPTIONS
)
LimitOption = Annotated[int, typed(options.LIMIT, min=1)]


@takes("filters", options.FILTERS, read_filters)
def listing(
    *,
    filters: Filters,
    tried: Annotated[bool, typed(options.TRIALS)] = False,
    group: Annotated[bool, typed(options.GROUP)] = False,
    summary: Annotated[bool, typed(options.SUMMARY)] = False,
    by: Annotated[
        list[str] | None, typer.Option(help="With --summary: a row for each persona, revision or day.")
    ] = None,
    before: Annotated[int | None, typed(options.BEFORE)] = None,
    after: Annotated[
        int | None, typer.Option(metavar="ROW", help="Only newer than that row.", show_default=False)
    ] = None,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """List every execution on record, newest first; or do what a subcommand says."""
    filters = dataclasses.replace(filters, tried=tried)
    if group or summary:
        return _tallied(filters, group, summary, by or [], limit, as_json, db)
    return _listed(filters, before, after, limit, as_json, db)


def _listed(
    filters: Filters, before: int | None, after: int | None, limit: int, as_json: bool, db: str | None
) -> int:
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    if before is not None and after is not None:
        wrong("--before and --after cannot both be given.")
    with open_healkit(db, create=False) as healkit:
        rows = healkit.executions(filters=filters, before_id=before, after_id=after, limit=limit)
    if as_json:
        print_json([execution_json(row) for row in rows])
    else:
        put(text_of(listings.executions(rows), terminal_width()))
        if len(rows) == limit:
            say(f"There may be more: add --before {rows[-1].log_id}")
    if rows.left_out:
        say(listings.left_out_line(rows.left_out, "healkit log --trials"))
    return OK


def _tallied(
    filters: Filters,
    group: bool,
    summary: bool,
    by: list[str],
    limit: int,
    as_json: bool,
    db: str | None,
) -> int:
    """Print groups of failures, or tools' sums, which are kept beside the log."""
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    if group and summary:
        wrong("--group and --summary cannot both be given.")
    check_tallied(filters, group=group, summary=summary)
    if unknown := [word for word in by if word not in _BY]:
        wrong(f"--by {unknown[0]!r} is none of {', '.join(_BY)}.")
    left_out = 0
    with open_healkit(db, create=False) as healkit:
        if group:
            found = healkit.log.groups(**filters.given, limit=limit)
            groups, left_out = healkit.history.shown_groups(found.rows), found.left_out
            shown, data = listings.groups(groups), [*map(dataclasses.asdict, groups)]
        else:
            sums = healkit.log.summary(**filters.given, by=by).rows
            shown, data = listings.summary(sums, by), [*map(dataclasses.asdict, sums)]
    if as_json:
        print_json(data)
    else:
        put(text_of(shown, terminal_width()))
    if left_out:
        say(listings.refused_line(left_out, _REFUSED))
    return OK


@takes("filters", options.FILTERS, read_filters)
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Its name ends in .jsonl or .parquet.")],
    *,
    filters: Filters,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Write finished executions, with their calls, to a file."""
    with open_healkit(db, create=False) as healkit:
        count = healkit.log.export(file, overwrite=force, **filters.given)
    if as_json:
        print_json({"file": file, "executions": count})
    else:
        put(f"{plain.count(count, 'execution')} written to {file}")
    return OK


def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An export or an archive.")],
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Take in the executions of a file that are not on record yet."""
    with open_healkit(db, create=True) as healkit:
        done = healkit.log.import_file(file)
    if as_json:
        print_json({"file": file, "executions": done.read, "new": done.added})
    else:
        put(f"{plain.count(done.read, 'execution')} read from {file}, {done.added:,} of them new")
    return OK


def prune(
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="What is older, such as 90d or 12h.", show_default=False)
    ] = None,
    keep: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="All but the newest N.", show_default=False)
    ] = None,
    archive: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Move it there first.", show_default=False)
    ] = None,
    form: Annotated[str, typer.Option("--format", help="Of the archive: jsonl or parquet.")] = "jsonl",
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Delete old executions; by default what HEALKIT_RETENTION_DAYS and HEALKIT_RETENTION_ROWS do not keep."""
    if form not in {"jsonl", "parquet"}:
        wrong(f"--format {form!r} is none of jsonl, parquet.")
    age = None if older_than is None else parse_age(older_than)
    with open_healkit(db, create=False) as healkit:
        report = healkit.log.prune(older_than=age, keep=keep, archive=archive, format=form)  # type: ignore[arg-type]  # one of the two, as was checked above
    if as_json:
        print_json({**dataclasses.asdict(report), "archives": [str(path) for path in report.archives]})
    else:
        put(f"{plain.count(report.deleted, 'execution')} deleted")
        for path in report.archives:
            put(f"archived in {path}")
    return OK


def show(
    row: Annotated[int, typer.Argument(metavar="ROW", help="The number of the row in the log.")],
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Show one execution in full, with its traceback; `healkit log ROW` does too."""
    with open_healkit(db, create=False) as healkit:
        found = healkit.execution(row)
    if found is None:
        wrong(f"There is no log row {row}.", "hk.executions() lists the newest.")
    if as_json:
        print_json(execution_json(found))
    else:
        _put_card(found)
    return OK


def errors(
    tool: Annotated[str | None, typer.Argument(help="Only of this tool.", show_default=False)] = None,
    last: Annotated[bool, typer.Option("--last", help="The newest one, with its full traceback.")] = False,
    persona: Annotated[str | None, typed(options.PERSONA_FILTER)] = None,
    since: Annotated[str | None, typed(options.SINCE)] = None,
    notebook: Annotated[str | None, typed(options.NOTEBOOK)] = None,
    markdown: Annotated[bool, typed(options.MARKDOWN, both=True)] = False,
    limit: LimitOption = 20,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """List the failures of code on record, newest first; with --last also a call that was refused."""
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    last = last or markdown or notebook is not None

    filters = read_filters({"status": "FAILURE", "tool": tool, "persona": persona, "since": since})
    filters = dataclasses.replace(filters, refused=last)
    with open_healkit(db, create=False) as healkit:
        rows = healkit.executions(filters=filters, limit=1 if last else limit)
        left_out = 0 if last else healkit.log.count_refused(filters=filters)
        if as_json:
            found = [execution_json(row) for row in rows]
            print_json((found[0] if found else None) if last else found)
        elif not rows:
            report = healkit.last_error_report(tool)
            put(report if report.startswith("No errors found") else "No errors found that match.")
        elif last:
            shown = healkit.execution(rows[0].log_id) if rows[0].log_id is not None else None
            if notebook is not None and shown is not None:
                say(f"{shown.to_notebook(notebook, replay=healkit.replay_of(shown))} written")
            elif markdown:
                put((shown or rows[0]).to_markdown())
            if notebook is not None or markdown:
                return OK
            _put_card(shown or rows[0])
        else:
            put(text_of(listings.executions(rows), terminal_width()))
    if left_out:
        say(listings.refused_line(left_out, _REFUSED))
    return OK


def _put_card(shown: Execution) -> None:
    """Print the card of an execution, with what it returned or its full traceback."""
    from healkit.rendering import cleaning, execution_card
    from healkit.rendering.to_text import text_of

    shown = cleaning.execution(shown)
    card = text_of(execution_card.card(shown, face="terminal"))
    put(card)
    if shown.failure is not None:
        put(f"\n{shown.failure.traceback}".rstrip())
    elif shown.result_summary and shown.result_summary not in card:  # whose title has a short one
        put(f"\n{shown.result_summary}")


def prometheus(db: DbOption = None) -> int:
    """Print executions and durations by tool in Prometheus' text format, for node_exporter's textfile collector."""
    with open_healkit(db, create=False) as healkit:
        put(healkit.log.prometheus().rstrip("\n"))
    return OK


alone(app, listing)
command(app, "show")(show)
command(app, "prometheus")(prometheus)
command(app, "export")(export)
command(app, "import")(import_file)
command(app, "prune")(prune)
