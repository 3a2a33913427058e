"""Databases: location, errors, migration."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from side_by_side import Meet, at_once
from sqlalchemy import create_engine, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateIndex, CreateTable
from store_samples import as_ordinary_user, fill, locked_by_another_process, open_folder, started, tiny_disk

from healkit.errors import (
    DatabaseCorrupt,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseMissing,
    DatabaseNewer,
    DatabaseReadOnly,
)
from healkit.store import migrate
from healkit.store.database import SQLITE_CODES, SQLSTATES, Database, resolve_url, translate
from healkit.store.log_writer import LogWriter
from healkit.store.models import ExecutionLog, TableBase
from healkit.store.vault import Vault

PARTIAL_INDEXES = (
    "SELECT name, substr(sql, instr(sql, 'WHERE')) FROM sqlite_master "
    "WHERE type = 'index' AND sql LIKE '%WHERE%' ORDER BY name"
)
LOG_7, LOG_14 = pytest.mark.requirement("LOG-7"), pytest.mark.requirement("LOG-14")


def test_argument_then_environment_then_nearest_file(tmp_path: Path) -> None:
    (tmp_path / "healkit.db").touch()
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    environ = {"HEALKIT_DB": "other.db"}
    assert resolve_url("mine.db", environ, inner) == f"sqlite:///{inner / 'mine.db'}"
    assert resolve_url(None, environ, inner) == f"sqlite:///{inner / 'other.db'}"
    assert resolve_url(None, {}, inner) == f"sqlite:///{tmp_path / 'healkit.db'}"
    assert resolve_url("postgresql+psycopg://h/d", {}, inner) == "postgresql+psycopg://h/d"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """Made here, not copied: the file and its migrations are what is tested."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    opened = Database(tmp_path / "healkit.db", wait_s=0.2)
    yield opened
    opened.close()


def test_the_default_database_is_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert resolve_url(None, {}, tmp_path) == f"sqlite:///{tmp_path / 'data' / 'healkit' / 'healkit.db'}"


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite://", ":memory:", "sqlite:///:memory:"])
def test_an_in_memory_url_is_a_private_temporary_file(url: str) -> None:
    program = (
        "import sys; from healkit.store.database import Database; d = Database(sys.argv[1]); print(d.path)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, url], capture_output=True, text=True, check=True, timeout=60
    )
    path = Path(done.stdout.strip())
    assert path.is_absolute()
    assert not path.parent.exists()


@LOG_7
def test_a_missing_folder_is_named_but_not_created(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing, match="no folder"):
        Database(tmp_path / "nowhere" / "healkit.db")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_not_created_on_request(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing, match="no database"):
        Database(tmp_path / "healkit.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_is_private_and_in_wal_mode(database: Database) -> None:
    assert database.path is not None
    assert database.path.stat().st_mode & 0o077 == 0
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


@pytest.mark.parametrize("content", [b"hello\n", b"not a database at all\n" * 500], ids=["short", "long"])
def test_a_text_file_is_refused_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(DatabaseCorrupt, match=r"notes\.txt"):
        Database(path)
    assert path.read_bytes() == content


def test_a_damaged_page_is_reported_as_damage(database: Database) -> None:
    Vault(database).add("f", "def f(): return 1")
    database.close()
    path = database.path
    assert path is not None
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(bytes(content))
    with pytest.raises(DatabaseCorrupt), contextlib.closing(Database(path)) as again:
        Vault(again).list()


@LOG_14
@pytest.mark.parametrize(
    ("version", "kind"), [("r9999", DatabaseNewer), ("0014", DatabaseError), ("0001", DatabaseError)]
)
def test_a_database_that_no_release_before_wrote_is_refused_unchanged(
    database: Database, version: str, kind: type[DatabaseError]
) -> None:
    path = database.path
    assert path is not None
    with database.write() as session:
        session.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '{version}'"))
    database.close()
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match=rf"'{version}'.*left untouched") as refused:
        Database(path)
    assert type(refused.value) is kind
    assert path.read_bytes() == before


@LOG_7
def test_a_blocked_write_is_refused_and_reading_goes_on(database: Database) -> None:
    assert database.path is not None
    vault = Vault(database)
    vault.add("f", "def f(): return 1")
    with locked_by_another_process(database.path):
        with pytest.raises(DatabaseLocked, match="locked"):
            vault.add("g", "def g(): return 1")
        assert vault.names() == ["f"]
        with contextlib.closing(Database(database.path)) as second:
            assert Vault(second).names() == ["f"]


def test_a_write_session_is_one_transaction(database: Database) -> None:
    def work() -> None:
        with database.write() as session:
            session.execute(
                text("INSERT INTO codevault VALUES ('h', 'c', 'python', '2026-01-01 00:00:00.000000')")
            )
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        work()
    with database.read() as session:
        assert session.execute(text("SELECT count(*) FROM codevault")).scalar() == 0


@pytest.mark.parametrize("what", ["file", "folder"])
@LOG_7
def test_a_read_only_database_refuses_writes_with_a_hint(what: str) -> None:
    with open_folder() as folder:
        path = folder / "healkit.db"
        with contextlib.closing(Database(path)) as first:
            Vault(first).add("f", "def f(): return 1")
        path.chmod(0o444 if what == "file" else 0o666)
        folder.chmod(0o555 if what == "folder" else 0o777)
        with as_ordinary_user(), contextlib.closing(Database(path)) as second:
            assert Vault(second).names() == ["f"]
            with pytest.raises(DatabaseReadOnly, match="only be read"):
                Vault(second).add("g", "def g(): return 1")
            with contextlib.closing(LogWriter(second)) as writer, pytest.raises(DatabaseReadOnly):
                writer.begin(started())
        folder.chmod(0o777)


def test_an_old_read_only_database_says_it_must_be_migrated() -> None:
    with open_folder() as folder:
        path = folder / "healkit.db"
        path.touch()
        path.chmod(0o444)
        with as_ordinary_user(), pytest.raises(DatabaseReadOnly, match="tables"):
            Database(path)


def test_an_unwritable_folder_is_reported_as_read_only() -> None:
    with open_folder() as folder:
        folder.chmod(0o555)
        with as_ordinary_user(), pytest.raises(DatabaseReadOnly, match="No database can be made"):
            Database(folder / "healkit.db")


@LOG_7
def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk") as disk, contextlib.closing(Database(disk / "healkit.db")) as database:
        fill(disk)
        with pytest.raises(DatabaseFull, match="space"):
            Vault(database).add("f", "def f(): return 1  #" + "x" * 100_000)


@LOG_7
def test_a_database_at_its_size_limit_is_reported_as_full(database: Database) -> None:
    with contextlib.closing(database.detached_connection()) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute("INSERT INTO codevault VALUES ('h', ?, 'python', '2026')", ("x" * 100_000,))
    assert isinstance(translate(caught.value, "here"), DatabaseFull)


def test_every_backend_code_is_mapped() -> None:
    for code, kind in SQLITE_CODES.items():
        error = sqlite3.OperationalError("said")
        error.sqlite_errorcode = code | 256  # extended codes carry the primary one in their low byte
        assert type(translate(DBAPIError("SELECT 1", {}, error), "here")) is kind
    for state, kind in SQLSTATES.items():
        server = RuntimeError("said")
        server.sqlstate = state.ljust(5, "0")
        assert type(translate(DBAPIError("SELECT 1", {}, server), "here")) is kind
    assert type(translate(RuntimeError("odd"), "here")) is DatabaseError


def test_a_missing_driver_is_named_with_its_install_command() -> None:
    with pytest.raises(DatabaseError, match="pip install"):
        Database("postgresql+nodriver://localhost/x")


def open_and_add(meet: Meet, path: Path, tool: str) -> None:
    """Open a database that may not be there, and add a tool."""
    meet()
    with contextlib.closing(Database(path, wait_s=20)) as database:
        Vault(database).add(tool, "def run(): return 1")


@pytest.mark.slow
@LOG_14
def test_concurrent_openings_of_a_new_database_succeed(tmp_path: Path) -> None:
    path = tmp_path / "healkit.db"
    at_once(open_and_add, *[(path, f"tool{n}") for n in range(4)])
    with contextlib.closing(Database(path)) as database:
        assert Vault(database).names() == ["tool0", "tool1", "tool2", "tool3"]


@pytest.mark.slow
@LOG_14
def test_a_current_database_opens_without_alembic(database: Database) -> None:
    program = (
        "import sys; from healkit.store.database import Database; Database(sys.argv[1]).close();"
        "print([m for m in ('alembic', 'pandas', 'sqlglot', 'jsonschema') if m in sys.modules])"
    )
    command = [sys.executable, "-c", program, str(database.path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == "[]\n"


def _is_beside_the_models(name: str | None) -> bool:
    """Return True for the version's table and SQLite's full-text index, which no model can describe."""
    return name == migrate.VERSION_TABLE or str(name).startswith("executionlog_fts")


@LOG_14
def test_the_migrations_make_exactly_the_tables_of_the_models(database: Database) -> None:
    with database.engine.connect() as connection:
        options = {
            "compare_type": True,
            "include_name": lambda name, kind, _: not _is_beside_the_models(name),
        }
        assert (
            compare_metadata(MigrationContext.configure(connection, opts=options), TableBase.metadata) == []
        )
        partial = connection.exec_driver_sql(PARTIAL_INDEXES).all()
    other = create_engine("sqlite://")
    TableBase.metadata.create_all(other)
    with other.connect() as connection:
        assert partial == connection.exec_driver_sql(PARTIAL_INDEXES).all()
    other.dispose()


@LOG_14
def test_a_failed_migration_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "healkit.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE executionlog (mine TEXT)")
        connection.execute("INSERT INTO executionlog VALUES ('kept')")
        connection.commit()
    with pytest.raises(DatabaseError, match="executionlog"):
        Database(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        assert tables == [("executionlog",)]
        assert connection.execute("SELECT mine FROM executionlog").fetchall() == [("kept",)]


@pytest.mark.requirement("LOG-1")
def test_the_logs_first_eight_columns_keep_their_names_and_order(database: Database) -> None:
    assert database.path is not None
    with contextlib.closing(sqlite3.connect(database.path)) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(executionlog)")]
    assert names[:8] == [
        "id", "timestamp", "tool_name", "persona", "arguments", "status", "result_summary", "error_traceback",
    ]  # fmt: skip
    assert [column.name for column in ExecutionLog.__table__.columns] == names


def test_a_users_own_sqlmodel_tables_may_have_the_same_names(database: Database) -> None:
    from sqlmodel import Field, SQLModel

    class Revision(SQLModel, table=True):
        id: int | None = Field(default=None, primary_key=True)

    assert Revision.metadata is not TableBase.metadata
    assert {"codevault", "executioncall", "executionlog", "revision", "toolregistry"} <= set(
        TableBase.metadata.tables
    )
    assert os.path.exists(database.path or "")


@pytest.mark.requirement("LOG-14")
def test_the_tables_compile_for_postgresql() -> None:
    dialect = postgresql.dialect()
    for table in TableBase.metadata.sorted_tables:
        assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            written = str(CreateIndex(index).compile(dialect=dialect))
            assert ("WHERE" in written) == (index.dialect_options["sqlite"]["where"] is not None)
