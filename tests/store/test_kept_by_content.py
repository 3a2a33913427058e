"""Files that are kept by their content, swapped for others.

Nothing gets a value from a file that does not hold what was kept.
"""

from __future__ import annotations

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
from pandas.testing import assert_frame_equal

from healkit import Config, Healkit
from healkit.errors import HealkitError, ViewChanged, ViewError, ViewGone

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
