"""Restricted kernel under real programs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from jupyter_client.session import Session
from kernelspec_samples import FORBIDDEN, WAIT_S, Reply, reply_of, wait_until_nothing_is_left_of
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect
from waiting import wait_until

Install = Callable[..., str]
_HOME = "import os; print(os.environ['HOME'], end='')"


class Server:
    """Process of a `jupyter server`, and its REST interface and web sockets."""

    def __init__(self, folder: Path) -> None:
        self.token = uuid.uuid4().hex
        self._log = (folder / "server.log").open("wb")
        options = {"root_dir": folder, "port": 0, "open_browser": False, "allow_root": True}
        words = [f"--ServerApp.{name}={value}" for name, value in options.items()]
        words += [f"--IdentityProvider.token={self.token}", "--KernelRestarter.time_to_dead=0.5"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *words], stdout=self._log, stderr=self._log, cwd=folder
        )
        self.url = ""
        try:
            wait_until(self._look)
        except AssertionError:
            self.stop()
            raise AssertionError((folder / "server.log").read_text()) from None

    def _look(self) -> bool:
        for file in Path(os.environ["JUPYTER_RUNTIME_DIR"]).glob(f"jpserver-{self.process.pid}.json"):
            try:
                self.url = json.loads(file.read_text())["url"].rstrip("/")
            except ValueError:
                continue
        try:  # the address is named before anybody listens there
            with urlopen(f"{self.url}/api", timeout=WAIT_S):
                return True
        except (OSError, ValueError):
            return False

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send one request; return its answer as JSON."""
        request = HTTPRequest(
            self.url + path,
            method=method,
            headers={"Authorization": f"token {self.token}"},
            body=None if body is None else json.dumps(body),
            allow_nonstandard_methods=True,
            request_timeout=WAIT_S,
        )
        answer = (await AsyncHTTPClient(force_instance=True).fetch(request)).body
        return json.loads(answer) if answer else None

    async def connect(self, kernel_id: str) -> WebSocketClientConnection:
        """Connect to the kernel's channels, as a page does."""
        request = HTTPRequest(
            f"{self.url.replace('http', 'ws', 1)}/api/kernels/{kernel_id}/channels",
            headers={"Authorization": f"token {self.token}"},
        )
        return await asyncio.wait_for(websocket_connect(request), WAIT_S)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(WAIT_S)
        self._log.close()


async def send(socket: WebSocketClientConnection, code: str) -> str:
    """Ask for a cell to be run; returns the request's id."""
    content = {
        "code": code,
        "silent": False,
        "store_history": True,
        "allow_stdin": False,
        "stop_on_error": False,  # a cell that fails does not stop the cells behind it
    }
    message = Session(key=b"").msg("execute_request", content)
    message["channel"] = "shell"
    await socket.write_message(json.dumps(message, default=str))
    return str(message["header"]["msg_id"])


async def read(socket: WebSocketClientConnection) -> dict[str, Any]:
    """Read the next message."""
    raw = await socket.read_message()
    assert isinstance(raw, str)
    message: dict[str, Any] = json.loads(raw)
    return message


async def answer(socket: WebSocketClientConnection, request: str) -> Reply:
    """Return the messages of that cell."""
    outputs: list[dict[str, Any]] = []
    content: dict[str, Any] | None = None
    idle = False
    async with asyncio.timeout(WAIT_S):
        while content is None or not idle:
            message = await read(socket)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "execute_reply":
                content = message["content"]
            else:
                idle = message["content"].get("execution_state") == "idle"
                outputs.append({"type": message["msg_type"], **message["content"]})
    return reply_of(content, outputs)


async def printed(socket: WebSocketClientConnection, request: str) -> None:
    """Wait until that cell prints."""
    async with asyncio.timeout(WAIT_S):
        while True:
            message = await read(socket)
            if message["parent_header"].get("msg_id") == request and message["msg_type"] == "stream":
                return


async def run(socket: WebSocketClientConnection, code: str) -> Reply:
    """Run a cell to its end."""
    return await answer(socket, await send(socket, code))


async def hang_up(socket: WebSocketClientConnection) -> None:
    """Close it, and wait until the other side has."""
    socket.close()
    async with asyncio.timeout(WAIT_S):
        while await socket.read_message() is not None:
            continue


async def run_after_restart(
    server: Server, kernel_id: str, code: str
) -> tuple[Reply, WebSocketClientConnection]:
    """Run a cell as soon as the new kernel answers: a request sent to the old one's sockets is lost."""
    within_s = 1.0
    async with asyncio.timeout(WAIT_S):
        while True:
            socket = await server.connect(kernel_id)
            try:
                return await asyncio.wait_for(run(socket, code), within_s), socket
            except TimeoutError:
                within_s *= 2  # the machine may be busy
                await hang_up(socket)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Started, and stopped."""
    opened = Server(tmp_path)
    yield opened
    opened.stop()


@pytest.mark.slow
@pytest.mark.requirement("WORK-1", "WORK-2")
def test_jupyters_server_starts_stops_restarts_and_ends_a_restricted_kernel(
    install: Install, server: Server
) -> None:
    name = install()

    async def story() -> Path:
        assert name in (await server.ask("GET", "/api/kernelspecs"))["kernelspecs"]
        kernel_id = (await server.ask("POST", "/api/kernels", {"name": name}))["id"]
        socket = await server.connect(kernel_id)
        root = Path((await run(socket, _HOME)).text).parent
        for attempt, code in FORBIDDEN.items():
            assert (await run(socket, code)).status == "error", attempt

        busy = await send(socket, "kept = 1\nprint('begun', flush=True)\nwhile True: pass")
        await printed(socket, busy)
        await server.ask("POST", f"/api/kernels/{kernel_id}/interrupt", {})
        assert (await answer(socket, busy)).ename == "KeyboardInterrupt"
        assert (await run(socket, "print(kept)")).text == "1\n"

        await hang_up(socket)
        await server.ask("POST", f"/api/kernels/{kernel_id}/restart", {})
        reply, socket = await run_after_restart(server, kernel_id, "kept")
        assert reply.ename == "NameError"

        await send(socket, "import os; os.kill(os.getpid(), 9)")
        await hang_up(socket)
        reply, socket = await run_after_restart(server, kernel_id, "open('/etc/passwd')")
        # It was started again, as restricted as before.
        assert reply.ename in {"FileNotFoundError", "PermissionError"}
        await hang_up(socket)
        await server.ask("DELETE", f"/api/kernels/{kernel_id}")
        return root

    wait_until_nothing_is_left_of(asyncio.run(story()))


_HOST = """
import time
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="healkit-restricted")
client.execute_interactive("import os; print(os.environ['HOME'], flush=True)")
print("up", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_after_kill_9_of_the_server_no_process_and_no_folder_is_left(tier: str, install: Install) -> None:
    install()
    host = subprocess.Popen([sys.executable, "-c", _HOST], stdout=subprocess.PIPE, text=True)
    with host:
        root = Path(host.stdout.readline().strip()).parent
        assert host.stdout.readline() == "up\n"
        assert root.exists()
        host.kill()
    wait_until_nothing_is_left_of(root)


@pytest.mark.slow
@pytest.mark.requirement("WORK-1")
def test_jupyter_run_runs_a_file_restricted(install: Install, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"{_HOME}\nimport socket\ntry:\n    socket.socket()\nexcept OSError as error:\n    print('\\n', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_client.runapp", f"--kernel={install()}", str(script)],
        capture_output=True, text=True, timeout=WAIT_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    home, _, said = done.stdout.partition("\n")
    assert "Permission denied" in said, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    wait_until_nothing_is_left_of(Path(home).parent)
