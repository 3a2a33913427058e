"""Start of a kernel: heard from before it is given work."""

from __future__ import annotations

import asyncio
import contextlib
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
import zmq.asyncio
from ipykernel.iostream import IOPubThread
from jupyter_client.session import Session

from healkit.core.workers.kernel import until_heard


@pytest.fixture
def speaker(tmp_path: Path) -> Iterator[tuple[IOPubThread, zmq.Socket, str]]:
    """ipykernel's own iopub thread, its socket, and the address prefix that a client connects to."""
    context = zmq.Context()
    socket = context.socket(zmq.XPUB)
    socket.bind(f"ipc://{tmp_path}/k-1")
    thread = IOPubThread(socket, session=Session(key=b"key"))
    thread.start()
    yield thread, socket, f"{tmp_path}/k"
    cancelled = threading.Event()  # its own housekeeping, which it leaves pending with a complaint
    thread._event_pipe_gc_task.add_done_callback(lambda _: cancelled.set())
    thread.io_loop.add_callback(lambda: thread._event_pipe_gc_task.cancel())
    assert cancelled.wait(10)
    thread.stop()
    thread.close()
    context.destroy(linger=0)


@contextlib.contextmanager
def listening(prefix: str) -> Iterator[zmq.asyncio.Socket]:
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as socket:
        socket.linger = 0
        socket.connect(f"ipc://{prefix}-1")
        yield socket


@pytest.mark.requirement("WORK-1")
def test_a_kernel_is_heard_although_we_subscribed_in_the_middle_of_its_message(
    speaker: tuple[IOPubThread, zmq.Socket, str],
) -> None:
    thread, socket, prefix = speaker
    half_sent, sent = threading.Event(), threading.Event()

    def send_slowly() -> None:
        socket.send(b"first part", zmq.SNDMORE)
        half_sent.set()
        select.select([socket.getsockopt(zmq.FD)], [], [], 10)
        time.sleep(0.05)  # the connection woke us; the subscription is right behind it
        socket.send(b"last part")
        sent.set()

    async def connect() -> None:
        with listening(prefix) as outputs:
            assert await asyncio.to_thread(sent.wait, 10)
            async with asyncio.timeout(10):
                await until_heard(outputs)

    thread.schedule(send_slowly)
    assert half_sent.wait(10)
    asyncio.run(connect())
