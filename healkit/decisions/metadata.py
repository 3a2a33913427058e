"""Metadata of views: counts and types, no values.

Types come from a closed list: the text of a dtype can hold data, such as the field names of a struct.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas as pd

from healkit.contracts.decisions import ColumnFacts, ViewFacts
from healkit.decisions.labels import KnownNames
from healkit.sanitizer.cleaner import Cleaner

#: Columns of a view that are listed, and distinct values of a shared column.
COLUMNS_MAX, VALUES_MAX = 200, 100
#: Rows from which columns are counted in threads, and the most threads: each may hold a table of distinct values.
THREADS_FROM_ROWS, THREADS_MAX = 200_000, 4
_KINDS = ("period", "interval", "Sparse", "list", "struct", "decimal")
_DTYPE = re.compile(
    r"(u?int\d{1,2}|float\d{1,3}|complex\d{1,3}|bool|boolean|object|str|string|category|double|date32|timestamp)"
    r"|(datetime64|timedelta64)\[(s|ms|us|ns)\]",
    re.IGNORECASE,
)

#: Nulls of a column, and its distinct values; None where they cannot be compared.
Counts = tuple[int, int | None]


def as_frame(value: Any) -> pd.DataFrame | None:
    """Return a table of any library as a DataFrame, for its facts; None for what is no table."""
    if isinstance(value, pd.DataFrame):
        return value
    if isinstance(value, pd.Series):
        return value.to_frame()
    package = type(value).__module__.partition(".")[0]
    if package in {"pyarrow", "polars"} and hasattr(value, "to_pandas"):
        found = value.to_pandas()
        return found if isinstance(found, pd.DataFrame) else pd.DataFrame(found)
    return None


def dtype_word(dtype: Any) -> str:
    """Return a word of a closed list for a dtype."""
    text = str(dtype).removesuffix("[pyarrow]")
    if _DTYPE.fullmatch(text):
        return text
    if text.startswith("datetime64"):
        return "datetime64, with time zone"
    return next((word for word in _KINDS if text.startswith(word)), "other")


def is_text(column: pd.Series[Any]) -> bool:
    """Return True for a column that may hold texts."""
    dtype = column.dtype
    may_be = (pd.api.types.is_object_dtype, pd.api.types.is_string_dtype)
    return isinstance(dtype, pd.CategoricalDtype) or any(is_so(dtype) for is_so in may_be)


def distinct_values(column: pd.Series[Any]) -> list[Any] | None:
    """Return the distinct values without nulls; None where they cannot be compared."""
    try:
        return column.drop_duplicates().dropna().tolist()
    except TypeError:
        return None


def values_among(frames: Iterable[pd.DataFrame], words: Collection[Any]) -> set[Any]:
    """Return those words that a text column of the frames holds as a value."""
    wanted = {word for word in words if isinstance(word, str)}
    found: set[Any] = set()
    for frame in frames:
        for position in range(len(frame.columns)):
            column = frame.iloc[:, position]
            left = wanted - found
            if not left:
                return found
            if is_text(column):
                found |= _held(column, left)
    return found


def _held(column: pd.Series[Any], words: set[str]) -> set[Any]:
    try:
        return set(column[column.isin(list(words))].unique().tolist())
    except TypeError:  # a cell that cannot be hashed
        return {value for value in column if isinstance(value, str) and value in words}


def facts_of(
    name: str,
    frame: pd.DataFrame,
    names: KnownNames,
    shared: Collection[str],
    cleaner: Cleaner,
    counts: Sequence[Counts] | None = None,
) -> ViewFacts:
    """Return what a chooser may be told of a view; counts: those of `counts_of`, where they are known already."""
    columns = []
    seen: set[Any] = set()
    for position, (nulls, distinct) in enumerate(counts_of(frame) if counts is None else counts):
        label, column = frame.columns[position], frame.iloc[:, position]
        told = names.knows(label) and label not in seen
        seen.add(label)
        columns.append(
            ColumnFacts(
                name=label if told else names.number(name, position + 1, label),
                dtype=dtype_word(column.dtype),
                nulls=nulls,
                distinct=distinct,
                numbered=not told,
                values=_shared(column, cleaner) if told and label in shared else None,
            )
        )
    left_out = len(frame.columns) - len(columns)
    numbered = sum(column.numbered for column in columns)
    return ViewFacts(name, len(frame), len(frame.columns), columns, left_out, numbered)


def counts_of(frame: pd.DataFrame) -> list[Counts]:
    """Count each listed column; those of a long frame in threads, as pandas counts without the GIL."""
    columns = [frame.iloc[:, position] for position in range(min(len(frame.columns), COLUMNS_MAX))]
    if len(frame) < THREADS_FROM_ROWS:
        return [_count(column) for column in columns]
    with ThreadPoolExecutor(min(THREADS_MAX, os.cpu_count() or 1)) as pool:
        return list(pool.map(_count, columns))


def _count(column: pd.Series[Any]) -> Counts:
    nulls = int(column.isna().sum())
    try:
        return nulls, int(column.nunique())
    except (TypeError, ValueError, NotImplementedError):  # lists and structs of Arrow raise the last one
        return nulls, None


def _shared(column: pd.Series[Any], cleaner: Cleaner) -> list[Any]:
    """Return the distinct values of a shared column, without what the sanitiser hides."""
    found = distinct_values(column) or []
    plain = [
        value if isinstance(value, str | bool | int | float) else str(value) for value in found[:VALUES_MAX]
    ]
    cleaned = cleaner.clean(plain, limit_bytes=1 << 20).value
    return cleaned if isinstance(cleaned, list) else []
