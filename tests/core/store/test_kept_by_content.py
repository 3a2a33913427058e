"""Files kept by their content: no value comes from another."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_samples import call
from pandas.testing import assert_frame_equal

from healkit import Config, Healkit
from healkit.errors import EvidenceChanged, HealkitError, ViewChanged, ViewError, ViewGone
from healkit.parts.decide.decision import Decision
from healkit.parts.heal.timeline import story_of
from healkit.parts.runs.reader import in_order, read_run, validate_run

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
    shutil.copy(other, file)


def link(file: Path, _: Healkit) -> None:
    elsewhere = file.with_name("elsewhere")
    file.replace(elsewhere)
    file.symlink_to(elsewhere)


SWAPS: dict[str, tuple[Callable[[Path, Healkit], object], type[HealkitError], str]] = {
    "another valid one": (other_file, ViewChanged, "VIEW_CHANGED"),
    "a truncated one": (lambda file, _: os.truncate(file, file.stat().st_size - 9), ViewChanged, "VIEW_CHANGED"),
    "an empty one": (lambda file, _: file.write_bytes(b""), ViewChanged, "VIEW_CHANGED"),
    "a missing one": (lambda file, _: file.unlink(), ViewGone, "VIEW_GONE"),
    "a link to the same content": (link, ViewChanged, "VIEW_CHANGED"),
    "a pipe": (lambda file, _: (file.unlink(), os.mkfifo(file)), ViewChanged, "VIEW_CHANGED"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("swap", SWAPS)
def test_a_view_whose_file_is_swapped_is_not_loaded_until_the_same_data_is_given_again(
    healkit: Healkit, tmp_path: Path, kind: str, swap: str
) -> None:
    change, error, code = SWAPS[swap]
    view = healkit.views.put(DATA[kind](0.0), "sales")
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
    assert healkit.views.put(DATA[kind](0.0), "sales").sha256 == view.sha256
    assert_frame_equal(pd.DataFrame(healkit.views.load("sales")), pd.DataFrame(DATA[kind](0.0)))
    assert not view.file.is_symlink()


@pytest.mark.slow
def test_nothing_runs_on_a_swapped_file(healkit: Healkit, tmp_path: Path) -> None:
    healkit.vault.add("total", TOTAL + "\n\ndef _unused():\n    pass\n")
    healkit.vault.add("fails", "def fails(df):\n    return df['b'].sum()\n")
    ran = healkit.execute("total", arguments={"df": DATA["parquet"](0.0)})
    failed = healkit.execute("fails", arguments={"df": DATA["parquet"](0.0)})
    (view, *_) = healkit.views.list()
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
    with contextlib.closing(sqlite3.connect(healkit.path)) as connection:
        assert connection.execute(statement, values).rowcount
        connection.commit()


def test_a_changed_row_leads_to_no_other_file(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("not healkit's")
    with Healkit(tmp_path / "healkit.db", config=Config(views_mb=1)) as healkit:
        healkit.vault.add("total", TOTAL)
        folder = healkit.view_keeper.views.folder
        for number, named in enumerate(
            ("../victim", "victim", f"{folder}/../victim", f"../{folder.name}/../victim")
        ):
            healkit.execute("total", arguments={"df": DATA["parquet"](float(number))})
            (view,) = healkit.views.list()
            if number == 0:
                (folder / "victim").symlink_to(victim)
            changed_row(
                healkit, "UPDATE dataview SET file_name = ?, size_bytes = size_bytes + 2000000", named
            )
            with pytest.raises(ViewError):
                healkit.views.load(view.name)
            assert victim.name != getattr(healkit.views.get(view.name).file, "name", "")
            over = healkit.views.put(DATA["parquet"](100.0 + number), f"over the budget {number}")
            assert healkit.views.get(view.name).file is None  # evicted, and not what its row names
            assert healkit.log.prune(keep=0).deleted == min(number, 1)
            for each in (view, over):
                healkit.views.remove(each.name)
            assert victim.read_text() == "not healkit's"


DECIDED = [
    {"type": "execute_data_op", "tool": "twice", "params": {"df": "sales"}, "viewName": "twofold"},
    {"type": "execute_output", "tool": "to_csv", "params": {"df": "twofold"}},
    {"type": "finalize", "finalViewName": "twofold"},
]


def decide(healkit: Healkit) -> Decision:
    """Make a decision that keeps a view, an output and evidence."""
    healkit.vault.add("twice", "def twice(df):\n    return df[['a']] * 2\n")
    healkit.vault.add("to_csv", "def to_csv(df):\n    return df.to_csv()\n")
    tools = ["twice", "to_csv"]
    return healkit.decide("Which?", {"sales": DATA["parquet"](0.0)}, tools=tools, chooser=DECIDED)


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Healkit, Decision]]:
    """Make a decision whose files tests replace one at a time."""
    with Healkit(tmp_path_factory.mktemp("decided") / "healkit.db") as healkit:
        yield healkit, decide(healkit)


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
    "another valid one": other_content, "a truncated one": SWAPS["a truncated one"][0],
    "a missing one": SWAPS["a missing one"][0], "a link to the same content": link,
}  # fmt: skip


@contextlib.contextmanager
def replaced(file: Path, swap: str, healkit: Healkit) -> Iterator[None]:
    """Replace the file in that way until the end of the block."""
    content = file.read_bytes()
    REPLACED[swap](file, healkit)
    yield
    for left in (file, file.with_name("elsewhere")):
        left.unlink(missing_ok=True)
    file.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["given", "made", "outputs", "evidence"])
@pytest.mark.parametrize("swap", REPLACED)
def test_the_audit_and_the_run_folder_name_each_kept_file_that_was_swapped(
    decided: tuple[Healkit, Decision], kind: str, swap: str
) -> None:
    healkit, decision = decided
    run = decision.run.run_id
    commands = [
        (*words, "--db", str(healkit.path)) for words in (("audit", "verify"), ("trace", "validate", run))
    ]
    assert [call(*words).returncode for words in commands] == [0, 0]
    file = kept_file(healkit, decision, kind)
    with replaced(file, swap, healkit):
        fault = healkit.audit.verify().fault
        told = [call(*words) for words in commands]
    assert (fault.kind, fault.execution_id) == ("file", run)
    view = {"given": f"{run}/sales", "made": f"{run}/twofold"}.get(kind)
    assert (view or f"{kind}/{file.name}") in fault.message
    may_be_evicted = view is not None and swap == "a missing one"
    assert [done.returncode for done in told] == [1, 0 if may_be_evicted else 1]
    assert all((view or file.name) in done.stdout.replace("\n", "") for done in told)


def test_entries_and_events_hold_the_hashes_of_what_they_read_and_made(
    decided: tuple[Healkit, Decision],
) -> None:
    healkit, decision = decided
    views = {name: healkit.views.get(name) for name in decision.views.values()}
    entries = {entry.choice_type: entry.metadata for entry in decision.audit_log}
    given, made = decision.views["sales"], decision.views["twofold"]
    for view in views.values():
        assert view.file.name.startswith(view.sha256)
        assert hashlib.sha256(view.file.read_bytes()).hexdigest() in view.file.name
    assert entries["decision_started"].view_files == {given: getattr(views[given].file, "name", "")}
    assert entries["execute_data_op"].view_files == {made: getattr(views[made].file, "name", "")}
    (output,) = decision.files
    written = {f"outputs/{output.name}": hashlib.sha256(output.read_bytes()).hexdigest()}
    run = read_run(decision.run.folder)
    (event,) = [event for event in run.events if event.event_type == "trace.execute_output"]
    assert event.result["run_files"] == written
    named = [name for known in entries.values() for name in known.run_files or {}]
    assert set(named) >= {item.path for item in run.evidence if item.kind == "turn"} | set(written)


@pytest.mark.slow
def test_a_healing_names_the_views_it_read_and_tells_nothing_of_swapped_evidence(healkit: Healkit) -> None:
    healkit.vault.add("mean", "def mean(df):\n    return float(df['A'].mean())\n")
    healkit.execute("mean", arguments={"df": DATA["parquet"](0.0)})
    report = healkit.heal("mean", auto=True, budget_s=2)
    (view, *_) = healkit.views.list()
    assert healkit.audit.get(report.run_id)[0].metadata.view_files == {view.name: view.file.name}
    assert healkit.audit.verify().ok
    folder = healkit.runs_dir / report.run_id
    read = read_run(folder)
    item = next(item for item in read.evidence if item.kind == "code")
    for swap in REPLACED:
        with replaced(folder / item.path, swap, healkit):
            story = str(story_of(read_run(folder)))
            if swap != "a missing one":
                assert (
                    f"The file '{item.path}' of run '{read.run_id}' has changed since the run recorded it"
                    in story
                )
                with pytest.raises(EvidenceChanged, match=item.path) as raised:
                    read.read_evidence(item)
                assert raised.value.code == "EVIDENCE_CHANGED"
    other_file(view.file, healkit)
    fault = healkit.audit.verify().fault
    assert view.name in fault.message


def test_verify_finds_a_swapped_view_and_accepts_a_removed_one(
    healkit: Healkit,
) -> None:
    decision = decide(healkit)
    sales = decision.views["sales"]
    kept, other = healkit.views.get(sales), healkit.views.put(DATA["parquet"](5.0), "other")
    for view in (other, kept):
        statement = "UPDATE dataview SET sha256 = ?, file_name = ? WHERE view_name = ?"
        changed_row(healkit, statement, view.sha256, view.file.name, sales)
        fault = healkit.audit.verify().fault
        assert (fault is not None) == (view is other)
        assert fault is None or sales in fault.message
    healkit.views.remove(decision.views["twofold"])
    changed_row(healkit, "UPDATE dataview SET evicted_at = created_at WHERE view_name = ?", sales)
    assert healkit.audit.verify().ok
    assert in_order(validate_run(decision.run.folder, healkit.view_keeper.views.folder))


def test_the_look_for_room_removes_files_of_views_only(tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db", config=Config(views_mb=1)) as healkit:
        kept = healkit.views.put(DATA["parquet"](0.0), "sales")
        folder = healkit.view_keeper.views.folder
        large = pd.DataFrame({"a": np.random.default_rng(0).normal(size=200_000)})
        with pytest.raises(ViewError, match="not enough room"):
            healkit.views.put(large, "large")
        assert list(folder.iterdir()) == [kept.file]
        notes, left_behind = folder / "notes.txt", folder / f"{'0' * 64}.1.part"
        for file in (notes, left_behind):
            file.write_text("a person's")
            os.utime(file, (1.0, 1.0))
        healkit.views.put(DATA["parquet"](1.0), "more sales")
        assert (notes.exists(), left_behind.exists()) == (True, False)


def test_a_file_of_an_older_healkit_is_checked_by_its_value(healkit: Healkit) -> None:
    view = healkit.views.put(DATA["parquet"](0.0), "sales")
    old = view.file.with_name(f"{view.sha256}.parquet")
    view.file.replace(old)
    changed_row(healkit, "UPDATE dataview SET file_name = ?", old.name)
    assert_frame_equal(healkit.views.load("sales"), DATA["parquet"](0.0))
    other_file(old, healkit)
    with pytest.raises(ViewChanged, match="does not hold the data that was kept"):
        healkit.views.load("sales")
