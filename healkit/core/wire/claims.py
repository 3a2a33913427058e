"""Decoder of what a worker sends.

Everything that comes from a worker passes through `decode`: frames of the bridge, reports of trial servers and fork
servers, results, arguments of calls, answers of a retained worker. A few bytes of JSON can become a large Python
object (an empty list is two bytes there and 56 here), so the bytes are counted before any object is built.

The count runs over pieces of 64 KiB and lets other threads run between them. It ends at the first broken limit.
"""

from __future__ import annotations

import gc
from _thread import allocate_lock  # not `threading`: a trial server holds no module that a fork resets
from collections.abc import Callable
from itertools import accumulate
from typing import Any, TypeVar

import msgspec

#: Limit of the elements of a message: its items, keys, and empty containers. One costs the host up to 64 bytes.
MAX_ELEMENTS = 400_000
#: Limit of the nesting of a message.
MAX_DEPTH = 100
#: Limit of a message with a character beyond U+FFFF in it, in bytes: Python keeps such a text in 4 bytes a character.
MAX_WIDE_BYTES = 5 * 1024 * 1024

#: Up to this size a message cannot break the limits, but for its depth; above it, others wait for its decoding.
SMALL_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024

_NOT_MARKS = bytes(set(range(256)) - set(b"[]{},:"))
_NOT_WIDE = bytes(range(0xF0))
#: Second and later bytes of a character in UTF-8.
_CONTINUING = bytes(range(0x80, 0xC0))
#: What each bracket adds to the depth, as signed bytes.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")

T = TypeVar("T")
Data = bytes | bytearray | memoryview | msgspec.Raw
#: Decodes one large message at a time, since a decoder does not let go of the interpreter until it is done.
_turn = allocate_lock()


#: What a decoder raises for bytes that are not what it decodes.
REFUSALS = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, MemoryError)


class BadClaim(ValueError):
    """A worker's message that breaks a rule; the text says which."""


def decode(data: Data, decoder: Callable[[Any], T], *, max_bytes: int | None = None) -> T:
    """Decode a message, or raise `BadClaim`; nothing else is raised, whatever the bytes are.

    `decoder` is a msgspec decoder's `decode`. `max_bytes` is the limit of this message, if it has one of its own.
    """
    if len(data) > MAX_DEPTH or max_bytes is not None:  # fewer bytes break no other limit
        check_claim(data, max_bytes=max_bytes)
    return decode_checked(data, decoder)


def decode_checked(data: Data, decoder: Callable[[Any], T]) -> T:
    """Decode as `decode` does, where the message, or the one it is a part of, was checked before."""
    try:
        return decoder(data) if len(data) <= SMALL_BYTES else _in_turn(decoder, data)
    except REFUSALS as error:
        raise refusal(error) from None


def refusal(error: BaseException) -> BadClaim:
    """Return what a decoder's error says, as far as it can be shown."""
    return BadClaim(f"{type(error).__name__}: {str(error)[:500]}")


def _in_turn(decoder: Callable[[Any], T], data: Data) -> T:
    """Decode a large message, one at a time."""
    with _turn:
        return _without_collections(decoder, data)


def _without_collections(decoder: Callable[[Any], T], data: Data) -> T:
    """Decode without garbage collections: the decoder keeps all it makes, and they would take most of its time.

    No other code of this process runs meanwhile, since the decoder does not let go of the interpreter.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return decoder(data)
    finally:
        if collects:
            gc.enable()


def check_claim(data: Data, *, max_bytes: int | None = None) -> None:
    """Raise `BadClaim` for a message with too many bytes, elements or levels; the bytes need not be JSON."""
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
    """Return how many characters UTF-8 bytes hold; bytes that are none count as the decoder replaces them, roughly."""
    view = memoryview(data)
    pieces = (bytes(view[start : start + _PIECE_BYTES]) for start in range(0, len(view), _PIECE_BYTES))
    return sum(len(piece) if piece.isascii() else len(piece.translate(None, _CONTINUING)) for piece in pieces)


class _Counter:
    """Count of elements and levels, over the pieces of one message.

    It agrees with a JSON decoder on where strings begin and end up to the first error of syntax, where the decoder
    stops.
    """

    def __init__(self, *, may_be_wide: bool) -> None:
        self._may_be_wide = may_be_wide
        self._in_string = False
        self._elements = self._depth = 0
        #: A backslash whose second character is in the next piece, and the end of the last piece.
        self._held = self._end = b""

    def add(self, piece: bytes) -> None:
        """Count one piece; raises `BadClaim` at a limit."""
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
