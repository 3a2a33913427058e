"""Exact encoding of values of numpy, pandas and Arrow.

An array's contents are its bytes in memory, in C order. Text, masked and Arrow columns are Arrow IPC streams. Pickle is
never used. Decoding checks lengths, types and offsets before it builds anything, because a worker may have forged the
bytes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from healkit.core.crossing import arrays
from healkit.core.crossing.arrays import (
    array,
    check_codes,
    checked_unit,
    column_of,
    freq_of,
    index_of,
    is_extension_array,
    is_unique,
    refusing,
    with_freq,
)
from healkit.core.crossing.codec import FRAME, HIDDEN, BadValue, CannotCross, Foreign, zone_of, zone_parts
from healkit.core.wire.encoding import int_text, is_from_library

if TYPE_CHECKING:
    from healkit.core.crossing.codec import Decoder, Encoder


#: Maximum number of columns of a frame.
COLUMNS_MAX = 100_000
#: Memory that a label of a range takes when it is written out, in bytes.
_LABEL_BYTES = 8


def encoded(encoder: Encoder, value: object, path: str, depth: int) -> Any:
    """Return the tag of a value of numpy, pandas or Arrow; None for any other. Raises `CannotCross`."""
    kind = type(value)
    package, name = kind.__module__.partition(".")[0], kind.__name__
    numpy = sys.modules.get("numpy")
    if numpy is not None and (parts := arrays.of_numpy(encoder, value, path, depth, numpy)) is not None:
        return {"@": parts}
    with refusing(path):
        if package == "pandas" and name in _PANDAS:
            return {"@": [name, *_PANDAS[name](encoder, value, path, depth + 2)]}
        if package == "pandas" and is_extension_array(value):
            return _bare_array(encoder, value, path, depth)
        if package == "pyarrow":
            return _table_tag(encoder, name, value, path) if name in {"Table", "RecordBatch"} else None
        if package == "polars" and name == "DataFrame":
            return _table_tag(encoder, "polars", _arrow_of(value, path), path)
        if hasattr(value, "__arrow_c_stream__") and not _is_frame(value):
            import pyarrow as pa

            tag = _table_tag(encoder, "Table", pa.table(value), path)
            encoder.note(path, f"{name} arrives as a pyarrow Table")
            return tag
    return None


def _table_tag(encoder: Encoder, name: str, table: object, path: str) -> Any:
    stream = encoder.stream(lambda file: arrays.written(table, path, encoder.spend(path), file))
    return {"@": [name, stream]}


def _bare_array(encoder: Encoder, values: object, path: str, depth: int) -> Any:
    """Return the tag of a pandas array outside of a frame, including its frequency, which a column does not have."""
    tag = array(encoder, values, path, depth)
    if (freq := freq_of(values, path)) is not None:
        tag["@"].append(freq)
    return tag


def _arrow_of(frame: Foreign, path: str) -> Any:
    """Return a polars frame as an Arrow table. Raises `CannotCross` with the first column that would not survive."""
    import polars as pl

    def comes_back(part: Foreign) -> bool:
        try:
            back = pl.from_arrow(part.clear().to_arrow())
        except BaseException as error:  # of Arrow or polars
            if not is_from_library(error):
                raise
            return False
        return isinstance(back, pl.DataFrame) and repr(back.schema) == repr(part.schema)

    if pl.Object in frame.dtypes or not comes_back(frame):
        for name, dtype in frame.schema.items():
            if dtype == pl.Object or not comes_back(frame.select(name)):
                raise CannotCross(f"{path} column {label(name)}", f"values of dtype {dtype}"[:300])
    return frame.to_arrow()


def _is_frame(value: object) -> bool:
    """Return whether a value belongs to a subclass of a frame of pandas or polars."""
    return any(base.__module__.partition(".")[0] in {"pandas", "polars"} for base in type(value).__mro__)


def is_array(value: object) -> bool:
    """Return whether a pandas value is an index or an array."""
    return (type(value).__name__ in _PANDAS or is_extension_array(value)) and hasattr(value, "__len__")


def _values_of(labelled: Foreign) -> Any:
    """Return the values of a Series or an Index as a numpy array, or as a pandas array if numpy has no such dtype."""
    numpy = sys.modules["numpy"]
    return labelled.to_numpy(copy=False) if isinstance(labelled.dtype, numpy.dtype) else labelled.array


def _index(encoder: Encoder, index: Foreign, path: str, depth: int) -> list[Any]:
    values = array(encoder, _values_of(index), path, depth)
    return [values, encoder.item(index.name, f"{path} name", depth), freq_of(index, path)]


def _index_of(decoder: Decoder, values: object, name: object, freq: object) -> Any:
    import pandas as pd

    column = column_of(decoder, values)
    index = pd.Index(column, dtype=column.dtype, name=decoder.item(name), copy=False, tupleize_cols=False)
    return with_freq(index, freq)


def _range(encoder: Encoder, index: Foreign, path: str, depth: int, *, counted: bool = True) -> list[Any]:
    if counted and (spend := encoder.spend(path)) is not None:
        spend(len(index) * _LABEL_BYTES)
    return [index.start, index.stop, index.step, encoder.item(index.name, f"{path} name", depth)]


def _range_of(
    decoder: Decoder, start: Foreign, stop: Foreign, step: Foreign, name: Foreign, *, counted: bool = True
) -> Any:
    import pandas as pd

    if not all(type(number) is int and abs(number) < 2**62 for number in (start, stop, step)):
        raise BadValue("a range of other numbers than an index has")
    index = pd.RangeIndex(start, stop, step, name=decoder.item(name))
    if counted:
        decoder.take(len(index) * _LABEL_BYTES)
    return index


def _rows(encoder: Encoder, index: object, path: str, depth: int, columns: int) -> Any:
    """Return the tag of a row index; a range beside columns does not count as extra memory."""
    if type(index).__name__ == "RangeIndex" and columns:
        return {"@": ["RangeIndex", *_range(encoder, index, f"{path} index", depth, counted=False)]}
    return encoder.item(index, f"{path} index", depth)


def _rows_of(decoder: Decoder, index: object, columns: int) -> Any:
    tag = index.get("@") if type(index) is dict and columns else None
    if type(tag) is list and tag and tag[0] == "RangeIndex":
        return _range_of(decoder, *tag[1:], counted=False)
    return index_of(decoder, index)


def _levels(encoder: Encoder, index: Foreign, path: str, depth: int) -> list[Any]:
    return [
        [
            encoder.item(level.rename(None), f"{path} level {i}", depth + 1)
            for i, level in enumerate(index.levels)
        ],
        [encoder.item(codes, path, depth + 1) for codes in index.codes],
        encoder.items(index.names, f"{path} names", depth + 1),
    ]


def _levels_of(decoder: Decoder, levels: Foreign, codes: Foreign, names: Foreign) -> Any:
    import pandas as pd

    indexes, places = (
        [index_of(decoder, level) for level in levels],
        [column_of(decoder, column, "i") for column in codes],
    )
    for level, level_codes in zip(indexes, places, strict=True):
        if isinstance(level, pd.MultiIndex) or len(level_codes) != len(places[0]):
            raise BadValue("levels of the wrong form")
        check_codes(decoder, level_codes, level)
    checked = [is_unique(decoder, level) for level in indexes]  # long levels: pandas would hash all items
    names = decoder.item(names)
    return pd.MultiIndex(indexes, places, names=names, verify_integrity=not any(checked))


def _series(encoder: Encoder, series: Foreign, path: str, depth: int) -> list[Any]:
    return [
        array(encoder, _values_of(series), path, depth),
        _rows(encoder, series.index, path, depth, 1),
        encoder.item(series.name, f"{path} name", depth),
        encoder.item(dict(series.attrs), f"{path} attrs", depth),
        *_flags(series),
    ]


def _series_of(
    decoder: Decoder, values: object, index: object, name: object, attrs: object, flags: object = None
) -> Any:
    import pandas as pd

    column, rows = column_of(decoder, values), _rows_of(decoder, index, 1)
    if len(column) != len(rows):
        raise BadValue("an index of another length")
    series = pd.Series(column, rows, column.dtype, decoder.item(name), copy=False)
    series.attrs = decoder.item(attrs)
    return _flagged(decoder, series, flags)


def _flags(labelled: Foreign) -> list[Any]:
    """Return the flags of a frame or a series, if they differ from the default."""
    return [] if labelled.flags.allows_duplicate_labels else [{"allows_duplicate_labels": False}]


def _flagged(decoder: Decoder, labelled: Foreign, flags: Foreign) -> Any:
    if flags is None:
        return labelled
    if flags != {"allows_duplicate_labels": False}:
        raise BadValue("flags that are not known")
    checked = [is_unique(decoder, axis) for axis in labelled.axes if not hasattr(axis, "levels")]
    if any(checked):
        labelled.flags._allows_duplicate_labels = False  # it was checked above
    else:
        labelled.flags.allows_duplicate_labels = False
    return labelled


def _frame(encoder: Encoder, frame: Foreign, path: str, depth: int) -> list[Any]:
    columns = [
        array(encoder, _values_of(column), f"{path} column {label(name)}", depth + 1)
        for name, column in frame.items()
    ]
    return [
        columns,
        _rows(encoder, frame.index, path, depth, len(columns)),
        encoder.item(frame.columns, f"{path} columns", depth),
        encoder.item(dict(frame.attrs), f"{path} attrs", depth),
        *_flags(frame),
    ]


def label(name: object) -> str:
    """Return a column's name for a path; only its class if its `repr` would run foreign code."""
    if type(name) is int:
        return int_text(name)[:100]
    return repr(name)[:100] if type(name) in {str, float, bool} else type(name).__name__


def _frame_of(
    decoder: Decoder, columns: Foreign, index: Foreign, labels: Foreign, attrs: Foreign, flags: Foreign = None
) -> Any:
    import pandas as pd

    if len(columns) > COLUMNS_MAX:
        raise BadValue(f"more than {COLUMNS_MAX:,} columns")
    rows, names = _rows_of(decoder, index, len(columns)), index_of(decoder, labels)
    column_arrays = [column_of(decoder, column) for column in columns]
    if len(names) != len(column_arrays) or any(len(column) != len(rows) for column in column_arrays):
        raise BadValue("columns of different lengths")
    # In a frame, numbers keep their dtype; other arrays keep it in a series.
    series = {
        i: column if column.dtype.kind in "biufc" else pd.Series(column, rows, column.dtype, copy=False)
        for i, column in enumerate(column_arrays)
    }
    frame = pd.DataFrame(series, rows, copy=False)
    frame.columns = names
    frame.attrs = decoder.item(attrs)
    return _flagged(decoder, frame, flags)


def _timestamp(_encoder: Encoder, value: Foreign, path: str, _depth: int) -> list[Any]:
    if value.fold and not value.tz:
        raise CannotCross(path, "a Timestamp with fold and no time zone")
    return [value._value, value.unit, zone_parts(value.tz, path)]


def _timestamp_of(_: Decoder, count: Foreign, unit: Foreign, zone: Foreign) -> Any:
    import pandas as pd

    timestamp = pd.Timestamp(count, unit=checked_unit(unit), tz="UTC" if zone else None).as_unit(unit)
    return timestamp.tz_convert(zone_of(*zone)) if zone else timestamp


def _timedelta_of(_: Decoder, count: Foreign, unit: Foreign) -> Any:
    import pandas as pd

    return pd.Timedelta(count, unit=checked_unit(unit)).as_unit(unit)


def _interval_of(decoder: Decoder, left: Foreign, right: Foreign, closed: Foreign) -> Any:
    import pandas as pd

    return pd.Interval(decoder.item(left), decoder.item(right), closed)


def _nothing(_encoder: Encoder, _value: object, _path: str, _depth: int) -> list[Any]:
    return []


#: Classes of pandas: name → function that makes the content of the tag.
_PANDAS: dict[str, Callable[[Any, Any, str, int], list[Any]]] = {
    "DataFrame": _frame,
    "Series": _series,
    "Index": _index, "DatetimeIndex": _index, "TimedeltaIndex": _index, "PeriodIndex": _index,
    "CategoricalIndex": _index, "IntervalIndex": _index,
    "MultiIndex": _levels,
    "RangeIndex": _range,
    "Timestamp": _timestamp,
    "Timedelta": lambda _encoder, value, _path, _depth: [value._value, value.unit],
    "Period": lambda _encoder, value, _path, _depth: [value.ordinal, value.freqstr],
    "Interval": lambda encoder, value, path, depth: [
        encoder.item(value.left, path, depth), encoder.item(value.right, path, depth), value.closed,
    ],
    "NaTType": _nothing, "NAType": _nothing,
}  # fmt: skip


def _pandas() -> Any:
    import pandas as pd

    return pd


def _table(decoder: Decoder, reference: object) -> Any:
    return arrays.read_table(decoder.content(reference), decoder.spend)


def _polars(decoder: Decoder, reference: object) -> Any:
    import polars

    frame = polars.from_arrow(_table(decoder, reference))
    frame.clear().to_arrow()  # raises if a name is not possible in Arrow, which the frame's readers would need
    return frame


DECODERS: dict[str, Callable[..., Any]] = {
    **arrays.NUMPY_DECODERS,
    **arrays.PANDAS_DECODERS,
    **dict.fromkeys(
        ("Index", "DatetimeIndex", "TimedeltaIndex", "PeriodIndex", "CategoricalIndex", "IntervalIndex"), _index_of
    ),
    "MultiIndex": _levels_of,
    "RangeIndex": _range_of,
    "Series": _series_of,
    "DataFrame": _frame_of,
    "Timestamp": _timestamp_of,
    "Timedelta": _timedelta_of,
    "Period": lambda _, ordinal, freq: _pandas().Period(ordinal=ordinal, freq=str(freq)),
    "Interval": _interval_of,
    "NaTType": lambda _: _pandas().NaT,
    "NAType": lambda _: _pandas().NA,
    "Table": _table,
    "RecordBatch": lambda decoder, reference: arrays.batch(decoder.content(reference), decoder.spend),
    "polars": _polars,
}  # fmt: skip


# Previews of large values for records, and outlines for schemas.


#: A record keeps frames and arrays whole up to this many items; of larger ones, it shows this many rows.
_WHOLE_ITEMS, _PREVIEW_ROWS = 200, 5
#: Maximum length of an item's text in a preview, in characters.
_TEXT_CHARS = 1000
#: Nulls are counted up to this many items while the caller waits; the view of a larger frame has the counts.
_COUNTED_ITEMS = 100_000
_TABLES = {"Table", "RecordBatch", "DataFrame"}


def frame_preview(
    value: Foreign, secret_columns: Callable[[Mapping[str, Sequence[Any]]], Collection[str]] | None = None
) -> dict[str, Any] | None:
    """Return a record's preview of a large frame, array or table; None for a small one, or another value.

    secret_columns: Gets the first values of each column; returns the names of columns to hide.
    """
    if not is_tabular(value) or _is_small(value):
        return None
    name = type(value).__name__
    if name in {"DataFrame", "Series"} and hasattr(value, "iloc"):
        return _frame_preview(value, secret_columns)
    if name in _TABLES:
        return _table_preview(value, secret_columns)
    if name == "ndarray":
        first = value.ravel()[:_PREVIEW_ROWS].tolist()
        return _preview(name, list(value.shape), first, dtype=str(value.dtype))
    return _preview(name, [len(value)], list(value[:_PREVIEW_ROWS]))


def _is_small(value: Foreign) -> bool:
    """Return whether a record keeps a value whole: it has few items, labels and categories, and all of them are short.

    When it is written out, each item repeats the text of its category.
    """
    if max((math.prod(value.shape), *value.shape)) > _WHOLE_ITEMS:
        return False
    if type(value).__module__.partition(".")[0] != "pandas":
        return True
    parts = [value, *getattr(value, "axes", ())]
    dtypes = [*getattr(value, "dtypes", ())] if getattr(value, "ndim", 1) == 2 else []
    dtypes += [getattr(part, "dtype", None) for part in parts]
    shared = [level for part in parts for level in getattr(part, "levels", ())]
    shared += [dtype.categories for dtype in dtypes if hasattr(dtype, "categories")]
    return all(len(labels) <= _WHOLE_ITEMS for labels in shared) and not any(
        isinstance(text, str) and len(text) > _TEXT_CHARS for labels in shared for text in labels
    )


def _cut(item: object) -> Any:
    return item[:_TEXT_CHARS] + "…" if isinstance(item, str) and len(item) > _TEXT_CHARS else item


def outside_of(value: Foreign) -> dict[str, Any]:
    """Return a preview without items: the class and the shape of a value."""
    return _preview(type(value).__name__, [int(size) for size in value.shape], [])


def first_rows(
    frame: Foreign, secret_columns: Callable[[Mapping[str, Sequence[Any]]], Collection[str]], columns: int
) -> tuple[list[str], list[list[Any]]]:
    """Return the first columns of a DataFrame and their first rows, with secret columns hidden as in a preview."""
    frame_preview = _frame_preview(frame.iloc[:_PREVIEW_ROWS, :columns], secret_columns)
    return frame_preview["columns"], frame_preview["first"]


def is_tabular(value: object) -> bool:
    """Return whether a value is a frame, an array, an index or a table."""
    kind = type(value)
    package, name = kind.__module__.partition(".")[0], kind.__name__
    if package == "pandas":
        return name in {"DataFrame", "Series"} or is_array(value)
    return (package, name) == ("numpy", "ndarray") or (package in {"pyarrow", "polars"} and name in _TABLES)


def outline(value: Foreign) -> Any:
    """Return the part of a value for a schema check: a frame's columns, an array's first items; None for others."""
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    if name in {"DataFrame", "Table", "RecordBatch"} and package in {"pandas", "polars", "pyarrow"}:
        names = value.schema.names if package == "pyarrow" else value.columns
        return {FRAME: True, "columns": list(names)}
    if package == "pandas" and hasattr(value, "tolist"):
        return value[:_PREVIEW_ROWS].tolist()
    return (
        value.ravel()[:_PREVIEW_ROWS].tolist()
        if package == "numpy" and name == "ndarray" and value.ndim
        else None
    )


def _preview(name: str, shape: list[int], first: list[Any], **more: object) -> dict[str, Any]:
    return {"type": name, "shape": shape, **more, "first": list(map(_cut, first))}


def _frame_preview(value: Foreign, secret_columns: Foreign) -> dict[str, Any]:
    table = value.to_frame() if value.ndim == 1 else value
    columns = [label(name) if type(name) is not str else name for name in table.columns]
    counted = {"nulls": table.isna().sum().tolist()} if table.size <= _COUNTED_ITEMS else {}
    first = [column.tolist() for _, column in table.iloc[:_PREVIEW_ROWS].items()]
    return {
        "type": type(value).__name__, "shape": list(value.shape), "columns": columns,
        "dtypes": [str(dtype) for dtype in table.dtypes], **counted,
        "first": _first_rows(columns, first, secret_columns),
    }  # fmt: skip


def _table_preview(value: Foreign, secret_columns: Foreign) -> dict[str, Any]:
    head = value.slice(0, _PREVIEW_ROWS)
    if hasattr(value, "num_rows"):
        columns, types = value.schema.names, [str(field.type) for field in value.schema]
        first = [head.column(i).to_pylist() for i in range(len(columns))]
        nulls = [value.column(i).null_count for i in range(len(columns))]
    else:
        columns, types = value.columns, [str(dtype) for dtype in value.dtypes]
        first = [column.to_list() for column in head.get_columns()]
        nulls = list(value.null_count().row(0))
    return {
        "type": type(value).__name__, "shape": list(value.shape), "columns": columns, "dtypes": types,
        "nulls": nulls, "first": _first_rows(columns, first, secret_columns),
    }  # fmt: skip


def _first_rows(columns: list[str], first: list[list[Any]], secret_columns: Foreign) -> list[list[Any]]:
    """Return the first rows, with a placeholder for each value of a secret column."""
    samples = {name: values for name, values in zip(columns, first, strict=True) if values}
    hidden = secret_columns(samples) if secret_columns is not None else ()
    masked = [
        [HIDDEN] * len(values) if name in hidden else list(map(_cut, values))
        for name, values in zip(columns, first, strict=True)
    ]
    return [list(row) for row in zip(*masked, strict=True)]
