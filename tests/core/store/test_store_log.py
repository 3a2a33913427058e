"""Log: written on its own connection, read by page."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from side_by_side import Meet, at_once
from sqlalchemy import text
from sqlalchemy.orm import Session
from store_samples import (
    asked_of,
    call,
    failed,
    locked_by_another_process,
    log_rows,
    moment,
    recorded,
    started,
    succeeded,
)  # fmt: skip

from healkit.core.contracts.execution import Grants, new_trace_id, utc_now
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.core.store.log_writer import LogWriter, RecordRefused, RowMissing
from healkit.errors import DatabaseLocked, DatabaseMissing

LOG_1, LOG_2, LOG_4 = (pytest.mark.requirement(f"LOG-{n}") for n in (1, 2, 4))
LOG_5, LOG_6, LOG_9, LOG_10 = (pytest.mark.requirement(f"LOG-{n}") for n in (5, 6, 9, 10))


@LOG_1
@LOG_2
@pytest.mark.requirement("SCALE-1")
def test_a_row_is_running_first_and_finished_after(database: Database, writer: LogWriter) -> None:
    begun = started(grants=Grants(read=("/data",)), parent_trace_id=new_trace_id())
    log_id = writer.begin(begun)
    (row,) = log_rows(database)
    assert (row["id"], row["status"], row["tool_name"], row["persona"]) == (
        log_id, "RUNNING", "fibonacci", "default",
    )  # fmt: skip
    assert row["arguments"] in ('{"n":10}', {"n": 10})  # the text, or what the server's driver makes of it
    end = failed(begun)
    assert writer.finish(end) == log_id
    read = Log(database).get(log_id)
    assert (read.status, read.error_traceback) == ("FAILURE", end.failure.traceback)
    assert (read.timestamp, read.finished_at, read.deadline) == (
        begun.timestamp, end.finished_at, begun.deadline,
    )  # fmt: skip
    assert (read.arguments, read.grants, read.revision) == ({"n": 10}, {"read": ["/data"]}, 1)
    assert (read.trace_id, read.parent_trace_id) == (begun.trace_id, begun.parent_trace_id)
    assert (read.ename, read.fingerprint) == ("ZeroDivisionError", end.fingerprint)
    assert read.failure["frames"][0]["line"] == "return 1 / 0"


@LOG_2
@LOG_5
@LOG_6
def test_what_is_written_twice_or_is_odd_or_long_is_one_readable_row(
    database: Database, writer: LogWriter
) -> None:
    begun = started(origin="py\ud800thon", arguments='{"x":"\\ud800"}')
    first = writer.begin(begun)
    for task in (10, 2, 1):
        writer.call(call(begun, task, success=True, result_summary="4"))
    writer.finish(succeeded(begun, "a\x00b \udfff ä 😀" + "x" * 5000))
    assert writer.begin(begun) == first
    writer.call(call(begun))
    log = Log(database)
    (row,) = log.query()
    assert (row.status, row.origin) == ("SUCCESS", "py\\ud800thon")
    assert "\\udfff ä 😀" in row.result_summary
    assert len(row.result_summary) == 2000
    assert re.search(r"\[TRUNCATED, 5,0\d\d characters\]$", row.result_summary)
    assert [(c.task_id, c.result_summary) for c in log.calls(begun.trace_id)] == [
        ("t1", "4"), ("t2", "4"), ("t10", "4"),
    ]  # fmt: skip
    with pytest.raises(RowMissing, match="trace id"):
        writer.finish(succeeded(started()))
    with pytest.raises(RecordRefused):
        writer.begin(started(timestamp=moment("2026-01-01T00:00:00"), deadline=moment("2026-01-01T00:00:00")))


@LOG_4
def test_the_row_is_independent_of_the_callers_transaction(database: Database, writer: LogWriter) -> None:
    with database.engine.begin() as setup:
        setup.exec_driver_sql("CREATE TABLE mine (x INTEGER)")
    with Session(database.engine) as session:
        session.execute(text("SELECT * FROM mine"))  # the caller's transaction is open, and reads
        begun = started()
        writer.begin(begun)
        writer.finish(succeeded(begun))
        session.rollback()
        # Uncommitted; on SQLite, the caller holds the write lock.
        session.execute(text("INSERT INTO mine VALUES (1)"))
        with pytest.raises(DatabaseLocked) if database.path else contextlib.nullcontext():
            writer.begin(started("held"), wait_s=0.05)
        session.rollback()
        assert session.execute(text("SELECT count(*) FROM mine")).scalar() == 0
    names = ["fibonacci"] if database.path else ["fibonacci", "held"]
    assert [row["tool_name"] for row in log_rows(database)] == names


@LOG_4
def test_a_broken_session_of_the_caller_does_not_lose_the_row(database: Database, writer: LogWriter) -> None:
    with Session(database.engine) as session:
        with pytest.raises(Exception, match=r"no such table|does not exist"):
            session.execute(text("SELECT * FROM nowhere"))
        begun = started()
        writer.begin(begun)
        writer.finish(failed(begun))
    assert Log(database).count(status="FAILURE") == 1


def test_many_threads_write_through_one_writer(database: Database, writer: LogWriter) -> None:
    def work() -> None:
        for _ in range(50):
            begun = started()
            writer.begin(begun, wait_s=10)
            writer.finish(succeeded(begun), wait_s=10)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert Log(database).count(status="SUCCESS") == 400


def write_executions(meet: Meet, path: str, count: int, per_second: float = float("inf")) -> None:
    """Record so many executions; every fifth fails."""
    with contextlib.closing(Database(path)) as database, contextlib.closing(LogWriter(database)) as writer:
        meet()
        start = time.monotonic()
        for n in range(count):
            time.sleep(max(0.0, start + n / per_second - time.monotonic()))
            begun = started()
            writer.begin(begun, wait_s=20.0)
            writer.finish(failed(begun) if n % 5 == 0 else succeeded(begun), wait_s=20.0)


@pytest.mark.slow
@pytest.mark.parametrize("per_second", [50.0, float("inf")], ids=["fifty a second", "as fast as they can"])
@pytest.mark.requirement("SCALE-1")
def test_eight_processes_write_one_log_without_loss(database: Database, per_second: float) -> None:
    at_once(write_executions, *[(database.url, 100, per_second)] * 8)
    log = Log(database)
    counted = [log.count(status=status) for status in ("SUCCESS", "FAILURE", "RUNNING")]
    assert counted == [640, 160, 0]
    assert log.groups().rows[0].count == 160


@LOG_4
def test_a_locked_log_times_out(sqlite_database: Database) -> None:
    patient = Database(sqlite_database.path, wait_s=3600.0)
    with (
        contextlib.closing(patient),
        contextlib.closing(LogWriter(patient)) as sqlite_writer,
        locked_by_another_process(sqlite_database.path),
    ):
        before = utc_now()
        with pytest.raises(DatabaseLocked):
            sqlite_writer.begin(started(), wait_s=0.2)
        assert utc_now() - before > timedelta(seconds=0.15)


@LOG_10
def test_a_record_goes_to_the_file_that_is_there_now(sqlite_writer: LogWriter, tmp_path: Path) -> None:
    """R4: a copy that was put in the place of the file in use gets what comes after; a file that is gone, nothing."""
    path, copy = tmp_path / "healkit.db", tmp_path / "copy.db"
    first, second, third = started(), started(), started()
    sqlite_writer.begin_in_order(first)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    for file in tmp_path.glob("healkit.db*"):
        file.unlink()
    with pytest.raises(DatabaseMissing) as caught:
        sqlite_writer.begin_in_order(second)
    assert "Put it back" in caught.value.hint
    copy.rename(path)
    sqlite_writer.finish(succeeded(first))
    sqlite_writer.begin_in_order(third)
    with contextlib.closing(Database(path)) as database:
        rows = database.fetch("SELECT trace_id, status FROM executionlog ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [(first.trace_id, "SUCCESS"), (third.trace_id, "RUNNING")]


@LOG_10
def test_every_filter_alone_and_together(database: Database, writer: LogWriter) -> None:
    old = started("alpha", timestamp=moment("2026-01-01T12:00:00+00:00"))
    writer.insert_finished(old, failed(old, "return 100%_sure"))
    new = started("beta", persona="teacher", timestamp=moment("2026-02-01T12:00:00+00:00"))
    writer.insert_finished(new, succeeded(new))
    child = started("gamma", parent_trace_id=new.trace_id)
    writer.begin(child)
    log = Log(database)

    def names(**conditions: object) -> list[str]:
        return [row.tool_name for row in log.query(**conditions)]

    assert names() == ["gamma", "beta", "alpha"]
    assert names(status="failure") == ["alpha"]
    assert names(tool="beta") == names(persona="teacher") == ["beta"]
    assert names(since="2026-01-15", until="2026-03-01") == ["beta"]
    assert names(until=moment("2026-01-01T12:00:00+00:00")) == []
    assert names(text="100%_SURE") == ["alpha"]
    assert names(text="100xxsure") == []
    assert names(trace=new.trace_id) == ["gamma", "beta"]
    assert names(fingerprint=failed(old, "return 100%_sure").fingerprint) == ["alpha"]
    assert names(status="SUCCESS", tool="alpha") == []
    assert [row.tool_name for row in log.running()] == ["gamma"]
    with pytest.raises(ValueError, match="FAILURE"):
        log.query(status="BROKEN")


@LOG_10
def test_a_page_is_a_data_frame_too(database: Database, writer: LogWriter) -> None:
    log_id = recorded(writer, succeeded)
    frame = Log(database).query().to_pandas()
    assert list(frame.index) == [log_id]
    assert list(frame.columns[:3]) == ["timestamp", "tool_name", "persona"]
    assert str(frame["timestamp"].dtype).endswith("UTC]")
    assert list(Log(database).query(tool="none").to_pandas().columns) == list(frame.columns)


@LOG_9
def test_the_last_error_is_the_newest_failure_of_all_or_of_one_tool(
    database: Database, writer: LogWriter
) -> None:
    log = Log(database)
    assert log.last_error() is None
    for tool, persona, end in (
        ("alpha", "default", failed),
        ("alpha", "teacher", failed),
        ("beta", "default", failed),
        ("beta", "default", succeeded),
        ("gamma", "default", succeeded),
    ):
        recorded(writer, end, tool, persona=persona)
    newest, alpha, mine = log.last_error(), log.last_error("alpha"), log.last_error("alpha", "default")
    assert (newest.tool_name, alpha.persona, mine.persona) == ("beta", "teacher", "default")
    assert log.last_error("gamma") is None
    assert log.tools_with_errors() == ["alpha", "beta"]


def test_reading_brings_in_waiting_records_first(database: Database, writer: LogWriter) -> None:
    begun = started()
    log = Log(database, refresh=lambda: writer.begin(begun))
    assert log.by_trace(begun.trace_id) is not None


FIBONACCI: dict[str, Any] = {"tool": "fibonacci"}
#: A question → the index that answers it.
INDEXED: list[tuple[Callable[[Log], object], str]] = [
    (lambda log: log.last_error(), "ix_executionlog_own_failed_time"),
    (lambda log: log.last_error("fibonacci"), "ix_executionlog_own_failed_tool_time"),
    (lambda log: log.tools_with_errors(), "ix_executionlog_own_failed_tool_time"),
    (lambda log: log.running(), "ix_executionlog_running"),
    (lambda log: log.query(status="RUNNING", tried=False, **FIBONACCI), "ix_executionlog_running"),
    (lambda log: log.count(tried=False, **FIBONACCI), "ix_executionlog_running"),
    (lambda log: log.query(), "ix_executionlog_time"),
    (lambda log: log.query(**FIBONACCI), "ix_executionlog_tool_time"),
    (lambda log: log.query(tried=False), "ix_executionlog_own_time"),
    (lambda log: log.query(tried=False, **FIBONACCI), "ix_executionlog_own_tool_time"),
    (lambda log: log.query(origin="magic"), "ix_executionlog_origin_time"),
    (lambda log: log.query(status="FAILURE", **FIBONACCI), "ix_executionlog_failed_tool_time"),
    (lambda log: log.query(fingerprint="1:x"), "ix_executionlog_fingerprint"),
    (lambda log: log.query(status="REFUSED"), "ix_executionlog_refused_time"),
    (lambda log: log.query(status="REFUSED", **FIBONACCI), "ix_executionlog_refused_time"),
    (lambda log: log.count_refused(since="2026-01-01"), "ix_executionlog_refused_time"),
    (lambda log: log.groups(), "ix_failuregroup_seen"),
]


@LOG_10
@pytest.mark.requirement("LOG-11")
def test_common_queries_use_an_index_without_a_sort(
    sqlite_database: Database, sqlite_writer: LogWriter
) -> None:
    recorded(sqlite_writer)
    log = Log(sqlite_database)
    for ask, index in INDEXED:
        asked = asked_of(sqlite_database, lambda: ask(log))  # noqa: B023 - called at once
        plan = next(plan for sql, _, plan in asked if "FROM executionlog" in sql or "failuregroup" in sql)
        assert index in " ".join(plan), index
        if index == "ix_failuregroup_seen":
            assert all("PRIMARY KEY" in step for step in plan[1:3])
        elif index not in {"ix_executionlog_fingerprint", "ix_executionlog_refused_time"}:
            assert not any("TEMP B-TREE" in step for step in plan), index


@LOG_10
@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({"status": "RUNNING", "tool": "fibonacci"}, "ix_executionlog_running"),
        ({"text": "ZeroDivisionError", "tool": "fibonacci"}, "executionlog_fts VIRTUAL TABLE"),
        ({"since": "2026-01-01"}, "ix_executionlog_origin_time (origin=? AND timestamp>? AND timestamp<?)"),
    ],
    ids=str,
)
def test_trials_left_out_are_counted_between_the_pages_rows_only(
    sqlite_database: Database, sqlite_writer: LogWriter, filters: dict[str, Any], index: str
) -> None:
    """R9: a page without trials read all rows of its tool, all matches of its text, or its time from end to end."""
    for _ in range(3):
        sqlite_writer.begin(started()) if "status" in filters else recorded(sqlite_writer)
    log = Log(sqlite_database)
    below = log.query(tried=False, limit=1, **filters).next_before_id
    asked = asked_of(sqlite_database, lambda: log.query(tried=False, limit=1, before_id=below, **filters))
    sql, values, plan = asked[-1]
    assert "count(*)" in sql
    assert index in plan[1]
    if "text" in filters:  # matches newer than the page's last row, not all older ones
        assert "executionlog_fts.rowid >= " in sql
    if "since" in filters:  # the times of the two rows that the page ends with, not the filter's
        assert "2026-01-01 00:00:00.000000" not in values
