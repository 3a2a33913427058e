"""Durability: nothing is lost."""

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
from processes import running
from programs import python
from sqlmodel import Session, create_engine, text
from waiting import wait_until

from healkit import Config, Healkit, ToolExecutionError, execute_tool
from healkit.errors import ConfigError, VaultTampered
from healkit.faces.defaults import default_healkit

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
        env={**os.environ, "HEALKIT_ISOLATION": tier},
    )
    assert host.stdout.readline().strip() == "running"
    with Healkit(database) as beside:  # the row of a host that lives is left alone
        assert [(row.status, row.tool_name) for row in beside.log.running()] == [("RUNNING", "sleeper")]
    workers = psutil.Process(host.pid).children(recursive=True)
    assert workers
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    wait_until(lambda: not running(workers))
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
def test_the_error_says_why_a_session_in_memory_has_no_log() -> None:
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
        locker.stdout.readline()
        execution = healkit.execute("one")
        assert execution.value == 1
        assert any("could not be written" in warning for warning in execution.warnings)
        locker.communicate()
        assert healkit.log.by_trace(execution.trace_id).status == "SUCCESS"
        assert healkit.status().problem == ""


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
        done = python(code, database)
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", "-l", str(tmp_path)], check=True)
    assert done.stdout.startswith("1 |"), done.stderr
    assert "could not be written" in done.stdout
    database.chmod(stat.S_IRUSR | stat.S_IWUSR)
    with Healkit(database) as healkit:
        assert healkit.log.count(tool="one") == 1


@pytest.mark.requirement("VAULT-1", "LOG-1")
@pytest.mark.sqlite  # the row is written by sqlite3
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
