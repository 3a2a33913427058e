"""Summary of a frame or an array.

Its columns are read one after the other as pandas Series; those of Arrow and polars keep their exact types.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from healkit.contracts.data import Bound, ColumnSummary, Counted
from healkit.plain_text import one_line
from healkit.rendering.summaries import ShownFrameSummary
from healkit.sanitizer.cleaner import Cleaner
from healkit.sanitizer.secret_names import Secrecy, secrecy_of
from healkit.summaries import statistics

if TYPE_CHECKING:
    import pandas as pd

#: Of a wider frame, only so many columns are summarised.
COLUMNS_MAX = 1000
#: Characters of a value or a name that are shown, and of a value that the sanitiser reads.
_SHOWN_CHARS, _READ_CHARS = 80, statistics.READ_CHARS
_ANY_BYTES = 1 << 30


class _Column(NamedTuple):
    name: Any
    dtype: str
    series: pd.Series[Any]


class _Source(NamedTuple):
    """Frame as its shape and its columns, which are made one by one."""

    shape: tuple[int, ...]
    columns: Iterator[_Column]


def summary_of(value: Any, cleaner: Cleaner, top: int) -> ShownFrameSummary | None:
    """Return the summary, None for a value that is no frame; `top` is the number of entries in each list at most."""
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


def _source(value: Any) -> _Source | None:
    """Return the value's columns; None for a value that is no frame and no array."""
    packages = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    if not packages & {"pandas", "numpy", "pyarrow", "polars"} and not hasattr(value, "__arrow_c_stream__"):
        return None
    import numpy as np
    import pandas as pd

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
        value = value.to_frame()
        return _Source((value.height,), _of_polars(value))
    if polars is not None and isinstance(value, polars.DataFrame):
        return _Source(value.shape, _of_polars(value))
    return _of_arrow(value)


def _of_series(series: pd.Series[Any], name: Any) -> _Column:
    return _Column(name, str(series.dtype), series)


def _of_array(array: Any) -> _Source:
    import numpy as np
    import pandas as pd

    dtype = str(array.dtype)
    if isinstance(array, np.matrix):  # whose columns are matrices too
        array = np.asarray(array)
    if array.dtype.names is not None:
        fields = (_of_series(pd.Series(array[name].ravel().tolist()), name) for name in array.dtype.names)
        return _Source(array.shape, (field._replace(dtype=str(array.dtype[field.name])) for field in fields))
    if array.dtype.kind == "V":
        array = array.astype(object)
    if array.ndim == 2:
        columns = (_Column(i, dtype, _series(array[:, i])) for i in range(array.shape[1]))
        return _Source(array.shape, columns)
    return _Source(array.shape, iter([_Column("values", dtype, _series(array.ravel()))]))


def _series(items: Any) -> pd.Series[Any]:
    """Return an array's items as a series; as Python's where pandas has no type for them, such as a far year."""
    import pandas as pd

    try:
        return pd.Series(items)
    except (ValueError, OverflowError):
        return pd.Series(items.astype(object), dtype=object)


def _of_polars(frame: Any) -> Iterator[_Column]:
    for series in frame.get_columns():
        yield _Column(series.name or "values", str(series.dtype), _from_polars(series))


def _from_polars(series: Any) -> pd.Series[Any]:
    """Return a column of polars; one that Arrow has no type for, such as Python objects, item by item."""
    import pandas as pd
    import pyarrow as pa

    if str(series.dtype) != "Object":  # of these, Arrow gets the addresses
        with contextlib.suppress(pa.ArrowException):
            return _from_arrow(series.to_arrow())
    return pd.Series(series.to_list(), dtype=object)


def _of_arrow(value: Any) -> _Source | None:
    import pyarrow as pa

    if isinstance(value, pa.Array | pa.ChunkedArray):
        return _Source((len(value),), iter([_Column("values", str(value.type), _from_arrow(value))]))
    if not isinstance(value, pa.Table | pa.RecordBatch):
        if not hasattr(value, "__arrow_c_stream__"):
            return None
        value = pa.table(value)
    fields = list(value.schema)
    columns = (
        _Column(fields[i].name, str(fields[i].type), _from_arrow(value.column(i))) for i in range(len(fields))
    )
    return _Source(value.shape, columns)


def _from_arrow(column: Any) -> pd.Series[Any]:
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pd.Series(pd.arrays.ArrowExtensionArray(column))


def _summary(column: _Column, cleaner: Cleaner, top: int) -> ColumnSummary:
    """Return the summary of one column, without what the sanitiser hides in its name and its values."""
    facts = statistics.facts_of(column.series, top)
    name = column.name if isinstance(column.name, str) else repr(column.name)[:_READ_CHARS]
    counted = facts.pop("top", ())
    values = [facts.get("min"), facts.get("max"), *(entry.text for entry in counted)]
    cleaned = [_cleaned(value, name, cleaner) for value in values]
    hidden = [value for value, was in zip(cleaned, values, strict=True) if value != was]
    if hidden and secrecy_of(name) is not Secrecy.NONE:  # short values too: they are as secret as the others
        cleaned = [value if value is None else hidden[0] for value in cleaned]
    low, high, *texts = cleaned
    if low != values[0] or high != values[1]:
        facts = {fact: value for fact, value in facts.items() if fact not in statistics.MOMENTS}
    return ColumnSummary(
        one_line(str(cleaner.clean(name).value), _SHOWN_CHARS),
        one_line(
            str(cleaner.clean(column.dtype[:_READ_CHARS]).value), _SHOWN_CHARS
        ),  # it may name categories
        **{**facts, "min": low, "max": high},
        top=tuple(
            Counted(one_line(str(text), _SHOWN_CHARS), entry.count)
            for text, entry in zip(texts, counted, strict=True)
        ),
    )


def _cleaned(value: Bound, name: str, cleaner: Cleaner) -> Bound:
    """Return a value of the column as it may be shown."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        return value
    found = cleaner.clean({name: value}, limit_bytes=_ANY_BYTES)
    return next(iter(found.value.values())) if found.hidden else value
