"""Hosts of several machines on one server: who is dead.

Another machine is a process that says another host name: its processes cannot be asked.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres_samples import Server, cluster
from waiting import wait_until

from healkit import Healkit
from healkit.core.store import heartbeat, trust
from healkit.plain_text import shown_url

pytestmark = pytest.mark.requirement("SCALE-1")

HOST = """
import socket, sys
socket.gethostname = lambda: "other-machine"
from healkit.core.store import heartbeat
heartbeat.BEAT_S, heartbeat.ALIVE_S = 0.1, float(sys.argv[2])
from healkit import Healkit
with Healkit(sys.argv[1]) as hk:
    hk.provide(lambda: print("running", flush=True), "started")
    hk.provide(lambda: sys.stdin.readline(), "told")
    hk.vault.add("waits", "def waits():\\n    mcp.host.started()\\n    mcp.host.told()\\n    return 7\\n")
    print(hk.execute("waits").status, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def url(postgresql_server: Server) -> Iterator[str]:
    """Make a new database on the server; its URL."""
    with postgresql_server.database() as made:
        yield made


@contextlib.contextmanager
def elsewhere(url: str, alive_s: float) -> Iterator[subprocess.Popen[str]]:
    """Run a tool on another machine, which counts as alive for that long; it waits for a line."""
    command = [sys.executable, "-c", HOST, url, str(alive_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout is not None
            assert host.stdout.readline() == "running\n"
            yield host
        finally:
            host.kill()


def say(host: subprocess.Popen[str]) -> str:
    """Let the other machine go on; what it says next."""
    assert host.stdin is not None
    assert host.stdout is not None
    host.stdin.write("\n")
    host.stdin.flush()
    return host.stdout.readline().strip()


def beats(url: str) -> list[str]:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return [row[0] for row in connection.execute("SELECT host FROM hostheartbeat").fetchall()]


def test_a_host_of_another_machine_that_was_killed_is_dead_when_its_heartbeat_has_run_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "ALIVE_S", 1.0)
    with elsewhere(url, 1.0) as host, Healkit(url) as here:
        wait_until(lambda: beats(url))
        until = time.monotonic() + 2.0
        while time.monotonic() < until:  # twice as long as it counts as alive after one beat
            assert here.services.recorder.recover_orphans() == 0
        host.send_signal(signal.SIGKILL)
        wait_until(here.services.recorder.recover_orphans)
        row = here.log.last_error("waits")
        assert row is not None
        assert row.error_code == "HOST_DIED"
        assert f"Process {host.pid} on 'other-machine'" in (row.error_traceback or "")
        assert [call.error_code for call in here.log.calls(row.trace_id)][-1] == "HOST_DIED"


def test_a_paused_host_that_comes_back_has_its_true_ending_on_record(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "ALIVE_S", 1.0)
    with elsewhere(url, 1.0) as host, Healkit(url) as here:
        wait_until(lambda: beats(url))
        host.send_signal(signal.SIGSTOP)
        wait_until(here.services.recorder.recover_orphans)
        assert here.log.count(status="FAILURE") == 1
        host.send_signal(signal.SIGCONT)
        assert say(host) == "SUCCESS"
        (row,) = here.log.query(tool="waits").rows
        assert (row.status, row.result_summary, row.error_code, row.fingerprint) == (
            "SUCCESS",
            "7",
            None,
            None,
        )
        assert [(call.tool, call.success) for call in here.log.calls(row.trace_id)] == [
            ("started", True), ("told", True),
        ]  # fmt: skip
        assert (here.log.count(status="FAILURE"), here.log.count(status="SUCCESS")) == (0, 1)
        assert here.log.groups().rows == []


def test_a_slow_host_is_not_dead(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "ALIVE_S", 1.0)
    with elsewhere(url, 30.0) as host, Healkit(url) as here:
        wait_until(lambda: beats(url))
        host.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            assert here.services.recorder.recover_orphans() == 0
        host.send_signal(signal.SIGCONT)
        assert say(host) == "SUCCESS"
        wait_until(lambda: not beats(url))  # nothing runs there any more


def test_no_host_is_dead_for_the_time_that_the_server_was_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(heartbeat, "ALIVE_S", 30.0)
    with cluster() as server:
        trust.trust(shown_url(server.url), "")
        Healkit(server.url).close()
        with elsewhere(server.url, 0.5) as host:
            wait_until(lambda: beats(server.url))
            host.send_signal(signal.SIGSTOP)  # before its next beat, another looks
            server.stop()
            time.sleep(1.0)
            server.start()
            with Healkit(server.url) as here:
                assert here.services.recorder.recover_orphans() == 0
                assert here.log.count(status="RUNNING") == 1
            host.send_signal(signal.SIGCONT)
            assert say(host) == "SUCCESS"
        with Healkit(server.url) as here:
            assert here.log.count(status="SUCCESS") == 1


def test_a_host_that_beats_gives_up_those_that_died_meanwhile(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show that the database need not be opened anew."""
    monkeypatch.setattr(heartbeat, "ALIVE_S", 1.0)
    with elsewhere(url, 1.0) as dies, elsewhere(url, 1.0), Healkit(url) as here:
        wait_until(lambda: len(beats(url)) == 2)
        dies.send_signal(signal.SIGKILL)
        wait_until(lambda: here.log.count(status="FAILURE"))
        assert here.log.count(status="RUNNING") == 1


def test_a_file_and_a_database_that_is_not_trusted_have_no_heartbeat(
    postgresql_server: Server, tmp_path: Path
) -> None:
    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "healkit-heartbeat"]

    with postgresql_server.database() as url:
        for where, beating in ((url, 1), (str(tmp_path / "healkit.db"), 0)):
            with Healkit(where) as here:
                here.vault.add("one", "def one(): return 1")
                assert here.execute_tool("one") == 1
                assert len(threads()) == beating
            assert threads() == []
        trust.distrust(shown_url(url))
        with Healkit(url) as here:
            assert here.execute_tool("one") == 1
            assert threads() == []
            assert beats(url) == []
