"""Exact encoding of what numpy, pandas and Arrow hold.

An array's contents are its bytes as they lie in memory, in C order. Text, masked and Arrow columns are Arrow IPC
streams. Never pickle. Decoding checks lengths, types and offsets before anything is built on them, because the bytes
may be a worker's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from healkit.values import arrow_streams, numpy_arrays, pandas_arrays
from healkit.values.decoder import zone_of
from healkit.values.encoder import zone_parts
from healkit.values.pandas_arrays import array, checked_unit, is_extension_array
from healkit.values.plain import BadValue, CannotCross

if TYPE_CHECKING:
    from healkit.values.decoder import Decoder
    from healkit.values.encoder import Encoder

#: Limit of the columns of a frame.
COLUMNS_MAX = 100_000


def encoded(encoder: Encoder, value: Any, path: str, depth: int) -> Any:
    """Return the tag of a value of numpy, pandas or Arrow; None for any other. Raises `CannotCross`."""
    kind = type(value)
    package, name = kind.__module__.partition(".")[0], kind.__name__
    numpy = sys.modules.get("numpy")
    if numpy is not None and (parts := numpy_arrays.of_numpy(encoder, value, path, depth, numpy)) is not None:
        return {"@": parts}
    if package == "pandas" and name in _PANDAS:
        return {"@": [name, *_PANDAS[name](encoder, value, path, depth + 2)]}
    if package == "pandas" and is_extension_array(value):
        return array(encoder, value, path, depth)
    if package == "pyarrow" and name in {"Table", "RecordBatch"}:
        return {"@": [name, encoder.content(arrow_streams.written(value, path))]}
    if package == "polars" and name == "DataFrame":
        return {"@": ["polars", encoder.content(arrow_streams.written(value.to_arrow(), path))]}
    if hasattr(value, "__arrow_c_stream__") and not _is_frame(value):
        import pyarrow as pa

        encoder.note(path, f"{name} arrives as a pyarrow Table")
        return {"@": ["Table", encoder.content(arrow_streams.written(pa.table(value), path))]}
    return None


def _is_frame(value: Any) -> bool:
    """Return whether it is a frame of pandas or polars, of a class that was not recognised: a subclass."""
    return any(base.__module__.partition(".")[0] in {"pandas", "polars"} for base in type(value).__mro__)


def is_array(value: Any) -> bool:
    """Return whether a value of pandas is an index or an array."""
    return (type(value).__name__ in _PANDAS or is_extension_array(value)) and hasattr(value, "__len__")


def _values_of(labelled: Any) -> Any:
    """Return the values of a Series or an Index as numpy's array, or pandas' own where numpy has no such dtype."""
    numpy = sys.modules["numpy"]
    return labelled.to_numpy(copy=False) if isinstance(labelled.dtype, numpy.dtype) else labelled.array


def _index(encoder: Encoder, index: Any, path: str, depth: int) -> list[Any]:
    values = array(encoder, _values_of(index), path, depth)
    freq = (
        getattr(index, "freqstr", None)
        if type(index).__name__ in {"DatetimeIndex", "TimedeltaIndex"}
        else None
    )
    return [values, encoder.item(index.name, f"{path} name", depth), freq]


def _index_of(decoder: Decoder, values: Any, name: Any, freq: Any) -> Any:
    import pandas as pd

    found = decoder.item(values)
    index = pd.Index(found, dtype=found.dtype, name=decoder.item(name), copy=False, tupleize_cols=False)
    if freq is not None:
        index.freq = freq
    return index


def _levels(encoder: Encoder, index: Any, path: str, depth: int) -> list[Any]:
    return [
        [
            encoder.item(level.rename(None), f"{path} level {i}", depth + 1)
            for i, level in enumerate(index.levels)
        ],
        [encoder.item(codes, path, depth + 1) for codes in index.codes],
        encoder.items(index.names, f"{path} names", depth + 1),
    ]


def _levels_of(decoder: Decoder, levels: Any, codes: Any, names: Any) -> Any:
    import pandas as pd

    return pd.MultiIndex(
        [decoder.item(level) for level in levels], [decoder.item(one) for one in codes],
        names=decoder.item(names), verify_integrity=True,
    )  # fmt: skip


def _series(encoder: Encoder, series: Any, path: str, depth: int) -> list[Any]:
    return [
        array(encoder, _values_of(series), path, depth),
        encoder.item(series.index, f"{path} index", depth),
        encoder.item(series.name, f"{path} name", depth),
        encoder.item(dict(series.attrs), f"{path} attrs", depth),
    ]


def _series_of(decoder: Decoder, values: Any, index: Any, name: Any, attrs: Any) -> Any:
    import pandas as pd

    found = decoder.item(values)
    series = pd.Series(found, decoder.item(index), found.dtype, decoder.item(name), copy=False)
    series.attrs = decoder.item(attrs)
    return series


def _frame(encoder: Encoder, frame: Any, path: str, depth: int) -> list[Any]:
    columns = [
        array(encoder, _values_of(column), f"{path} column {label(name)}", depth + 1)
        for name, column in frame.items()
    ]
    return [
        columns,
        encoder.item(frame.index, f"{path} index", depth),
        encoder.item(frame.columns, f"{path} columns", depth),
        encoder.item(dict(frame.attrs), f"{path} attrs", depth),
    ]


def label(name: Any) -> str:
    """Return a column's name for a path; the class of one whose own code would have to run."""
    return repr(name)[:100] if type(name) in {str, int, float, bool} else type(name).__name__


def _frame_of(decoder: Decoder, columns: Any, index: Any, labels: Any, attrs: Any) -> Any:
    import pandas as pd

    if len(columns) > COLUMNS_MAX:
        raise BadValue(f"more than {COLUMNS_MAX:,} columns")
    rows, names = decoder.item(index), decoder.item(labels)
    found = [decoder.item(column) for column in columns]
    if len(names) != len(found) or any(len(column) != len(rows) or column.ndim != 1 for column in found):
        raise BadValue("columns of different lengths")
    # Numbers keep their dtype in a frame; of other arrays a series keeps it.
    series = {
        i: column if column.dtype.kind in "biufc" else pd.Series(column, rows, column.dtype, copy=False)
        for i, column in enumerate(found)
    }
    frame = pd.DataFrame(series, rows, copy=False)
    frame.columns = names
    frame.attrs = decoder.item(attrs)
    return frame


def _timestamp(_encoder: Encoder, value: Any, path: str, _depth: int) -> list[Any]:
    if value.fold and not value.tz:
        raise CannotCross(path, "a Timestamp with fold and no time zone")
    return [value._value, value.unit, zone_parts(value.tz, path)]


def _timestamp_of(_: Decoder, count: Any, unit: Any, zone: Any) -> Any:
    import pandas as pd

    found = pd.Timestamp(count, unit=checked_unit(unit), tz="UTC" if zone else None).as_unit(unit)
    return found.tz_convert(zone_of(*zone)) if zone else found


def _timedelta_of(_: Decoder, count: Any, unit: Any) -> Any:
    import pandas as pd

    return pd.Timedelta(count, unit=checked_unit(unit)).as_unit(unit)


def _interval_of(decoder: Decoder, left: Any, right: Any, closed: Any) -> Any:
    import pandas as pd

    return pd.Interval(decoder.item(left), decoder.item(right), closed)


def _nothing(_encoder: Encoder, _value: Any, _path: str, _depth: int) -> list[Any]:
    return []


#: pandas' classes: name → what its tag holds.
_PANDAS: dict[str, Callable[[Any, Any, str, int], list[Any]]] = {
    "DataFrame": _frame,
    "Series": _series,
    "Index": _index, "DatetimeIndex": _index, "TimedeltaIndex": _index, "PeriodIndex": _index,
    "CategoricalIndex": _index, "IntervalIndex": _index,
    "MultiIndex": _levels,
    "RangeIndex": lambda encoder, index, path, depth: [
        index.start, index.stop, index.step, encoder.item(index.name, f"{path} name", depth),
    ],
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


def _table(decoder: Decoder, reference: Any) -> Any:
    return arrow_streams.read(decoder.content(reference))


def _polars(decoder: Decoder, reference: Any) -> Any:
    import polars

    return polars.from_arrow(_table(decoder, reference))


DECODERS: dict[str, Callable[..., Any]] = {
    **numpy_arrays.DECODERS,
    **pandas_arrays.DECODERS,
    **dict.fromkeys(
        ("Index", "DatetimeIndex", "TimedeltaIndex", "PeriodIndex", "CategoricalIndex", "IntervalIndex"), _index_of
    ),
    "MultiIndex": _levels_of,
    "RangeIndex": lambda decoder, start, stop, step, name: _pandas().RangeIndex(
        start, stop, step, name=decoder.item(name)
    ),
    "Series": _series_of,
    "DataFrame": _frame_of,
    "Timestamp": _timestamp_of,
    "Timedelta": _timedelta_of,
    "Period": lambda _, ordinal, freq: _pandas().Period(ordinal=ordinal, freq=str(freq)),
    "Interval": _interval_of,
    "NaTType": lambda _: _pandas().NaT,
    "NAType": lambda _: _pandas().NA,
    "Table": _table,
    "RecordBatch": lambda decoder, reference: arrow_streams.batch(decoder.content(reference)),
    "polars": _polars,
}  # fmt: skip
