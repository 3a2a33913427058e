"""Transports: stdio, and streamable HTTP on loopback.

Over stdio, only the protocol may use descriptor 1. Before anything else is imported, it is moved to a number that no
other code knows. Output of tools, warnings and libraries goes to stderr. A line above the size limit of a message is
answered with an error. No more of it than the limit is held in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from healkit.config import MIB

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

    from healkit.parts.collect.standalone import Address, Token

#: Maximum size of a message, in bytes.
MESSAGE_MAX_BYTES = 16 * MIB
_PIECE_BYTES, _ENDS_BYTES = MIB, 4096
_ID = re.compile(rb'"id"\s*:\s*(\d+|"(?:[^"\\]|\\.){0,200}")')
_INVALID = -32600  # "Invalid Request" of JSON-RPC
_QUEUED_MAX = 32
_SESSIONS_MAX = 100
#: Key of a request's scope for an event that is set when its client has disconnected; older sessions do not
#: notice that.
GONE = "healkit.gone"


class Wire:
    """Standard input and output of this process, reserved for the protocol: lines in, lines out."""

    def __init__(self) -> None:
        self._in, self._out = _moved(0, "rb"), _moved(1, "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def __aiter__(self) -> AsyncIterator[str]:
        """Return the lines until the client closes its side; called by the SDK."""
        return self._lines()

    async def _lines(self) -> AsyncIterator[str]:
        from mcp_types import (
            jsonrpc_message_adapter,  # late: the descriptors are taken before anything is imported
        )
        from pydantic import ValidationError

        queue: asyncio.Queue[bytes] = asyncio.Queue(_QUEUED_MAX)
        loop = asyncio.get_running_loop()

        def read() -> None:
            line = b"-"
            while line:
                line = self._line()
                try:
                    asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()
                except RuntimeError:  # the loop has ended
                    return

        # A daemon, because nothing else ends a thread that waits for a line.
        threading.Thread(target=read, daemon=True, name="healkit-mcp-stdin").start()
        while line := await queue.get():
            text = line.decode(errors="replace")
            try:  # the SDK drops what it cannot parse, and the client would wait
                jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValidationError as error:
                await asyncio.to_thread(self._refuse, line, f"Not a message: {error.errors()[0]['msg']}.")
            else:
                yield text

    def _line(self) -> bytes:
        """Return the next line; a line that is too long is answered here and skipped."""
        while True:
            line = self._in.readline(MESSAGE_MAX_BYTES)
            if len(line) < MESSAGE_MAX_BYTES or line.endswith(b"\n"):
                return line
            head, tail = line[:_ENDS_BYTES], b""
            while (piece := self._in.readline(_PIECE_BYTES)) and not piece.endswith(b"\n"):
                tail = piece[-_ENDS_BYTES:]
            reason = f"A message has more than {MESSAGE_MAX_BYTES:,} bytes; pass large data as a data view."
            self._refuse(head + tail + piece[-_ENDS_BYTES:], reason)

    def _refuse(self, line: bytes, said: str) -> None:
        """Answer a message that was not parsed, by the id near its beginning or its end."""
        match = _ID.search(line[:_ENDS_BYTES]) or _ID.search(line[-2 * _ENDS_BYTES :])
        reply = {"jsonrpc": "2.0", "id": msgspec.Raw(match[1] if match else b"null")}
        self._write(msgspec.json.encode({**reply, "error": {"code": _INVALID, "message": said}}) + b"\n")

    async def write(self, text: str) -> None:
        """Write a message; called by the SDK."""
        await asyncio.to_thread(self._write, text.encode())

    async def flush(self) -> None:
        """Do nothing: each message is flushed when it is written."""

    def _write(self, data: bytes) -> None:
        with self._lock:
            self._out.write(data)
            self._out.flush()


def _moved(descriptor: int, mode: str) -> BinaryIO:
    return cast("BinaryIO", os.fdopen(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3), mode))


async def serve_stdio(server: Server[Any], wire: Wire) -> None:
    """Serve the one client at this process's standard input and output until it disconnects."""
    from mcp.server.stdio import stdio_server

    async with stdio_server(cast("Any", wire), cast("Any", wire)) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def serve_http(
    server: Server[Any], address: Address, token: Token | None, announce: Callable[[str, str | None], None]
) -> None:
    """Serve clients over streamable HTTP until SIGINT or SIGTERM.

    announce: Called with the address, and the token if one was generated. Raises `ConfigError` for an address that is
    not available or that needs a token.
    """
    import uvicorn

    from healkit.parts.collect.standalone import (
        DRAIN_S,
        bind,
        check_public,
        generated_token,
        is_loopback,
        stop_signals,
    )

    check_public(address.host, token)
    generated = None
    if token is None:
        token, generated = generated_token()
    app = guarded(http_app(server, address.host if is_loopback(address.host) else None), token)
    config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=int(DRAIN_S))
    running = uvicorn.Server(config)
    running.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]  # which ends the process by the signal
    with bind(address)[0] as listening, stop_signals() as stopped:
        serving = asyncio.create_task(running.serve([listening]))
        announce(f"http://{address.host}:{listening.getsockname()[1]}/mcp", generated)
        await asyncio.wait(
            [serving, asyncio.create_task(stopped.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        running.should_exit = True
        await serving


def http_app(server: Server[Any], host: str | None) -> ASGIApp:
    """Return the protocol as an ASGI application at `/mcp`; host: the host name that requests may use, None for any."""
    from mcp.server.transport_security import TransportSecuritySettings

    names = {host, "127.0.0.1", "localhost", "[::1]"} if host else set()
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(host),
        allowed_hosts=[f"{name}:*" for name in names],
        allowed_origins=[f"http://{name}:*" for name in names],
    )
    app = server.streamable_http_app(
        transport_security=security, max_request_body_size=MESSAGE_MAX_BYTES, max_sessions=_SESSIONS_MAX
    )

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        gone = scope[GONE] = asyncio.Event()

        async def received() -> MutableMapping[str, Any]:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        await app(scope, received, send)

    return watched


def guarded(app: ASGIApp, token: Token) -> ASGIApp:
    """Return the application behind a bearer token."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            kind, _, credential = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
            if kind.lower() != "bearer" or not token.matches(credential.strip()):
                await _refuse(send)
                return
        await app(scope, receive, send)

    return checked


async def _refuse(send: Callable[[MutableMapping[str, Any]], Awaitable[None]]) -> None:
    headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b'Bearer realm="healkit"')]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send(
        {"type": "http.response.body", "body": b"A bearer token is needed: healkit mcp --http printed it.\n"}
    )
