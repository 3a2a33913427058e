"""Log on a real PostgreSQL server."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from postgres_samples import Server
from sqlalchemy import select, text
from store_samples import call, failed, moment, started, succeeded

from healkit.contracts.execution import Finished, utc_now
from healkit.contracts.failure import Failure
from healkit.errors import SqlNotAllowed
from healkit.store import migrate
from healkit.store.database import Database
from healkit.store.fast_reads import NewestRows
from healkit.store.log_reader import Log
from healkit.store.log_writer import LogWriter
from healkit.store.models import DAYS, GROUPS, LOG, TableBase
from healkit.store.sql_tools import run_sql

TRACEBACK = """Traceback (most recent call last):
  File "<load_rows@3>", line 2, in load_rows
FileNotFoundError: [Errno 2] No such file or directory: '/data/in/café-2026.csv' it's my_func KeyError: 'x' 100%"""


@pytest.fixture
def database(postgresql_server: Server) -> Iterator[Database]:
    """Open a new database on the server, migrated here."""
    with (
        postgresql_server.database(empty=True) as url,
        contextlib.closing(Database(url, wait_s=10.0)) as opened,
    ):
        yield opened


def fail(writer: LogWriter, traceback: str, tool: str = "fibonacci", **changes: Any) -> int:
    begun = started(tool, **changes)
    failure = Failure("TOOL_EXCEPTION", "Error", "no", traceback)
    return writer.insert_finished(
        begun, Finished(begun.trace_id, utc_now(), 1.0, failure=failure, fingerprint="v1:a1")
    )


def check_counts(database: Database) -> None:
    """Days and groups are what the rows say."""
    with database.read() as session:
        rows = session.execute(select(LOG).where(LOG.c.status != "RUNNING")).all()
        days = session.execute(select(DAYS)).all()
        groups = session.execute(select(GROUPS)).all()
    assert sum(day.runs for day in days) == len(rows)
    assert sum(day.failures + day.refused for day in days) == sum(row.status == "FAILURE" for row in rows)
    assert sum(day.total_us for day in days) == sum(int(row.duration_ms * 1000) for row in rows)
    assert {(d.day, d.tool_name) for d in days} == {(r.timestamp.date(), r.tool_name) for r in rows}
    failures = [row for row in rows if row.fingerprint is not None]
    for group in groups:
        mine = sorted(
            (r.timestamp, r.id)
            for r in failures
            if (r.fingerprint, r.tool_name, r.persona) == tuple(group)[:3]
        )
        assert (group.failures, group.first_seen, group.first_log_id, group.last_seen, group.last_log_id) == (
            len(mine),
            *mine[0],
            *mine[-1],
        )
    assert sum(group.failures for group in groups) == len(failures)


def test_runs_that_only_try_code_out_are_counted_apart(database: Database, writer: LogWriter) -> None:
    own, tried = started(), started(origin="trial", revision=None)
    writer.insert_finished(own, failed(own))
    ended = failed(tried)
    writer.insert_finished(tried, Finished(ended.trace_id, ended.finished_at, 3.0, None, ended.failure))
    check_counts(database)
    log = Log(database)
    assert [(s.runs, s.failures) for s in log.summary()] == [(1, 1)]
    assert [group.count for group in log.groups()] == [1]
    assert log.count(status="FAILURE") == 2
    found = log.last_error()
    assert found is not None
    assert found.trace_id == own.trace_id
    rows, left_out = NewestRows(database, lambda: None).page(50)
    assert ([vars(row) for row in rows], left_out) == ([log.query(tried=False).rows[0].model_dump()], 1)


@pytest.mark.requirement("LOG-14")
def test_the_migrations_make_the_tables_of_the_models(database: Database) -> None:
    options = {
        "compare_type": True,
        "include_name": lambda name, *_: name not in {migrate.VERSION_TABLE, "ix_executionlog_words"},
    }
    with database.engine.connect() as connection:
        assert (
            compare_metadata(MigrationContext.configure(connection, opts=options), TableBase.metadata) == []
        )


@pytest.mark.requirement("LOG-10")
@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("FileNotFoundError", True), ("filenot", True), ("in/caf", True), ('"No such file"', True), ("KeyError: 'x'", True),
        ("100%", True), ("my_func", True), ("func", True), ("such & file | !x", True), ("Division", False),
        ('"such file directory"', False), ("'y'", False), ("=>", False), ("su", False), ("\x00 \ud800", False),
    ],
)  # fmt: skip
def test_typed_text_finds_the_traceback(
    database: Database, writer: LogWriter, typed: str, found: bool
) -> None:
    wanted = fail(writer, TRACEBACK)
    fail(writer, "ZeroDivisionError: nothing alike")
    assert [row.id for row in Log(database).query(text=typed)] == ([wanted] if found else [])


@pytest.mark.requirement("LOG-10")
def test_a_search_uses_the_full_text_index(database: Database, writer: LogWriter) -> None:
    for _ in range(20):
        fail(writer, TRACEBACK)
    asked: list[tuple[str, Any]] = []
    from sqlalchemy import event

    event.listen(
        database.engine, "before_cursor_execute", lambda _c, _k, sql, values, *_: asked.append((sql, values))
    )
    assert len(Log(database).query(text="café")) == 20
    sql, values = next((s, v) for s, v in asked if "to_tsvector" in s)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("SET enable_seqscan = off")
        connection.exec_driver_sql("SET enable_indexscan = off")
        plan = "\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {sql}", values))
    assert "ix_executionlog_words" in plan


@pytest.mark.requirement("LOG-10", "LOG-11")
def test_days_and_groups_follow_every_change_of_a_row(database: Database, writer: LogWriter) -> None:
    base = moment("2026-01-01T23:59:59.999999+00:00")
    begun = [
        started("alpha" if n % 3 else "beta", timestamp=base + timedelta(microseconds=n % 4))
        for n in range(40)
    ]
    for n, row in enumerate(begun):
        writer.begin(row)
        writer.begin(row)
        if n % 5:
            writer.finish(failed(row, f"line {n % 2}") if n % 2 else succeeded(row))
    check_counts(database)
    for row in begun[:10]:
        writer.finish(failed(row))
    check_counts(database)
    with database.write() as session:
        session.execute(text("DELETE FROM executionlog WHERE id % 3 = 0"))
    check_counts(database)
    assert {row.tool_name: row.runs for row in Log(database).summary()}.keys() == {"alpha", "beta"}
    assert all(group.count for group in Log(database).groups())
    with database.write() as session:
        session.execute(text("DELETE FROM executionlog"))
    check_counts(database)


@pytest.mark.requirement("LOG-12")
def test_an_export_from_one_kind_of_database_is_imported_by_the_other(
    database: Database, writer: LogWriter, tmp_path: Path
) -> None:
    for n in range(30):
        begun = started(timestamp=utc_now() - timedelta(days=n), arguments='{"s": "ä"}')
        writer.call(call(begun))
        writer.insert_finished(begun, failed(begun) if n % 2 else succeeded(begun))
    log = Log(database)
    assert log.export(tmp_path / "all.jsonl") == 30
    report = log.prune(older_than=9.5, archive=tmp_path / "archive")
    assert report.deleted == 19
    check_counts(database)
    with contextlib.closing(Database(tmp_path / "other.db")) as other:
        assert Log(other).import_file(tmp_path / "all.jsonl") == (30, 30)
        odd = started(arguments='{"x": "\\ud800 \\u0000"}')
        with contextlib.closing(LogWriter(other)) as there:
            there.insert_finished(odd, succeeded(odd, "a\x00b"))
        Log(other).export(tmp_path / "other.jsonl")
    assert log.import_file(tmp_path / "other.jsonl") == (31, 20)
    assert log.import_file(report.archives[0]) == (19, 0)
    check_counts(database)
    row = log.by_trace(odd.trace_id)
    assert row is not None
    assert (row.arguments, row.result_summary) == ({"x": "\ud800 \x00"}, "a\\x00b")


@pytest.mark.requirement("LOG-12")
def test_retention_and_writers_do_not_lock_each_other_out(database: Database, writer: LogWriter) -> None:
    for n in range(400):
        begun = started(f"tool{n % 7}", timestamp=utc_now() - timedelta(days=2, seconds=n))
        writer.insert_finished(begun, failed(begun, f"line {n % 5}"))
    done, written, problems = threading.Event(), threading.Event(), []

    def work(number: int) -> None:
        with contextlib.closing(LogWriter(database)) as mine:
            while not done.is_set():
                begun = started(f"tool{number}")
                try:
                    mine.begin(begun)
                    mine.finish(failed(begun, f"line {number}"))
                    written.set()
                except Exception as error:
                    problems.append(error)
                time.sleep(0.005)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    assert written.wait(30)  # the newest row stays: it must not be one of the old ones
    try:
        assert Log(database).prune(older_than=1).deleted == 400
    finally:
        done.set()
        for thread in threads:
            thread.join(timeout=30)
    assert problems == []
    check_counts(database)


@pytest.mark.requirement("SAFE-1", "SCALE-1")
def test_a_sql_tool_reads_its_personas_rows_where_it_may_and_nothing_else_of_healkits(
    database: Database, writer: LogWriter
) -> None:
    """S1: a SQL tool without grants read every table of the log and the vault."""

    def run(code: str, log_of: str | None) -> Any:
        return run_sql(database.url, code, {}, row_limit=9, timeout_s=5, log_of=log_of)["rows"]

    for persona in ("alice", "o'hara", "default"):
        fail(writer, TRACEBACK, persona=persona)
        assert run("SELECT persona FROM executionlog e", persona) == [[persona]]
    assert run("SELECT 'revision' AS revision, persona FROM \"executionlog\"", "alice") == [
        ["revision", "alice"]
    ]
    for source in (
        *TableBase.metadata.tables,
        *(f"public.{name}" for name in TableBase.metadata.tables),
        "ONLY codevault",
        'U&"\\0063odevault"',
        "(TABLE codevault) x",
        "pg_stats",
    ):
        with pytest.raises(SqlNotAllowed):
            run(f"SELECT count(*) FROM {source}", None if source == "executionlog" else "alice")
