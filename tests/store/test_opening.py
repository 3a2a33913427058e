"""Opening a database: bounded, with its own clear error.

A command that reads opens it without a write (audit R10).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from cli_samples import call
from postgres_samples import cluster, postgresql
from sqlalchemy import text
from store_samples import failed, started, succeeded
from waiting import WITHIN_S, wait_until

from healkit import Healkit
from healkit.contracts.execution import utc_now
from healkit.errors import DatabaseLocked, DatabaseMissing
from healkit.runtime.recording import Recorder
from healkit.store.database import Database
from healkit.store.log_reader import Log
from healkit.store.log_writer import LogWriter
from healkit.store.vault import Vault
from healkit.workers.sandbox import bubblewrap_path

READING = ["status", "status --json", "doctor", "log", "log --group", "vault list", "requests"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server with an empty database."""
    with postgresql() as url:
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
    """End all connections to the server but the one that does it, as a restart would."""
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
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
    """SCALE-1: a server that is stopped in the middle of an execution and started again loses none of its records."""
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
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as admin:
        admin.execute("CREATE DATABASE theirs")
    theirs = server.replace("/postgres?", "/theirs?")
    with pytest.raises(DatabaseMissing, match="no tables of healkit's"):
        Database(theirs, create=False)
    with psycopg.connect(theirs.replace("+psycopg", "")) as reader:
        assert reader.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://me@127.0.0.1:1/db", "postgresql+psycopg://me@/db?host=/nowhere"]
)
def test_a_stopped_server_is_said_to_be_one(url: str) -> None:
    with pytest.raises(DatabaseMissing) as caught:
        Database(url)
    assert "Is the server running" in caught.value.hint
    assert "folder" not in caught.value.hint


@pytest.mark.slow
@pytest.mark.parametrize("words", READING)
def test_a_reading_command_leaves_a_foreign_database_as_it_is(words: str, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
        connection.commit()
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    done = call(*words.split(), "--db", str(path))
    assert "no tables of healkit's" in done.stderr + done.stdout
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


def test_status_counts_no_trials(tmp_path: Path) -> None:
    with (
        Healkit(tmp_path / "healkit.db") as healkit,
        contextlib.closing(LogWriter(healkit.database)) as writer,
    ):
        for origin in ("python", "trial", "search"):
            for end in (failed, succeeded):
                begun = started(origin=origin)
                writer.insert_finished(begun, end(begun))
            writer.begin(started(origin=origin, deadline=utc_now() + timedelta(hours=1)))
        status = healkit.status()
        assert (status.executions, status.failures, status.running) == (3, 1, 1)
        assert (healkit.log.count(), healkit.log.count(status="FAILURE")) == (9, 3)
    found = json.loads(call("status", "--json", "--db", str(tmp_path / "healkit.db")).stdout)
    assert (found["executions"], found["failures"]) == (3, 1)


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
    "x?y#z.db", "a b.db", "100%.db", "%41.db", "%3F.db", "%253f?.db", "é☃.db", "x?mode=ro.db", "x?mode=memory.db", "#.db",
    "a&b=c.db", "~x.db", "file:x.db", "d?r#/in%20ner.db",
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
