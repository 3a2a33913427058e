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
from sqlalchemy import event
from store_samples import call, failed, recorded, started, succeeded
from test_log_derived import kept, recounted

from healkit.core.contracts.execution import utc_now
from healkit.core.store import log_pages, migrate
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.models import TableBase
from healkit.core.store.sql_tools import SqlFailed, run_sql
from healkit.errors import SqlNotAllowed
from healkit.parts.learn import tables as _learned  # noqa: F401 - its tables are compared too
from healkit.parts.views import tables as _views  # noqa: F401 - as above


@pytest.fixture
def database(postgresql_server: Server) -> Iterator[Database]:
    """Open a new database on the server, migrated here."""
    with (
        postgresql_server.database(empty=True) as url,
        contextlib.closing(Database(url, wait_s=10.0)) as opened,
    ):
        yield opened


@pytest.mark.requirement("LOG-14")
def test_the_migrations_make_the_tables_of_the_models(database: Database) -> None:
    beside = {migrate.VERSION_TABLE, "ix_executionlog_words"}
    options = {"compare_type": True, "include_name": lambda name, *_: name not in beside}
    with database.engine.connect() as connection:
        made = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(made, TableBase.metadata) == []


@pytest.mark.requirement("LOG-10")
def test_a_search_uses_the_full_text_index(
    database: Database, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        recorded(writer)
    monkeypatch.setattr(log_pages, "_COMMON_IN_20", 21)
    asked: list[tuple[str, Any]] = []
    event.listen(
        database.engine, "before_cursor_execute", lambda _c, _k, sql, values, *_: asked.append((sql, values))
    )
    assert len(Log(database).query(text="ZeroDivisionError")) == 20
    sql, values = next((s, v) for s, v in asked if "to_tsvector" in s and "anon" not in s)
    with database.engine.connect() as connection:
        for setting in ("enable_seqscan", "enable_indexscan"):
            connection.exec_driver_sql(f"SET {setting} = off")
        plan = "\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {sql}", values))
    assert "ix_executionlog_words" in plan


@pytest.mark.requirement("SCALE-3")
@pytest.mark.parametrize(
    ("common", "scanned"),
    [(0, 20_000), (101, 20_000), (101, 1)],
    ids=["in time", "in the index", "in too many"],
)
def test_a_text_is_found_however_many_rows_hold_its_words(
    database: Database, writer: LogWriter, monkeypatch: pytest.MonkeyPatch, common: int, scanned: int
) -> None:
    monkeypatch.setattr(log_pages, "_COMMON_IN_20", common)
    monkeypatch.setattr(log_pages, "SCANNED_MAX", scanned)
    for line in ("return lib/foobar.py", "return foobar/lib.py", "return needles", "return lib"):
        recorded(writer, lambda begun, line=line: failed(begun, line))
    log = Log(database)
    texts = ("lib/foobar.py", "lib/foob", "needle", '"return lib"', "return lib", "lib*", "absent")
    assert [[row.id for row in log.query(text=text)] for text in texts] == [
        [1], [1], [3], [4, 1], [4, 2, 1], [4, 2, 1], [],
    ]  # fmt: skip
    assert [row.id for row in log.query(text="return lib", before_id=4)] == [2, 1]
    assert log.query(text="lib", tool="other").rows == []


@pytest.mark.requirement("LOG-12")
def test_an_export_from_one_kind_of_database_is_imported_by_the_other(
    database: Database, writer: LogWriter, tmp_path: Path
) -> None:
    for n in range(30):
        begun = started(timestamp=utc_now() - timedelta(days=n), arguments='{"s": "ä"}')
        writer.call(call(begun))
        writer.insert_finished(begun, (failed if n % 2 else succeeded)(begun))
    log = Log(database)
    assert log.export(tmp_path / "all.jsonl") == 30
    report = log.prune(older_than=9.5, archive=tmp_path / "archive")
    assert report.deleted == 19
    with contextlib.closing(Database(tmp_path / "other.db")) as other:
        assert Log(other).import_file(tmp_path / "all.jsonl") == (30, 30)
        odd = started(arguments='{"x": "\\ud800 \\u0000"}')
        with contextlib.closing(LogWriter(other)) as there:
            there.insert_finished(odd, succeeded(odd, "a\x00b"))
        Log(other).export(tmp_path / "other.jsonl")
    assert log.import_file(tmp_path / "other.jsonl") == (31, 20)
    assert log.import_file(report.archives[0]) == (19, 0)
    assert kept(database) == recounted(database)
    row = log.by_trace(odd.trace_id)
    assert (row.arguments, row.result_summary) == ({"x": "\ud800 \x00"}, "a\\x00b")


@pytest.mark.requirement("SAFE-1", "SCALE-1")
def test_a_sql_tool_reads_its_personas_rows_where_it_may_and_nothing_else_of_healkits(
    database: Database, writer: LogWriter
) -> None:
    """S1: a SQL tool without grants read every table of the log and the vault."""

    def run(code: str, log_of: str | None) -> Any:
        return run_sql(database.url, code, {}, row_limit=9, timeout_s=5, log_of=log_of)["rows"]

    for persona in ("alice", "o'hara", "default"):
        recorded(writer, persona=persona)
        assert run("SELECT persona FROM executionlog e", persona) == [[persona]]
    assert run("SELECT 'revision' AS revision, persona FROM \"executionlog\"", "alice") == [
        ["revision", "alice"]
    ]
    tables = TableBase.metadata.tables
    odd = ("ONLY codevault", 'U&"\\0063odevault"', "(TABLE codevault) x", "pg_stats")
    for source in (*tables, *(f"public.{name}" for name in tables), *odd):
        with pytest.raises(SqlNotAllowed):
            run(f"SELECT count(*) FROM {source}", None if source == "executionlog" else "alice")


def test_a_name_that_the_server_lacks_comes_with_those_that_it_has(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE sales (region TEXT, amount INTEGER)")
    for code, near in (
        ("SELECT amout FROM sales", ["amount"]),
        ("SELECT s.regoin FROM sales s", ["region"]),
        ("SELECT count(*) FROM slaes", ["sales"]),
        ("SELECT lenght(region) FROM sales", ["length"]),
        ("SELECT * FROM executionlgo", []),
    ):
        with pytest.raises(SqlFailed, match="does not exist") as raised:
            run_sql(database.url, code, {}, row_limit=9, timeout_s=5)
        assert raised.value.near[:1] == near
