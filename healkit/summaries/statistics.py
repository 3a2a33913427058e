"""Statistics of one column.

Means, deviations and quantiles are rounded to twelve digits, because the last ones depend on the processor.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types as kinds

from healkit.contracts.data import Bound, Counted
from healkit.contracts.encoding import int_text

#: Facts that say more of the values than their number.
MOMENTS = frozenset({"mean", "std", "q25", "median", "q75"})
#: Characters of a value that are read.
READ_CHARS = 4096
_TYPES_MAX = 5
#: Classes of objects that have an order, and a text that is the same every time.
_ORDERED = (
    int, float, decimal.Decimal, fractions.Fraction, datetime.date, datetime.time, datetime.timedelta, bytes,
)  # fmt: skip
#: Integers of more digits are shown by their number of bits: Python refuses to write them.
_BITS_MAX = 1000


def facts_of(series: pd.Series[Any], top: int) -> dict[str, Any]:
    """Return the fields of a column's summary that apply to its type, all but its name and its type."""
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
    """Return what can be said of Python objects: their classes, and more where all are texts or all are numbers."""
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
    """Return how many different values there are; None where they cannot be compared."""
    try:
        return int(present.nunique())
    except Exception:  # noqa: BLE001 - values of any class, whose own code runs here
        return None


def _frequent(present: pd.Series[Any], top: int) -> dict[str, Any]:
    """Return the most frequent values; those of one count in the order of the column."""
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


def _bound(value: Any) -> Bound:
    """Return the end of a range: a number as such, unless JSON cannot hold it, else text."""
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = float(value) if value.dtype.kind == "f" else value.item()
    if isinstance(value, int):
        return value if value.bit_length() <= _BITS_MAX else int_text(value, _BITS_MAX)
    if isinstance(value, float) and math.isfinite(value):
        return value
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    text = value if isinstance(value, str) else str(value)
    return text[:READ_CHARS].encode(errors="replace").decode()


def _rounded(value: float) -> float | None:
    return float(f"{value:.12g}") if math.isfinite(value) else None
