"""Worker's half of the bridge.

No thread of its own reads the socket. The caller that gets the receive lock reads for all until its own answer is
there, then wakes another that still waits. A lone caller gets its answer without any switch of threads, which is most
of the cost of a call.
"""

from __future__ import annotations

import itertools
import socket
from _thread import allocate_lock
from typing import TYPE_CHECKING

import msgspec

from healkit.contracts import rpc

if TYPE_CHECKING:
    import threading


class BridgeClosed(ConnectionError):
    """End of the connection: the host has hung up."""


class _Slot:
    """A call that waits for its answer."""

    __slots__ = ("result", "wake")

    def __init__(self) -> None:
        self.result: rpc.RpcResult | None = None
        self.wake: threading.Event | None = None  # only for one that has to wait for another reader


class Endpoint:
    """Sends the worker's messages and matches answers to calls by their id; safe to use from any thread."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._reader = rpc.FrameReader(sock)
        self._send_lock = allocate_lock()
        self._receive_lock = allocate_lock()
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Slot] = {}
        self._closed = False
        #: Regions that came with the work: the arguments' where they have contents, then the one for the result.
        self.regions: list[int] = []

    def send(self, message: msgspec.Struct) -> None:
        """Send one message, whole; raises `FrameTooLarge`, or `OSError` when the host has gone."""
        frame = rpc.encode_frame(message)
        with self._send_lock:
            self._sock.sendall(frame)

    def close(self) -> None:
        """Hang up; every later call raises `BridgeClosed` or `OSError`."""
        self._closed = True
        self._sock.close()

    def receive_init(self) -> rpc.Init:
        """Wait for the work; called once, before there are any calls to answer."""
        frame = self._reader.read(self.regions)
        message = None if frame is None else rpc.decode_from_host(frame)
        if not isinstance(message, rpc.Init):
            raise BridgeClosed("the host closed the bridge before it sent any work")
        return message

    def call(self, server: str, tool: str, args: msgspec.Raw) -> rpc.RpcResult:
        """Ask the host to call a tool, and wait for its answer."""
        call_id, slot = next(self._ids), _Slot()
        self._waiting[call_id] = slot
        try:
            self.send(rpc.RpcCall(call_id, server, tool, args))
            while slot.result is None:
                if self._receive_lock.acquire(blocking=False):
                    self._read_until(slot)
                elif slot.wake is None:
                    import threading  # only here: a lone thread never waits

                    slot.wake = threading.Event()  # and try once more: the reader may just have gone
                else:
                    slot.wake.wait()
                    slot.wake.clear()
        finally:
            del self._waiting[call_id]
        return slot.result

    def _read_until(self, slot: _Slot) -> None:
        try:
            while slot.result is None:
                self._deliver()
        finally:
            self._receive_lock.release()
            # Wake one of the open calls to go on reading.
            for other in list(self._waiting.values()):
                if other.wake is not None and other.result is None:
                    other.wake.set()
                    break

    def _deliver(self) -> None:
        frame = None if self._closed else self._reader.read()
        if frame is None:
            self._closed = True
            raise BridgeClosed("the host closed the bridge")
        message = rpc.decode_from_host(frame)
        if isinstance(message, rpc.RpcResult) and (slot := self._waiting.get(message.id)) is not None:
            slot.result = message
            if slot.wake is not None:
                slot.wake.set()
