"""Exact encoding of what numpy holds.

An array's contents are its bytes as they lie in memory, in C order. Lengths, shapes and dtypes are checked before an
array is made of them, because they may be a worker's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from healkit.values import arrow_streams
from healkit.values.plain import BadValue, CannotCross, inline

if TYPE_CHECKING:
    from healkit.values.decoder import Decoder
    from healkit.values.encoder import Encoder

#: Limit of an array's dimensions.
DIMENSIONS_MAX = 32
_PYTHON_TEXT = {str, type(None)}


def of_numpy(encoder: Encoder, value: Any, path: str, depth: int, numpy: Any) -> list[Any] | None:
    """Return the tag of a scalar, a dtype or an array; None for any other value. Raises `CannotCross`."""
    if isinstance(value, numpy.generic):
        return ["numpy", _descr(value.dtype, path), inline(value.tobytes())]
    if isinstance(value, numpy.dtype):
        return ["dtype", _descr(value, path)]
    if type(value) is not numpy.ndarray:
        return None
    if value.dtype.hasobject:
        return _objects(encoder, value, path, depth, numpy)
    return ["ndarray", _descr(value.dtype, path), list(value.shape), encoder.content(bytes_of(value, numpy))]


def _objects(encoder: Encoder, value: Any, path: str, depth: int, numpy: Any) -> list[Any]:
    """Return an array of Python objects: Arrow's text where it holds nothing else, else item by item."""
    if value.dtype.kind != "O":
        raise CannotCross(path, f"an array of dtype {value.dtype}")
    flat = value.ravel()
    if len(flat) and set(map(type, flat)) <= _PYTHON_TEXT:
        try:
            return ["texts", list(value.shape), encoder.content(arrow_streams.of_texts(flat))]
        except UnicodeEncodeError:
            pass  # a lone surrogate
    places = numpy.ndindex(value.shape)
    items = [
        encoder.item(item, f"{path}[{', '.join(map(str, place))}]", depth + 3)
        for place, item in zip(places, flat, strict=True)
    ]
    return ["objects", list(value.shape), items]


def bytes_of(value: Any, numpy: Any) -> Any:
    """Return an array's bytes in C order, without a copy where they lie so."""
    if not value.size or not value.itemsize:
        return b""
    return memoryview(numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8))


def _descr(dtype: Any, path: str) -> Any:
    """Return a dtype as numpy's file format describes it; raises `CannotCross` for one that it cannot."""
    from numpy.lib import format as npy

    if dtype.hasobject or dtype.kind not in "biufcmMSUV":
        raise CannotCross(path, f"the dtype {dtype}")
    try:
        descr = npy.dtype_to_descr(dtype)
        if npy.descr_to_dtype(descr) != dtype:
            raise ValueError
    except (ValueError, TypeError):
        raise CannotCross(path, f"the dtype {dtype}") from None
    return descr


def _dtype(descr: Any) -> Any:
    from numpy.lib import format as npy

    dtype = npy.descr_to_dtype(_tuples(descr))
    if dtype.hasobject:
        raise BadValue("an array of objects as bytes")
    return dtype


def _tuples(descr: Any) -> Any:
    """Return a description with the tuples that JSON made lists of: its fields, their titles and shapes."""
    if type(descr) is not list:
        return descr
    if descr and type(descr[0]) is list:
        return [
            tuple(_tuples(part) if i == 1 else _whole(part) for i, part in enumerate(field))
            for field in descr
        ]
    return tuple(_tuples(part) if i == 0 else _whole(part) for i, part in enumerate(descr))


def _whole(part: Any) -> Any:
    return tuple(part) if type(part) is list else part


def ndarray(decoder: Decoder, descr: Any, shape: Any, reference: Any) -> Any:
    """Return an array of the bytes that `reference` stands for. Raises `BadValue`."""
    import numpy

    dtype, data = _dtype(descr), decoder.content(reference)
    _check_shape(shape)
    if math.prod(shape) * dtype.itemsize != len(data):
        raise BadValue(f"{len(data):,} bytes for an array of {shape} {dtype}")
    if not len(data):
        return numpy.empty(shape, dtype)
    if type(data) is bytes:
        data = bytearray(data)  # what comes inline may be written to, as what comes by memory may
    found = numpy.frombuffer(data, dtype).reshape(shape)
    if dtype.kind == "b" and found.view(numpy.uint8).max() > 1:
        raise BadValue("a truth value that is neither 0 nor 1")
    return found


def _check_shape(shape: Any) -> None:
    if type(shape) is not list or len(shape) > DIMENSIONS_MAX:
        raise BadValue("a wrong shape")
    if not all(type(size) is int and 0 <= size < 2**62 for size in shape) or math.prod(shape) >= 2**62:
        raise BadValue("a wrong shape")


def _filled(shape: Any, items: list[Any]) -> Any:
    import numpy

    _check_shape(shape)
    if math.prod(shape) != len(items):
        raise BadValue(f"{len(items):,} items for an array of {shape}")
    flat = numpy.empty(len(items), object)
    for position, item in enumerate(items):  # one by one: numpy would look into items that are sequences
        flat[position] = item
    return flat.reshape(shape)


def _scalar(decoder: Decoder, descr: Any, text: Any) -> Any:
    return ndarray(decoder, descr, [1], text)[0]


DECODERS: dict[str, Callable[..., Any]] = {
    "numpy": _scalar,
    "dtype": lambda _, descr: _dtype(descr),
    "ndarray": ndarray,
    "objects": lambda decoder, shape, items: _filled(shape, [decoder.item(item) for item in items]),
    "texts": lambda decoder, shape, reference: _filled(
        shape, arrow_streams.column(decoder.content(reference)).to_pylist()
    ),
}
