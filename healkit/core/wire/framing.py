"""Frames between host and worker.

A frame is a 4-byte big-endian length and that many bytes of JSON. Never pickle: a worker's bytes must not
be able to do more than be wrong. Both ends refuse a length over their cap before they allocate anything for
it, and the host decodes what a worker sends by `wire.claims` only.
"""

from __future__ import annotations

import socket
import struct

import msgspec

from healkit.core.contracts.rpc import MAX_FRAME_BYTES, FromHost, FromWorker
from healkit.core.wire import claims

_LENGTH = struct.Struct(">I")
#: What is read at once, at least and at most.
_READ_BYTES, _READ_MAX_BYTES = 64 * 1024, 1024 * 1024

_encoder = msgspec.json.Encoder()
_from_worker: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
_decode_from_worker = _from_worker.decode
_from_host: msgspec.json.Decoder[FromHost] = msgspec.json.Decoder(FromHost)
decode_from_host = _from_host.decode


def decode_from_worker(frame: bytes | memoryview) -> FromWorker:
    """Decode a worker's frame; arguments and results in it stay raw. Raises `claims.BadClaim`."""
    if len(frame) > claims.MAX_DEPTH:
        return claims.decode(frame, _decode_from_worker)
    try:  # most calls are this short, and break no limit; the detour would be a tenth of what the host does for one
        return _decode_from_worker(frame)
    except claims.REFUSALS as error:
        raise claims.refusal(error) from None


class FrameTooLarge(Exception):
    """A frame whose length is over the cap; `size_bytes` is what it claimed."""

    def __init__(self, size_bytes: int, cap_bytes: int) -> None:
        super().__init__(f"a message of {size_bytes:,} bytes is over the cap of {cap_bytes:,} bytes")
        self.size_bytes = size_bytes


def encode_frame(message: msgspec.Struct) -> bytes:
    """Return the message with its length in front; raises `FrameTooLarge` over the cap."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLarge(len(body), MAX_FRAME_BYTES)
    return _LENGTH.pack(len(body)) + body


class FrameBuffer:
    """Bytes as they arrive, taken out again as frames; for any kind of socket."""

    def __init__(self, cap_bytes: int = MAX_FRAME_BYTES) -> None:
        self._cap_bytes = cap_bytes
        #: What is still here. Most chunks are one whole frame, and stay as they are; a frame in pieces is put together.
        self.received: bytes | bytearray = b""
        #: Bytes that the next frame still needs, as far as is known: its length first.
        self.missing = _LENGTH.size

    def feed(self, chunk: bytes) -> None:
        """Add what has come."""
        if not self.received:
            self.received = chunk
            return
        if isinstance(self.received, bytes):
            self.received = bytearray(self.received)
        self.received += chunk

    def take(self) -> bytes | memoryview | None:
        """Return the next frame's bytes, None while it is not whole; raises `FrameTooLarge` before its body is here.

        A frame that came in pieces is not copied: what is returned is a view of them.
        """
        received = self.received
        if len(received) < _LENGTH.size:
            self.missing = _LENGTH.size - len(received)
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(received)[0]
        if end - _LENGTH.size > self._cap_bytes:
            raise FrameTooLarge(end - _LENGTH.size, self._cap_bytes)
        if len(received) < end:
            self.missing = end - len(received)
            return None
        self.missing = _LENGTH.size
        if isinstance(received, bytes):
            self.received = received[end:]
            return received[_LENGTH.size : end]
        self.received = bytes(received[end:])
        return memoryview(received)[_LENGTH.size : end]


class FrameReader:
    """Frames from a blocking socket, one after the other; one thread at a time.

    ahead: read what has come, not only what is needed next. A small frame then costs one system call and not two.
    """

    def __init__(self, sock: socket.socket, cap_bytes: int = MAX_FRAME_BYTES, *, ahead: bool = True) -> None:
        self._sock = sock
        self._frames = FrameBuffer(cap_bytes)
        self._least_bytes = _READ_BYTES if ahead else 0

    def read(self, descriptors: list[int] | None = None) -> bytes | memoryview | None:
        """Return the next frame's bytes, None at end of file; raises `FrameTooLarge` before reading the body.

        descriptors: gets those that came with the frame.
        """
        frames = self._frames
        while not frames.received or (frame := frames.take()) is None:
            least = self._least_bytes
            size = least if frames.missing < least else min(frames.missing, _READ_MAX_BYTES)
            if descriptors is None:
                chunk = self._sock.recv(size)
            else:
                chunk, new_descriptors, _, _ = socket.recv_fds(self._sock, size, 2, socket.MSG_CMSG_CLOEXEC)
                descriptors += new_descriptors
            if not chunk:
                return None
            frames.feed(chunk)
        return frame


def raw(value: object) -> msgspec.Raw:
    """Return a JSON value as the raw bytes that travel inside a message."""
    return msgspec.Raw(_encoder.encode(value))
