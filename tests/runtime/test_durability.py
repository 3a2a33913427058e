"""Durability: nothing is lost.

Kills, locks, full disks and read-only databases, done for real.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from sqlmodel import Session, create_engine, text
from waiting import wait_until

from healkit import Config, Healkit, ToolExecutionError, execute_tool
from healkit.defaults import default_healkit
from healkit.errors import ConfigError, DatabaseCorrupt, DatabaseMissing, DatabaseNewer, VaultTampered
from healkit.workers.sandbox import RunFolders, sweep

HOST = """
import sys
import tempfile
from healkit import Healkit
hk = Healkit(sys.argv[1])
hk.provide(lambda: print("running", flush=True), "started")
hk.vault.add("sleeper", "import time\\ndef sleeper(n: int):\\n    mcp.host.started()\\n    time.sleep(60)\\n")
hk.execute("sleeper", arguments={"n": 7})
"""


@pytest.mark.requirement("LOG-2", "WORK-2")
@pytest.mark.parametrize(
    "tier", ["namespaces", *(pytest.param(tier, marks=pytest.mark.slow) for tier in ("landlock", "process"))]
)
def test_after_kill_9_of_the_host_the_row_says_what_died_and_no_worker_survives(
    tmp_path: Path, tier: str
) -> None:
    database = tmp_path / "healkit.db"
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(database)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HEALKIT_ISOLATION": tier, "HEALKIT_START_TIMEOUT_S": "30"},
    )
    assert host.stdout is not None
    assert host.stdout.readline().strip() == "running"
    with closing(sqlite3.connect(database)) as reader, reader:
        assert reader.execute("SELECT status, tool_name FROM executionlog").fetchall() == [
            ("RUNNING", "sleeper")
        ]
    reader.close()
    workers = psutil.Process(host.pid).children(recursive=True)
    assert workers
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    wait_until(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in workers))
    with Healkit(database) as healkit:
        row = healkit.log.last_error("sleeper")
        assert (row.status, row.error_code, row.arguments) == ("FAILURE", "HOST_DIED", {"n": 7})
        assert str(host.pid) in row.error_traceback
        assert healkit.log.running() == []
        assert [call.tool for call in healkit.log.calls(row.trace_id)] == ["started"]
        healkit.vault.add("one", "def one():\n    return 1\n")
        assert healkit.execute_tool("one") == 1
        base = Path(tempfile.gettempdir()) / f"healkit-{os.getuid()}"
    assert not list(base.glob(f"{host.pid}-*"))


@pytest.mark.slow
@pytest.mark.requirement("LOG-2")
def test_a_row_of_a_host_that_still_lives_is_left_alone(tmp_path: Path) -> None:
    database = tmp_path / "healkit.db"
    host = subprocess.Popen([sys.executable, "-c", HOST, str(database)], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    host.stdout.readline()
    try:
        with Healkit(database) as healkit:
            assert [row.tool_name for row in healkit.log.running()] == ["sleeper"]
    finally:
        host.kill()
        host.wait()
        host.stdout.close()


@pytest.mark.slow
@pytest.mark.requirement("LOG-4", "LOG-7")
def test_the_row_is_there_whatever_the_callers_transaction_does(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/healkit.db"
    default_healkit(url).vault.add("fails", "def fails():\n    return 1 / 0\n")
    engine = create_engine(url)
    with Session(engine) as session:
        session.execute(text("CREATE TABLE mine (x INTEGER)"))
        session.commit()
        session.execute(text("INSERT INTO mine VALUES (1)"))  # a flushed write: this session holds the lock
        with pytest.raises(ToolExecutionError) as caught:
            execute_tool("fails", "default", {}, session=session)
        assert caught.value.ename == "ZeroDivisionError"
        session.rollback()
    healkit = default_healkit(url)
    row = healkit.log.by_trace(caught.value.trace_id)
    assert (row.status, row.ename) == ("FAILURE", "ZeroDivisionError")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM mine")).scalar() == 0, (
            "nobody committed for the caller"
        )
    engine.dispose()
    healkit.close()


@pytest.mark.requirement("LOG-4")
def test_a_session_in_memory_is_told_why_it_cannot_have_a_log() -> None:
    engine = create_engine("sqlite://")
    with Session(engine) as session, pytest.raises(ConfigError, match="in memory"):
        execute_tool("x", session=session)
    engine.dispose()


@pytest.mark.requirement("LOG-7")
def test_a_database_locked_by_another_process_neither_fails_nor_stalls_the_tool_and_gets_its_row_later(
    tmp_path: Path,
) -> None:
    database = tmp_path / "healkit.db"
    with Healkit(database, config=Config(log_wait_s=0.1, start_timeout_s=30)) as healkit:
        healkit.vault.add("one", "def one():\n    return 1\n")
        locker = subprocess.Popen(
            [sys.executable, "-c", "import sqlite3,sys;c=sqlite3.connect(sys.argv[1],isolation_level=None);"
             "c.execute('BEGIN EXCLUSIVE');print('locked',flush=True);sys.stdin.read()", str(database)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert locker.stdout is not None
        locker.stdout.readline()
        execution = healkit.execute("one")
        assert execution.value == 1
        assert any("could not be written" in warning for warning in execution.warnings)
        locker.communicate()
        assert healkit.log.by_trace(execution.trace_id).status == "SUCCESS"
        assert healkit.status().problem == ""


@pytest.mark.slow
@pytest.mark.requirement("LOG-7")
def test_a_host_that_dies_while_its_records_wait_in_the_spool_loses_none(tmp_path: Path) -> None:
    database = tmp_path / "healkit.db"
    with Healkit(database) as healkit:
        healkit.vault.add("one", "def one():\n    return 1\n")
    code = (
        "import os, sqlite3, sys\nfrom healkit import Config, Healkit\n"
        "hk = Healkit(sys.argv[1], config=Config(log_wait_s=0.05, start_timeout_s=30))\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE')\n"
        "print(hk.execute('one').trace_id, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(database)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    with Healkit(database) as healkit:
        assert healkit.log.by_trace(done.stdout.strip()).status == "SUCCESS"


@pytest.mark.requirement("LOG-7")
def test_a_full_disk_does_not_change_the_outcome_and_the_row_comes_when_there_is_room(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a tiny disk takes root; run the tests as root to include this one")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], check=True)
    try:
        with Healkit(disk / "healkit.db", config=Config(log_wait_s=0.2, start_timeout_s=30)) as healkit:
            healkit.vault.add("big", "def big():\n    return 'x' * 1500\n")
            filler = disk / "filler"
            with filler.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * 4096)
                except OSError:
                    pass
            executions = [healkit.execute("big", arguments={}) for _ in range(3)]
            assert all(execution.ok for execution in executions)
            filler.unlink()
            assert healkit.log.count(tool="big") == 3
            assert {row.status for row in healkit.log.query(tool="big")} == {"SUCCESS"}
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.requirement("LOG-7")
def test_missing_corrupt_and_newer_databases_are_clear_errors_that_touch_nothing(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing):
        Healkit(tmp_path / "nowhere" / "healkit.db")
    with pytest.raises(DatabaseMissing):
        Healkit(tmp_path / "absent.db", create=False)
    corrupt = tmp_path / "corrupt.db"
    corrupt.write_bytes(b"this is a letter, not a database" * 100)
    before = corrupt.read_bytes()
    with pytest.raises(DatabaseCorrupt):
        Healkit(corrupt)
    assert corrupt.read_bytes() == before
    newer = tmp_path / "newer.db"
    Healkit(newer).close()
    with closing(sqlite3.connect(newer)) as connection, connection:
        connection.execute("UPDATE healkit_version SET version_num = 'r9999'")
    connection.close()
    with pytest.raises(DatabaseNewer):
        Healkit(newer)


@pytest.mark.slow
@pytest.mark.requirement("LOG-7")
def test_a_read_only_database_still_runs_tools_and_says_what_it_cannot_write(tmp_path: Path) -> None:
    database = tmp_path / "healkit.db"
    with Healkit(database) as healkit:
        healkit.vault.add("one", "def one():\n    return 1\n")
    code = (
        "import sys\nfrom healkit import Healkit\nhk = Healkit(sys.argv[1])\ne = hk.execute('one')\n"
        "print(e.value, '|', ' '.join(e.warnings))\n"
    )
    # Root may write anything, so an ordinary user's view is taken where the tests run as root.
    database.chmod(0o444)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as reader:
        assert reader.execute("SELECT count(*) FROM executionlog").fetchone() == (0,)
    reader.close()
    if os.geteuid() == 0:
        subprocess.run(["mount", "--bind", str(tmp_path), str(tmp_path)], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(tmp_path)], check=True)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, str(database)], capture_output=True, text=True, check=False
        )
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", "-l", str(tmp_path)], check=True)
    assert done.stdout.startswith("1 |"), done.stderr
    assert "could not be written" in done.stdout
    database.chmod(stat.S_IRUSR | stat.S_IWUSR)
    with Healkit(database) as healkit:
        assert healkit.log.count(tool="one") == 1


@pytest.mark.requirement("VAULT-1", "LOG-1")
def test_a_tampered_row_is_a_security_error_and_nothing_runs(healkit: Healkit, tmp_path: Path) -> None:
    ran = []
    healkit.provide(lambda: ran.append(1), "ran")
    entry = healkit.vault.add("one", "def one():\n    return 1\n")
    with closing(sqlite3.connect(healkit.path)) as connection, connection:
        connection.execute(
            "UPDATE codevault SET code = ? WHERE hash = ?",
            ("def one():\n    mcp.host.ran()\n    return 2\n", entry.code_hash),
        )
    connection.close()
    with pytest.raises(VaultTampered) as caught:
        healkit.execute("one")
    assert ran == []
    row = healkit.log.get(caught.value.log_id)
    assert (row.status, row.error_code) == ("FAILURE", "VAULT_TAMPERED")


def test_folders_of_dead_hosts_are_swept_and_those_of_living_ones_are_not(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path)
    mine = folders.next().create()
    dead = tmp_path / "999999999-1" / "1" / "scratch"
    dead.mkdir(parents=True)
    (tmp_path / "unrelated-folder").mkdir()
    assert sweep(tmp_path) == 1
    assert not dead.exists()
    assert mine.scratch.exists()
    assert (tmp_path / "unrelated-folder").exists()
    folders.close()
    assert not mine.root.exists()
