"""Exact encoding of arrays: numpy's, pandas', and Arrow's.

The contents of a plain array are its bytes in memory, in C order. Text, masked and Arrow arrays of pandas are Arrow IPC
streams. Times, periods, intervals and categories are made of simpler arrays.

Streams contain only types from an allow-list, so that every reader can convert the table: for some other types, Arrow
and pandas abort the process. Lengths, shapes, dtypes and everything in a stream are checked on reading, because a
worker may have forged them. The messages of a stream are checked before any of them is decoded. Compression is refused,
since a few bytes could expand without limit; so are dictionaries that grow, and large schemas. Each byte belongs to one
buffer only, and all data is validated.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import struct
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from healkit.core.crossing.codec import BadValue, CannotCross, Foreign, inline, zone_of, zone_parts
from healkit.core.wire.encoding import is_from_library

if TYPE_CHECKING:
    from healkit.core.crossing.codec import Decoder, Encoder


#: Maximum number of dimensions of an array.
DIMENSIONS_MAX = 32
#: Memory that an empty row of an array without items counts as, in bytes.
_ROW_BYTES = 64
_PYTHON_TEXT = {str, type(None)}


def of_numpy(encoder: Encoder, value: Foreign, path: str, depth: int, numpy: ModuleType) -> list[Any] | None:
    """Return the tag of a scalar, a dtype or an array; None for any other value. Raises `CannotCross`."""
    if isinstance(value, numpy.generic):
        if type(value) is not value.dtype.type:
            return None  # of a subclass
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


def _objects(encoder: Encoder, value: Foreign, path: str, depth: int, numpy: ModuleType) -> list[Any]:
    """Return the tag of an array of Python objects: Arrow text if it only contains texts, else item by item."""
    if value.dtype.kind != "O" or value.dtype.metadata:
        raise CannotCross(path, f"an array of dtype {value.dtype}")
    flat = value.ravel()
    if len(flat) and set(map(type, flat)) <= _PYTHON_TEXT:
        try:
            return ["texts", list(value.shape), encoder.content(of_texts(flat))]
        except UnicodeEncodeError:
            pass  # a lone surrogate
    places = numpy.ndindex(value.shape)
    items = [
        encoder.item(item, f"{path}[{', '.join(map(str, place))}]", depth + 3)
        for place, item in zip(places, flat, strict=True)
    ]
    return ["objects", list(value.shape), items]


def bytes_of(value: Foreign, numpy: ModuleType) -> Any:
    """Return an array's bytes in C order, without a copy if they already are in that order."""
    if not value.size or not value.itemsize:
        return b""
    return memoryview(numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8))


def _descr(dtype: Foreign, path: str) -> Any:
    """Return a dtype in the form of numpy's file format; raise `CannotCross` for a dtype without such a form."""
    from numpy.lib import format as npy

    if dtype.hasobject or not _is_plain(dtype):
        raise CannotCross(path, f"the dtype {dtype}")
    try:
        with warnings.catch_warnings(action="ignore"):  # about metadata, which is refused below
            descr = npy.dtype_to_descr(dtype)
        if not _is_same(npy.descr_to_dtype(descr), dtype):
            raise ValueError
    except (ValueError, TypeError):
        raise CannotCross(
            path, f"the dtype {str(dtype)[:200]}, whose metadata, alignment or offsets would be lost"
        ) from None
    return descr


def _is_same(one: Foreign, other: Foreign) -> bool:
    """Return whether two dtypes are equal, including what numpy does not compare: metadata, alignment, scalar class."""
    if one != other or one.type is not other.type or one.isalignedstruct != other.isalignedstruct:
        return False
    if bool(one.metadata) or bool(other.metadata):
        return False
    if other.subdtype is not None:
        return _is_same(one.subdtype[0], other.subdtype[0])
    return all(_is_same(one[name], other[name]) for name in other.names or ())


def _leaves(dtype: Foreign) -> Iterator[Any]:
    """Yield the dtypes of a dtype's fields, recursively; a dtype without fields yields itself."""
    if dtype.subdtype is not None:
        yield from _leaves(dtype.subdtype[0])
    elif dtype.names is not None:
        for name in dtype.names:
            yield from _leaves(dtype[name])
    else:
        yield dtype


def _is_plain(dtype: object) -> bool:
    return all(leaf.kind in "biufcmMSUV" for leaf in _leaves(dtype))


def _has_no_width(dtype: Foreign) -> bool:
    """Return whether items or fields of a dtype take no bytes, so that any data could claim any number of them."""
    return not dtype.itemsize or any(not leaf.itemsize for leaf in _leaves(dtype))


def _rows(shape: Sequence[int]) -> int:
    """Return the number of empty rows of an array without items."""
    return math.prod(itertools.takewhile(bool, shape)) if 0 in shape else 0


def _dtype(descr: object) -> Any:
    from numpy.lib import format as npy

    dtype = npy.descr_to_dtype(_tuples(descr))
    if dtype.hasobject or not _is_plain(dtype):
        raise BadValue("an array of objects as bytes")
    return dtype


def _tuples(descr: object) -> Any:
    """Restore the tuples in a description that JSON turned into lists: its fields, their titles and shapes."""
    if type(descr) is not list:
        return descr
    if descr and type(descr[0]) is list:
        return [
            tuple(_tuples(part) if i == 1 else _whole(part) for i, part in enumerate(field))
            for field in descr
        ]
    return tuple(_tuples(part) if i == 0 else _whole(part) for i, part in enumerate(descr))


def _whole(part: object) -> Any:
    return tuple(part) if type(part) is list else part


def ndarray(decoder: Decoder, descr: Foreign, shape: Foreign, reference: Foreign) -> Any:
    """Return the array whose bytes `reference` names. Raises `BadValue`."""
    dtype = _dtype(descr)
    if dtype.subdtype is not None or _has_no_width(dtype):
        raise BadValue(f"an array of dtype {dtype}"[:300])
    _check_shape(decoder, shape)
    return array_of(dtype, shape, decoder.content(reference))


def vector(data: Foreign, descr: str) -> Any:
    """Return a one-dimensional array of these bytes. Raises `BadValue`."""
    import numpy

    dtype = numpy.dtype(descr)
    return array_of(dtype, [len(data) // dtype.itemsize], data)


def array_of(dtype: Foreign, shape: Sequence[int], data: Foreign) -> Any:
    """Return the array of these bytes. Raises `BadValue`."""
    import numpy

    if math.prod(shape) * dtype.itemsize != len(data):
        raise BadValue(f"{len(data):,} bytes for an array of {shape} {dtype}"[:300])
    if not len(data):
        return numpy.empty(shape, dtype)
    if type(data) is bytes:
        data = bytearray(data)  # inline data must be writable, as data in memory regions is
    result = numpy.frombuffer(data, dtype).reshape(shape)
    _check_items(result, numpy)
    return result


def _check_items(values: Foreign, numpy: ModuleType) -> None:
    """Raise `BadValue` for bytes that are not valid items of their dtype."""
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


def _check_shape(decoder: Decoder, shape: object) -> None:
    if type(shape) is not list or len(shape) > DIMENSIONS_MAX:
        raise BadValue("a wrong shape")
    if not all(type(size) is int and 0 <= size < 2**62 for size in shape) or math.prod(shape) >= 2**62:
        raise BadValue("a wrong shape")
    decoder.take(_rows(shape) * _ROW_BYTES)


def _filled(decoder: Decoder, shape: Foreign, items: list[Any]) -> Any:
    import numpy

    _check_shape(decoder, shape)
    if math.prod(shape) != len(items):
        raise BadValue(f"{len(items):,} items for an array of {shape}")
    flat = numpy.empty(len(items), object)
    for position, item in enumerate(items):  # one by one, because numpy would unpack items that are sequences
        flat[position] = item
    return flat.reshape(shape)


def _scalar(decoder: Decoder, descr: object, text: object) -> Any:
    dtype = _dtype(descr)
    if dtype.subdtype is not None or (_has_no_width(dtype) and dtype.names is not None):
        raise BadValue(f"a scalar of dtype {dtype}"[:300])
    return array_of(dtype, [1], decoder.content(text))[0]


def _texts(decoder: Decoder, shape: object, reference: object) -> Any:
    column = stream_column(decoder.content(reference), decoder.spend)
    if str(column.type) != "large_string":
        raise BadValue(f"texts of Arrow's type {column.type}"[:300])
    return _filled(decoder, shape, column.to_pylist())


NUMPY_DECODERS: dict[str, Callable[..., Any]] = {
    "numpy": _scalar,
    "dtype": lambda _, descr: _dtype(descr),
    "ndarray": ndarray,
    "objects": lambda decoder, shape, items: _filled(decoder, shape, [decoder.item(item) for item in items]),
    "texts": _texts,
}


# Arrays of pandas, in a column or an index.


def is_extension_array(value: object) -> bool:
    """Return whether a value is an extension array of pandas."""
    return isinstance(value, sys.modules["pandas"].api.extensions.ExtensionArray)


def array(encoder: Encoder, values: object, path: str, depth: int) -> Any:
    """Return the tag of the values of a column or an index: an array of numpy or pandas."""
    with refusing(path):
        return _array(encoder, values, path, depth)


@contextlib.contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turn an exception of a library into `CannotCross`: the value cannot be read, or not be expressed in Arrow."""
    try:
        yield
    except (CannotCross, RecursionError, MemoryError):
        raise
    except BaseException as error:
        if not is_from_library(error):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise CannotCross(path, f"a value that cannot be written ({reason})") from None


def _array(encoder: Encoder, values: Foreign, path: str, depth: int) -> Any:
    kind = type(values).__name__
    if kind == "ndarray":
        return encoder.item(values, path, depth)
    if kind in _ARRAYS:
        return {"@": [kind, *_ARRAYS[kind](encoder, values, path, depth + 2)]}
    dtype = values.dtype
    if kind in MASKED_ARRAYS:
        spec: list[Any] = [dtype.name]
    elif kind in {"StringArray", "ArrowStringArray"}:
        spec = ["string", dtype.storage, "NA" if dtype.na_value is sys.modules["pandas"].NA else "nan"]
    elif kind == "ArrowExtensionArray":
        spec = ["arrow"]
    else:
        raise CannotCross(path, f"values of dtype {dtype}")
    stream = encoder.stream(lambda file: of_array(values, path, encoder.spend(path), file))
    return {"@": ["extension", spec, stream]}


def _extension(decoder: Decoder, spec: Foreign, reference: Foreign) -> Any:
    """Return an array of pandas from its Arrow values."""
    import pandas as pd

    column = stream_column(decoder.content(reference), decoder.spend)
    if spec[0] == "arrow":
        return pd.arrays.ArrowExtensionArray(column)
    dtype: Any
    if spec[0] == "string":
        dtype = pd.StringDtype(spec[1], na_value=pd.NA if spec[2] == "NA" else math.nan)
    elif spec[0] in _MASKED:
        dtype = pd.api.types.pandas_dtype(spec[0])
    else:
        raise BadValue("an unknown dtype")
    if str(column.type) not in _MASKED.get(spec[0], _STRINGS):
        raise BadValue(f"values of Arrow's type {column.type} as {dtype}"[:300])
    if spec[0].startswith("Float"):  # pandas itself would turn NaN into NA
        numpy = sys.modules["numpy"]
        data = numpy.array(column.fill_null(0).to_numpy(), dtype.numpy_dtype, copy=True)
        return pd.arrays.FloatingArray(data, numpy.array(column.is_null().to_numpy(), copy=True))
    return dtype.__from_arrow__(column)


#: Dtype of a masked array → Arrow's type of its values.
_MASKED = {
    **{f"{sign}Int{bits}": {f"{sign.lower()}int{bits}"} for sign in ("", "U") for bits in (8, 16, 32, 64)},
    "Float32": {"float"}, "Float64": {"double"}, "boolean": {"bool"},
}  # fmt: skip
_STRINGS = {"string", "large_string"}


def _moments(encoder: Encoder, values: Foreign, path: str, _depth: int) -> list[Any]:
    numpy = sys.modules["numpy"]
    return [
        encoder.content(bytes_of(values.asi8, numpy)),
        values.unit,
        zone_parts(values.tz, path),
    ]


def _moments_of(
    decoder: Decoder, reference: Foreign, unit: Foreign, zone: Foreign, freq: Foreign = None
) -> Any:
    import pandas as pd

    times = vector(decoder.content(reference), f"<M8[{checked_unit(unit)}]")
    naive: Any = pd.Series(times, copy=False).array
    return with_freq(naive if not zone else naive.tz_localize("UTC").tz_convert(zone_of(*zone)), freq)


def freq_of(values: object, path: str) -> str | None:
    """Return the frequency of an index or an array as text; raise `CannotCross` for a frequency without a name."""
    freq = getattr(values, "freq", None)
    if freq is None or type(values).__name__ not in _WITH_FREQ:
        return None
    try:
        if sys.modules["pandas"].tseries.frequencies.to_offset(freq.freqstr) == freq:
            return str(freq.freqstr)
    except ValueError:
        pass
    raise CannotCross(path, f"a frequency that no text names, {freq!r}"[:300])


def with_freq(values: Foreign, freq: Foreign) -> Any:
    """Return an index or an array with its frequency set; its values must have that frequency."""
    if freq is not None:
        values.freq = freq
    return values


_WITH_FREQ = {"DatetimeIndex", "TimedeltaIndex", "DatetimeArray", "TimedeltaArray"}


def checked_unit(unit: object) -> Any:
    """Return the unit of time; raise `BadValue` if it is not valid."""
    if unit not in {"s", "ms", "us", "ns"}:
        raise BadValue("an unknown unit of time")
    return unit


def _timedeltas_of(decoder: Decoder, values: object, freq: object = None) -> Any:
    import pandas as pd

    return with_freq(pd.Series(column_of(decoder, values, "m"), copy=False).array, freq)


def column_of(decoder: Decoder, values: object, kinds: str = "") -> Any:
    """Return a one-dimensional array of numpy or pandas. Raises `BadValue` for anything else, such as a range."""
    column = decoder.item(values)
    if type(column).__name__ != "ndarray" and not is_extension_array(column):
        raise BadValue("something other than an array of values")
    if column.ndim != 1 or (kinds and column.dtype.kind not in kinds):
        raise BadValue("an array of the wrong kind")
    return column


def index_of(decoder: Decoder, index: object) -> Any:
    """Return an index. Raises `BadValue` for anything else."""
    decoded = decoder.item(index)
    if not isinstance(decoded, sys.modules["pandas"].Index):
        raise BadValue("something other than an index")
    return decoded


def _categories(encoder: Encoder, values: Foreign, path: str, depth: int) -> list[Any]:
    return [
        encoder.item(values.codes, path, depth), encoder.item(values.categories, f"{path} categories", depth),
        bool(values.ordered),
    ]  # fmt: skip


def _categorical(decoder: Decoder, codes: Foreign, categories: Foreign, ordered: Foreign) -> Any:
    import pandas as pd

    code_array, names = column_of(decoder, codes, "i"), index_of(decoder, categories)
    check_codes(decoder, code_array, names)
    dtype = (
        pd.CategoricalDtype._from_fastpath(names, ordered)  # type: ignore[attr-defined]  # pandas' own, without the check
        if is_unique(decoder, names)
        else pd.CategoricalDtype(names, ordered)
    )
    return pd.Categorical.from_codes(code_array, dtype=dtype, validate=True)


def check_codes(decoder: Decoder, codes: Foreign, values: Foreign) -> None:
    """Count the memory of a worker's codes when replaced by their values; raise `BadValue` for an invalid code."""
    numpy = sys.modules["numpy"]
    if decoder.spend is None or not len(codes):
        return
    if codes.max() >= len(values) or codes.min() < -1:
        raise BadValue("codes of values that are not there")
    if values.dtype.kind == "O" or is_extension_array(values.array):
        texts = (len(value) if isinstance(value, str | bytes) else 0 for value in values)
        decoder.take(int(numpy.fromiter((*texts, 0), "i8", len(values) + 1)[codes].sum()))


def is_unique(decoder: Decoder, values: Foreign) -> bool:
    """Return True if a worker's index was checked to be free of duplicates, False if pandas may check it.

    pandas would put the items into a hash table, where those of a worker might all collide. Raises `BadValue` for a
    duplicate or a null.
    """
    if decoder.spend is None or len(values) <= _HASHED_MAX:
        return False
    if values.hasnans:
        raise BadValue("a null among what is to be found by its place")
    if values.dtype.kind in "iufcmM" and not is_extension_array(values.array):
        plain = values.to_numpy(copy=True)
        plain.sort()
        again = bool((plain[1:] == plain[:-1]).any())
    else:
        again = len(set(decoder.each(list(values)))) < len(values)
    if again:
        raise BadValue("the same item twice among what is to be found by its place")
    return True


#: Up to this many items, pandas is always fast.
_HASHED_MAX = 1_000


def _periods(encoder: Encoder, values: Foreign, _path: str, _depth: int) -> list[Any]:
    return [encoder.content(bytes_of(values.asi8, sys.modules["numpy"])), values.freqstr]


def _periods_of(decoder: Decoder, reference: object, freq: object) -> Any:
    import pandas as pd

    ordinals = vector(decoder.content(reference), "<i8")
    return pd.arrays.PeriodArray(ordinals, dtype=pd.PeriodDtype(str(freq)))


def _intervals_of(decoder: Decoder, left: Foreign, right: Foreign, closed: Foreign) -> Any:
    import pandas as pd

    ends = [decoder.item(end) for end in (left, right)]
    if any(isinstance(end, pd.RangeIndex | pd.MultiIndex) or not isinstance(end, pd.Index) for end in ends):
        raise BadValue("intervals between something other than arrays")
    return pd.arrays.IntervalArray.from_arrays(ends[0], ends[1], closed)


def _end(index: object) -> Any:
    """Return one end of intervals as values; a range of pandas is only possible as an index."""
    import pandas as pd

    return pd.Index(index.to_numpy()) if isinstance(index, pd.RangeIndex) else index


#: Arrays of pandas that consist of several parts: class → function that makes the content of the tag.
_ARRAYS: dict[str, Callable[[Any, Any, str, int], list[Any]]] = {
    "DatetimeArray": _moments,
    "TimedeltaArray": lambda encoder, values, path, depth: [encoder.item(values.to_numpy(), path, depth)],
    "Categorical": _categories,
    "PeriodArray": _periods,
    "IntervalArray": lambda encoder, values, path, depth: [
        encoder.item(_end(values.left), path, depth), encoder.item(_end(values.right), path, depth), values.closed,
    ],
}  # fmt: skip

PANDAS_DECODERS: dict[str, Callable[..., Any]] = {
    "extension": _extension,
    "DatetimeArray": _moments_of,
    "TimedeltaArray": _timedeltas_of,
    "Categorical": _categorical,
    "PeriodArray": _periods_of,
    "IntervalArray": _intervals_of,
}


# Arrow IPC streams.


#: Limits of a schema: its number of columns, and their nesting.
COLUMNS_MAX, DEPTH_MAX = 100_000, 20
#: Maximum number of items without bytes, such as nulls in a column of type null, besides 8 for each byte.
_BARE_MAX = 1_000_000
#: Kinds of messages, by their numbers in Arrow's Message.fbs.
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
#: Schemas up to this size are not checked: they cannot expand much.
_SMALL_SCHEMA_BYTES = 16 * 1024
#: Numbers from Arrow's Schema.fbs: the slot of a field's children, the type with a text; and a field's
#: minimum size.
_CHILDREN, _TIMESTAMP, _FIELD_BYTES = 5, 10, 8
#: Arrays of pandas that consist of numbers and a mask.
MASKED_ARRAYS = frozenset({"IntegerArray", "FloatingArray", "BooleanArray"})
#: Minimum memory for an item that a reader takes out of a column: a reference.
_ITEM_BYTES = 8

_lib, _types = pa.lib, pa.types
#: Types that may cross. All others are refused: for some, Arrow or pandas abort the process. Of others, such
#: as views and run-ends, a few bytes expand without limit.
_FLAT = {
    _lib.Type_NA, _lib.Type_BOOL, _lib.Type_UINT8, _lib.Type_UINT16, _lib.Type_UINT32, _lib.Type_UINT64, _lib.Type_INT8,
    _lib.Type_INT16, _lib.Type_INT32, _lib.Type_INT64, _lib.Type_HALF_FLOAT, _lib.Type_FLOAT, _lib.Type_DOUBLE,
    _lib.Type_DECIMAL32, _lib.Type_DECIMAL64, _lib.Type_DECIMAL128, _lib.Type_DECIMAL256, _lib.Type_DATE32,
    _lib.Type_DATE64, _lib.Type_TIME32, _lib.Type_TIME64, _lib.Type_TIMESTAMP, _lib.Type_DURATION,
    _lib.Type_INTERVAL_MONTH_DAY_NANO, _lib.Type_STRING, _lib.Type_LARGE_STRING, _lib.Type_BINARY,
    _lib.Type_LARGE_BINARY, _lib.Type_FIXED_SIZE_BINARY,
}  # fmt: skip
_NESTED = {
    _lib.Type_LIST, _lib.Type_LARGE_LIST, _lib.Type_FIXED_SIZE_LIST, _lib.Type_STRUCT, _lib.Type_MAP,
}  # fmt: skip
_TEXTS = {_lib.Type_STRING, _lib.Type_LARGE_STRING, _lib.Type_BINARY, _lib.Type_LARGE_BINARY}
#: Counts the memory that data takes for its reader, in bytes; raises if it is too much.
Spend = Callable[[int], None]


def written(table: Foreign, path: str, spend: Spend | None = None, file: str | None = None) -> Any:
    """Return a table or a record batch as a stream, or append it to a file and return None.

    Raises `CannotCross` for data that `read_table` would refuse.
    """
    _check_types(table.schema, lambda why: CannotCross(path, why))
    table.validate(full=True)  # the other side would refuse what Arrow itself finds invalid
    data = None
    if file is None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write(table)
        data = sink.getvalue()
        size = data.size
    else:
        with pa.OSFile(file, "ab") as sink:
            begin = sink.tell()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write(table)
            size = sink.tell() - begin
    columns = table.columns
    bare = sum(map(_bare, columns)) if columns else table.num_rows
    if bare > _BARE_MAX + 8 * size:
        raise CannotCross(path, f"{bare:,} items that are nothing but null")
    if spend is not None:
        for column in columns:
            spend(_spread(column))
    return data


def of_array(values: Foreign, path: str, spend: Spend | None = None, file: str | None = None) -> Any:
    """Return a pandas array as a one-column stream, or append it to a file; equal arrays make equal streams."""
    if type(values).__name__ in MASKED_ARRAYS:
        # A NaN is part of the value; the number under a null is not.
        mask = values.isna()
        plain = values.to_numpy(values.dtype.numpy_dtype, na_value=0)
        column = pa.array(plain, mask=mask if mask.any() else None, from_pandas=False)
    else:
        column = pa.array(values, from_pandas=True)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return written(pa.table({"": column}), path, spend, file)


def of_texts(texts: Iterable[str | None]) -> Any:
    """Return texts as a stream of one column. Raises `UnicodeEncodeError` for a lone surrogate."""
    return written(pa.table({"": pa.array(texts, pa.large_string(), from_pandas=False)}), "$")


def stream_column(data: object, spend: Spend | None = None) -> Any:
    """Return the only column of a stream, as a chunked array. Raises `BadValue`."""
    table = read_table(data, spend)
    if table.num_columns != 1:
        raise BadValue(f"{table.num_columns} columns where one was expected")
    return table.column(0)


def batch(data: object, spend: Spend | None = None) -> Any:
    """Return the only record batch of a stream. Raises `BadValue`."""
    table = read_table(data, spend)
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    if len(batches) != 1:
        raise BadValue(f"{len(batches)} record batches where one was expected")
    return batches[0]


def read_table(data: Foreign, spend: Spend | None = None) -> Any:
    """Return the table of a stream, validated. Raises `BadValue`.

    spend: Called with the size of each column in bytes. Shared items, such as those of a dictionary, count each time.
    """
    try:
        for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(data)):
            _check_message(message.metadata.to_pybytes(), 0 if message.body is None else message.body.size)
        reader = pa.ipc.open_stream(pa.py_buffer(data))
        _check_types(reader.schema, BadValue)
        table = reader.read_all()
        _check_sizes(table, len(data))
        table.validate(full=True)
        if spend is not None:
            for column in table.columns:
                spend(_spread(column))
    except (pa.ArrowException, OSError, ValueError, struct.error, OverflowError) as error:
        raise (
            error if isinstance(error, BadValue) else BadValue(f"damaged Arrow data: {str(error)[:300]}")
        ) from None
    return table


def _check_types(schema: Foreign, refusal: Foreign) -> None:
    if len(schema) > COLUMNS_MAX:
        raise refusal(f"more than {COLUMNS_MAX:,} columns")
    for field in schema:
        _check_type(field.type, f"column {field.name!r}"[:100], refusal, 0)


def _check_type(kind: Foreign, where: str, refusal: Foreign, depth: int) -> None:
    if isinstance(kind, pa.BaseExtensionType):
        raise refusal(f"{where} is of Arrow's extension type {kind}"[:300])
    if depth > DEPTH_MAX:
        raise refusal(f"{where} is nested deeper than {DEPTH_MAX} levels")
    if _types.is_dictionary(kind):
        allowed = kind.value_type.id in _FLAT and _takes_bytes(kind.value_type)
    else:
        allowed = kind.id in _FLAT | _NESTED and _takes_bytes(kind)
    if not allowed:
        raise refusal(f"{where} is of Arrow's type {kind}, which does not cross"[:300])
    for i in range(kind.num_fields):
        field = kind.field(i)
        _check_type(field.type, f"{where}, {field.name!r}"[:100], refusal, depth + 1)


def _takes_bytes(kind: Foreign) -> bool:
    """Return False for a type whose items take no bytes, such as a struct without fields."""
    if _types.is_struct(kind):
        return bool(kind.num_fields)
    if _types.is_fixed_size_list(kind):
        return bool(kind.list_size) and not _types.is_null(kind.value_type)
    return not _types.is_fixed_size_binary(kind) or bool(kind.byte_width)


def _check_sizes(table: Foreign, size: int) -> None:
    """Raise `BadValue` for too many items without bytes."""
    if table.num_rows > _BARE_MAX + 8 * size:
        raise BadValue(f"{table.num_rows:,} rows in {size:,} bytes")
    bare = sum(map(_bare, table.columns))
    if bare > _BARE_MAX + 8 * size:
        raise BadValue(f"{bare:,} rows in {size:,} bytes")


def _bare(column: Foreign) -> int:
    """Return the number of items in a column that take no bytes: those of type null."""
    kind = column.type
    if not _types.is_null(kind) and not _types.is_nested(kind):
        return 0
    return sum(len(part) for chunk in _chunks(column) for part in _parts(chunk) if _types.is_null(part.type))


def _chunks(column: object) -> list[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _parts(array: Foreign) -> Iterator[Any]:
    """Yield an array and the arrays nested in it."""
    yield array
    kind = array.type
    if _types.is_struct(kind):
        inner = [array.field(i) for i in range(kind.num_fields)]
    elif _types.is_map(kind):
        inner = [array.keys, array.items]
    else:
        inner = [array.values] if _types.is_nested(kind) else []
    for part in inner:
        yield from _parts(part)


def _spread(column: Foreign) -> int:
    """Return the size of a column without sharing between its items, in bytes."""
    kind = column.type
    if not _types.is_nested(kind) and not _types.is_dictionary(kind) and not _types.is_null(kind):
        return max(int(column.nbytes), len(column))
    return sum(_spread_of(part) for chunk in _chunks(column) for part in _parts(chunk))


def _spread_of(array: Foreign) -> int:
    """Return the size of an array without sharing between its items, without its nested arrays, in bytes."""
    kind, count = array.type, len(array)
    if _types.is_nested(kind) or _types.is_null(kind):
        return count * _ITEM_BYTES
    if not _types.is_dictionary(kind):
        return max(int(array.nbytes), count)
    texts = array.dictionary
    if _types.is_fixed_size_binary(texts.type):
        return count * (_ITEM_BYTES + int(texts.type.byte_width))
    if texts.type.id not in _TEXTS:
        return count * 2 * _ITEM_BYTES
    lengths = pc.binary_length(texts).cast(pa.int64())
    return count * _ITEM_BYTES + (pc.sum(lengths.take(array.indices)).as_py() or 0)


def _check_message(metadata: bytes, body_size: int) -> None:
    """Raise `BadValue` for a message that could expand far beyond its bytes (flatbuffers of Message.fbs)."""
    root = struct.unpack_from("<I", metadata, 0)[0]
    kind_at, header_at = _field(metadata, root, 1), _field(metadata, root, 2)
    if not kind_at or not header_at:
        raise BadValue("an Arrow message without a header")
    kind, header = metadata[kind_at], _table_at(metadata, header_at)
    if kind == _SCHEMA and len(metadata) > _SMALL_SCHEMA_BYTES:
        _check_schema(metadata, header)
    if kind == _DICTIONARY:
        data_at = _field(metadata, header, 1)
        if not data_at:
            raise BadValue("an Arrow dictionary without data")
        grows_at = _field(metadata, header, 2)
        if grows_at and metadata[grows_at]:
            raise BadValue("an Arrow dictionary in parts")
        header = _table_at(metadata, data_at)
    if kind in {_DICTIONARY, _BATCH}:
        _check_batch(metadata, header, body_size)


def _check_batch(data: bytes, batch: int, body_size: int) -> None:
    """Raise `BadValue` for a compressed batch, or for lengths that make Arrow abort the process.

    Each byte of the body may belong to one buffer only, so that a few bytes cannot be read many times.
    """
    if _field(data, batch, 3):
        raise BadValue("a compressed Arrow stream")
    length_at = _field(data, batch, 0)
    length = struct.unpack_from("<q", data, length_at)[0] if length_at else 0
    nodes, buffers = (_pairs(data, _field(data, batch, slot)) for slot in (1, 2))
    if length < 0 or any(not 0 <= nulls <= items <= 2**62 for items, nulls in nodes):
        raise BadValue("an Arrow batch of lengths that cannot be")
    if any(begin < 0 or size < 0 for begin, size in buffers) or sum(size for _, size in buffers) > body_size:
        raise BadValue("an Arrow batch of more bytes than it has")


def _pairs(data: bytes, place: int) -> list[tuple[int, int]]:
    """Return the pairs of numbers in a field's vector."""
    if not place:
        return []
    begin = _table_at(data, place)
    count = struct.unpack_from("<I", data, begin)[0]
    return list(struct.iter_unpack("<qq", data[begin + 4 : begin + 4 + 16 * count]))


def _table_at(data: bytes, place: int) -> int:
    """Return the start of the table that a field refers to."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Return the position of a field in a table; 0 if the table does not have it."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if vtable < 0:
        raise BadValue("an Arrow message that points outside of itself")
    size = struct.unpack_from("<H", data, vtable)[0]
    slot = 4 + 2 * number
    offset = struct.unpack_from("<H", data, vtable + slot)[0] if slot + 2 <= size else 0
    return table + offset if offset else 0


def _check_schema(data: bytes, schema: int) -> None:
    """Raise `BadValue` for a schema with repeated references to its parts: a few bytes could expand without limit.

    It counts the bytes that Arrow copies for each reference: those of a field, its names and its texts.
    """
    budget, waiting = len(data), [(schema, 1, 2)]
    while waiting:
        table, fields_slot, texts_slot = waiting.pop()
        texts = []
        if fields_slot == _CHILDREN:
            texts.append(_field(data, table, 0))
            if data[_field(data, table, 2)] == _TIMESTAMP:
                texts.append(_field(data, _table_at(data, _field(data, table, 3)), 1))
        parts = _vector(data, _field(data, table, texts_slot), budget // _FIELD_BYTES)
        texts += [_field(data, pair, slot) for pair in parts for slot in (0, 1)]
        children = _vector(data, _field(data, table, fields_slot), budget // _FIELD_BYTES)
        budget -= _FIELD_BYTES * (len(parts) + len(children))
        budget -= sum(struct.unpack_from("<I", data, _table_at(data, text))[0] for text in texts if text)
        if budget < 0:
            raise BadValue("an Arrow schema that refers to its parts more than once")
        waiting += [(child, _CHILDREN, 6) for child in children]


def _vector(data: bytes, place: int, most: int) -> list[int]:
    """Return the starts of the tables in a field's vector, at most one more than `most`."""
    if not place:
        return []
    begin = _table_at(data, place)
    count = min(struct.unpack_from("<I", data, begin)[0], most + 1)
    return [_table_at(data, begin + 4 + 4 * i) for i in range(count)]
