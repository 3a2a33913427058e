"""Connections of the collector: how many, which goes first."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from collector_samples import TOKEN, WAIT_S, collecting, trace
from tornado.netutil import bind_sockets

from healkit.config import Config
from healkit.parts.collect.limits import Connections, Stage, connection_limit
from healkit.parts.collect.service import CollectorService
from healkit.parts.collect.standalone import BoundedServer, Token, make_application

T = TypeVar("T")


@contextlib.contextmanager
def open_files_at_most(count: int) -> Iterator[None]:
    """Let processes that are started meanwhile open that many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def stored_on_a_new_connection(url: str) -> object:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    # Half of the minute after which tornado drops idle connections by itself.
    return httpx.post(f"{url}/api/traces", json=[trace()], headers=headers, timeout=30).json()["stored"]


@pytest.mark.slow
def test_more_connections_than_files_do_not_block_other_clients(tmp_path: Path) -> None:
    """S8: as many half-open connections as the collector may open files, without a token, and no one else was served."""
    with contextlib.ExitStack() as held:
        with open_files_at_most(256):
            assert connection_limit() == 128
            server = held.enter_context(collecting(tmp_path / "h.db", python=True))
        host, _, port = server.url.removeprefix("http://").partition(":")
        for number in range(300):
            half = held.enter_context(socket.create_connection((host, int(port)), timeout=WAIT_S))
            if number % 2:
                half.sendall(b"POST /api/traces HTTP/1.1\r\nHost: x\r\n")
            if number % 100 == 99:
                assert stored_on_a_new_connection(server.url) == 1


async def served(db: Path, use: Callable[[CollectorService, int], Awaitable[T]], **limits: Any) -> T:
    """Serve a collector in this loop, and return what `use` makes of its port."""
    collector = CollectorService(Config(), str(db))
    server = BoundedServer(make_application(collector, Token(TOKEN), Connections(limit=10, **limits)))
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    try:
        return await use(collector, sockets[0].getsockname()[1])
    finally:
        server.stop()
        await server.close_all_connections()
        await asyncio.to_thread(collector.close)


def test_headers_that_do_not_come_close_the_connection(tmp_path: Path) -> None:
    """S8: a connection without headers was kept for a minute; one whose headers came stays."""

    async def closed_and_kept(_: CollectorService, port: int) -> tuple[bytes, bytes]:
        question = b"GET /api/health HTTP/1.1\r\nHost: x\r\n"
        asked, asking = await asyncio.open_connection("127.0.0.1", port)
        asking.write(question + b"\r\n")
        await asked.readuntil(b'{"status":"ok"}')
        silent, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(question)
        nothing = await asyncio.wait_for(silent.read(), WAIT_S)
        asking.write(question + b"\r\n")
        again = await asked.readuntil(b'{"status":"ok"}')
        for each in (asking, writer):
            each.close()
        return nothing, again

    nothing, again = asyncio.run(served(tmp_path / "h.db", closed_and_kept, first_headers_s=0.2))
    assert nothing == b""
    assert b"200 OK" in again


@pytest.mark.parametrize(
    "head",
    ["POST /api/traces HTTP/1.1\r\nX:", "POST /api/health HTTP/1.1\r\nX:", f"POST /nowhere HTTP/1.1\r\nX-Token: {TOKEN}\r\nX:"],
)  # fmt: skip
def test_a_body_without_the_token_costs_no_memory(tmp_path: Path, head: str) -> None:
    """S9: `handlers` says so; of a body sent to `/api/health` every byte was kept."""

    async def held(collector: CollectorService, port: int) -> tuple[int, int]:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head} x\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n".encode() + b"[" * 1_000_000)
        await writer.drain()
        # The server reads in pieces of 64 KB, each in a turn of this loop.
        for _ in range(1000):
            await asyncio.sleep(0)
        writer.close()
        return collector.in_flight, collector.held_bytes

    assert asyncio.run(served(tmp_path / "h.db", held)) == (1, 0)


class Stream:
    """End of a connection, as far as `Connections` needs it."""

    def __init__(self) -> None:
        self.open = True

    def close(self) -> None:
        self.open = False


def test_a_new_connection_always_gets_in_and_the_least_useful_goes() -> None:
    async def check() -> None:
        connections = Connections(limit=4)
        names = ("answered", "sending", "idle", "stranger", "next", "last", "own")
        streams = {name: Stream() for name in names}

        def enter(name: str, host: str, stage: Stage = Stage.STRANGER) -> None:
            connections.opened(streams[name], host)  # type: ignore[arg-type]  # it has what is used
            connections.reached(streams[name], stage)  # type: ignore[arg-type]  # as above

        enter("answered", "a", Stage.ANSWERED)
        enter("sending", "b", Stage.SENDING)
        enter("idle", "c", Stage.IDLE)
        enter("stranger", "d")
        enter("next", "d")
        assert [name for name, stream in streams.items() if not stream.open] == ["stranger"]
        enter("last", "e")
        # Of two strangers the older goes; "e" has asked for nothing yet either, and is newer.
        assert not streams["next"].open
        connections.reached(streams["last"], Stage.ANSWERED)  # type: ignore[arg-type]  # as above
        enter("own", "a", Stage.ANSWERED)
        assert len(connections) == 4
        assert all(streams[name].open for name in ("answered", "sending", "idle", "last"))

    asyncio.run(check())


def test_of_equals_one_of_the_busiest_address_goes() -> None:
    async def check() -> None:
        connections = Connections(limit=3)
        streams = [Stream() for _ in range(4)]
        for stream, host in zip(streams, ("quiet", "busy", "busy", "new"), strict=True):
            connections.opened(stream, host)  # type: ignore[arg-type]  # it has what is used
        assert [stream.open for stream in streams] == [True, False, True, True]

    asyncio.run(check())


def test_a_token_keeps_no_text_that_could_be_shown() -> None:
    """S9: `Token` says that it is never shown by accident."""
    token = Token(TOKEN)
    shown = f"{token} {token!r} {vars(token)} {[token]}"
    assert TOKEN not in shown
    assert token.matches(TOKEN)
    assert not any(token.matches(wrong) for wrong in ("", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "\ud800"))
