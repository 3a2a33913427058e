"""Summary of a frame or an array.

Its columns are read one after the other as pandas Series; Arrow and polars columns keep their exact types. Means,
deviations and quantiles are rounded to twelve digits, because the last digits depend on the processor.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import fractions
import math
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types as kinds

from healkit.core.secrets.cleaner import Cleaner
from healkit.core.secrets.secret_names import Secrecy, secrecy_of
from healkit.core.wire.encoding import int_text
from healkit.parts.decide.render_summaries import ShownFrameSummary
from healkit.parts.decide.summary_records import Bound, ColumnSummary, Counted
from healkit.plain_text import one_line

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

#: Of a wider frame, only so many columns are summarised.
COLUMNS_MAX = 1000
#: Characters of a value that are read.
READ_CHARS = 4096
#: Characters of a value or a name that are shown, and of a value that the sanitiser reads.
_SHOWN_CHARS = 80
_ANY_BYTES = 1 << 30


class _Column(NamedTuple):
    name: object
    dtype: str
    series: pd.Series[Any]


class _Source(NamedTuple):
    """Frame as its shape and its columns, which are made one by one."""

    shape: tuple[int, ...]
    columns: Iterator[_Column]


def frame_summary(value: object, cleaner: Cleaner, top: int) -> ShownFrameSummary | None:
    """Return the summary, None for a value of another kind; `top` limits the number of entries in each list."""
    source = _source(value)
    if source is None:
        return None
    columns = [_summary(column, cleaner, top) for column, _ in zip(source.columns, range(COLUMNS_MAX))]  # noqa: B905 - the first ones
    width = source.shape[1] if len(source.shape) == 2 else len(columns)
    return ShownFrameSummary(
        kind=f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"[:_SHOWN_CHARS],
        shape=source.shape,
        nulls=sum(column.nulls for column in columns),
        columns=tuple(columns),
        left_out=max(width - len(columns), 0),
    )


def _summary(column: _Column, cleaner: Cleaner, top: int) -> ColumnSummary:
    """Return the summary of one column, without what the sanitiser hides in its name and its values."""
    facts = column_facts(column.series, top)
    name = column.name if isinstance(column.name, str) else repr(column.name)[:READ_CHARS]
    counted = facts.pop("top", ())
    values = [facts.get("min"), facts.get("max"), *(entry.text for entry in counted)]
    cleaned = [_cleaned(value, name, cleaner) for value in values]
    hidden = [value for value, was in zip(cleaned, values, strict=True) if value != was]
    if hidden and secrecy_of(name) is not Secrecy.NONE:  # short values too: they are as secret as the others
        cleaned = [value if value is None else hidden[0] for value in cleaned]
    low, high, *texts = cleaned
    if low != values[0] or high != values[1]:
        facts = {fact: value for fact, value in facts.items() if fact not in MOMENTS}
    return ColumnSummary(
        one_line(str(cleaner.clean(name).value), _SHOWN_CHARS),
        one_line(str(cleaner.clean(column.dtype[:READ_CHARS]).value), _SHOWN_CHARS),  # it may name categories
        **{**facts, "min": low, "max": high},
        top=tuple(
            Counted(one_line(str(text), _SHOWN_CHARS), entry.count)
            for text, entry in zip(texts, counted, strict=True)
        ),
    )


def _cleaned(value: Bound, name: str, cleaner: Cleaner) -> Bound:
    """Return a value of the column in a form that may be shown."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        return value
    cleaned = cleaner.clean({name: value}, limit_bytes=_ANY_BYTES)
    return next(iter(cleaned.value.values())) if cleaned.hidden else value


# Columns.


def _source(value: object) -> _Source | None:
    """Return the value's columns; None for a value that is neither a frame nor an array."""
    packages = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    if not packages & {"pandas", "numpy", "pyarrow", "polars"} and not hasattr(value, "__arrow_c_stream__"):
        return None

    if isinstance(value, np.ndarray):
        return _of_array(value)
    if isinstance(value, pd.DataFrame):
        positions = range(value.shape[1])
        return _Source(value.shape, (_of_series(value.iloc[:, i], value.columns[i]) for i in positions))
    if isinstance(value, pd.Series | pd.Index):
        series = value if isinstance(value, pd.Series) else value.to_series()
        return _Source(
            value.shape, iter([_of_series(series, "values" if value.name is None else value.name)])
        )
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(value, polars.Series):
        frame = value.to_frame()
        return _Source((frame.height,), _of_polars(frame))
    if polars is not None and isinstance(value, polars.DataFrame):
        return _Source(value.shape, _of_polars(value))
    return _of_arrow(value)


def _of_series(series: pd.Series[Any], name: object) -> _Column:
    return _Column(name, str(series.dtype), series)


def _of_array(array: np.ndarray[Any, Any]) -> _Source:

    dtype = str(array.dtype)
    if isinstance(array, np.matrix):  # whose columns are matrices too
        array = np.asarray(array)
    if array.dtype.names is not None:
        fields = (
            _Column(name, str(array.dtype[name]), pd.Series(array[name].ravel().tolist()))
            for name in array.dtype.names
        )
        return _Source(array.shape, fields)
    if array.dtype.kind == "V":
        array = array.astype(object)
    if array.ndim == 2:
        columns = (_Column(i, dtype, _series(array[:, i])) for i in range(array.shape[1]))
        return _Source(array.shape, columns)
    return _Source(array.shape, iter([_Column("values", dtype, _series(array.ravel()))]))


def _series(items: np.ndarray[Any, Any]) -> pd.Series[Any]:
    """Return an array's items as a series; as Python objects if pandas has no type for them, such as a far year."""
    try:
        return pd.Series(items)
    except (ValueError, OverflowError):
        return pd.Series(items.astype(object), dtype=object)


def _of_polars(frame: pl.DataFrame) -> Iterator[_Column]:
    for series in frame.get_columns():
        yield _Column(series.name or "values", str(series.dtype), _from_polars(series))


def _from_polars(series: pl.Series) -> pd.Series[Any]:
    """Return a column of polars; item by item if Arrow has no type for it, such as Python objects."""
    import pyarrow as pa

    if str(series.dtype) != "Object":  # of these, Arrow gets the addresses
        with contextlib.suppress(pa.ArrowException):
            return _from_arrow(series.to_arrow())
    return pd.Series(series.to_list(), dtype=object)


def _of_arrow(value: object) -> _Source | None:
    import pyarrow as pa

    if isinstance(value, pa.Array | pa.ChunkedArray):
        return _Source((len(value),), iter([_Column("values", str(value.type), _from_arrow(value))]))
    if isinstance(value, pa.Table | pa.RecordBatch):
        table = value
    elif hasattr(value, "__arrow_c_stream__"):
        table = pa.table(value)
    else:
        return None
    fields = list(table.schema)
    columns = (
        _Column(fields[i].name, str(fields[i].type), _from_arrow(table.column(i))) for i in range(len(fields))
    )
    return _Source(table.shape, columns)


def _from_arrow(column: pa.Array | pa.ChunkedArray) -> pd.Series[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pd.Series(pd.arrays.ArrowExtensionArray(column))


# Statistics of one column.

#: Facts that say more of the values than their number.
MOMENTS = frozenset({"mean", "std", "q25", "median", "q75"})
_TYPES_MAX = 5
#: Classes of objects that have an order, and a text that is the same every time.
_ORDERED = (
    int, float, decimal.Decimal, fractions.Fraction, datetime.date, datetime.time, datetime.timedelta, bytes,
)  # fmt: skip
#: Integers of more digits are shown by their number of bits: Python refuses to write them.
_BITS_MAX = 1000


def column_facts(series: pd.Series[Any], top: int) -> dict[str, Any]:
    """Return the fields of a column's summary for its type, except its name and its type."""
    missing = series.isna().to_numpy(bool)
    facts: dict[str, Any] = {"nulls": int(missing.sum())}
    present = series[~missing] if facts["nulls"] else series
    try:
        return facts | _of_type(present, facts["nulls"], top)
    except Exception:  # noqa: BLE001 - types of other packages, which need not have all methods
        return facts


def _of_type(present: pd.Series[Any], nulls: int, top: int) -> dict[str, Any]:
    dtype = present.dtype
    if kinds.is_object_dtype(dtype) or dtype.kind in "cSV":
        return _of_objects(present.astype(object), top)
    if kinds.is_bool_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype):
        return _frequent(present, top)
    if kinds.is_numeric_dtype(dtype):
        return _of_numbers(present, nulls)
    if kinds.is_string_dtype(dtype):
        return _of_texts(present, top)
    return {"distinct": _distinct(present)} | _range(present)


def _of_numbers(present: pd.Series[Any], nulls: int) -> dict[str, Any]:
    values = present.to_numpy(dtype=float, na_value=math.nan)
    missing = np.isnan(values)  # Arrow's floats may be NaN beside null
    if missing.any():
        present, values, nulls = present[~missing], values[~missing], nulls + int(missing.sum())
    facts: dict[str, Any] = {"nulls": nulls, "distinct": _distinct(present)}
    if not len(values):
        return facts
    facts |= {"min": _bound(present.min()), "max": _bound(present.max())}
    with np.errstate(all="ignore"):  # infinite values have no mean and no deviation
        quantiles = np.quantile(values, (0.25, 0.5, 0.75))
        facts |= {"mean": _rounded(values.mean())}
        facts |= {"std": _rounded(values.std(ddof=1)) if len(values) > 1 else None}
    return facts | dict(zip(("q25", "median", "q75"), map(_rounded, quantiles), strict=True))


def _of_texts(present: pd.Series[Any], top: int) -> dict[str, Any]:
    lengths = present.str.len()
    return _lengths(lengths) | _frequent(present, top)


def _of_objects(present: pd.Series[Any], top: int) -> dict[str, Any]:
    """Return a summary of Python objects: their classes, and more if all are texts or all are numbers."""
    names = Counter(type(value).__name__ for value in present)
    facts: dict[str, Any] = {
        "types": tuple(Counted(name[:READ_CHARS], n) for name, n in names.most_common(_TYPES_MAX))
    }
    if set(names) == {"str"}:
        return facts | _of_texts(present, top)
    facts["distinct"] = _distinct(present)
    if len(names) == 1 and isinstance(present.iloc[0], _ORDERED):
        facts |= _range(present)
    return facts


def _lengths(lengths: pd.Series[Any]) -> dict[str, Any]:
    return {"min_chars": int(lengths.min()), "max_chars": int(lengths.max())} if len(lengths) else {}


def _distinct(present: pd.Series[Any]) -> int | None:
    """Return how many different values there are; None if they cannot be compared."""
    try:
        return int(present.nunique())
    except Exception:  # noqa: BLE001 - values of any class, whose own code runs here
        return None


def _frequent(present: pd.Series[Any], top: int) -> dict[str, Any]:
    """Return the most frequent values; values with the same count in the order of the column."""
    counts = present.value_counts(sort=False)
    numbers = counts.to_numpy(dtype=np.int64)
    if isinstance(present.dtype, pd.CategoricalDtype):
        counts, numbers = counts[numbers > 0], numbers[numbers > 0]
    order = np.argsort(-numbers, kind="stable")[:top]
    entries = tuple(Counted(_text(counts.index[at]), int(numbers[at])) for at in order)
    return {"distinct": len(numbers), "top": entries}


def _range(present: pd.Series[Any]) -> dict[str, Any]:
    try:
        return {"min": _bound(present.min()), "max": _bound(present.max())} if len(present) else {}
    except Exception:  # noqa: BLE001 - values of any class, whose own code runs here
        return {}


def _bound(value: object) -> Bound:
    """Return the end of a range as a number, or as text if JSON cannot contain it."""
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = float(value) if value.dtype.kind == "f" else value.item()
    if isinstance(value, int):
        return value if value.bit_length() <= _BITS_MAX else int_text(value, _BITS_MAX)
    if isinstance(value, float) and math.isfinite(value):
        return value
    return _text(value)


def _text(value: object) -> str:
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    text = value if isinstance(value, str) else str(value)
    return text[:READ_CHARS].encode(errors="replace").decode()


def _rounded(value: float) -> float | None:
    return float(f"{value:.12g}") if math.isfinite(value) else None
