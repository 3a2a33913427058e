"""Migrations of databases with data."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from side_by_side import Meet, at_once
from sqlalchemy import create_engine, text
from store_samples import log_rows

from healkit.errors import DatabaseError
from healkit.runtime.execution import execution_of
from healkit.store import migrate
from healkit.store.database import Database
from healkit.store.log_reader import Log
from healkit.store.vault import Vault

LOG_14, LOG_15 = pytest.mark.requirement("LOG-14"), pytest.mark.requirement("LOG-15")
SEED = """CREATE TABLE executionlog (
    id INTEGER NOT NULL PRIMARY KEY, timestamp DATETIME NOT NULL, tool_name VARCHAR NOT NULL, persona VARCHAR NOT NULL,
    arguments VARCHAR NOT NULL, status VARCHAR NOT NULL, result_summary VARCHAR, error_traceback VARCHAR)"""
ROWS: list[tuple[Any, ...]] = [
    (
        3,
        "2026-01-02 03:04:05.000006",
        "fibonacci",
        "default",
        '{"n": 10}',
        "FAILURE",
        None,
        "Traceback …\nKeyError: 'x'",
    ),
    (5, "2026-01-02T03:04:05+02:00", "fibonacci", "default", '{"n": 10}', "SUCCESS", "55", None),
    (7, "2026-01-03 00:00:00", "fibonacci", "teacher", "{'n': 10}", "FAILURE", None, "KeyError: 'y'\n\n"),
    (9, "2026-01-04 00:00:00", "broken", "default", "null", "failure", None, "no traceback at all"),
]


def seed_database(path: Path, rows: list[tuple[Any, ...]] = ROWS, *more: str) -> Path:
    """Make a database of the program that healkit grew out of."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(SEED)
        connection.execute(
            "CREATE INDEX ix_executionlog_time ON executionlog (timestamp)"
        )  # a name of ours too
        connection.execute("CREATE TABLE mine (x)")
        connection.executemany(f"INSERT INTO executionlog VALUES ({', '.join('?' * 8)})", rows)
        for statement in more:
            connection.execute(statement)
        connection.commit()
    return path


def dump(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


@LOG_15
def test_a_foreign_log_is_adopted_with_every_row(tmp_path: Path) -> None:
    path = seed_database(tmp_path / "healkit.db")
    with contextlib.closing(Database(path)) as database:
        log = Log(database)
        rows = {row.id: row for row in log.query()}
        assert [row.id for row in log.query()] == [9, 7, 3, 5]
        assert [rows[i].timestamp.isoformat() for i in (3, 5)] == [
            "2026-01-02T03:04:05.000006+00:00",
            "2026-01-02T01:04:05+00:00",
        ]
        assert [rows[i].arguments for i in (3, 7, 9)] == [{"n": 10}, "{'n': 10}", None]
        assert len({row.trace_id for row in rows.values()}) == 4
        failed = execution_of(rows[3], [])
        assert failed.failure is not None
        assert (failed.failure.summary, failed.failure.traceback) == ("KeyError: 'x'", ROWS[0][7])
        assert [row.id for row in log.query(text="KeyError")] == [7, 3]
        assert [(g.tool_name, g.count) for g in log.groups(persona="default")] == [
            ("broken", 1),
            ("fibonacci", 1),
        ]
        assert [(s.tool_name, s.runs, s.failures) for s in log.summary()] == [
            ("broken", 1, 1),
            ("fibonacci", 3, 2),
        ]
        Vault(database).add("fibonacci", "def fibonacci(n): return n")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE name LIKE '%before_healkit'")
        ]
        assert names == []
        assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)
    before = log_rows(path)
    Database(path).close()
    assert log_rows(path) == before


@LOG_15
@pytest.mark.parametrize(
    ("rows", "more", "said"),
    [
        (ROWS, ["ALTER TABLE executionlog ADD COLUMN colour TEXT"], "its columns are id, .*colour"),
        (
            ROWS,
            ["CREATE VIEW failures AS SELECT * FROM executionlog WHERE status = 'FAILURE'"],
            "the view 'failures'",
        ),
        (
            ROWS,
            ["CREATE TRIGGER t AFTER INSERT ON executionlog BEGIN DELETE FROM mine; END"],
            "the trigger 't'",
        ),
        (
            ROWS,
            ["CREATE TABLE notes (log_id INTEGER REFERENCES executionlog (id))"],
            "the table 'notes' refers",
        ),
        (ROWS, ["CREATE TABLE codevault (mine)"], "codevault"),
        ([(1, "yesterday", *ROWS[0][2:])], [], "the time of its row 1 is 'yesterday'"),
        ([(1, ROWS[0][1], "f", "p", "{}", "DONE", None, None)], [], "the status of its row 1 is 'DONE'"),
    ],
)
def test_a_foreign_log_that_does_not_fit_is_refused_unchanged(
    tmp_path: Path, rows: list[tuple[Any, ...]], more: list[str], said: str
) -> None:
    path = seed_database(tmp_path / "healkit.db", rows, *more)
    before = dump(path)
    with pytest.raises(DatabaseError, match=said):
        Database(path)
    assert dump(path) == before


def first_version(path: Path) -> Path:
    """Make a database of the first version with a row in each table."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN")
        migrate.upgrade(connection, "here", "0001")
    engine.dispose()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript((Path(__file__).parent / "rows_of_0001.sql").read_text())
    return path


@LOG_14
@pytest.mark.parametrize(
    "in_the_way", ["failuregroup", "executionlog_fts", "executiontrace", "collectedtrace"]
)
def test_a_failed_migration_leaves_the_older_version(tmp_path: Path, in_the_way: str) -> None:
    path = first_version(tmp_path / "healkit.db")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE {in_the_way} (mine TEXT)")
        connection.commit()
    before = dump(path)
    with pytest.raises(DatabaseError, match=in_the_way):
        Database(path)
    assert dump(path) == before
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute(migrate.READ_VERSION).fetchone() == ("0001",)
        connection.execute(f"DROP TABLE {in_the_way}")
        connection.commit()
    with contextlib.closing(Database(path)) as database:
        assert Log(database).last_error("fibonacci") is not None


@LOG_14
def test_older_rows_are_counted_grouped_and_found(tmp_path: Path) -> None:
    path = first_version(tmp_path / "healkit.db")
    columns = "timestamp, tool_name, persona, arguments, status, error_traceback, trace_id, origin, revision, last_output, fingerprint, duration_ms"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            f"INSERT INTO executionlog ({columns}) VALUES (?, 'f', 'default', '{{}}', ?, ?, ?, 'python', ?, '', ?, ?)",
            [
                ("2026-01-01 00:00:00.000001", "FAILURE", "ValueError: a needle", "t1", 1, "1:aa", 7.5),
                ("2026-01-01 23:59:59.999999", "FAILURE", "ValueError: none", "t2", 2, "1:aa", 2.5),
                ("2026-01-02 00:00:00.000000", "SUCCESS", None, "t3", 3, None, 400.0),
                ("2026-01-02 00:00:00.000000", "RUNNING", None, "t4", 3, None, None),
            ],
        )
        connection.commit()
    with contextlib.closing(Database(path)) as database:
        log = Log(database)
        first, second = log.summary(tool="f", by=["day"])
        assert (first.runs, first.failures, first.mean_ms, first.p95_ms) == (2, 2, 5.0, 10.0)
        assert (second.runs, second.failures, second.p50_ms) == (1, 0, 500.0)
        (group,) = log.groups()
        assert (group.count, group.first_revision, group.last_revision, group.cured_by) == (2, 1, 2, 3)
        assert [row.trace_id for row in log.query(text="needle")] == ["t1"]
        assert [row.trace_id for row in log.query(text="ValueError", tool="f")] == ["t2", "t1"]


@LOG_14
@pytest.mark.dialect
@pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.slow])]
)
def test_older_refused_calls_are_counted_apart(request: Any, tmp_path: Path, kind: str) -> None:
    """D8: the counts of a database from before had refused calls among the failures."""
    with contextlib.ExitStack() as made:
        url = f"sqlite:///{tmp_path / 'healkit.db'}"
        if kind == "postgresql":
            url = made.enter_context(request.getfixturevalue("postgresql_server").database(empty=True))
        engine = create_engine(url)
        with engine.begin() as connection:
            if kind == "sqlite":
                connection.exec_driver_sql("BEGIN")
            migrate.upgrade(connection, "here", "0013")
            for number, (code, status, revision) in enumerate(
                [
                    ("TOOL_NOT_FOUND", "FAILURE", "NULL"),
                    ("ARGUMENTS_INVALID", "FAILURE", "1"),
                    ("TOOL_EXCEPTION", "FAILURE", "1"),
                    ("HOST_DIED", "FAILURE", "1"),
                    (None, "FAILURE", "1"),
                    (None, "SUCCESS", "1"),
                ]
            ):
                written = "NULL" if code is None else f"'{code}'"
                connection.exec_driver_sql(
                    "INSERT INTO executionlog (timestamp, tool_name, persona, arguments, status, error_code,"
                    " trace_id, origin, revision, last_output, duration_ms, error_traceback) VALUES"
                    f" ('2026-01-01 00:00:00.00000{number}', 'f', 'default', '{{}}', '{status}', {written},"
                    f" 't{number}', 'python', {revision}, '', 3.5, 'KeyError')"
                )
        engine.dispose()
        with contextlib.closing(Database(url)) as database:
            log = Log(database)
            (summary,) = log.summary()
            assert (summary.runs, summary.failures, summary.refused) == (6, 3, 2)
            assert (summary.mean_ms, log.count(status="FAILURE"), log.count(status="REFUSED")) == (3.5, 5, 2)
            assert [row.trace_id for row in log.query(status="REFUSED", text="KeyError")] == ["t1", "t0"]
            by_revision = [(row.revision, row.runs, row.refused) for row in log.summary(by=["revision"])]
            assert by_revision == [(None, 1, 1), (1, 5, 1)]
            with database.write() as session:
                session.execute(text("DELETE FROM executionlog WHERE revision = 1"))
            assert [(row.runs, row.failures, row.refused) for row in log.summary()] == [(1, 0, 1)]


def open_and_read(meet: Meet, path: Path) -> tuple[list[str], int]:
    """Return the tools of a log's rows, and its counted runs."""
    meet()
    with contextlib.closing(Database(path, wait_s=30)) as database:
        log = Log(database)
        return [row.tool_name for row in log.query()], log.summary().rows[0].runs


@LOG_14
def test_concurrent_openings_migrate_once(tmp_path: Path) -> None:
    path = first_version(tmp_path / "healkit.db")
    assert at_once(open_and_read, *[(path,)] * 3) == [(["fibonacci"], 1)] * 3


def test_migrations_are_one_chain_numbered_without_a_gap() -> None:
    said = r'^revision = "(\d{4})"\ndown_revision = (?:"(\d{4})"|None)$'
    files = sorted((migrate.FOLDER / "versions").glob("0*.py"))
    chained = [re.findall(said, file.read_text(), re.MULTILINE) for file in files]
    numbers = [f"{number:04}" for number in range(1, len(files) + 1)]
    assert chained == [[pair] for pair in zip(numbers, ["", *numbers], strict=False)]
    assert list(migrate.versions()) == [file.name[:4] for file in files] == numbers
