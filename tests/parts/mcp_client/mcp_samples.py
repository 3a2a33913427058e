"""Servers that the MCP tests start, and how tests wait."""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import socket
import sys
from pathlib import Path

from side_by_side import Forked
from waiting import wait_until

from healkit import Healkit

SERVERS = Path(__file__).parent / "servers"
WORKSHOP, PLAIN = str(SERVERS / "workshop.py"), str(SERVERS / "plain.py")


def plain(mode: str) -> list[str]:
    """Return the command of the older server in that mode."""
    return [sys.executable, PLAIN, mode]


def state(healkit: Healkit, name: str = "shop") -> str:
    """Return the state of that server."""
    return next(status.state for status in healkit.servers() if status.name == name)


def _serve(folder: str, port: int) -> None:
    sys.argv = [WORKSHOP, folder, str(port)]
    runpy.run_path(WORKSHOP, run_name="__main__")


class HttpServer:
    """Workshop over HTTP, as a process that can be stopped and started again on the same port."""

    def __init__(self, folder: Path, **environment: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self.start()

    def start(self) -> None:
        self.process = Forked(_serve, str(self._folder), self.port, environ=self._environment)
        wait_until(self._answers)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False
