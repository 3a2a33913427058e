"""Decoder of everything that a worker sends.

All data from a worker passes through `decode`. This includes frames of the bridge, reports of trial servers and fork
servers, results, arguments of calls, and answers of a retained worker. A few bytes of JSON can become a large Python
object (an empty list is two bytes there and 56 here). So the elements are counted before any object is built.

The count processes pieces of 64 KiB and lets other threads run in between. It ends at the first exceeded limit.
"""

from __future__ import annotations

import gc
from _thread import allocate_lock  # not `threading`, which a fork resets: a trial server must not import it
from collections.abc import Callable
from itertools import accumulate
from typing import Any, TypeVar

import msgspec

#: Maximum number of elements of a message: its items, keys, and empty containers. Each costs the host up to
#: 64 bytes.
MAX_ELEMENTS = 400_000
#: Maximum nesting of a message.
MAX_DEPTH = 100
#: Maximum size of a message with a character beyond U+FFFF, in bytes: Python stores its text with 4 bytes a
#: character.
MAX_WIDE_BYTES = 5 * 1024 * 1024

#: Up to this size, a message can only exceed the limit of nesting; above it, others wait while it is decoded.
SMALL_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024

_NOT_MARKS = bytes(set(range(256)) - set(b"[]{},:"))
_NOT_WIDE = bytes(range(0xF0))
#: Second and later bytes of a character in UTF-8.
_CONTINUING = bytes(range(0x80, 0xC0))
#: Change of the depth by each bracket, as signed bytes.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")

T = TypeVar("T")
Data = bytes | bytearray | memoryview | msgspec.Raw
#: Only one large message is decoded at a time, since a decoder does not release the interpreter until it is
#: done.
_turn = allocate_lock()


#: Exceptions of a decoder for invalid bytes.
REFUSALS = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, MemoryError)


class BadClaim(ValueError):
    """A worker's message that violates a rule; the text says which."""


def decode(data: Data, decoder: Callable[[Any], T], *, max_bytes: int | None = None) -> T:
    """Decode a message, or raise `BadClaim`; no other exception is possible, whatever the bytes are.

    `decoder` is a msgspec decoder's `decode`. `max_bytes` is the limit of this message, if it has a special one.
    """
    if len(data) > MAX_DEPTH or max_bytes is not None:  # fewer bytes cannot exceed another limit
        check_claim(data, max_bytes=max_bytes)
    return decode_checked(data, decoder)


def decode_checked(data: Data, decoder: Callable[[Any], T]) -> T:
    """Decode like `decode`, without the check, if the message, or the one that contains it, was checked before."""
    try:
        return decoder(data) if len(data) <= SMALL_BYTES else _in_turn(decoder, data)
    except REFUSALS as error:
        raise refusal(error) from None


def refusal(error: BaseException) -> BadClaim:
    """Return a decoder's error as `BadClaim`, as far as it can be shown."""
    return BadClaim(f"{type(error).__name__}: {str(error)[:500]}")


def _in_turn(decoder: Callable[[Any], T], data: Data) -> T:
    """Decode a large message, one at a time."""
    with _turn:
        return _without_collections(decoder, data)


def _without_collections(decoder: Callable[[Any], T], data: Data) -> T:
    """Decode without garbage collections, which would take most of the time, since the decoder keeps all its objects.

    No other code of this process runs in the meantime, because the decoder does not release the interpreter.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return decoder(data)
    finally:
        if collects:
            gc.enable()


def check_claim(data: Data, *, max_bytes: int | None = None) -> None:
    """Raise `BadClaim` for a message with too many bytes, elements or levels; it need not be JSON."""
    size = len(data)
    if max_bytes is not None and size > max_bytes:
        raise BadClaim(f"{size:,} bytes; {max_bytes:,} are allowed")
    if size <= SMALL_BYTES:
        whole = data if type(data) is bytes else bytes(data)
        if whole.count(b"[") + whole.count(b"{") <= MAX_DEPTH:
            return
    view, counter = memoryview(data), _Counter(may_be_wide=size <= MAX_WIDE_BYTES)
    for start in range(0, size, _PIECE_BYTES):
        counter.add(bytes(view[start : start + _PIECE_BYTES]))


def count_characters(data: Data) -> int:
    """Return the number of characters in UTF-8 bytes; invalid bytes count roughly as the decoder replaces them."""
    view = memoryview(data)
    pieces = (bytes(view[start : start + _PIECE_BYTES]) for start in range(0, len(view), _PIECE_BYTES))
    return sum(len(piece) if piece.isascii() else len(piece.translate(None, _CONTINUING)) for piece in pieces)


class _Counter:
    """Count of elements and levels, over the pieces of one message.

    It agrees with a JSON decoder on where strings begin and end, up to the first syntax error, where the decoder stops.
    """

    def __init__(self, *, may_be_wide: bool) -> None:
        self._may_be_wide = may_be_wide
        self._in_string = False
        self._elements = self._depth = 0
        #: A backslash whose second character is in the next piece; and the end of the last piece.
        self._held = self._end = b""

    def add(self, piece: bytes) -> None:
        """Count one piece; raise `BadClaim` at a limit."""
        if not self._may_be_wide:
            self._refuse_wide(piece)
        outside = self._outside_strings(piece)
        marks = outside.translate(None, _NOT_MARKS)
        steps = marks.translate(_STEPS, b",:")
        opened = steps.count(1)
        self._elements += len(marks) - len(steps) + opened
        if self._elements > MAX_ELEMENTS:
            raise BadClaim(f"more than {MAX_ELEMENTS:,} elements")
        if self._depth + opened > MAX_DEPTH:
            deepest = max(accumulate(memoryview(steps).cast("b"), initial=self._depth))
            if deepest > MAX_DEPTH:
                raise BadClaim(f"more than {MAX_DEPTH} levels of nesting")
        self._depth += 2 * opened - len(steps)

    def _outside_strings(self, piece: bytes) -> bytes:
        piece = self._held + piece
        self._held = b""
        if b"\\" in piece:
            if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
                piece, self._held = piece[:-1], b"\\"
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        self._in_string ^= len(parts) % 2 == 0
        return outside

    def _refuse_wide(self, piece: bytes) -> None:
        wide = not piece.isascii() and bool(piece.translate(None, _NOT_WIDE))
        if not wide and b"\\" in piece:
            wide = b"\\ud" in (self._end + piece).lower()
        self._end = piece[-2:]
        if wide:
            raise BadClaim(f"a character beyond U+FFFF in more than {MAX_WIDE_BYTES:,} bytes")
