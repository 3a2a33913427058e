"""Clients of healkit's MCP server, for its tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, Implementation

from healkit import Healkit
from healkit.config import Config
from healkit.faces.cli.command import open_healkit
from healkit.faces.mcp_server.server import AgentServer, ServerOptions

MEAN = "def mean(xs: list[float]) -> float:\n    return sum(xs) / len(x)\n"
FIXED = MEAN.replace("len(x)", "len(xs)")


def command(db: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "healkit", "mcp", "--db", str(db), *options]


def parameters(db: Path, *options: str, **environment: str) -> StdioServerParameters:
    words = command(db, *options)
    return StdioServerParameters(
        command=words[0], args=words[1:], env={**os.environ, **environment}, cwd=str(db.parent)
    )


@contextlib.asynccontextmanager
async def connected(
    db: Path, *options: str, name: str = "tester", environment: dict[str, str] | None = None, **more: Any
) -> AsyncIterator[Client]:
    """Start a server over stdio, and connect the SDK's client to it."""
    with open(os.devnull, "w") as nothing:  # noqa: ASYNC230 - it never blocks
        transport = stdio_client(parameters(db, *options, **(environment or {})), errlog=nothing)
        info = Implementation(name=name, version="1.2")
        async with Client(transport, client_info=info, **more) as client:
            yield client


@contextlib.asynccontextmanager
async def in_process(
    db: Path, *options: str, name: str = "tester", environment: dict[str, str] | None = None, **more: Any
) -> AsyncIterator[Client]:
    """Serve in this process, whose workers are warm, and connect the SDK's client to it."""
    flags = dict(zip(options[::2], options[1::2], strict=False))
    chosen = ServerOptions(flags.get("--persona", "default"), through_client="--requests-only" not in options)
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, environment or {}))

        def opened() -> Healkit:
            healkit = stack.enter_context(open_healkit(str(db), create=True, many_runs=True))
            if "--demo" in options:
                healkit.seed()
            return healkit

        server = AgentServer(opened, Config.from_environment(), chosen)
        stack.callback(server.close)
        async with Client(
            server.protocol, client_info=Implementation(name=name, version="1.2"), **more
        ) as client:
            yield client


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(110):
            await work()

    asyncio.run(bounded())


def error_of(result: CallToolResult) -> dict[str, Any]:
    """Return the error of an answer, which is one."""
    assert result.is_error, result
    assert result.structured_content is not None
    error: dict[str, Any] = result.structured_content["error"]
    return error


def data_of(result: CallToolResult) -> dict[str, Any]:
    """Return the data of an answer; fail where it is an error."""
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


class RawClient:
    """Client that writes what it likes to a server's standard input, and reads its lines."""

    def __init__(self, db: Path, *options: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            command(db, *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            cwd=db.parent,
        )
        self.stderr = b""
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line

    def send(self, data: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        line = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, number: int | str, method: str, params: dict[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})

    def call(self, number: int | str, tool: str, **arguments: Any) -> None:
        self.ask(number, "tools/call", {"name": tool, "arguments": arguments})

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield each line of its standard output; fail at a line outside the protocol."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            yield message

    def answer(self, number: int | str | None) -> dict[str, Any]:
        """Return the answer to that request; those before it are dropped."""
        return next(
            message for message in self.lines() if message.get("id") == number and "method" not in message
        )

    def initialize(self) -> RawClient:
        info = {"name": "raw", "version": "0"}
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        self.ask("init", "initialize", asked)
        assert "result" in self.answer("init")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join(5)
            self.process.stdout.close()
            assert self.process.stderr is not None
            self.process.stderr.close()
