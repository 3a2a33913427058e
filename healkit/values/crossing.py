"""Values between host and worker, and into the log."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from healkit.contracts import claims
from healkit.contracts.encoding import TAG, LongInt, Preview, is_from_library, is_plain, to_jsonable
from healkit.errors import HealkitError
from healkit.values.decoder import Decoder
from healkit.values.encoder import Encoder
from healkit.values.plain import FRAME, MARK, BadValue, Buffers

#: Returns the names of the columns, of these with their first values, that hold secrets.
SecretColumns = Callable[[Mapping[str, Sequence[Any]]], Collection[str]]

_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


def encode(
    value: object, buffers: Buffers | None = None, root: str = "$", limit_bytes: int | None = None
) -> tuple[bytes, list[str]]:
    """Return the encoded value, and notes of what arrives as what it holds.

    buffers: gets the contents of arrays and frames, as bytes-like objects, in the order of their numbers. root: how
    paths in errors and notes begin. limit_bytes: what it may take where it arrives, as `decode` counts it. Raises
    `CannotCross`, and beyond that limit `TooLarge`.
    """
    try:
        if is_plain(value):
            return _encode_json(value), []
    except (RecursionError, UnicodeEncodeError):
        pass  # the longer way tells where
    encoder = Encoder(buffers, encode_foreign, limit_bytes)
    tagged = encoder.item(value, root, 0)
    return _encode_json(tagged), encoder.notes


def encode_for_log(value: object, secret_columns: SecretColumns | None = None) -> tuple[bytes, int]:
    """Return a value as the log keeps it, and how many previews stand in it in the place of large contents.

    secret_columns: asked with the first values of a frame's columns; returns the names of those that no preview shows.
    """

    def look(encoder: Encoder, value: Any, path: str, depth: int) -> Any:
        shown = preview(value, secret_columns)
        if shown is None:
            return encode_foreign(encoder, value, path, depth)
        encoder.previews += 1
        return {TAG: ["preview", to_jsonable(shown)[0], encoder.previews - 1]}

    encoder = Encoder(None, look)
    return _encode_json(encoder.item(value, "$", 0)), encoder.previews


def large_parts(value: object) -> list[Any]:
    """Return each frame, array and table in a value for which the log has a preview, in the order of their numbers."""
    found: list[Any] = []

    def look(encoder: Encoder, value: Any, path: str, depth: int) -> Any:
        if preview(value) is None:
            return encode_foreign(encoder, value, path, depth)
        found.append(value)
        return {}

    Encoder(None, look).item(value, "$", 0)
    return found


def readable(value: object, secret_columns: SecretColumns | None = None) -> tuple[Any, list[str]]:
    """Return a value as plain JSON for people to read, and what is not shown as it is."""
    return to_jsonable(value, preview=functools.partial(preview, secret_columns=secret_columns))


def readable_json(value: object, secret_columns: SecretColumns | None = None) -> bytes:
    """Return the same, encoded."""
    return _encode_json(readable(value, secret_columns)[0])


def for_schema(value: object) -> Any:
    """Return a value as plain JSON to hold a schema against; of a frame its columns, of an array its first items."""
    return to_jsonable(value, preview=_outline, long=LongInt)[0]


def is_frame_outline(value: object) -> bool:
    """Return whether a part of what `for_schema` returned stands for a frame."""
    return isinstance(value, dict) and value.get(FRAME) is True


def _outline(value: object) -> Any:
    if not _may_be_frame(value):
        return None
    from healkit.values import previews

    try:
        return previews.outline(value)
    except BaseException as error:
        if not is_from_library(error):
            raise
        return None


def decode(
    data: bytes | memoryview | msgspec.Raw, buffers: Sequence[Any] = (), limit_bytes: int | None = None
) -> Any:
    """Return the value that `encode` has encoded, from the other process. Raises `BadValue` for anything else.

    limit_bytes: for a worker's value, whose bytes `claims.check` must have checked: what its frames and arrays may
    take, all that is shared in them counted as often as it is referred to.
    """
    try:
        plain = claims.decode_checked(data, _decode_json)
    except claims.BadClaim as error:
        raise BadValue(str(error)) from None
    return restore(plain, buffers, limit_bytes=limit_bytes) if MARK in bytes(data) else plain


def restore(
    plain: Any,
    buffers: Sequence[Any] = (),
    whole: Callable[[Preview], Any] = lambda preview: preview,
    limit_bytes: int | None = None,
) -> Any:
    """Return the value of a decoded JSON value with tags. Raises `BadValue`, and what `whole` raises.

    whole: returns what stands for a preview; by default that itself. limit_bytes: as `decode` has it.
    """
    try:
        return Decoder(buffers, _frame_of, whole, limit_bytes).item(plain)
    except (BadValue, HealkitError):
        raise
    except RecursionError:
        raise BadValue("nested too deeply") from None
    except BaseException as error:  # constructors raise what they like for a wrong value
        if not is_from_library(error):
            raise
        raise BadValue(f"{type(error).__name__}: {str(error)[:500]}") from None


def _may_be_frame(value: object) -> bool:
    """Return False where neither numpy nor Arrow is loaded, and the value speaks no Arrow."""
    loaded = "numpy" in sys.modules or "pyarrow" in sys.modules
    return loaded or hasattr(type(value), "__arrow_c_stream__")


def encode_foreign(encoder: Encoder, value: Any, path: str, depth: int) -> Any:
    """Return the tag of a value of numpy, pandas or Arrow; None for any other."""
    if not _may_be_frame(value):
        return None
    from healkit.values import frames  # late: most values are none of these, and pandas takes long to load

    return frames.encoded(encoder, value, path, depth)


def is_tabular(value: object) -> bool:
    """Return whether a value is a frame, an array or a table, of any size."""
    if not _may_be_frame(value):
        return False
    from healkit.values import previews

    return previews.is_tabular(value)


def preview(value: object, secret_columns: SecretColumns | None = None) -> Any:
    """Return what a record shows of a large frame, array or table; None for a small one, or another value."""
    if not _may_be_frame(value):
        return None
    from healkit.values import previews

    try:
        return previews.preview(value, secret_columns)
    except BaseException as error:  # a value can be of the right form, and none that its library can show
        if not is_from_library(error):
            raise
        return previews.outside_of(value)


def _frame_of(decoder: Decoder, name: str, rest: list[Any]) -> Any:
    from healkit.values import frames

    if name not in frames.DECODERS:
        raise BadValue(f"an unknown type {name[:50]!r}")
    return frames.DECODERS[name](decoder, *rest)
