"""`healkit collect` as a process of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import sys
from pathlib import Path

import httpx
import pytest
from collector_samples import TOKEN, WAIT_S, collecting, task, trace
from side_by_side import ForkedCommand
from waiting import wait_until

from healkit import Healkit
from healkit.config import Config

sys.path.insert(
    0, str(Path(__file__).parents[2] / "core" / "store")
)  # the store's samples are these tests' too
from store_samples import tiny_disk

TRACE_4 = pytest.mark.requirement("TRACE-4")


def refused(*options: str, **environ: str) -> str:
    """Start a collector that must not come up; what it says."""
    env = {name: value for name, value in os.environ.items() if name != "HEALKIT_COLLECT_TOKEN"} | environ
    process = ForkedCommand("collect", *options, environ=env)
    with process.stderr:
        told = process.stderr.read()
    assert process.wait() == 2
    return told


def listens(host: str, port: int) -> bool:
    """Return True when a connection is accepted there."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=WAIT_S):
        return True
    return False


@pytest.mark.slow
@TRACE_4
def test_a_missing_token_is_generated_and_shown_once(tmp_path: Path) -> None:
    with collecting(tmp_path / "h.db", HEALKIT_COLLECT_TOKEN="") as server:
        server.client.get("/api/health")
        told = [line for line in server.lines if "token" in line]
        assert len(told) == 1
        token = told[0].rsplit(" ", 1)[1].strip()
        assert len(token) > 40
        answer = httpx.get(f"{server.url}/api/traces", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200


@pytest.mark.slow
@TRACE_4
def test_a_start_that_is_not_safe_or_fails_is_refused_in_one_line(tmp_path: Path) -> None:
    file, db = tmp_path / "token", ("--db", str(tmp_path / "h.db"))
    for host in ("0.0.0.0", "::", "192.0.2.1", "collector.example"):
        assert "there is no token" in refused("--host", host, *db)
    assert "only 5 characters" in refused("--host", "0.0.0.0", *db, HEALKIT_COLLECT_TOKEN="short")
    assert "without spaces" in refused(*db, HEALKIT_COLLECT_TOKEN="two words")
    assert "No such file" in refused("--token-file", str(file), *db)
    assert "There is no folder" in refused("--port", "0", "--db", str(tmp_path / "nowhere" / "h.db"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "in use" in refused("--port", str(taken.getsockname()[1]), *db)
    file.write_text(f"{TOKEN}\n")
    options = ("--host", "0.0.0.0", "--token-file", str(file))
    with collecting(tmp_path / "h.db", *options, HEALKIT_COLLECT_TOKEN="another-one") as server:
        assert server.url.startswith("http://0.0.0.0:")
        assert server.post(trace()).status_code == 200


@pytest.mark.slow
def test_its_logs_hold_no_token(tmp_path: Path) -> None:
    with collecting(tmp_path / "h.db", "--verbose") as server:
        server.client.get("/api/traces", params={"token": TOKEN})
        server.client.post(f"/api/traces?token={TOKEN}", content=b"x")
        server.client.get(f"/nowhere?token={TOKEN}")
        server.end()
        told = "".join(server.lines)
        assert "GET '/api/traces' 200" in told
        assert "GET '/nowhere' 404" in told
        assert TOKEN not in told


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_finishes_running_requests(tmp_path: Path, number: int) -> None:
    with collecting(tmp_path / "h.db", python=True) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        body = f"[{httpx.Request('POST', 'http://x', json=trace()).content.decode()}]".encode()
        head = f"POST /api/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as half:
            half.sendall(head.encode() + body[:20])
            wait_until(lambda: "in_flight 2.0" in server.client.get("/api/metrics").text)
            server.process.send_signal(number)
            wait_until(lambda: not listens(host, int(port)))
            half.sendall(body[20:])
            assert b'"stored":1' in half.recv(10_000)
        assert server.process.wait(WAIT_S) == 0
    with collecting(tmp_path / "h.db") as server:
        assert len(server.stored()) == 1


@TRACE_4
def test_a_locked_database_is_reported_as_busy(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    with collecting(path) as server:
        batch = [trace() for _ in range(5)]
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = server.post(*batch)
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "STORE_UNAVAILABLE"
            assert "h.db" not in answer.text
            assert int(answer.headers["Retry-After"]) >= 1
            assert server.client.get("/api/health").json() == {"status": "ok"}
            other.execute("ROLLBACK")
        assert server.stored() == {}
        assert server.post(*batch).json()["stored"] == 5
    assert any("locked" in line for line in server.lines)


@TRACE_4
def test_a_full_disk_stores_nothing_of_a_batch(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 2048) as disk, collecting(disk / "h.db") as server:
        small = trace()
        assert server.post(small).json()["stored"] == 1
        answer = server.post(
            *[trace(taskResults=[task(n + 1, args="x" * 10_000) for n in range(10)]) for _ in range(40)]
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "STORE_UNAVAILABLE")
        assert "space" in answer.json()["error"]["message"]
        assert int(answer.headers["Retry-After"]) >= 30
        assert list(server.stored()) == [small["id"]]


@pytest.mark.slow
@TRACE_4
def test_a_sent_execution_is_linked_to_its_tool_and_caller(tmp_path: Path) -> None:
    vault = {
        "inner": "def inner(x):\n    return 10 / x",
        "outer": "def outer(x):\n    return mcp.vault.inner(x=x)",
    }
    with Healkit(tmp_path / "collector.db") as theirs:
        for name in ("unrelated", *vault):
            theirs.vault.add(name, vault.get(name, "def unrelated(): return 0"))
    with collecting(tmp_path / "collector.db") as server:
        config = Config(
            sync_url=server.url, sync_token=TOKEN, fork_server=False, spares=0, start_timeout_s=30
        )
        with Healkit(tmp_path / "mine.db", config=config) as mine:
            for name, code in vault.items():
                mine.vault.add(name, code)
            mine.vault.add("mine_alone", "def mine_alone(): return 1")
            good = mine.execute("outer", arguments={"x": 5})
            bad = mine.execute("outer", arguments={"x": 0})
            alone = mine.execute("mine_alone")
            mine.traces.sync()
            assert mine.traces.state().sent == 5
        stored = server.stored()
    assert len(stored) == 5
    assert (good.ok, bad.ok, alone.ok) == (True, False, True)
    assert (stored[good.trace_id]["toolId"], stored[alone.trace_id]["toolId"]) == (3, None)
    (inner,) = (each for each in stored.values() if each["parentId"] == bad.trace_id)
    assert (inner["toolId"], inner["success"]) == (2, False)
    assert "ZeroDivisionError" in inner["error"]
    assert stored[good.trace_id]["taskResults"][0]["tool"] == "vault:inner"


def remove(path: Path) -> None:
    """Remove the file and what lies beside it."""
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_file():
            file.unlink()


def copy_of(path: Path, copy: Path) -> None:
    """Write a whole copy of a database in use."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))


@pytest.mark.slow
@pytest.mark.requirement("TRACE-4")
def test_a_collector_notices_that_its_file_is_gone_and_that_it_is_back(tmp_path: Path) -> None:
    path, copy = tmp_path / "collected.db", tmp_path / "copy"
    kept, lost, late = trace(), trace(), trace()
    with collecting(path) as collector:
        assert collector.post(kept).json()["stored"] == 1
        copy_of(path, copy)
        remove(path)
        answer, health = collector.post(lost), collector.client.get("/api/health")
        assert (answer.status_code, health.status_code) == (503, 503)
        assert "stored" not in answer.json()
        assert "Nothing of this request was stored" in answer.text
        assert not path.exists(), "a lost database is not made anew in silence"
        shutil.copy(copy, path)
        assert collector.client.get("/api/health").json() == {"status": "ok"}
        assert collector.post(late).json()["stored"] == 1
        assert set(collector.stored()) == {kept["id"], late["id"]}


def test_an_execution_whose_log_was_removed_waits_and_is_brought_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path, copy = tmp_path / "healkit.db", tmp_path / "copy"
    with Healkit(path) as healkit:
        healkit.vault.add("one", "def one(): return 1")
        healkit.execute("one")
        copy_of(path, copy)
        remove(path)
        (result,) = healkit.trials([("def two(): return 2", {})])
        assert result.value == 2
        assert "was removed" in healkit.recorder.problem or "cannot be opened" in healkit.recorder.problem
        shutil.copy(copy, path)
        healkit.recorder.ingest()
        assert healkit.log.by_trace(result.trace_id) is not None
        assert healkit.recorder.problem == ""
