"""Files that are kept by their content, swapped for others.

Nothing gets a value from a file that does not hold what was kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_samples import call
from pandas.testing import assert_frame_equal

from healkit import Config, Healkit
from healkit.decisions.decision import Decision
from healkit.errors import EvidenceChanged, HealkitError, ViewChanged, ViewError, ViewGone
from healkit.rendering.timeline import story_of
from healkit.tracing.reader import in_order, read_run, validate_run

pytestmark = pytest.mark.requirement("DATA-7")

TOTAL = "def total(df):\n    return float(df['a'].sum())\n"
#: Of each kind of view file one: Parquet, and what Parquet does not hold exactly.
DATA: dict[str, Callable[[float], Any]] = {
    "parquet": lambda number: pd.DataFrame({"a": np.arange(300.0) + number, "t": ["x"] * 300}),
    "contents": lambda number: np.arange(300.0) + number,
}


def other_file(file: Path, healkit: Healkit) -> None:
    """Put another valid file in a view's place, whatever its kind."""
    other = healkit.views.put(DATA[file.suffix[1:]](1000.0), "other").file
    assert other is not None
    shutil.copy(other, file)


def link(file: Path, _: Healkit) -> None:
    elsewhere = file.with_name("elsewhere")
    file.replace(elsewhere)
    file.symlink_to(elsewhere)


SWAPS: dict[str, tuple[Callable[[Path, Healkit], object], type[HealkitError], str]] = {
    "another valid one": (other_file, ViewChanged, "VIEW_CHANGED"),
    "a truncated one": (
        lambda file, _: os.truncate(file, file.stat().st_size - 9),
        ViewChanged,
        "VIEW_CHANGED",
    ),
    "an empty one": (lambda file, _: file.write_bytes(b""), ViewChanged, "VIEW_CHANGED"),
    "a missing one": (lambda file, _: file.unlink(), ViewGone, "VIEW_GONE"),
    "a link to the same content": (link, ViewChanged, "VIEW_CHANGED"),
    "a pipe": (lambda file, _: (file.unlink(), os.mkfifo(file)), ViewChanged, "VIEW_CHANGED"),
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("swap", SWAPS)
def test_a_view_whose_file_is_swapped_is_not_loaded_and_is_named(
    healkit: Healkit, tmp_path: Path, kind: str, swap: str
) -> None:
    change, error, code = SWAPS[swap]
    view = healkit.views.put(DATA[kind](0.0), "sales")
    assert view.file is not None
    assert view.file.suffix == f".{kind}"
    change(view.file, healkit)
    loads: list[Callable[[], object]] = [
        lambda: healkit.views.load("sales"),
        lambda: healkit.views.to_pandas("sales"),
        lambda: healkit.views.export("sales", tmp_path / "sales.csv"),
        lambda: healkit.views.card("sales"),
    ]
    for load in loads:
        with pytest.raises(error, match="'sales'") as raised:
            load()
        assert raised.value.code == code
    assert not (tmp_path / "sales.csv").exists()


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("swap", SWAPS)
def test_the_same_data_given_again_takes_the_place_of_a_swapped_file(
    healkit: Healkit, kind: str, swap: str
) -> None:
    view = healkit.views.put(DATA[kind](0.0), "sales")
    assert view.file is not None
    SWAPS[swap][0](view.file, healkit)
    assert healkit.views.put(DATA[kind](0.0), "sales").sha256 == view.sha256
    found = healkit.views.load("sales")
    assert_frame_equal(pd.DataFrame(found), pd.DataFrame(DATA[kind](0.0)))
    assert not view.file.is_symlink()


def test_nothing_runs_on_a_swapped_file(healkit: Healkit, tmp_path: Path) -> None:
    healkit.vault.add("total", TOTAL + "\n\ndef _unused():\n    pass\n")
    healkit.vault.add("fails", "def fails(df):\n    return df['b'].sum()\n")
    ran = healkit.execute("total", arguments={"df": DATA["parquet"](0.0)})
    failed = healkit.execute("fails", arguments={"df": DATA["parquet"](0.0)})
    (view, *_) = healkit.views.list()
    assert view.file is not None
    other_file(view.file, healkit)
    again: list[Callable[[], object]] = [
        lambda: healkit.rerun(ran.log_id),
        lambda: healkit.heal("fails", auto=True, budget_s=2),
        lambda: healkit.decide("Which?", {"sales": view.name}, tools=["total"], chooser=[]),
        lambda: failed.to_notebook(tmp_path / "failure.ipynb"),
    ]
    before = len(healkit.log.query().rows)
    for run in again:
        with pytest.raises(ViewChanged, match=view.name):
            run()
    assert len(healkit.log.query().rows) == before


def changed_row(healkit: Healkit, statement: str, *values: str) -> None:
    assert healkit.path is not None
    with closing(sqlite3.connect(healkit.path)) as connection:
        assert connection.execute(statement, values).rowcount
        connection.commit()


@pytest.mark.parametrize("name", ["../victim", "victim", "{folder}/../victim", "../{views}/../victim"])
def test_a_changed_row_leads_to_no_other_file(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("not healkit's")
    with Healkit(tmp_path / "healkit.db", config=Config(views_mb=1)) as healkit:
        healkit.vault.add("total", TOTAL)
        healkit.execute("total", arguments={"df": DATA["parquet"](0.0)})
        (view,) = healkit.views.list()
        folder = healkit.view_keeper.views.folder
        (folder / "victim").symlink_to(victim)
        named = name.format(folder=folder, views=folder.name)
        changed_row(healkit, "UPDATE dataview SET file_name = ?, size_bytes = size_bytes + 2000000", named)
        with pytest.raises(ViewError):
            healkit.views.load(view.name)
        assert victim.name != getattr(healkit.views.get(view.name).file, "name", "")
        healkit.views.put(DATA["parquet"](1.0), "over the budget now")  # evicts what the row names
        assert healkit.views.get(view.name).file is None
        assert healkit.log.prune(keep=0).deleted == 0
        healkit.views.remove(view.name)
        assert victim.read_text() == "not healkit's"


DECIDED = [
    {"type": "execute_data_op", "tool": "twice", "params": {"df": "sales"}, "viewName": "twofold"},
    {"type": "execute_output", "tool": "to_csv", "params": {"df": "twofold"}},
    {"type": "finalize", "finalViewName": "twofold"},
]
HEALED = "def mean(df):\n    return float(df['A'].mean())\n"


@pytest.fixture
def decided(healkit: Healkit) -> Decision:
    """Make a decision that keeps a view, an output and evidence."""
    healkit.vault.add("twice", "def twice(df):\n    return df[['a']] * 2\n")
    healkit.vault.add("to_csv", "def to_csv(df):\n    return df.to_csv()\n")
    tools = ["twice", "to_csv"]
    return healkit.decide("Which?", {"sales": DATA["parquet"](0.0)}, tools=tools, chooser=DECIDED)


def kept_file(healkit: Healkit, decision: Decision, kind: str) -> Path:
    if kind in {"given", "made"}:
        name = decision.views["sales" if kind == "given" else "twofold"]
        file = healkit.views.get(name).file
    else:
        file = next((decision.run.folder / kind).iterdir())
    assert file is not None
    return file


def other_content(file: Path, healkit: Healkit) -> None:
    """Put another valid file in a file's place."""
    if file.suffix == ".parquet":
        other_file(file, healkit)
    else:
        file.write_bytes(b'{"n": 1}' if file.suffix == ".json" else b"a,b\n1,2\n")


REPLACED: dict[str, Callable[[Path, Healkit], object]] = {
    "another valid one": other_content,
    "a truncated one": SWAPS["a truncated one"][0],
    "a missing one": SWAPS["a missing one"][0],
    "a link to the same content": link,
}


@pytest.mark.parametrize("kind", ["given", "made", "outputs", "evidence"])
@pytest.mark.parametrize("swap", REPLACED)
def test_the_audit_and_the_run_folder_name_each_kept_file_that_was_swapped(
    healkit: Healkit, decided: Decision, kind: str, swap: str
) -> None:
    db, run = str(healkit.path), decided.run.run_id
    commands = [("audit", "verify"), ("trace", "validate", run)]
    assert [call(*words, "--db", db).returncode for words in commands] == [0, 0]
    file = kept_file(healkit, decided, kind)
    REPLACED[swap](file, healkit)
    fault = healkit.audit.verify().fault
    assert fault is not None
    assert (fault.kind, fault.execution_id) == ("file", run)
    view = {"given": f"{run}/sales", "made": f"{run}/twofold"}.get(kind)
    assert (view or f"{kind}/{file.name}") in fault.message
    told = [call(*words, "--db", db) for words in commands]
    may_be_evicted = view is not None and swap == "a missing one"
    assert [done.returncode for done in told] == [1, 0 if may_be_evicted else 1]
    assert all((view or file.name) in done.stdout.replace("\n", "") for done in told)


@pytest.mark.parametrize("swap", REPLACED)
def test_the_story_of_a_run_tells_nothing_of_evidence_that_was_swapped(healkit: Healkit, swap: str) -> None:
    healkit.vault.add("mean", HEALED)
    healkit.execute("mean", arguments={"df": DATA["parquet"](0.0)})
    folder = healkit.runs_dir / healkit.heal("mean", dry_run=True, budget_s=5).run_id
    read = read_run(folder)
    (item,) = [item for item in read.evidence if item.kind == "code"]
    REPLACED[swap](folder / item.path, healkit)
    story = str(story_of(read_run(folder)))
    if swap != "a missing one":
        assert f"The file '{item.path}' of run '{read.run_id}' is not as the run recorded it" in story
        with pytest.raises(EvidenceChanged, match=item.path) as raised:
            read.read_evidence(item)
        assert raised.value.code == "EVIDENCE_CHANGED"


def test_entries_and_events_hold_the_hashes_of_what_they_read_and_made(
    healkit: Healkit, decided: Decision
) -> None:
    views = {name: healkit.views.get(name) for name in decided.views.values()}
    entries = {entry.choice_type: entry.metadata for entry in decided.audit_log}
    given, made = decided.views["sales"], decided.views["twofold"]
    for view in views.values():
        assert view.file is not None
        assert view.file.name.startswith(view.sha256)
        assert hashlib.sha256(view.file.read_bytes()).hexdigest() in view.file.name
    assert entries["decision_started"].view_files == {given: getattr(views[given].file, "name", "")}
    assert entries["execute_data_op"].view_files == {made: getattr(views[made].file, "name", "")}
    (output,) = decided.files
    written = {f"outputs/{output.name}": hashlib.sha256(output.read_bytes()).hexdigest()}
    run = read_run(decided.run.folder)
    (event,) = [event for event in run.events if event.event_type == "trace.execute_output"]
    assert event.result is not None
    assert event.result["run_files"] == written
    named = [name for known in entries.values() for name in known.run_files or {}]
    assert set(named) >= {item.path for item in run.evidence if item.kind == "turn"} | set(written)


def test_a_healing_names_the_views_that_it_read(healkit: Healkit) -> None:
    healkit.vault.add("mean", HEALED)
    healkit.execute("mean", arguments={"df": DATA["parquet"](0.0)})
    report = healkit.heal("mean", auto=True, budget_s=5)
    (view, *_) = healkit.views.list()
    assert view.file is not None
    begun = healkit.audit.get(report.run_id)[0]
    assert begun.metadata.view_files == {view.name: view.file.name}
    assert healkit.audit.verify().ok
    other_file(view.file, healkit)
    fault = healkit.audit.verify().fault
    assert fault is not None
    assert view.name in fault.message


def test_a_view_that_was_removed_or_evicted_is_no_fault(healkit: Healkit, decided: Decision) -> None:
    healkit.views.remove(decided.views["twofold"])
    changed_row(
        healkit, "UPDATE dataview SET evicted_at = created_at WHERE view_name = ?", decided.views["sales"]
    )
    assert healkit.audit.verify().ok
    assert in_order(validate_run(decided.run.folder, healkit.view_keeper.views.folder))


def test_a_row_that_leads_a_name_to_other_data_is_found(healkit: Healkit, decided: Decision) -> None:
    other = healkit.views.put(DATA["parquet"](5.0), "other")
    assert other.file is not None
    changed_row(
        healkit,
        "UPDATE dataview SET sha256 = ?, file_name = ? WHERE view_name = ?",
        other.sha256,
        other.file.name,
        decided.views["sales"],
    )
    fault = healkit.audit.verify().fault
    assert fault is not None
    assert decided.views["sales"] in fault.message


def test_the_look_for_room_removes_files_of_views_only(tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db") as healkit:
        healkit.views.put(DATA["parquet"](0.0), "sales")
        folder = healkit.view_keeper.views.folder
        (folder / "notes.txt").write_text("a person's")
        left_behind = folder / f"{'0' * 64}.1.part"
        left_behind.write_text("")
        for file in (folder / "notes.txt", left_behind):
            os.utime(file, (1.0, 1.0))
        healkit.views.put(DATA["parquet"](1.0), "more sales")
        assert (folder / "notes.txt").read_text() == "a person's"
        assert not left_behind.exists()


def test_a_view_that_is_refused_over_the_budget_leaves_no_file(tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db", config=Config(views_mb=1)) as healkit:
        kept = healkit.views.put(DATA["parquet"](0.0), "sales")
        large = pd.DataFrame({"a": np.random.default_rng(0).normal(size=200_000)})
        with pytest.raises(ViewError, match="no room"):
            healkit.views.put(large, "large")
        assert list(healkit.view_keeper.views.folder.iterdir()) == [kept.file]


def test_a_file_of_an_older_healkit_is_checked_by_its_value(healkit: Healkit) -> None:
    view = healkit.views.put(DATA["parquet"](0.0), "sales")
    assert view.file is not None
    old = view.file.with_name(f"{view.sha256}.parquet")
    view.file.replace(old)
    changed_row(healkit, "UPDATE dataview SET file_name = ?", old.name)
    assert_frame_equal(healkit.views.load("sales"), DATA["parquet"](0.0))
    other_file(old, healkit)
    with pytest.raises(ViewChanged, match="other data"):
        healkit.views.load("sales")
