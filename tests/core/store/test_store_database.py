"""Databases: location, opening, errors, statements."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from cli_samples import call
from postgres_samples import Server, cluster
from side_by_side import Meet, at_once
from sqlalchemy import JSON, Boolean, Table, create_engine, text
from sqlalchemy.exc import DBAPIError
from store_samples import (
    as_ordinary_user,
    failed,
    locked_by_another_process,
    open_folder,
    recorded,
    started,
    succeeded,
)
from trusted import trusted_copy
from waiting import WITHIN_S, wait_until

from healkit import Healkit
from healkit.core.contracts.execution import utc_now
from healkit.core.runtime.recording import Recorder
from healkit.core.store import migrate, models, statements
from healkit.core.store.database import SQLITE_CODES, SQLSTATES, Database, resolve_url, translate
from healkit.core.store.log_reader import Log
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.models import (
    CALLS,
    DECISIONS,
    LOG,
    REVISIONS,
    TOOLS,
    TRACES,
    ExecutionLog,
    TableBase,
    UtcDateTime,
)
from healkit.core.store.statements import NEWEST
from healkit.core.store.vault import Vault
from healkit.core.workers.sandbox import bubblewrap_path
from healkit.errors import (
    DatabaseCorrupt,
    DatabaseError,
    DatabaseLocked,
    DatabaseMissing,
    DatabaseNewer,
    DatabaseReadOnly,
)
from healkit.parts.learn import tables as _learned  # noqa: F401 - its tables are compared too
from healkit.parts.views import tables as _views  # noqa: F401 - as above

PARTIAL_INDEXES = (
    "SELECT name, substr(sql, instr(sql, 'WHERE')) FROM sqlite_master "
    "WHERE type = 'index' AND sql LIKE '%WHERE%' ORDER BY name"
)


LOG_7, LOG_14 = pytest.mark.requirement("LOG-7"), pytest.mark.requirement("LOG-14")


def test_argument_then_environment_then_nearest_file_then_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "healkit.db").touch()
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    environ = {"HEALKIT_DB": "other.db"}
    assert resolve_url("mine.db", environ, inner) == f"sqlite:///{inner / 'mine.db'}"
    assert resolve_url(None, environ, inner) == f"sqlite:///{inner / 'other.db'}"
    assert resolve_url(None, {}, inner) == f"sqlite:///{tmp_path / 'healkit.db'}"
    assert resolve_url("postgresql+psycopg://h/d", {}, inner) == "postgresql+psycopg://h/d"
    (tmp_path / "healkit.db").unlink()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert resolve_url(None, {}, inner) == f"sqlite:///{tmp_path / 'data' / 'healkit' / 'healkit.db'}"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """Made here, not copied: the file and its migrations are what is tested."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    opened = Database(tmp_path / "healkit.db", wait_s=0.2)
    yield opened
    opened.close()


@pytest.mark.slow
def test_an_in_memory_url_is_a_private_temporary_file() -> None:
    program = (
        "from healkit.core.store.database import Database\n"
        "for url in ('sqlite://', ':memory:', 'sqlite:///:memory:'): print(Database(url).path)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    paths = [Path(line) for line in done.stdout.splitlines()]
    assert len(set(paths)) == 3
    assert all(path.is_absolute() and not path.parent.exists() for path in paths)


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
    vault = Vault(database)
    vault.add("f", "def f(): return 1")
    with locked_by_another_process(database.path):
        with pytest.raises(DatabaseLocked, match="locked"):
            vault.add("g", "def g(): return 1")
        assert vault.names() == ["f"]
        with contextlib.closing(Database(database.path)) as second:
            assert Vault(second).names() == ["f"]


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


def test_a_database_that_would_have_to_be_made_where_nothing_can_be_written_is_read_only() -> None:
    with open_folder() as folder:
        (folder / "empty.db").touch()
        (folder / "empty.db").chmod(0o444)
        folder.chmod(0o555)
        for name, said in (("empty.db", "tables"), ("healkit.db", "No database can be made")):
            with as_ordinary_user(), pytest.raises(DatabaseReadOnly, match=said):
                Database(folder / name)


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
        "import sys; from healkit.core.store.database import Database; Database(sys.argv[1]).close();"
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
        options = {"compare_type": True, "include_name": lambda name, *_: not _is_beside_the_models(name)}
        made = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(made, TableBase.metadata) == []
        partial = connection.exec_driver_sql(PARTIAL_INDEXES).all()
    other = create_engine("sqlite://")
    TableBase.metadata.create_all(other)
    with other.connect() as connection:
        assert partial == connection.exec_driver_sql(PARTIAL_INDEXES).all()
    other.dispose()


@pytest.mark.requirement("LOG-1")
def test_the_logs_first_eight_columns_keep_their_names_and_order(database: Database) -> None:
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


@pytest.fixture
def server(postgresql_server: Server) -> Iterator[str]:
    """Make an empty database on the server."""
    with postgresql_server.database(empty=True) as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("table", ["healkit_version", "executionlog"])
def test_a_locked_table_on_a_server_is_waited_for_no_longer_than_asked(server: str, table: str) -> None:
    Database(server).close()
    with psycopg.connect(server.replace("+psycopg", "")) as holder:
        holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        begun = time.monotonic()
        with (
            pytest.raises(DatabaseLocked, match="locked by another connection"),
            contextlib.closing(Database(server, wait_s=0.3)) as database,
        ):
            Log(database).query()
        assert 0.25 < time.monotonic() - begun < 10
    with contextlib.closing(Database(server, wait_s=0.3)) as database:
        assert len(Log(database).query()) == 0


def end_connections(server: str) -> None:
    """End all connections to the database but the one that does it, as a restart would."""
    others = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    with psycopg.connect(server.replace("+psycopg", "")) as admin:
        admin.execute(others)


@pytest.mark.slow
@pytest.mark.requirement("SCALE-1")
def test_a_connection_that_a_server_ended_costs_no_record_and_no_question(server: str) -> None:
    """SCALE-1: the record that met a dead connection went to the spool, and its execution had no row's id."""
    with contextlib.closing(Database(server)) as database, contextlib.closing(LogWriter(database)) as writer:
        begun = started()
        log_id = writer.begin(begun)
        end_connections(server)
        assert writer.finish(failed(begun)) == log_id
        log = Log(database)
        assert log.get(log_id) is not None
        end_connections(server)
        assert [row.id for row in log.query(trace=begun.trace_id)] == [log_id]


@pytest.mark.slow
@pytest.mark.requirement("SCALE-1")
def test_a_transaction_whose_connection_is_lost_says_so_and_changes_nothing(server: str) -> None:
    """SCALE-1: "did not do what was asked" was all that was said of it."""
    with contextlib.closing(Database(server)) as database:
        vault = Vault(database)

        def lose_it_in_the_middle() -> None:
            with database.write() as session:
                session.execute(
                    text("INSERT INTO codevault VALUES ('h', 'c', 'python', '2026-01-01 00:00:00')")
                )
                end_connections(server)
                session.execute(text("SELECT 1"))

        with pytest.raises(DatabaseMissing, match="cannot be opened") as caught:
            lose_it_in_the_middle()
        assert "Is the server running" in caught.value.hint
        with database.read() as session:
            assert session.execute(text("SELECT count(*) FROM codevault WHERE hash = 'h'")).scalar() == 0
        vault.add("after", "def after(): return 1")


@pytest.mark.slow
@pytest.mark.requirement("SCALE-1")
def test_records_wait_while_a_server_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCALE-1: a server that stops during an execution and starts again loses no records."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with cluster() as server, contextlib.closing(Database(server.url, wait_s=0.5)) as database:
        with contextlib.closing(Recorder(database)) as recorder:
            before, during = started("before"), started("during")
            recorder.open_row(before)
            server.stop()
            assert recorder.close_row(failed(before)) is None
            assert recorder.open_row(during)[0] is None
            assert recorder.close_row(succeeded(during)) is None
            assert "Is the server running" in recorder.problem or "cannot be opened" in recorder.problem
            with pytest.raises(DatabaseMissing):
                Log(database).query()
            server.start()
            wait_until(lambda: recorder.ingest() >= 0 and recorder.problem == "")
        ended = {row.tool_name: row.status for row in Log(database).query()}
        assert ended == {"before": "FAILURE", "during": "SUCCESS"}


@pytest.mark.slow
def test_a_reading_open_makes_no_tables_on_a_server(server: str) -> None:
    with pytest.raises(DatabaseMissing, match="no tables of healkit's"):
        Database(server, create=False)
    with psycopg.connect(server.replace("+psycopg", "")) as reader:
        assert reader.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://me@127.0.0.1:1/db", "postgresql+psycopg://me@/db?host=/nowhere"]
)
def test_a_stopped_server_is_said_to_be_one(url: str) -> None:
    with pytest.raises(DatabaseMissing) as caught:
        Database(url)
    assert "Is the server running" in caught.value.hint
    assert "folder" not in caught.value.hint


def test_a_reading_command_leaves_a_foreign_database_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
        connection.commit()
    before = path.read_bytes()
    for words in ("status", "status --json", "log", "log --group", "vault list", "requests"):
        done = call(*words.split(), "--db", str(path))
        assert "no tables of healkit's" in done.stderr + done.stdout, words
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


def test_status_counts_no_trials(tmp_path: Path) -> None:
    database = Database(tmp_path / "healkit.db")
    with contextlib.closing(database), contextlib.closing(LogWriter(database)) as writer:
        for origin in ("python", "trial", "search"):
            for end in (failed, succeeded):
                recorded(writer, end, origin=origin)
            writer.begin(started(origin=origin, deadline=utc_now() + timedelta(hours=1)))
    found = json.loads(call("status", "--json", "--db", str(tmp_path / "healkit.db")).stdout)
    assert (found["executions"], found["failures"], found["running"]) == (3, 1, 1)


@pytest.mark.slow
def test_without_a_folder_for_temporary_files_there_is_a_clear_error(tmp_path: Path) -> None:
    bwrap = bubblewrap_path()
    if bwrap is None:
        pytest.skip("no bubblewrap")
    program = (
        "from healkit import Healkit\nfrom healkit.errors import HealkitError\n"
        f"with Healkit({str(tmp_path / 'healkit.db')!r}) as hk:\n"
        "    hk.vault.add('one', 'def one(): return 1')\n"
        "    print(hk.last_error(), hk.vault.names())\n"
        "    try:\n        print(hk.execute('one').failure)\n"
        "    except HealkitError as error:\n        print(error)\n"
        "try:\n    Healkit('sqlite://')\n"
        "except HealkitError as error:\n    print(error, error.hint)\n"
    )
    done = subprocess.run(
        [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(tmp_path), str(tmp_path),
         "--chdir", "/", sys.executable, "-c", program],
        capture_output=True, text=True, timeout=WITHIN_S, check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)},
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.startswith("None ['one']")
    assert done.stdout.count("no usable folder for temporary files") >= 2, done.stdout
    assert "TMPDIR" in done.stdout


NAMES = [
    "x?y#z.db", "a b.db", "100%.db", "%253f?.db", "é☃.db", "x?mode=memory.db", "a&b=c.db", "~x.db", "file:x.db",
    "d?r#/in%20ner.db",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_path_opens_the_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """B7: a `?` began a query, so that another file was opened."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEALKIT_DB", name)
    for given in (str(file), file, name, None):
        with Healkit(given) as healkit:
            healkit.vault.list()
            assert healkit.database.path == file
            with Healkit(healkit.database.url) as same:
                assert same.database.path == file
    made = [found for found in tmp_path.rglob("*") if found.is_file() and found.suffix == ".db"]
    assert made == [file]


LOG_14 = pytest.mark.requirement("LOG-14")


ALL = {name: text for name, text in vars(statements).items() if name.isupper() and isinstance(text, str)}


#: What `SELECT` returns, by the statement: the whole log, or the columns of three tables.
LOOKED_UP = re.findall(r"(tool|revision|code)\.(\w+)", statements.LOOKUP.split("FROM")[0])


TABLES = {"tool": TOOLS, "revision": REVISIONS, "code": models.table_of(models.CodeVault)}


def names_of(table: Table) -> set[str]:
    return {column.name for column in table.columns if column.name != "id"}


@LOG_14
def test_every_column_of_a_table_is_written() -> None:
    assert set(statements.STARTED) | set(statements.FINISHED) == names_of(LOG)
    assert set(statements.CALLED) == names_of(CALLS)
    assert set(statements.DECIDED) == names_of(DECISIONS)
    left = names_of(TRACES) - set(statements.TRACED)
    assert all(TRACES.c[name].nullable for name in left)


@LOG_14
def test_the_columns_that_sqlite_stores_in_another_form_are_known_by_name() -> None:
    returned = [*LOG.columns, *(TABLES[table].c[name] for table, name in LOOKED_UP)]
    kinds = ((UtcDateTime, statements.TIMES), (JSON, statements.JSONS), (Boolean, statements.BOOLS))
    for kind, names in kinds:
        assert {column.name for column in returned if isinstance(column.type, kind)} == names
    for column in returned:
        known = {name for kind, names in kinds if not isinstance(column.type, kind) for name in names}
        assert column.name not in known, "two columns of one name, of different kinds"


@LOG_14
def test_sqlite_compiles_each_statement(sqlite_database: Database) -> None:
    for written in ALL.values():
        sqlite_database.fetch(f"EXPLAIN {written}", **dict.fromkeys(re.findall(r":(\w+)", written)))


def test_each_parameter_that_is_a_time_is_written_as_one() -> None:
    """SQLite's driver would write it in a form of its own."""
    tables = (LOG, CALLS, DECISIONS, TRACES, TOOLS, REVISIONS)
    columns = [column for table in tables for column in table.columns]
    times = {column.name for column in columns if isinstance(column.type, UtcDateTime)} | {"time", "ahead"}
    for written in ALL.values():
        statement = statements.prepared("sqlite", written)
        assert set(statement.times) == times & set(statement.names)


def files_open(path: Path) -> int:
    """Count this process's connections to a database, by their write-ahead files; SQLite closes others later."""
    names = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
    return names.count(f"{path}-wal")


def test_reads_share_one_connection_and_those_of_threads_and_forked_children_have_their_own(
    sqlite_database: Database,
) -> None:
    def read() -> bool:
        return sqlite_database.fetch(NEWEST, limit=1) == []

    path = sqlite_database.path
    assert read()
    before = files_open(path)
    assert read()
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda _: read(), range(200)))
    assert files_open(path) == before
    if (child := os.fork()) == 0:
        os._exit(0 if read() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert read()
    with pytest.raises(DatabaseError):
        sqlite_database.fetch("SELECT * FROM nowhere")
    assert read()


def test_a_read_is_of_the_file_that_is_there_now(sqlite_database: Database) -> None:
    path, copy = sqlite_database.path, sqlite_database.path.with_name("copy.db")
    assert sqlite_database.fetch(NEWEST, limit=1) == []
    with contextlib.closing(Database(copy)) as other, contextlib.closing(LogWriter(other)) as writer:
        recorded(writer)
    sqlite_database.path.unlink()
    copy.rename(path)
    assert len(sqlite_database.fetch(NEWEST, limit=1)) == 1


@pytest.mark.slow
def test_a_closed_or_dropped_database_leaves_no_file_open(tmp_path: Path, empty_database: Path) -> None:
    path = Path(trusted_copy(empty_database, tmp_path / "healkit.db"))
    database = Database(path)
    database.fetch(NEWEST, limit=1)
    assert files_open(path) > 0
    database.close()
    assert files_open(path) == 0
    assert database.fetch(NEWEST, limit=1) == []  # used again, it opens a new one
    del database
    gc.collect()
    assert files_open(path) == 0
