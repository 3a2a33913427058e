"""Recorder: no failure of the log reaches a tool's caller."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

sys.path.insert(
    0, str(Path(__file__).parents[2] / "core" / "store")
)  # the store's samples are these tests' too
from store_samples import (
    call,
    dead_host,
    failed,
    locked_by_another_process,
    log_rows,
    started,
    succeeded,
)
from waiting import wait_until

from healkit.config import Config
from healkit.core.contracts.execution import Finished, HostIdentity, Started, utc_now
from healkit.core.runtime.recording import Recorder
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log

CONFIG = Config(log_wait_s=0.2)
LOG_2, LOG_4, LOG_7 = (pytest.mark.requirement(f"LOG-{n}") for n in (2, 4, 7))


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def where(new_database: Callable[[str], str]) -> str:
    """Make a database on SQLite and on PostgreSQL; its URL."""
    return new_database("healkit")


@contextlib.contextmanager
def recording(where: str | Path) -> Iterator[tuple[Recorder, Database]]:
    """Yield a recorder on the database there, and close both."""
    with (
        contextlib.closing(Database(where, wait_s=0.2)) as database,
        contextlib.closing(Recorder(database, CONFIG)) as recorder,
    ):
        yield recorder, database


def run(recorder: Recorder, begun: Started, end: Callable[[Started], Finished] = succeeded) -> int | None:
    """Record one whole execution, with a call."""
    recorder.open_row(begun)
    recorder.call(call(begun))
    recorder.call(call(begun, success=True))
    return recorder.close_row(end(begun))


@LOG_7
@pytest.mark.requirement("SCALE-1")
def test_what_waited_is_brought_in_by_itself_when_the_lock_is_gone(where: str) -> None:
    with recording(where) as (recorder, _):
        begun = started()
        with locked_by_another_process(where):
            assert run(recorder, begun) is None
        wait_until(lambda: [row["status"] for row in log_rows(where)] == ["SUCCESS"])
        wait_until(lambda: recorder.problem == "")
        wait_until(lambda: "healkit-log-retry" not in {thread.name for thread in threading.enumerate()})


@LOG_7
def test_an_execution_that_began_while_locked_may_end_when_it_is_not(where: str) -> None:
    with recording(where) as (recorder, _):
        begun = started()
        with locked_by_another_process(where):
            assert recorder.open_row(begun)[0] is None
        log_id = recorder.close_row(succeeded(begun))
        recorder.ingest()  # the thread that tries again may be at it: then the ending went to the spool
        (row,) = log_rows(where)
        assert row["status"] == "SUCCESS"
        assert log_id in {None, row["id"]}


@LOG_7
def test_an_execution_that_ends_while_locked_is_finished_by_the_next_process(where: str) -> None:
    with recording(where) as (recorder, _), locked_by_another_process(where):
        begun = started()
        assert run(recorder, begun, failed) is None
        recorder.close()
        assert log_rows(where) == []
    with recording(where):
        assert [row["status"] for row in log_rows(where)] == ["FAILURE"]


@LOG_7
def test_without_any_disk_records_wait_in_memory_and_that_is_said(where: str, tmp_path: Path) -> None:
    with recording(where) as (recorder, _):
        blocker = tmp_path / "blocker"
        blocker.touch()
        recorder._backlog.spool.folders = [blocker / "spool"]
        begun = started()
        with locked_by_another_process(where):
            assert run(recorder, begun) is None
            assert "in memory only (4)" in recorder.problem
        wait_until(lambda: recorder.problem == "")
        assert [row["status"] for row in log_rows(where)] == ["SUCCESS"]


@LOG_7
def test_a_database_that_vanished_does_not_stop_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with recording(folder / "healkit.db") as (recorder, database):
        database.close()
        shutil.rmtree(folder)
        run(recorder, started())
        recorder.close()
        run(recorder, started())
        assert "could not be written" in recorder.problem


def test_a_record_that_no_database_takes_is_put_aside_and_blocks_nothing(where: str) -> None:
    with recording(where) as (recorder, _):
        recorder.close_row(succeeded(started()))  # its beginning is nowhere
        recorder.ingest()
        assert "put aside" in recorder.problem
        run(recorder, started())
        assert [row["status"] for row in log_rows(where)] == ["SUCCESS"]


@pytest.mark.slow
@LOG_2
def test_the_true_ending_in_the_spool_comes_before_the_verdict_that_the_host_died(where: str) -> None:
    begun = started(host=dead_host())
    with recording(where) as (recorder, _):
        recorder.open_row(begun)
        with locked_by_another_process(where):
            recorder.close_row(succeeded(begun))
            recorder.close()
    with recording(where) as (recorder, _):
        assert recorder.recover_orphans() == 0
        assert [row["status"] for row in log_rows(where)] == ["SUCCESS"]


@LOG_2
def test_a_row_of_another_machine_is_given_up_an_hour_after_its_deadline(where: str) -> None:
    foreign = HostIdentity("elsewhere.example", "another-boot", 1, 1)
    now = utc_now()
    with recording(where) as (recorder, database):
        recorder.open_row(started("fresh", host=foreign, deadline=now - timedelta(minutes=59)))
        recorder.open_row(started("stale", host=foreign, deadline=now - timedelta(minutes=61)))
        assert recorder.recover_orphans() == 1
        row = Log(database).last_error()
        assert row.tool_name == "stale"
        assert "elsewhere.example" in (row.error_traceback or "")


@LOG_2
def test_orphans_of_one_tool_are_one_and_the_same_failure(where: str) -> None:
    with recording(where) as (recorder, database):
        for _ in range(2):
            recorder.open_row(started(host=dead_host()))
        assert recorder.recover_orphans() == 2
        assert len({row.fingerprint for row in Log(database).query(status="FAILURE")}) == 1


def test_many_threads_record_at_once_while_the_database_comes_and_goes(where: str) -> None:
    with recording(where) as (recorder, _):
        traces = [started() for _ in range(40)]

        def work(mine: list[Started]) -> None:
            for begun in mine:
                run(recorder, begun)

        threads = [threading.Thread(target=work, args=(traces[n::4],)) for n in range(4)]
        with locked_by_another_process(where):
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join(timeout=60)
        wait_until(lambda: recorder.ingest() >= 0 and recorder.problem == "")
        assert {row["trace_id"] for row in log_rows(where)} == {begun.trace_id for begun in traces}
        assert {row["status"] for row in log_rows(where)} == {"SUCCESS"}
