"""Frames between host and worker.

A frame is a 4-byte big-endian length and that many bytes of JSON. Pickle is never used, because a worker's bytes must
not be able to run code. Both sides refuse a length above their limit before they allocate memory for it. The host
decodes a worker's messages only with `wire.claims`.
"""

from __future__ import annotations

import socket
import struct

import msgspec

from healkit.core.contracts.rpc import MAX_FRAME_BYTES, FromHost, FromWorker
from healkit.core.wire import claims

_LENGTH = struct.Struct(">I")
#: Minimum and maximum number of bytes that are read at once.
_READ_BYTES, _READ_MAX_BYTES = 64 * 1024, 1024 * 1024

_encoder = msgspec.json.Encoder()
_from_worker: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
_decode_from_worker = _from_worker.decode
_from_host: msgspec.json.Decoder[FromHost] = msgspec.json.Decoder(FromHost)
decode_from_host = _from_host.decode


def decode_from_worker(frame: bytes | memoryview) -> FromWorker:
    """Decode a worker's frame; arguments and results in it remain raw. Raises `claims.BadClaim`."""
    if len(frame) > claims.MAX_DEPTH:
        return claims.decode(frame, _decode_from_worker)
    try:  # most calls are this short and exceed no limit; the long way would take a tenth of the host's time for a call
        return _decode_from_worker(frame)
    except claims.REFUSALS as error:
        raise claims.refusal(error) from None


class FrameTooLarge(Exception):
    """A frame whose length is above the limit; `size_bytes` is the length that it claimed."""

    def __init__(self, size_bytes: int, cap_bytes: int) -> None:
        super().__init__(f"a message of {size_bytes:,} bytes is over the cap of {cap_bytes:,} bytes")
        self.size_bytes = size_bytes


def encode_frame(message: msgspec.Struct) -> bytes:
    """Return the message preceded by its length; raise `FrameTooLarge` above the limit."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLarge(len(body), MAX_FRAME_BYTES)
    return _LENGTH.pack(len(body)) + body


class FrameBuffer:
    """Buffer of received bytes, which are returned as frames; for any kind of socket."""

    def __init__(self, cap_bytes: int = MAX_FRAME_BYTES) -> None:
        self._cap_bytes = cap_bytes
        #: Bytes not returned yet. Most chunks are one whole frame and are not copied; the pieces of a frame
        #: are joined.
        self.received: bytes | bytearray = b""
        #: Number of bytes that the next frame still needs, as far as known: first its length.
        self.missing = _LENGTH.size

    def feed(self, chunk: bytes) -> None:
        """Add received bytes."""
        if not self.received:
            self.received = chunk
            return
        if isinstance(self.received, bytes):
            self.received = bytearray(self.received)
        self.received += chunk

    def take(self) -> bytes | memoryview | None:
        """Return the next frame's bytes, None while it is incomplete; raise `FrameTooLarge` before its body is read.

        A frame that arrived in pieces is not copied: the result is a view of them.
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
    """Reads frames from a blocking socket, one after the other; for one thread at a time.

    ahead: Read everything that has arrived, not only what the next frame needs. A small frame then takes one system
        call instead of two.
    """

    def __init__(self, sock: socket.socket, cap_bytes: int = MAX_FRAME_BYTES, *, ahead: bool = True) -> None:
        self._sock = sock
        self._frames = FrameBuffer(cap_bytes)
        self._least_bytes = _READ_BYTES if ahead else 0

    def read(self, descriptors: list[int] | None = None) -> bytes | memoryview | None:
        """Return the next frame's bytes, None at end of file; raise `FrameTooLarge` before reading the body.

        descriptors: Receives the descriptors that came with the frame.
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
    """Return a JSON value as raw bytes for a message."""
    return msgspec.Raw(_encoder.encode(value))
