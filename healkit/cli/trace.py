"""Commands on recorded runs: list, show, validate, diff, sync."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from healkit.cli.command import (
    HELP_OPTIONS,
    OK,
    TOOL_FAILED,
    DbOption,
    JsonOption,
    alone,
    command,
    open_healkit,
    print_json,
    put,
    say,
    terminal_width,
)

if TYPE_CHECKING:
    from healkit.contracts.runs import Problem, Run

app = typer.Typer(
    help="Look at recorded runs and at what is sent of them; without a command, the list.",
    context_settings=HELP_OPTIONS,
)
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="An id, its beginning, a folder's path, or `last`.")
]


def list_runs(
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many runs.")] = 20,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """List the recorded runs, newest first."""
    from healkit.rendering import runs
    from healkit.rendering.to_text import text_of
    from healkit.tracing.reader import read_run
    from healkit.tracing.run_folders import run_folders

    found = [read_run(path) for path in run_folders(_runs_dir(db))[: -limit - 1 : -1]]
    if as_json:
        print_json(
            [{"path": str(run.path), "events": len(run.events), "finished": run.finished} for run in found]
        )
    else:
        put(text_of(runs.listing(found), terminal_width()))
    return OK


def show(
    run: RunArgument = "last",
    story: Annotated[bool, typer.Option("--story", help="Step by step, in plain words.")] = False,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Show one run, event by event; with --story, step by step in plain words, each patch as a diff."""
    from healkit.rendering import plain, runs, timeline
    from healkit.rendering.to_text import text_of

    read = _validated(run, db)
    if story:
        told = timeline.story_of(read)
        shown = plain.clipped(text_of(timeline.card(told)), terminal_width())
        print_json(told) if as_json else put(shown)
    elif as_json:
        print_json(_run_json(read))
    else:
        put(text_of(runs.card(read), terminal_width()))
    return OK


def validate(run: RunArgument = "last", as_json: JsonOption = False, db: DbOption = None) -> int:
    """Check that a run's record is complete and true. Exit 0: it is; 1: it is damaged, with file, line and fault."""
    from healkit.rendering import runs
    from healkit.rendering.to_text import text_of
    from healkit.tracing.reader import in_order

    read = _validated(run, db)
    if as_json:
        print_json({"run_id": read.run_id, "ok": in_order(read), "problems": _problems_json(read.problems)})
    else:
        put(text_of(runs.problems(read)))
    return OK if in_order(read) else TOOL_FAILED


def diff(
    left: Annotated[str, typer.Argument(metavar="RUN", help="An id, its beginning, a path, or `last`.")],
    right: Annotated[str, typer.Argument(metavar="RUN", help="The run to hold against it.")] = "last",
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Show where two runs differ, event by event. Exit 0: they are the same; 1: they differ."""
    from healkit.rendering import runs
    from healkit.rendering.to_text import text_of
    from healkit.tracing.reader import diff_runs, read_run

    found = diff_runs(read_run(_folder(left, db)), read_run(_folder(right, db)))
    if as_json:
        print_json({"same": found.same, "differences": msgspec.to_builtins(found.differences)})
    else:
        put(text_of(runs.diff(found)))
    return TOOL_FAILED if found.differences else OK


def sync(
    retry_parked: Annotated[
        bool, typer.Option("--retry-parked", help="With the traces that the collector refused before.")
    ] = False,
    local: Annotated[
        bool, typer.Option("--local", help="With those recorded while nothing was sent anywhere.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="How long to try, in seconds.")] = 30.0,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Send the traces that wait, now. Exit 0: the collector has them all; 1: some wait, or are parked."""
    with open_healkit(db, create=False) as healkit:
        state = healkit.traces.sync(retry_parked=retry_parked, local=local, timeout_s=timeout)
    if as_json:
        print_json(msgspec.structs.asdict(state))
    else:
        put(f"{state.sent:,} sent, {state.pending:,} waiting, {state.parked:,} parked")
        for reason, count in state.parked_for.items():
            say(f"Parked, {count:,} for: {reason}")
        if state.problem:
            say(f"Waiting: {state.problem}")
    return TOOL_FAILED if state.pending or state.parked else OK


def _runs_dir(db: str | None) -> Path:
    """Return the folder of that database's runs; the database itself is not opened, and need not exist."""
    from healkit.config import Config
    from healkit.store.locations import resolve_url, sqlite_path
    from healkit.tracing.run_folders import runs_folder

    return runs_folder(Config.from_environment(), sqlite_path(resolve_url(db)))


def _folder(run: str, db: str | None) -> Path:
    from healkit.tracing.run_folders import find_run

    return find_run(_runs_dir(db), run)


def _validated(run: str, db: str | None) -> Run:
    from healkit.store.locations import resolve_url, sqlite_path, views_folder
    from healkit.tracing.reader import validate_run

    url = resolve_url(db)
    return validate_run(_folder(run, db), views_folder(sqlite_path(url), url))


def _run_json(run: Run) -> dict[str, Any]:
    fields = {
        "path": str(run.path),
        "manifest": run.manifest,
        "events": run.events,
        "evidence": run.evidence,
    }
    found: dict[str, Any] = msgspec.to_builtins(fields)
    return {**found, "problems": _problems_json(run.problems)}


def _problems_json(problems: list[Problem]) -> list[dict[str, Any]]:
    import dataclasses

    return [dataclasses.asdict(problem) for problem in problems]


alone(app, list_runs)
command(app, "list")(list_runs)
command(app, "show")(show)
command(app, "validate")(validate)
command(app, "diff")(diff)
command(app, "sync")(sync)
