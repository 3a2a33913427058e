"""Arrow IPC streams, written and read.

Everything in a stream is checked when it is read, since it may be a worker's claim. Its messages are looked at before
any of them is decoded: no compression (a few bytes could become any number), no extension types, a bounded schema. The
data is validated in full after that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from healkit.values.plain import BadValue, CannotCross

#: Limits of a schema: its columns, and the nesting of one.
COLUMNS_MAX, DEPTH_MAX = 100_000, 20
#: A column that takes no bytes (of nulls) may have this many rows; any other has its length from its bytes.
_EMPTY_ROWS_MAX = 1_000_000
#: Kinds of messages, as Arrow's Message.fbs numbers them.
_DICTIONARY, _BATCH = 2, 3


def written(table: Any, path: str) -> Any:
    """Return a table or a record batch as a stream. Raises `CannotCross` for what `read` would refuse."""
    _check_types(table.schema, lambda why: CannotCross(path, why))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return sink.getvalue()


def of_array(values: Any, path: str) -> Any:
    """Return an array of pandas' as a stream of one column; equal arrays make equal streams."""
    masked = type(values).__name__ in {"IntegerArray", "FloatingArray", "BooleanArray"}
    if masked and values.isna().any():  # what lies below a null is none of the value
        plain = values.to_numpy(values.dtype.numpy_dtype, na_value=0)
        column = pa.array(plain, mask=values.isna())
    else:
        column = pa.array(values, from_pandas=True)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return written(pa.table({"": column}), path)


def of_texts(texts: Iterable[str | None]) -> Any:
    """Return texts as a stream of one column. Raises `UnicodeEncodeError` for a lone surrogate."""
    return written(pa.table({"": pa.array(texts, pa.large_string(), from_pandas=False)}), "$")


def column(data: Any) -> Any:
    """Return the one column of a stream, as a chunked array. Raises `BadValue`."""
    table = read(data)
    if table.num_columns != 1:
        raise BadValue(f"{table.num_columns} columns where one was expected")
    return table.column(0)


def batch(data: Any) -> Any:
    """Return the one record batch of a stream. Raises `BadValue`."""
    batches = read(data).to_batches()
    if len(batches) != 1:
        raise BadValue(f"{len(batches)} record batches where one was expected")
    return batches[0]


def read(data: Any) -> Any:
    """Return the table of a stream, validated. Raises `BadValue`."""
    try:
        for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(data)):
            if _compressed(message.metadata.to_pybytes()):
                raise BadValue("a compressed Arrow stream")
        reader = pa.ipc.open_stream(pa.py_buffer(data))
        _check_types(reader.schema, BadValue)
        table = reader.read_all()
        if table.num_rows > max(8 * len(data), _EMPTY_ROWS_MAX):
            raise BadValue(f"{table.num_rows:,} rows in {len(data):,} bytes")
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
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
        raise refusal(f"{where} is of Arrow's extension type {kind}")
    if depth > DEPTH_MAX:
        raise refusal(f"{where} is nested deeper than {DEPTH_MAX} levels")
    if pa.types.is_dictionary(kind):
        _check_type(kind.index_type, where, refusal, depth + 1)
        _check_type(kind.value_type, where, refusal, depth + 1)
    for i in range(kind.num_fields):
        _check_type(kind.field(i).type, where, refusal, depth + 1)


def _compressed(metadata: bytes) -> bool:
    """Return whether a message's body is compressed, read off its flatbuffer (Message.fbs of Arrow)."""
    root = struct.unpack_from("<I", metadata, 0)[0]
    kind_at, header_at = _field(metadata, root, 1), _field(metadata, root, 2)
    if not kind_at or not header_at:
        raise BadValue("an Arrow message without a header")
    kind, header = metadata[kind_at], _table_at(metadata, header_at)
    if kind == _DICTIONARY:
        data_at = _field(metadata, header, 1)
        if not data_at:
            raise BadValue("an Arrow dictionary without data")
        header = _table_at(metadata, data_at)
    return kind in {_DICTIONARY, _BATCH} and bool(_field(metadata, header, 3))


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
