"""Arrow IPC streams, written and read.

Only types from an allow-list are written or read, so that whoever gets a table can convert it: Arrow and pandas abort
the process for some others. Everything in a stream is checked when it is read, since it may be a worker's claim. Its
messages are looked at before any of them is decoded: no compression (a few bytes could become any number), no
dictionaries that grow, a bounded schema. Each byte belongs to one buffer only, and the data is validated in full.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from healkit.values.plain import BadValue, CannotCross

#: Limits of a schema: its columns, and the nesting of one.
COLUMNS_MAX, DEPTH_MAX = 100_000, 20
#: Items that take no bytes, such as nulls in a column of nothing else, beside 8 for each byte.
_BARE_MAX = 1_000_000
#: Kinds of messages, as Arrow's Message.fbs numbers them.
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
#: Schemas up to this size are not looked through: they cannot become large.
_SMALL_SCHEMA_BYTES = 16 * 1024
#: Slot of a field's children and kind of a type with a text, as Arrow's Schema.fbs numbers them; a field's least bytes.
_CHILDREN, _TIMESTAMP, _FIELD_BYTES = 5, 10, 8
#: Arrays of pandas that are numbers with a mask.
MASKED_ARRAYS = frozenset({"IntegerArray", "FloatingArray", "BooleanArray"})
#: What an item of a column costs whoever takes it out of the table, at least: a reference.
_ITEM_BYTES = 8

_lib, _types = pa.lib, pa.types
#: Types that cross. All others are refused: Arrow or pandas abort the process for some, and a few bytes of others,
#: such as views and run-ends, become any number.
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
#: Counts what data costs whoever reads it, in bytes; raises where it is too much.
Spend = Callable[[int], None]


def written(table: Any, path: str, spend: Spend | None = None) -> Any:
    """Return a table or a record batch as a stream. Raises `CannotCross` for what `read` would refuse."""
    _check_types(table.schema, lambda why: CannotCross(path, why))
    table.validate(full=True)  # what Arrow itself finds wrong would be refused on the other side
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    data = sink.getvalue()
    columns = table.columns
    bare = sum(map(_bare, columns)) if columns else table.num_rows
    if bare > _BARE_MAX + 8 * data.size:
        raise CannotCross(path, f"{bare:,} items that are nothing but null")
    if spend is not None:
        for column in columns:
            spend(_spread(column))
    return data


def of_array(values: Any, path: str, spend: Spend | None = None) -> Any:
    """Return an array of pandas' as a stream of one column; equal arrays make equal streams."""
    if type(values).__name__ in MASKED_ARRAYS:
        # What lies below a null is none of the value; a NaN beside it is.
        mask = values.isna()
        plain = values.to_numpy(values.dtype.numpy_dtype, na_value=0)
        column = pa.array(plain, mask=mask if mask.any() else None, from_pandas=False)
    else:
        column = pa.array(values, from_pandas=True)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return written(pa.table({"": column}), path, spend)


def of_texts(texts: Iterable[str | None]) -> Any:
    """Return texts as a stream of one column. Raises `UnicodeEncodeError` for a lone surrogate."""
    return written(pa.table({"": pa.array(texts, pa.large_string(), from_pandas=False)}), "$")


def column(data: Any, spend: Spend | None = None) -> Any:
    """Return the one column of a stream, as a chunked array. Raises `BadValue`."""
    table = read(data, spend)
    if table.num_columns != 1:
        raise BadValue(f"{table.num_columns} columns where one was expected")
    return table.column(0)


def batch(data: Any, spend: Spend | None = None) -> Any:
    """Return the one record batch of a stream. Raises `BadValue`."""
    table = read(data, spend)
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    if len(batches) != 1:
        raise BadValue(f"{len(batches)} record batches where one was expected")
    return batches[0]


def read(data: Any, spend: Spend | None = None) -> Any:
    """Return the table of a stream, validated. Raises `BadValue`.

    spend: told what its columns would take if no two items shared what they hold, as those of a dictionary do.
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
            for one in table.columns:
                spend(_spread(one))
    except (pa.ArrowException, OSError, ValueError, struct.error, OverflowError) as error:
        raise (
            error if isinstance(error, BadValue) else BadValue(f"damaged Arrow data: {str(error)[:300]}")
        ) from None
    return table


def _check_types(schema: Any, refusal: Any) -> None:
    if len(schema) > COLUMNS_MAX:
        raise refusal(f"more than {COLUMNS_MAX:,} columns")
    for field in schema:
        _check_type(field.type, f"column {field.name!r}"[:100], refusal, 0)


def _check_type(kind: Any, where: str, refusal: Any, depth: int) -> None:
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


def _takes_bytes(kind: Any) -> bool:
    """Return False for a type whose items take no bytes, as those of a struct without fields."""
    if _types.is_struct(kind):
        return bool(kind.num_fields)
    if _types.is_fixed_size_list(kind):
        return bool(kind.list_size) and not _types.is_null(kind.value_type)
    return not _types.is_fixed_size_binary(kind) or bool(kind.byte_width)


def _check_sizes(table: Any, size: int) -> None:
    """Raise `BadValue` for items without bytes beyond a number."""
    if table.num_rows > _BARE_MAX + 8 * size:
        raise BadValue(f"{table.num_rows:,} rows in {size:,} bytes")
    bare = sum(map(_bare, table.columns))
    if bare > _BARE_MAX + 8 * size:
        raise BadValue(f"{bare:,} rows in {size:,} bytes")


def _bare(column: Any) -> int:
    """Return how many items of a column take no bytes: those of a type that knows null only."""
    kind = column.type
    if not _types.is_null(kind) and not _types.is_nested(kind):
        return 0
    return sum(len(part) for chunk in _chunks(column) for part in _parts(chunk) if _types.is_null(part.type))


def _chunks(column: Any) -> list[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _parts(array: Any) -> Iterator[Any]:
    """Yield an array, and those that it is nested of."""
    yield array
    kind = array.type
    if _types.is_struct(kind):
        inner = [array.field(i) for i in range(kind.num_fields)]
    elif _types.is_map(kind):
        inner = [array.keys, array.items]
    else:
        inner = [array.values] if _types.is_nested(kind) else []
    for one in inner:
        yield from _parts(one)


def _spread(column: Any) -> int:
    """Return what a column would take if no two items shared what they hold, in bytes."""
    kind = column.type
    if not _types.is_nested(kind) and not _types.is_dictionary(kind) and not _types.is_null(kind):
        return max(int(column.nbytes), len(column))
    return sum(_spread_of(part) for chunk in _chunks(column) for part in _parts(chunk))


def _spread_of(array: Any) -> int:
    """Return the same for an array without those that it is nested of."""
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
    """Raise `BadValue` for a message that could become much more than its bytes (flatbuffers of Message.fbs)."""
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
    """Raise `BadValue` for a batch that is compressed, or whose lengths Arrow would abort the process for.

    Each byte of the body belongs to one buffer only, so that a few cannot be read any number of times.
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
    """Return the pairs of numbers that a field's vector holds."""
    if not place:
        return []
    begin = _table_at(data, place)
    count = struct.unpack_from("<I", data, begin)[0]
    return list(struct.iter_unpack("<qq", data[begin + 4 : begin + 4 + 16 * count]))


def _table_at(data: bytes, place: int) -> int:
    """Return where the table begins that a field refers to."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Return where a table's field stands; 0 where it has none."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if vtable < 0:
        raise BadValue("an Arrow message that points outside of itself")
    size = struct.unpack_from("<H", data, vtable)[0]
    slot = 4 + 2 * number
    offset = struct.unpack_from("<H", data, vtable + slot)[0] if slot + 2 <= size else 0
    return table + offset if offset else 0


def _check_schema(data: bytes, schema: int) -> None:
    """Raise `BadValue` for a schema whose parts are referred to more than once: a few could become any number.

    Counted are the bytes that Arrow copies for each reference: a field's, and its names and texts.
    """
    left, waiting = len(data), [(schema, 1, 2)]
    while waiting:
        table, fields_slot, texts_slot = waiting.pop()
        texts = []
        if fields_slot == _CHILDREN:
            texts.append(_field(data, table, 0))
            if data[_field(data, table, 2)] == _TIMESTAMP:
                texts.append(_field(data, _table_at(data, _field(data, table, 3)), 1))
        parts = _vector(data, _field(data, table, texts_slot), left // _FIELD_BYTES)
        texts += [_field(data, pair, slot) for pair in parts for slot in (0, 1)]
        children = _vector(data, _field(data, table, fields_slot), left // _FIELD_BYTES)
        left -= _FIELD_BYTES * (len(parts) + len(children))
        left -= sum(struct.unpack_from("<I", data, _table_at(data, text))[0] for text in texts if text)
        if left < 0:
            raise BadValue("an Arrow schema that refers to its parts more than once")
        waiting += [(child, _CHILDREN, 6) for child in children]


def _vector(data: bytes, place: int, most: int) -> list[int]:
    """Return where the tables begin that a field's vector refers to; of too many, one more than there may be."""
    if not place:
        return []
    begin = _table_at(data, place)
    count = min(struct.unpack_from("<I", data, begin)[0], most + 1)
    return [_table_at(data, begin + 4 + 4 * i) for i in range(count)]
