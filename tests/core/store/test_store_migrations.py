"""Migrations of databases with data."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from side_by_side import Meet, at_once
from sqlalchemy import create_engine, text
from store_samples import log_rows

from healkit.core.runtime.execution import execution_of
from healkit.core.store import migrate
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.core.store.vault import Vault
from healkit.errors import DatabaseError

LOG_14, LOG_15 = pytest.mark.requirement("LOG-14"), pytest.mark.requirement("LOG-15")
SEED = """CREATE TABLE executionlog (
    id INTEGER NOT NULL PRIMARY KEY, timestamp DATETIME NOT NULL, tool_name VARCHAR NOT NULL, persona VARCHAR NOT NULL,
    arguments VARCHAR NOT NULL, status VARCHAR NOT NULL, result_summary VARCHAR, error_traceback VARCHAR)"""
ROWS: list[tuple[Any, ...]] = [
    (3, "2026-01-02 03:04:05.000006", "fibonacci", "default", '{"n": 10}', "FAILURE", None, "Traceback …\nKeyError: 'x'"),
    (5, "2026-01-02T03:04:05+02:00", "fibonacci", "default", '{"n": 10}', "SUCCESS", "55", None),
    (7, "2026-01-03 00:00:00", "fibonacci", "teacher", "{'n': 10}", "FAILURE", None, "KeyError: 'y'\n\n"),
    (9, "2026-01-04 00:00:00", "broken", "default", "null", "failure", None, "no traceback at all"),
]  # fmt: skip


def seed_database(path: Path, rows: list[tuple[Any, ...]] = ROWS, *more: str) -> Path:
    """Make a database of the program that healkit grew out of."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(SEED)
        connection.execute(
            "CREATE INDEX ix_executionlog_time ON executionlog (timestamp)"
        )  # healkit has an index of that name
        connection.execute("CREATE TABLE mine (x)")
        connection.executemany(f"INSERT INTO executionlog VALUES ({', '.join('?' * 8)})", rows)
        for statement in more:
            connection.execute(statement)
        connection.commit()
    return path


def dump(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def schema(path: Path) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


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
        (ROWS, ["CREATE VIEW failures AS SELECT * FROM executionlog WHERE status = 'FAILURE'"], "the view 'failures'"),
        (ROWS, ["CREATE TRIGGER t AFTER INSERT ON executionlog BEGIN DELETE FROM mine; END"], "the trigger 't'"),
        (ROWS, ["CREATE TABLE notes (log_id INTEGER REFERENCES executionlog (id))"], "the table 'notes' refers"),
        (ROWS, ["CREATE TABLE codevault (mine)"], "codevault"),
        ([(1, "yesterday", *ROWS[0][2:])], [], "the time of its row 1 is 'yesterday'"),
        ([(1, ROWS[0][1], "f", "p", "{}", "DONE", None, None)], [], "the status of its row 1 is 'DONE'"),
    ],
)  # fmt: skip
def test_a_foreign_log_that_does_not_fit_is_refused_unchanged(
    tmp_path: Path, rows: list[tuple[Any, ...]], more: list[str], said: str
) -> None:
    path = seed_database(tmp_path / "healkit.db", rows, *more)
    before = dump(path)
    with pytest.raises(DatabaseError, match=said):
        Database(path)
    assert dump(path) == before


MADE_UP = """from alembic import op

revision, down_revision = "r0006", "r0005"


def upgrade() -> None:
    op.execute("ALTER TABLE executionlog ADD COLUMN colour VARCHAR")
    op.execute("UPDATE executionlog SET colour = 'red' WHERE status = 'FAILURE'")
    op.execute("CREATE TABLE palette (colour VARCHAR PRIMARY KEY)")
"""


def of_the_first_release(url: str) -> None:
    """Make a database of the first release with a row in each of its main tables."""
    engine = create_engine(url)
    rows = (Path(__file__).parent / "rows_of_r0001.sql").read_text()
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")
        else:
            rows = rows.replace("0, '2026-01-02 03:04:05.000006');", "false, '2026-01-02 03:04:05.000006');")
        migrate.upgrade(connection, "here")
        for statement in rows.split(";\n"):
            connection.execute(text(statement.replace(":", "\\:")))
    engine.dispose()


def use_made_up(folder: Path) -> None:
    """Have this process's healkit ship a made-up third migration, from that folder."""
    if not folder.exists():
        shutil.copytree(migrate.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "versions" / "r0006_made_up.py").write_text(MADE_UP)
    migrate.FOLDER = folder
    migrate.versions.cache_clear()


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the folder of a healkit with a third migration, once `use_made_up` has made it."""
    monkeypatch.setattr(migrate, "FOLDER", migrate.FOLDER)
    yield tmp_path / "migrations"
    migrate.versions.cache_clear()


@LOG_14
@pytest.mark.dialect
@pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.slow])]
)
def test_a_database_of_the_first_release_opens_in_a_newer_healkit_with_nothing_lost(
    request: Any, tmp_path: Path, made_up: Path, kind: str
) -> None:
    with contextlib.ExitStack() as opened:
        url = f"sqlite:///{tmp_path / 'healkit.db'}"
        if kind == "postgresql":
            url = opened.enter_context(request.getfixturevalue("postgresql_server").database(empty=True))
        of_the_first_release(url)
        use_made_up(made_up)
        database = opened.enter_context(contextlib.closing(Database(url)))
        entry = Vault(database).lookup("fibonacci")
        assert (entry.label, entry.code, entry.description) == (
            "fibonacci v1", "def fibonacci(n): return n", "old",
        )  # fmt: skip
        log = Log(database)
        row = log.last_error("fibonacci")
        assert (row.arguments, row.error_traceback, row.timestamp.isoformat()) == (
            {"n": 10},
            "Traceback: ZeroDivisionError",
            "2026-01-02T03:04:05.000006+00:00",
        )
        assert [found.id for found in log.query(text="zerodivision")] == [row.id]
        assert log.summary().rows[0].failures == 1
        with database.read() as session:
            assert session.execute(text("SELECT colour FROM executionlog")).scalar() == "red"
            assert session.execute(text(migrate.READ_VERSION)).scalar() == migrate.head() == "r0006"


@LOG_14
def test_a_failed_migration_leaves_the_older_version(tmp_path: Path, made_up: Path) -> None:
    path = tmp_path / "healkit.db"
    of_the_first_release(f"sqlite:///{path}")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE palette (mine TEXT)")
        connection.commit()
    before = schema(path), log_rows(path)
    use_made_up(made_up)
    with pytest.raises(DatabaseError, match="palette"):
        Database(path)
    assert (schema(path), log_rows(path)) == before
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute(migrate.READ_VERSION).fetchone() == ("r0005",)
        connection.execute("DROP TABLE palette")
        connection.commit()
    with contextlib.closing(Database(path)) as database:
        assert Log(database).last_error("fibonacci") is not None


@pytest.mark.requirement("SCALE-3")
def test_a_migration_that_is_stopped_goes_on_with_the_one_that_failed(tmp_path: Path, made_up: Path) -> None:
    path = tmp_path / "healkit.db"
    of_the_first_release(f"sqlite:///{path}")
    use_made_up(made_up)
    last = made_up / "versions" / "r0007_fails.py"
    last.write_text(MADE_UP.replace('"r0006", "r0005"', '"r0007", "r0006"'))  # its column is there already
    migrate.versions.cache_clear()
    with pytest.raises(DatabaseError, match="colour"):
        Database(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute(migrate.READ_VERSION).fetchone() == ("r0006",)
        assert connection.execute("SELECT colour FROM executionlog").fetchone() == ("red",)
        connection.execute("UPDATE executionlog SET colour = 'blue'")
        connection.commit()
    last.write_text(
        MADE_UP.replace('"r0006", "r0005"', '"r0007", "r0006"').split("    op.")[0] + "    pass\n"
    )
    Database(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute(migrate.READ_VERSION).fetchone() == ("r0007",)
        assert connection.execute("SELECT colour FROM executionlog").fetchone() == ("blue",)


@pytest.mark.requirement("SCALE-3")
def test_a_long_migration_says_that_it_is_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(migrate, "_SAID_EVERY_S", 0.0)
    monkeypatch.setattr(migrate, "_OPERATIONS", 1_000)
    rows = [(number - 1_250, *ROWS[number % 3][1:]) for number in range(2_500)]
    path = seed_database(tmp_path / "healkit.db", rows)
    with contextlib.closing(Database(path)) as database:
        assert Log(database).count() == 2_500
        assert {row.id for row in Log(database).query(limit=2_500)} == {row[0] for row in rows}
    assert any("the 2,500 rows of its log are taken over" in said for said in caplog.messages)


def open_and_read(meet: Meet, path: Path, migrations: Path) -> tuple[list[str], int]:
    """Return the tools of a log's rows, and its counted runs."""
    use_made_up(migrations)
    meet()
    with contextlib.closing(Database(path, wait_s=30)) as database:
        log = Log(database)
        return [row.tool_name for row in log.query()], log.summary().rows[0].runs


@pytest.mark.slow
@LOG_14
def test_concurrent_openings_migrate_once(tmp_path: Path, made_up: Path) -> None:
    path = tmp_path / "healkit.db"
    of_the_first_release(f"sqlite:///{path}")
    use_made_up(made_up)
    assert at_once(open_and_read, *[(path, made_up)] * 3) == [(["fibonacci"], 1)] * 3


def test_migrations_are_one_chain_numbered_without_a_gap() -> None:
    said = r'^revision = "(r\d{4})"\ndown_revision = (?:"(r\d{4})"|None)$'
    files = sorted((migrate.FOLDER / "versions").glob("r0*.py"))
    chained = [re.findall(said, file.read_text(), re.MULTILINE) for file in files]
    numbers = [f"r{number:04}" for number in range(1, len(files) + 1)]
    assert chained == [[pair] for pair in zip(numbers, ["", *numbers], strict=False)]
    assert list(migrate.versions()) == [file.name[:5] for file in files] == numbers
