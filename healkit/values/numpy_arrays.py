"""Exact encoding of what numpy holds.

An array's contents are its bytes as they lie in memory, in C order. Lengths, shapes and dtypes are checked before an
array is made of them, because they may be a worker's.
"""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from healkit.values import arrow_streams
from healkit.values.plain import BadValue, CannotCross, inline

if TYPE_CHECKING:
    from healkit.values.decoder import Decoder
    from healkit.values.encoder import Encoder

#: Limit of an array's dimensions.
DIMENSIONS_MAX = 32
#: What an empty row of an array without items counts, in bytes.
_ROW_BYTES = 64
_PYTHON_TEXT = {str, type(None)}


def of_numpy(encoder: Encoder, value: Any, path: str, depth: int, numpy: Any) -> list[Any] | None:
    """Return the tag of a scalar, a dtype or an array; None for any other value. Raises `CannotCross`."""
    if isinstance(value, numpy.generic):
        if type(value) is not value.dtype.type:
            return None  # of a class of someone's own
        data = value.tobytes() if value.dtype.itemsize else b""  # numpy has bytes for an empty text
        return ["numpy", _descr(value.dtype, path), inline(data)]
    if isinstance(value, numpy.dtype):
        return ["dtype", _descr(value, path)]
    if type(value) is not numpy.ndarray:
        return None
    if not value.size and (spend := encoder.spend(path)) is not None:
        spend(_rows(value.shape) * _ROW_BYTES)
    if value.dtype.hasobject:
        return _objects(encoder, value, path, depth, numpy)
    descr = _descr(value.dtype, path)
    if _has_no_width(value.dtype):
        raise CannotCross(path, f"an array of dtype {value.dtype}, whose items take no bytes")
    return ["ndarray", descr, list(value.shape), encoder.content(bytes_of(value, numpy))]


def _objects(encoder: Encoder, value: Any, path: str, depth: int, numpy: Any) -> list[Any]:
    """Return an array of Python objects: Arrow's text where it holds nothing else, else item by item."""
    if value.dtype.kind != "O" or value.dtype.metadata:
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

    if dtype.hasobject or not _is_plain(dtype):
        raise CannotCross(path, f"the dtype {dtype}")
    try:
        with warnings.catch_warnings(action="ignore"):  # of metadata, which is refused below
            descr = npy.dtype_to_descr(dtype)
        if not _is_same(npy.descr_to_dtype(descr), dtype):
            raise ValueError
    except (ValueError, TypeError):
        raise CannotCross(
            path, f"the dtype {str(dtype)[:200]}, whose metadata, alignment or offsets would be lost"
        ) from None
    return descr


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two dtypes are equal in what numpy does not compare too: metadata, alignment, scalars' class."""
    if one != other or one.type is not other.type or one.isalignedstruct != other.isalignedstruct:
        return False
    if bool(one.metadata) or bool(other.metadata):
        return False
    if other.subdtype is not None:
        return _is_same(one.subdtype[0], other.subdtype[0])
    return all(_is_same(one[name], other[name]) for name in other.names or ())


def _leaves(dtype: Any) -> Iterator[Any]:
    """Yield the dtypes of a dtype's fields, and of theirs; of one without fields that itself."""
    if dtype.subdtype is not None:
        yield from _leaves(dtype.subdtype[0])
    elif dtype.names is not None:
        for name in dtype.names:
            yield from _leaves(dtype[name])
    else:
        yield dtype


def _is_plain(dtype: Any) -> bool:
    return all(leaf.kind in "biufcmMSUV" for leaf in _leaves(dtype))


def _has_no_width(dtype: Any) -> bool:
    """Return whether items or fields of a dtype take no bytes, so that any number of them could be said to be there."""
    return not dtype.itemsize or any(not leaf.itemsize for leaf in _leaves(dtype))


def _rows(shape: Sequence[int]) -> int:
    """Return how many empty rows an array without items has."""
    return math.prod(itertools.takewhile(bool, shape)) if 0 in shape else 0


def _dtype(descr: Any) -> Any:
    from numpy.lib import format as npy

    dtype = npy.descr_to_dtype(_tuples(descr))
    if dtype.hasobject or not _is_plain(dtype):
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
    dtype = _dtype(descr)
    if dtype.subdtype is not None or _has_no_width(dtype):
        raise BadValue(f"an array of dtype {dtype}"[:300])
    _check_shape(decoder, shape)
    return array_of(dtype, shape, decoder.content(reference))


def vector(data: Any, descr: str) -> Any:
    """Return the array of one dimension that these bytes are. Raises `BadValue`."""
    import numpy

    dtype = numpy.dtype(descr)
    return array_of(dtype, [len(data) // dtype.itemsize], data)


def array_of(dtype: Any, shape: Sequence[int], data: Any) -> Any:
    """Return the array of these bytes. Raises `BadValue`."""
    import numpy

    if math.prod(shape) * dtype.itemsize != len(data):
        raise BadValue(f"{len(data):,} bytes for an array of {shape} {dtype}"[:300])
    if not len(data):
        return numpy.empty(shape, dtype)
    if type(data) is bytes:
        data = bytearray(data)  # what comes inline may be written to, as what comes by memory may
    found = numpy.frombuffer(data, dtype).reshape(shape)
    _check_items(found, numpy)
    return found


def _check_items(values: Any, numpy: Any) -> None:
    """Raise `BadValue` for items of which numpy would make something wrong, or nothing."""
    dtype = values.dtype
    if dtype.names is not None:
        for name in dtype.names:
            _check_items(values[name], numpy)
    elif dtype.kind == "b" and values.view(numpy.uint8).max() > 1:
        raise BadValue("a truth value that is neither 0 nor 1")
    elif dtype.kind == "U" and dtype.itemsize:
        points = numpy.ascontiguousarray(values).view(numpy.dtype("u4").newbyteorder(dtype.byteorder))
        if points.max() > sys.maxunicode:
            raise BadValue("a text with characters that are none")


def _check_shape(decoder: Decoder, shape: Any) -> None:
    if type(shape) is not list or len(shape) > DIMENSIONS_MAX:
        raise BadValue("a wrong shape")
    if not all(type(size) is int and 0 <= size < 2**62 for size in shape) or math.prod(shape) >= 2**62:
        raise BadValue("a wrong shape")
    decoder.take(_rows(shape) * _ROW_BYTES)


def _filled(decoder: Decoder, shape: Any, items: list[Any]) -> Any:
    import numpy

    _check_shape(decoder, shape)
    if math.prod(shape) != len(items):
        raise BadValue(f"{len(items):,} items for an array of {shape}")
    flat = numpy.empty(len(items), object)
    for position, item in enumerate(items):  # one by one: numpy would look into items that are sequences
        flat[position] = item
    return flat.reshape(shape)


def _scalar(decoder: Decoder, descr: Any, text: Any) -> Any:
    dtype = _dtype(descr)
    if dtype.subdtype is not None or (_has_no_width(dtype) and dtype.names is not None):
        raise BadValue(f"a scalar of dtype {dtype}"[:300])
    return array_of(dtype, [1], decoder.content(text))[0]


def _texts(decoder: Decoder, shape: Any, reference: Any) -> Any:
    column = arrow_streams.column(decoder.content(reference), decoder.spend)
    if str(column.type) != "large_string":
        raise BadValue(f"texts of Arrow's type {column.type}"[:300])
    return _filled(decoder, shape, column.to_pylist())


DECODERS: dict[str, Callable[..., Any]] = {
    "numpy": _scalar,
    "dtype": lambda _, descr: _dtype(descr),
    "ndarray": ndarray,
    "objects": lambda decoder, shape, items: _filled(decoder, shape, [decoder.item(item) for item in items]),
    "texts": _texts,
}
