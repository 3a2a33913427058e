"""`healkit collect` as a process of its own."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import random
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import httpx
import pytest
from collector_samples import TOKEN, WAIT_S, Collecting, collecting, task, trace
from side_by_side import ForkedCommand
from waiting import wait_until

from healkit import Healkit
from healkit.config import Config

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
def test_a_public_address_needs_a_token(tmp_path: Path) -> None:
    db = ("--db", str(tmp_path / "h.db"))
    for host in ("0.0.0.0", "::", "192.0.2.1", "collector.example"):
        assert "no token is given" in refused("--host", host, *db)
    assert "only 5 characters" in refused("--host", "0.0.0.0", *db, HEALKIT_COLLECT_TOKEN="short")
    assert "without spaces" in refused(*db, HEALKIT_COLLECT_TOKEN="two words")
    with collecting(tmp_path / "h.db", "--host", "0.0.0.0") as server:
        assert server.url.startswith("http://0.0.0.0:")


@pytest.mark.slow
def test_the_token_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert "No such file" in refused("--token-file", str(file), "--db", str(tmp_path / "h.db"))
    file.write_text(f"{TOKEN}\n")
    with collecting(
        tmp_path / "h.db", "--token-file", str(file), HEALKIT_COLLECT_TOKEN="another-one"
    ) as server:
        assert server.post(trace()).status_code == 200


@pytest.mark.slow
def test_a_failed_start_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = refused("--port", str(taken.getsockname()[1]), "--db", str(tmp_path / "h.db"))
        assert "in use" in told
    assert "There is no folder" in refused("--port", "0", "--db", str(tmp_path / "nowhere" / "h.db"))


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


@pytest.mark.slow
@TRACE_4
@pytest.mark.timeout(240)
def test_stored_traces_survive_a_kill(tmp_path: Path) -> None:
    answered: set[str] = set()
    sent: set[str] = set()
    chance = random.Random(4)
    for _ in range(6):
        server = Collecting(tmp_path / "h.db", HEALKIT_COLLECT_RATE_PER_S="10000")
        stop = threading.Event()

        def send(server: Collecting = server, stop: threading.Event = stop) -> None:
            with httpx.Client(
                base_url=server.url, headers=dict(server.client.headers), timeout=WAIT_S
            ) as client:
                while not stop.is_set():
                    batch = [trace() for _ in range(10)]
                    sent.update(each["id"] for each in batch)
                    try:
                        answer = client.post("/api/traces", json=batch)
                    except httpx.TransportError:
                        return
                    assert answer.json()["stored"] == 10
                    answered.update(each["id"] for each in batch)

        senders = [threading.Thread(target=send) for _ in range(3)]
        before = len(answered)
        for sender in senders:
            sender.start()
        wait_until(lambda before=before: len(answered) > before)
        time.sleep(chance.uniform(0.05, 0.4))
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
        stop.set()
        for sender in senders:
            sender.join(WAIT_S)
    with collecting(tmp_path / "h.db", HEALKIT_COLLECT_RATE_PER_S="10000") as server:
        stored = set(server.stored())
    assert len(answered) > 100
    assert answered <= stored <= sent


@pytest.mark.slow
@TRACE_4
@pytest.mark.timeout(240)
def test_concurrent_clients_store_each_trace_once(
    tmp_path: Path,
) -> None:
    shared = [trace() for _ in range(120)]
    fuller = {each["id"]: {**each, "taskResults": [task()]} for each in shared[::2]}

    def send(number: int) -> list[int]:
        chance, codes = random.Random(number), []
        with httpx.Client(base_url=server.url, headers=dict(server.client.headers), timeout=WAIT_S) as client:
            for _ in range(12):
                batch = [
                    fuller.get(each["id"], each) if chance.random() < 0.5 else each
                    for each in chance.sample(shared, 30)
                ]
                answer = client.post("/api/traces", json=batch)
                codes.append(answer.status_code)
                assert answer.json() == {"received": 30, "stored": 30, "errors": []}
        return codes

    with collecting(tmp_path / "h.db", HEALKIT_COLLECT_RATE_PER_S="10000") as server:
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            codes = [code for each in clients.map(send, range(8)) for code in each]
        server.post(*shared)
        server.post(*fuller.values())
        stored = server.stored()
    assert set(codes) == {200}
    assert set(stored) == {each["id"] for each in shared}
    assert all(len(each["taskResults"]) == (each["id"] in fuller) for each in stored.values())


@TRACE_4
def test_a_locked_database_is_reported_as_busy(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    with collecting(path, HEALKIT_LOG_WAIT_S="0.2") as server:
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
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        with collecting(disk / "h.db") as server:
            small = trace()
            assert server.post(small).json()["stored"] == 1
            batch = [
                trace(taskResults=[task(n + 1, args="x" * 10_000) for n in range(10)]) for _ in range(40)
            ]
            answer = server.post(*batch)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "STORE_UNAVAILABLE")
            assert "space" in answer.json()["error"]["message"]
            assert int(answer.headers["Retry-After"]) >= 30
            assert list(server.stored()) == [small["id"]]
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


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
