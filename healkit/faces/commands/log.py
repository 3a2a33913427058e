"""Commands on the log: list, sum up, move, prune; errors.

`log` alone lists executions; its subcommands change or move them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from healkit.commands import options
from healkit.commands.options import Option, word
from healkit.commands.parsing import check_tallied, read_filters
from healkit.commands.table import FAILED, OK, Answer, Command, FilterOptions, Group, Json, wrong
from healkit.core.contracts.execution import Filters
from healkit.core.crossing.values import readable
from healkit.core.rendering import execution_card as rendered
from healkit.core.rendering import listings
from healkit.core.rendering.to_text import text_of
from healkit.core.runtime.background import no_output
from healkit.core.times import parse_age
from healkit.faces.commands import cards
from healkit.plain_text import count

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.core.contracts.failure import Failure
    from healkit.core.runtime.execution import Execution

_BY = ("persona", "revision", "day")
_FORM = Option("form", "of the archive: jsonl or parquet", flag="--format", default="jsonl")
Limit = Annotated[int, options.LIMIT.replace(least=1)]


def listing(
    healkit: Healkit,
    *,
    filters: FilterOptions,
    tried: Annotated[bool, options.TRIALS] = False,
    group: Annotated[bool, options.GROUP] = False,
    summary: Annotated[bool, options.SUMMARY] = False,
    by: Annotated[
        list[str] | None,
        Option("by", "with --summary: a row for each persona, revision or day"),
    ] = None,
    before: Annotated[int | None, options.BEFORE] = None,
    after: Annotated[int | None, Option("after", "only newer than that row", int, metavar="ROW")] = None,
    limit: Limit = 50,
) -> Answer:
    """List all executions, newest first; or run a subcommand."""
    filters = dataclasses.replace(filters, tried=tried)
    if group and summary:
        wrong("--group and --summary cannot both be given.")
    if group or summary:
        check_tallied(filters, group=group, summary=summary)
        return tallied(healkit, filters, by or []) if summary else grouped(healkit, filters, limit)
    if before is not None and after is not None:
        wrong("--before and --after cannot both be given.")
    rows = healkit.executions(filters=filters, before_id=before, after_id=after, limit=limit)
    return Answer(
        lambda: listings.executions(rows),
        lambda: [*map(execution_json, rows)],
        table=True,
        hints=[f"There may be more: add --before {rows[-1].log_id}"] if len(rows) == limit else (),
        notes=[listings.left_out_line(rows.left_out, "healkit log --trials")] if rows.left_out else (),
    )


def grouped(healkit: Healkit, filters: Filters, limit: int, ask: str = "") -> Answer:
    """List groups of failures; ask: command that lists the omitted refused calls, if the list should name it."""
    page = healkit.log.groups(**filters.given, limit=limit)
    groups = healkit.trends.shown_groups(page.rows)
    return Answer(
        lambda: cards.groups(groups, left_out=page.left_out if ask else 0, ask=ask),
        lambda: [*map(dataclasses.asdict, groups)],
        table=True,
        notes=_refused(page.left_out),
    )


def tallied(healkit: Healkit, filters: Filters, by: Sequence[str] = ()) -> Answer:
    """List tools' summaries, from the counts beside the log."""
    if unknown := [column for column in by if column not in _BY]:
        wrong(f"--by {unknown[0]!r} is not one of {', '.join(_BY)}.")
    sums = healkit.log.summary(**filters.given, by=list(by)).rows
    return Answer(lambda: cards.summary(sums, list(by)), lambda: [*map(dataclasses.asdict, sums)], table=True)


def _refused(left_out: int) -> Sequence[str]:
    return [cards.refused_line(left_out, "healkit log --status refused")] if left_out else ()


def export(
    healkit: Healkit,
    file: Annotated[str, word("its name ends in .jsonl or .parquet; with --cassette it is JSON", "FILE")],
    *,
    filters: FilterOptions,
    force: Annotated[bool, Option("force", "overwrite the file")] = False,
    cassette: Annotated[
        int | None,
        Option("cassette", "that one execution, to be replayed anywhere", int, metavar="ROW", least=1),
    ] = None,
) -> Answer:
    """Write finished executions, with their calls, to a file."""
    if cassette is not None:
        if filters.given:
            wrong("--cassette is one execution, and takes no filters.")
        path, hidden = healkit.export_cassette(cassette, file, overwrite=force)
        return Answer(
            said=f"Execution {cassette} written to {path}; replay it: healkit log replay {path}",
            data=lambda: {"file": str(path), "executions": 1, "hidden": hidden},
            notes=[f"{count(hidden, 'secret')} hidden: the replay may end otherwise."] if hidden else (),
        )
    written = healkit.log.export(file, overwrite=force, **filters.given)
    sentence = f"{count(written, 'execution')} written to {file}"
    return Answer(said=sentence, data=lambda: {"file": file, "executions": written})


def replay(
    healkit: Healkit,
    what: Annotated[str, word("a row of the log, or a file of `log export --cassette`", "ROW_OR_FILE")],
    active: Annotated[
        bool, Option("active", "run the tool's active revision instead of the code it had")
    ] = False,
) -> Answer:
    """Run an execution again without making its calls: each gets its recorded answer."""
    execution = healkit.replay(int(what) if what.isdecimal() else what, active=active, on_output=no_output)
    return Answer(
        lambda: _in_full(execution),
        lambda: execution_json(execution),
        exit_code=FAILED if execution.failure is not None else OK,
    )


def import_file(healkit: Healkit, file: Annotated[str, word("an export or an archive", "FILE")]) -> Answer:
    """Import the executions of a file that are not in the log yet."""
    done = healkit.log.import_file(file)
    return Answer(
        said=f"{count(done.read, 'execution')} read from {file}, {done.added:,} of them new",
        data=lambda: {"file": file, "executions": done.read, "new": done.added},
    )


def prune(
    healkit: Healkit,
    older_than: Annotated[
        timedelta | None,
        Option("older_than", "what is older, such as 90d or 12h", metavar="AGE", read=parse_age),
    ] = None,
    keep: Annotated[int | None, Option("keep", "all but the newest N", int, metavar="N", least=0)] = None,
    archive: Annotated[str | None, Option("archive", "move it there first", metavar="FOLDER")] = None,
    form: Annotated[str, _FORM] = "jsonl",
) -> Answer:
    """Delete old executions; by default as HEALKIT_RETENTION_DAYS and HEALKIT_RETENTION_ROWS say."""
    if form not in {"jsonl", "parquet"}:
        wrong(f"--format {form!r} is not jsonl or parquet.")
    report = healkit.log.prune(older_than=older_than, keep=keep, archive=archive, format=form)  # type: ignore[arg-type]  # one of the two, as was checked above
    archives = [str(path) for path in report.archives]
    lines = [f"{count(report.deleted, 'execution')} deleted", *(f"archived in {path}" for path in archives)]
    return Answer(
        said="\n".join(lines),
        data=lambda: {**dataclasses.asdict(report), "archives": archives},
    )


def show(healkit: Healkit, row: Annotated[int, word("the number of the row in the log", "ROW")]) -> Answer:
    """Show one execution in full, with its traceback; the same as `healkit log ROW`."""
    execution = healkit.execution(row)
    if execution is None:
        wrong(f"There is no log row {row}.", "hk.executions() lists the newest.")
    return Answer(lambda: _in_full(execution), lambda: execution_json(execution))


def errors(
    healkit: Healkit,
    tool: Annotated[str | None, word("only of this tool")] = None,
    last: Annotated[bool, Option("last", "the newest one, with its full traceback")] = False,
    persona: Annotated[str | None, options.PERSONA_FILTER] = None,
    since: Annotated[str | None, options.SINCE] = None,
    notebook: Annotated[str | None, options.NOTEBOOK] = None,
    markdown: Annotated[bool, options.MARKDOWN.replace(both=True)] = False,
    limit: Limit = 20,
) -> Answer:
    """List the failures of code, newest first; with --last also a refused call."""
    last = last or markdown or notebook is not None
    filters = read_filters({"status": "FAILURE", "tool": tool, "persona": persona, "since": since})
    filters = dataclasses.replace(filters, refused=last)
    rows = healkit.executions(filters=filters, limit=1 if last else limit)
    notes = () if last else _refused(healkit.log.count_refused(filters=filters))

    def data() -> object:
        records = [execution_json(row) for row in rows]
        return (records[0] if records else None) if last else records

    if not rows:
        report = healkit.last_error_report(tool)
        message = report if report.startswith("No errors found") else "No errors found that match."
        return Answer(said=message, data=data, notes=notes)
    if not last:
        return Answer(lambda: listings.executions(rows), data, table=True, notes=notes)
    newest = (None if rows[0].log_id is None else healkit.execution(rows[0].log_id)) or rows[0]
    if notebook is not None:
        file = newest.to_notebook(notebook, replay=healkit.replay_of(newest))
        return Answer(data=data, notes=[f"{file} written"])
    return Answer(newest.to_markdown if markdown else lambda: _in_full(newest), data)


def prometheus(healkit: Healkit) -> Answer:
    """Print executions and durations by tool in Prometheus' text format, for node_exporter's textfile collector."""
    return Answer(said=healkit.log.prometheus().rstrip("\n"))


GROUP = Group(
    "Every execution on record, newest first; or what a subcommand says.",
    {
        "show": Command(show),
        "prometheus": Command(prometheus, json=False),
        "export": Command(export),
        "replay": Command(replay, creates=True),
        "import": Command(import_file, creates=True),
        "prune": Command(prune),
    },
    alone=Command(listing),
)
COMMANDS = {"errors": Command(errors), "log": GROUP}


def execution_json(execution: Execution) -> Json:
    """Return an execution as JSON."""
    return {
        "log_id": execution.log_id,
        "timestamp": execution.timestamp.isoformat(),
        "tool_name": execution.tool_name,
        "persona": execution.persona,
        "revision": execution.revision,
        "status": execution.status,
        "arguments": readable(execution.arguments)[0],
        "result_summary": execution.result_summary,
        "duration_ms": execution.duration_ms,
        "isolation": execution.isolation,
        "origin": execution.origin,
        "client": execution.client,
        "trace_id": execution.trace_id,
        "run_id": execution.run_id,
        "error": failure_json(execution.failure),
    }


def failure_json(failure: Failure | None) -> dict[str, str] | None:
    """Return a failure as `{code, ename, evalue, traceback}`."""
    if failure is None:
        return None
    return {name: getattr(failure, name) for name in ("code", "ename", "evalue", "traceback")}


def _in_full(shown: Execution) -> str:
    """Return the card of an execution for a terminal, with its result or its full traceback."""
    card = text_of(rendered.card(shown, face="terminal"))
    if shown.failure is not None:
        return f"{card}\n\n{shown.failure.traceback}".rstrip()
    if shown.result_summary and shown.result_summary not in card:  # the title has a short one
        return f"{card}\n\n{shown.result_summary}"
    return card
