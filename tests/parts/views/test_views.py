"""Data that tools were given or returned."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from programs import python
from trusted import trusted_copy
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.runtime.execution import arguments_of
from healkit.core.runtime.executor import ExecutionRequest
from healkit.errors import ArgumentsInvalid, ConfigError, ViewChanged, ViewError, ViewGone, ViewNotFound
from healkit.parts.views.views import ViewList

pytestmark = pytest.mark.requirement("DATA-3")

TOTAL = "def total(df):\n    return float(df['a'].sum())\n"
ROWS = 400


def frame(seed: int = 0, rows: int = ROWS) -> pd.DataFrame:
    random_numbers = np.random.default_rng(seed)
    return pd.DataFrame({"a": random_numbers.normal(size=rows), "t": [f"row {i}" for i in range(rows)]})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Healkit]:
    """Lend a vault with a tool to the tests that look at their own data only."""
    path = tmp_path_factory.mktemp("shared") / "healkit.db"
    with Healkit(trusted_copy(empty_database, path)) as opened:
        opened.vault.add("total", TOTAL)
        yield opened


def files(healkit: Healkit) -> list[Path]:
    return sorted(healkit.view_keeper.views.folder.iterdir())


@pytest.mark.slow
def test_a_run_on_a_frame_is_had_again_also_tomorrow_and_in_another_process(healkit: Healkit) -> None:
    healkit.vault.add("total", TOTAL)
    given = frame()
    first = healkit.execute("total", arguments={"df": given})
    assert first.value == given["a"].sum()
    given["a"] = 0.0  # what the caller does later is not what was passed
    assert healkit.rerun(first.log_id).value == first.value
    healkit.close()
    program = (
        "import sys; from healkit import Healkit\n"
        "with Healkit(sys.argv[1]) as healkit: print(repr(healkit.rerun(int(sys.argv[2])).value))"
    )
    done = python(program, healkit.database.url, first.log_id)
    assert done.stdout.strip().splitlines()[-1] == repr(first.value)


def test_what_a_tool_returns_is_kept_as_it_came_and_not_as_its_caller_changed_it(shared: Healkit) -> None:
    shared.vault.add("twice", "def twice(df):\n    return {'frames': [df[['a']] * 2, df.head(1)]}\n")
    execution = shared.execute("twice", arguments={"df": frame()})
    execution.value["frames"][0].iloc[:] = 0.0
    used = shared.views.used(execution.trace_id)
    assert [view.shape for view in used["arguments"] + used["result"]] == [(ROWS, 2), (ROWS, 1)]
    assert_frame_equal(shared.views.load(used["result"][0].name), frame()[["a"]] * 2)
    assert used["result"][0].created_by == "twice"


@pytest.mark.requirement("DECIDE-2")
def test_the_same_data_is_kept_once_whoever_passes_it(healkit: Healkit) -> None:
    healkit.vault.add("total", TOTAL)
    for _ in range(3):
        healkit.execute("total", arguments={"df": frame()})
    healkit.views.put(frame(), "sales")
    views = healkit.views.list()
    assert [(view.references, view.row_count) for view in views] == [(3, ROWS)] * 2
    assert {view.file for view in views} == set(files(healkit))
    assert len(files(healkit)) == 1
    assert files(healkit)[0].stat().st_mode & 0o777 == 0o600
    assert files(healkit)[0].parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.requirement("DECIDE-2")
def test_a_name_is_written_once(shared: Healkit) -> None:
    view = shared.views.put(frame(8), "sales")
    assert shared.views.put(frame(8), "sales") == view
    assert (view.columns[0].name, view.columns[0].dtype, view.columns[0].nulls) == ("a", "float64", 0)
    with pytest.raises(ViewError, match="'sales' holds other data, and a view is written only once"):
        shared.views.put(frame(1), "sales")
    assert_frame_equal(shared.views.to_pandas("sales"), frame(8))
    with pytest.raises(ViewNotFound, match=r"no data view 'sale'\. Did you mean 'sales'"):
        shared.views.get("sale")
    with pytest.raises(ViewError, match="A dict is not a frame, array or table"):
        shared.views.put({"a": 1}, "other")
    with pytest.raises(ViewError, match="1 to 200 characters"):
        shared.views.put(frame(), "x" * 201)
    shared.views.remove("sales")
    assert "sales" not in [one.name for one in shared.views.list()]
    assert view.file not in files(shared)


def test_a_tool_that_is_kept_off_the_record_leaves_no_data(healkit: Healkit) -> None:
    healkit.vault.add("total", TOTAL, log=False)
    execution = healkit.execute("total", arguments={"df": frame()})
    assert execution.ok
    assert list(healkit.views.list()) == []
    assert not healkit.view_keeper.views.folder.exists()


@pytest.mark.slow
def test_over_the_budget_data_that_nothing_refers_to_goes_first_and_names_never(tmp_path: Path) -> None:
    config = Config(views_mb=1)
    with Healkit(tmp_path / "healkit.db", config=config) as healkit:
        healkit.vault.add("total", TOTAL)
        numbers = [pd.DataFrame({"a": np.random.default_rng(i).normal(size=40_000)}) for i in range(6)]
        named = healkit.views.put(numbers[0], "mine")
        runs = [healkit.execute("total", arguments={"df": numbers[i]}) for i in range(1, 6)]
        evicted = [view for view in healkit.views.list() if view.file is None]
        assert 1 <= len(evicted) < 5
        assert sum(file.stat().st_size for file in files(healkit)) <= 2**20
        assert healkit.views.get("mine") == named
        with pytest.raises(ArgumentsInvalid, match="was evicted: all views together exceeded the budget"):
            healkit.rerun(runs[0].log_id)
        assert healkit.rerun(runs[-1].log_id).ok
        with pytest.raises(ViewError, match="would take more than 1 MB"):
            healkit.views.put(pd.DataFrame({"a": np.random.default_rng(9).normal(size=120_000)}), "large")
        again = healkit.execute(
            "total", arguments={"df": numbers[1]}
        )  # given once more, it is there once more
        assert healkit.rerun(runs[0].log_id).value == again.value


def test_with_its_executions_data_goes_too(healkit: Healkit) -> None:
    healkit.vault.add("total", TOTAL)
    healkit.views.put(frame(7), "mine")
    for seed in (0, 1):
        healkit.execute("total", arguments={"df": frame(seed)})
    healkit.view_keeper.wait()
    assert healkit.log.prune(older_than=timedelta(0)).deleted == 1  # the newest row always stays
    assert len(files(healkit)) == 2
    assert {view.references for view in healkit.views.list()} == {0, 1}


def test_columns_with_secrets_are_in_no_preview_and_no_trace(shared: Healkit) -> None:
    given = frame(2)
    given["password"] = "hunter2"
    given["note"] = "call ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    execution = shared.execute("total", arguments={"df": given})
    shared.view_keeper.wait()
    shown = shared.history.execution(execution.log_id).arguments["df"].shown
    assert shown["first"][0][2:] == ["(hidden)", "(hidden)"]
    assert shown["first"][0][1] == "row 0"
    with closing(sqlite3.connect(shared.path)) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        rows = [str(connection.execute(f"SELECT * FROM {t}").fetchall()) for t in tables if "_fts" not in t]
    assert "row 0" in "".join(rows)
    assert "hunter2" not in "".join(rows)
    assert "ghp_16C7" not in "".join(rows)
    view = shared.views.used(execution.trace_id)["arguments"][0]
    assert "hunter2" not in str(shared.views.card(view.name))
    assert shared.rerun(execution.log_id).value == execution.value


def test_data_that_was_not_kept_or_was_removed_says_so(shared: Healkit) -> None:
    execution = shared.execute("total", arguments={"df": frame(3)})
    (view,) = shared.views.used(execution.trace_id)["arguments"]
    view.file.write_bytes(view.file.read_bytes()[:-10])
    with pytest.raises(ViewChanged, match="does not hold the data that was kept"):
        shared.rerun(execution.log_id)
    view.file.unlink()
    with pytest.raises(ViewGone, match="is not on this machine"):
        shared.views.load(view.name)
    shared.views.remove(view.name)
    with pytest.raises(ArgumentsInvalid, match="its data was not kept"):
        shared.rerun(execution.log_id)


def test_where_nothing_can_be_written_the_tool_runs_and_the_next_one_says_so(healkit: Healkit) -> None:
    healkit.vault.add("total", TOTAL)
    healkit.view_keeper.views.folder.parent.mkdir(parents=True, exist_ok=True)
    healkit.view_keeper.views.folder.write_text("a file in the folder's place")
    assert healkit.execute("total", arguments={"df": frame()}).ok
    healkit.view_keeper.wait()
    assert (
        "Some data of executions was not kept: No data view can be written"
        in healkit.execute("total", arguments={"df": frame(rows=3)}).warnings[0]
    )
    assert "was not kept" in healkit.status().problem


@pytest.mark.slow
def test_what_a_locked_database_did_not_take_is_kept_once_it_is_free(healkit: Healkit) -> None:
    healkit.vault.add("total", TOTAL)
    healkit.view_keeper.wait()
    with closing(sqlite3.connect(healkit.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        execution = healkit.execute("total", arguments={"df": frame()})
        assert execution.ok
        assert not healkit.view_keeper.wait(execution.trace_id)  # it does not wait for who holds it
        assert healkit.view_keeper.problem == ""
        other.execute("ROLLBACK")
    wait_until(lambda: healkit.view_keeper.wait(execution.trace_id))
    assert len(healkit.views.used(execution.trace_id)["arguments"]) == 1


def test_no_tool_may_be_granted_the_folder_of_the_data(shared: Healkit) -> None:
    shared.views.put(frame(4), "granted")
    with pytest.raises(ConfigError):
        shared.vault.add(
            "reader", TOTAL.replace("total", "reader"), grants={"read": [str(files(shared)[0].parent)]}
        )


@pytest.mark.slow
def test_after_kill_9_data_is_there_as_it_was_or_is_said_not_to_be(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[2:]; from test_views import *\n"
        "with Healkit(sys.argv[1]) as healkit:\n"
        "    while True: healkit.execute('total', arguments={'df': frame(int(time.time_ns()), 20_000)})\n"
    )
    path = tmp_path / "healkit.db"
    with Healkit(path) as healkit:
        healkit.vault.add("total", TOTAL)
    pause = random.Random(20261123)
    here = Path(__file__).parent
    for kills in range(2):
        command = [sys.executable, "-c", program, path, here, here.parents[1]]
        process = subprocess.Popen(command, start_new_session=True)
        wait_until(lambda done=kills: len(set(tmp_path.glob("*.views/*.parquet"))) > 3 * done)
        time.sleep(pause.random())  # the moment of the kill is what is tried
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    again = 0
    with Healkit(path) as healkit:
        for row in healkit.log.query(limit=1000).rows:
            try:
                arguments = arguments_of(row)
            except ArgumentsInvalid:
                continue
            total = arguments["df"]["a"].sum()
            assert row.status != "SUCCESS" or json.loads(row.result_summary) == total
            again += 1
    assert again > 3


def test_views_show_themselves(shared: Healkit, tmp_path: Path) -> None:
    assert "No data views" in str(ViewList().card())
    execution = shared.execute("total", arguments={"df": frame(5)})
    (given,) = shared.views.used(execution.trace_id)["arguments"]
    shared.views.put(np.zeros((20, 30)), "an array")
    html = shared.views.list()._repr_html_()
    assert "an array" in html
    assert "400 rows × 2 columns" in html
    written = shared.views.export(given.name, tmp_path / "out.csv")
    assert_frame_equal(pd.read_csv(written), frame(5))
    with pytest.raises(ViewError, match="File exists"):
        shared.views.export("an array", written)
    with pytest.raises(ViewError, match="must end with"):
        shared.views.export("an array", tmp_path / "out.xls")


@pytest.mark.sqlite  # the row is written by sqlite3
def test_a_malformed_row_is_named_and_can_be_removed(healkit: Healkit) -> None:
    """T11: a traceback of `healkit views`, and no way to be rid of the row."""
    healkit.views.put(pd.DataFrame({"a": [1]}), name="good")
    for column, value in (
        ("columns", "not json"), ("columns", "5"), ("columns", "[[1]]"), ("shape", '"x"'), ("created_at", "xx"), ("size_bytes", "abc"),
    ):  # fmt: skip
        healkit.views.put(pd.DataFrame({"a": [2]}), name="bad")
        with closing(sqlite3.connect(str(healkit.path))) as connection, connection:
            connection.execute(f"UPDATE dataview SET {column}=? WHERE view_name='bad'", (value,))
        with pytest.raises(ViewError, match=r"'bad' in .* is damaged"):
            healkit.views.list()
        healkit.views.remove("bad")
        assert [view.name for view in healkit.views.list()] == ["good"]


def test_a_view_is_not_open_to_a_persona_because_of_a_trial(shared: Healkit) -> None:
    for seed, origin in ((6, "trial"), (7, "search")):
        tried = ExecutionRequest("total", "alice", {"df": frame(seed)}, origin=origin, code=TOTAL)
        execution = shared.runner.perform(tried)
        assert execution.failure is None
        (view,) = shared.views.used(execution.trace_id)["arguments"]
        assert not shared.views.is_open_to(view, "alice")
        shared.execute("total", "alice", {"df": frame(seed)})
        assert shared.views.is_open_to(view, "alice")
        assert not shared.views.is_open_to(view, "bob")
