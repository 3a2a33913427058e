"""Commands on recorded runs: list, show, validate, diff, sync.

All except `sync` read folders. They read from the database only which runs are its own, and it need not exist.
"""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from healkit import hooks
from healkit.commands import options
from healkit.commands.options import Option, word
from healkit.commands.table import DB, FAILED, OK, Answer, Command, Group, Json, wrong
from healkit.config import Config
from healkit.core.store.database import Database
from healkit.core.store.locations import resolve_url, sqlite_path, views_folder
from healkit.errors import DatabaseError
from healkit.parts.runs import render_runs as runs
from healkit.parts.runs.reader import diff_runs, in_order, read_run, validate_run
from healkit.parts.runs.run_folders import LAST, find_run, run_folders, runs_folder

if TYPE_CHECKING:
    from healkit.parts.runs.contract import Problem, Run

RunName = Annotated[str, word("an id, its beginning, a folder's path, or `last`", "RUN")]
Db = Annotated[str | None, DB]
Limit = Annotated[int, options.LIMIT.replace(help="maximum number of runs", metavar="", least=1)]


def list_runs(limit: Limit = 20, db: Db = None) -> Answer:
    """List the recorded runs, newest first."""
    recorded_runs = [read_run(path) for path in run_folders(_runs_dir(db))[: -limit - 1 : -1]]
    return Answer(
        lambda: runs.run_list(recorded_runs),
        lambda: [
            {"path": str(run.path), "events": len(run.events), "finished": run.finished}
            for run in recorded_runs
        ],
        table=True,
    )


def show_run(
    run: RunName = "last",
    story: Annotated[bool, Option("story", "step by step, in plain words")] = False,
    db: Db = None,
) -> Answer:
    """Show one run, event by event; with --story, step by step in plain words, each patch as a diff."""
    read = _validated(run, db)
    if not story:
        return Answer(lambda: runs.run_card(read), lambda: _run_json(read), table=True)
    if (shown_story := hooks.first("story", run=read)) is None:
        wrong("No installed part of healkit can tell a run step by step.", "Leave --story out.")
    card, data = shown_story
    return Answer(card, lambda: data, clipped=True)


def check_run(run: RunName = "last", db: Db = None) -> Answer:
    """Check that a run's record is complete and true. Exit 0: it is; 1: it is damaged, with file, line and fault."""
    read = _validated(run, db)
    ok = in_order(read)
    return Answer(
        lambda: runs.problem_list(read),
        lambda: {"run_id": read.run_id, "ok": ok, "problems": _problems_json(read.problems)},
        exit_code=OK if ok else FAILED,
    )


def compare_runs(
    left: Annotated[str, word("an id, its beginning, a path, or `last`", "RUN")],
    right: Annotated[str, word("the run to compare it with", "RUN")] = "last",
    db: Db = None,
) -> Answer:
    """Show where two runs differ, event by event. Exit 0: they are the same; 1: they differ."""
    comparison = diff_runs(*(read_run(_folder(run, db)) for run in (left, right)))
    return Answer(
        lambda: runs.run_diff(comparison),
        lambda: {"same": comparison.same, "differences": msgspec.to_builtins(comparison.differences)},
        exit_code=FAILED if comparison.differences else OK,
    )


def _runs_dir(db: str | None) -> Path:
    return runs_folder(Config.from_environment(), sqlite_path(resolve_url(db)))


def _folder(run: str, db: str | None) -> Path:
    path = sqlite_path(resolve_url(db))
    if run != LAST or path is None or not path.is_file():
        return find_run(_runs_dir(db), run)
    try:
        database = Database(path, create=False, only_read=True)
    except DatabaseError:  # no database of healkit's
        return find_run(_runs_dir(db), run)
    with contextlib.closing(database):
        # A table of another's may be a view that never ends.
        is_safe = database.trusted or not database.strange_parts()
        is_own = lambda run_id: bool(database.fetch(_IS_OWN, run=run_id))  # noqa: E731 - asked of each folder
        return find_run(_runs_dir(db), run, *([is_own] if is_safe else []))


_IS_OWN = """SELECT 1 FROM executionlog WHERE run_id = :run UNION ALL
SELECT 1 FROM traceauditentry WHERE run_id = :run LIMIT 1"""


def _validated(run: str, db: str | None) -> Run:
    url = resolve_url(db)
    return validate_run(_folder(run, db), views_folder(sqlite_path(url), url))


def _run_json(run: Run) -> Json:
    about = {"manifest": run.manifest, "events": run.events, "evidence": run.evidence}
    problems = _problems_json(run.problems)
    return {"path": str(run.path), **msgspec.to_builtins(about), "problems": problems}


def _problems_json(problems: list[Problem]) -> list[Json]:
    return [dataclasses.asdict(problem) for problem in problems]


GROUP = Group(
    "Show recorded runs and what is sent of them; without a command, the list.",
    {
        "list": Command(list_runs),
        "show": Command(show_run),
        "validate": Command(check_run),
        "diff": Command(compare_runs),
    },
)
COMMANDS = {"trace": GROUP}
