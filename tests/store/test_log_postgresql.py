"""Log on a real PostgreSQL server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from postgres_samples import Server
from sqlalchemy import select
from store_samples import call, failed, started, succeeded

from healkit.contracts.execution import Finished, utc_now
from healkit.contracts.failure import Failure
from healkit.errors import SqlNotAllowed
from healkit.store import migrate
from healkit.store.database import Database
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
