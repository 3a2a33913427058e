"""Agents over HTTP, in Jupyter, and the Inspector."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from agent_samples import MEAN, command, data_of, error_of, run
from jupyter_server_process import Jupyter
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from waiting import wait_until

from healkit import Healkit

pytestmark = [pytest.mark.slow, pytest.mark.requirement("FACE-5")]

FOREVER = "import time\nwhile True:\n    time.sleep(0.05)"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
INSPECTOR = "@modelcontextprotocol/inspector-cli@1.0.3"


class Serving:
    """Server over HTTP in a process of its own."""

    def __init__(self, db: Path, *options: str, **environment: str) -> None:
        words = command(db, "--http", "--port", "0", *options)
        self.process = subprocess.Popen(
            words, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}, cwd=db.parent
        )
        assert self.process.stderr is not None
        said = self.process.stderr.readline() + self.process.stderr.readline()
        where, token = re.search(r"at (\S+);", said), re.search(r"not shown again: (\S+)", said)
        assert where is not None, said
        assert token is not None, said
        self.url, self.token = where[1], token[1]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@pytest.fixture
def serving(db: Path) -> Iterator[Serving]:
    server = Serving(db)
    yield server
    server.end()


@contextlib.asynccontextmanager
async def connected(url: str, authorization: str, **more: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": authorization}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), **more) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdks_client_works_over_http_and_its_session_is_on_record(
    serving: Serving, beside: Healkit, mode: str
) -> None:
    async def work() -> None:
        async with connected(serving.url, f"Bearer {serving.token}", mode=mode) as client:
            await client.call_tool("write_tool", {"name": "mean", "code": MEAN})
            assert error_of(await client.call_tool("mean", {"xs": [1]}))["type"] == "NameError"
            heard: list[str] = []

            async def hear(_: float, __: float | None, message: str | None) -> None:
                heard.append(message or "")

            slow = {"code": "import time\ntime.sleep(6)\n7"}
            assert data_of(await client.call_tool("run_code", slow, progress_callback=hear))["result"] == 7
            assert heard

    run(work)
    row = beside.executions(origin="mcp")[0]
    assert row.client is not None
    assert re.fullmatch(r"\S+ \S+, session [0-9a-f]{8}", row.client)


def test_no_token_another_host_and_another_origin_are_refused(serving: Serving) -> None:
    right = {**ACCEPT, "Authorization": f"Bearer {serving.token}"}
    with httpx2.Client() as http:
        for headers in (
            ACCEPT,
            {**ACCEPT, "Authorization": "Bearer wrong"},
            {**ACCEPT, "Authorization": "Basic x"},
        ):
            refused = http.post(serving.url, json=PING, headers=headers)
            assert refused.status_code == 401
            assert "healkit mcp --http" in refused.text
        assert http.post(serving.url, json=PING, headers={**right, "Host": "evil.example"}).status_code == 421
        evil = {**right, "Origin": "http://evil.example"}
        assert http.post(serving.url, json=PING, headers=evil).status_code == 403
        large = http.post(
            serving.url, content=b"x" * 17_000_000, headers={**right, "Content-Type": "application/json"}
        )
        assert large.status_code == 413
        assert http.post(serving.url, json=PING, headers=right).status_code == 400


#: A client that never leaves by itself.
CLINGING = """
import asyncio, sys
sys.path.insert(0, {folder!r})
from test_agent_http import FOREVER, connected

async def work():
    async with connected({url!r}, {authorization!r}, mode={mode!r}) as client:
        await client.call_tool("run_code", {{"code": FOREVER, "timeout_s": 90}})

asyncio.run(work())
"""


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_that_is_killed_ends_its_runs(serving: Serving, beside: Healkit, mode: str) -> None:
    program = CLINGING.format(
        folder=str(Path(__file__).parent), url=serving.url, authorization=f"Bearer {serving.token}", mode=mode
    )
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    client = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path})
    try:
        wait_until(lambda: [row.status for row in beside.executions()] == ["RUNNING"])
    finally:
        client.kill()
        client.wait()
    wait_until(lambda: [row.status for row in beside.executions()] == ["FAILURE"])


def test_the_server_ends_in_order_and_refuses_a_public_address_without_a_token(db: Path) -> None:
    serving = Serving(db)
    assert serving.end() == 0
    refused = subprocess.run(
        command(db, "--http", "--host", "0.0.0.0"), capture_output=True, text=True, timeout=30, check=False
    )
    assert refused.returncode == 2
    assert "there is no token" in refused.stderr


def test_jupyters_server_has_it_behind_its_own_token(tmp_path: Path) -> None:
    server = Jupyter(tmp_path)
    try:
        url = f"{server.url}/healkit/mcp"
        with httpx2.Client() as http:
            assert http.post(url, json=PING, headers=ACCEPT).status_code in (401, 403)

        async def work(mode: str) -> None:
            async with connected(url, f"token {server.token}", mode=mode) as client:
                done = await client.call_tool("run_code", {"code": "6 * 7"})
                assert data_of(done)["result"] == 42
                assert (
                    error_of(await client.call_tool("run_code", {"code": "1 / 0"}))["type"]
                    == "ZeroDivisionError"
                )

        for mode in ("legacy", "auto"):
            run(lambda mode=mode: work(mode))
        assert "Traceback" not in server.log(), server.log()
    finally:
        server.stop()


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the MCP Inspector's command line, a client of other people's."""
    folder = tmp_path_factory.mktemp("inspector")
    subprocess.run(
        ["npm", "install", "--silent", "--no-audit", INSPECTOR], cwd=folder, check=True, timeout=110
    )
    # It asks the package that usually holds it for its version.
    parent = folder / "node_modules" / "@modelcontextprotocol" / "package.json"
    parent.write_text('{"name": "inspector", "version": "1.0.3"}')
    return folder / "node_modules" / ".bin" / "mcp-inspector-cli"


def test_the_inspectors_command_line_lists_calls_and_reads(
    inspector: Path, db: Path, beside: Healkit
) -> None:
    beside.vault.add("add", "def add(a: int, b: int) -> int:\n    return a + b\n")

    def ask(*words: str) -> dict[str, Any]:
        asked = [str(inspector), "--cli", *command(db), *words]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60, cwd=db.parent, check=False)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    names = [tool["name"] for tool in ask("--method", "tools/list")["tools"]]
    assert "add" in names
    called = ask("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3")
    assert called["structuredContent"]["result"] == 5
    bad = ask("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2")
    assert bad["isError"] is True
    row = ask("--method", "resources/read", "--uri", "healkit://executions/1")
    assert json.loads(row["contents"][0]["text"])["client"].startswith("inspector")
