"""What an edit does to data, measured where the code runs.

An edited statement runs with `Seen` around its parts: the values that the edit works on, and their results. Tables,
columns and arrays are compared, of any library whose columns pandas can read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from healkit.plain_text import count

#: Larger data is not compared; so many sentences are enough.
_ROWS_MAX, _COLUMNS_MAX, _SENTENCES_MAX = 5_000_000, 200, 5
#: A date whose first two numbers may both be a month.
_DAY_OR_MONTH = re.compile(r"\s*(\d{1,2})[/.-](\d{1,2})[/.-]\d{2,4}\b")
#: Calls whose result has missing or equal values where what they are given has none, as they should.
_MAKES_OTHER = frozenset((
    "shift", "diff", "pct_change", "rolling", "map", "where", "mask", "extract", "unstack", "pivot", "isin", "contains",
    "isna", "notna", "isnull", "notnull", "startswith", "endswith", "between", "duplicated", "eq", "ne", "gt", "lt",
    "ge", "le", "transform", "cut", "qcut", "sign", "clip", "floor", "ceil", "add", "sub", "mul", "div", "truediv",
    "floordiv", "mod", "pow",
    "argsort", "argmin", "argmax", "rank", "value_counts", "count", "nunique", "size", "cumsum",
    "cumprod", "cummax", "cummin", "describe", "agg", "aggregate", "apply", "digitize", "searchsorted",
))  # fmt: skip
_Columns = dict[str, Any]
#: What a sentence says without its numbers: the kind of change, where it is, and the value that it names.
Change = tuple[str, str, str]


class Seen:
    """Records the values of parts of a statement, and says how they differ."""

    def __init__(self) -> None:
        self._operands: dict[int, tuple[str, _Columns, int]] = {}
        self._lost: dict[str, Change] = {}
        self._unsure: dict[str, None] = {}
        self._rows: dict[str, None] = {}

    def operand(self, number: int, value: Any) -> Any:
        """Record a value that the edit works on, the first time, and return it."""
        if number not in self._operands and (columns := _columns_of(value)) is not None:
            snapshot = {name: _as_now(column) for name, column in columns.items()}
            self._operands[number] = (_kind(value), snapshot, _length(columns))
        return value

    def result(self, value: Any, call: str) -> Any:
        """Compare a value that the edit makes with its inputs, and return it.

        call: The call that made it.
        """
        try:
            if call not in _MAKES_OTHER:
                self._compare(value)
        except Exception:  # noqa: BLE001 - columns from elsewhere; leave out what cannot be compared
            return value
        return value

    def sentences(self) -> dict[str, list[str]]:
        """Return sentences on lost data, on ambiguous dates, and on removed rows."""
        lists: dict[str, Iterable[str]] = {"lost": self._lost, "unsure": self._unsure, "rows": self._rows}
        return {name: list(texts)[:_SENTENCES_MAX] for name, texts in lists.items()}

    def made(self, given: Iterable[Any], result: Any, *, known: bool) -> dict[str, Change]:
        """Compare a tool's result with its longest input table or column; return the differences.

        Rows may have another order there, so a column is compared as a whole.

        known: The result is known to be right, so a column of one value is always reported as one.
        """
        tables, after = [table for table in map(_columns_of, given) if table is not None], _columns_of(result)
        if after is None or not tables:
            return {}
        before = max(tables, key=_length)
        length, rows, sums = _length(before), _length(after), sum(map(_length, tables))
        is_alike = before.keys() <= after.keys() or after.keys() <= before.keys()
        if length and not rows:
            self._lost["No row is left."] = ("empty", "", "")
        elif is_alike and rows not in (length, sums):
            message = f"The result has {count(rows, 'row')}, but the table has {length:,}."
            self._lost[message] = ("fewer" if rows < length else "more", "", "")
        if not is_alike and "" in after and getattr(result, "name", None) is not None:
            after = {str(result.name): after[""]}
        gaps = max(int(column.isna().sum()) for columns in tables for column in columns.values())
        for name, column in after.items():
            where, had, present = f" of {name!r}" if name else "", before.get(name), column.dropna()
            missing = rows - len(present)
            if had is not None and rows == length:
                both = (c.sort_values(key=None if _is_number(c) else type(c).isna) for c in (had, column))
                self._compare_columns(where, *both)
            elif rows <= length and missing > gaps:
                self._lost[f"{missing:,} of {rows:,} values{where} are missing."] = ("missing", where, "")
            if had is not None and _is_number(had) and column.map(type).eq(str).any():
                self._lost[f"The numbers{where} become text."] = ("text", where, "")
            if len(present) and (known or (had is None and rows > 2)) and _distinct(present) == 1:
                value = _shown(present.iloc[0])
                self._lost[f"All {rows:,} values{where} are {value}."] = ("constant", where, value)
        return self._lost

    def _compare(self, value: Any) -> None:
        after = _columns_of(value)
        if after is None:
            return
        rows, kind = _length(after), _kind(value)
        for was, before, length in self._operands.values():
            if length and not rows:
                self._lost["No row is left." if was == kind else "No value is left."] = ("empty", "", "")
            if was != kind:
                continue
            if length and not rows:
                continue
            if rows < length and kind != "array":
                verb = "is" if length - rows == 1 else "are"
                self._rows[f"{count(length - rows, 'row')} of {length:,} {verb} left out."] = None
            for name, old_column, new_column in [(n, before[n], after[n]) for n in before if n in after]:
                if rows == length:
                    self._compare_columns(f" of {name!r}" if name else "", old_column, new_column)
                if rows and name and new_column.isna().all() and not old_column.isna().all():
                    self._lost[f"Column {name!r} has no value in any row."] = ("missing", f" of {name!r}", "")

    def _compare_columns(self, where: str, one: Any, other: Any) -> None:
        total = len(one)
        missing = int((other.isna() & ~one.isna().to_numpy()).sum())
        if missing:
            self._lost[f"{missing:,} of {total:,} values{where} become missing."] = ("missing", where, "")
        filled = int((one.isna().to_numpy() & ~other.isna()).sum())
        if filled:
            message = f"{count(filled, 'missing value')}{where} {'is' if filled == 1 else 'are'} filled in."
            self._lost[message] = ("filled", where, "")
        present = other.dropna()
        if total > 1 and not len(present) and missing < total:
            self._lost[f"All {total:,} values{where} become missing."] = ("missing", where, "")
        if len(present) > 1 and _distinct(one) > 1 and _distinct(present) == 1:
            one_value = _shown(present.iloc[0])
            self._lost[f"All {total:,} values{where} become {one_value}."] = ("constant", where, one_value)
        if _is_number(one) and _is_number(other):
            was, now = (column.to_numpy("float64", na_value=float("nan")) for column in (one, other))
            changed = int(((was != now) & (was == was) & (now == now)).sum())  # NaN equals nothing
            whole = "int" in str(other.dtype).lower() and "float" in str(one.dtype).lower()
            if changed and whole:
                message = f"{changed:,} of {total:,} numbers{where} lose their decimals."
                self._lost[message] = ("decimals", where, "")
        if "datetime" in str(other.dtype) and not _is_number(one) and "datetime" not in str(one.dtype):
            texts = [t for t in one.dropna().tolist() if isinstance(t, str)]
            parts = [m for m in map(_DAY_OR_MONTH.match, texts) if m is not None]
            either = [m for m in parts if int(m[1]) <= 12 and int(m[2]) <= 12]
            if len(either) == len(texts) and any(m[1] != m[2] for m in either):
                message = (
                    f"{_shown(texts[0])} may be a day in two different months. No date in the data "
                    "shows whether day or month comes first."
                )
                self._unsure[message] = None


def _columns_of(value: Any) -> _Columns | None:
    """Return the columns of a table, a column or an array as pandas' own; None for anything else."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return None
    if type(value).__module__.partition(".")[0] == "polars" and hasattr(value, "to_pandas"):
        value = value.to_pandas()
    if isinstance(value, pandas.DataFrame):
        if not value.columns.is_unique or len(value.columns) > _COLUMNS_MAX or len(value) > _ROWS_MAX:
            return None
        return {str(name): value[name] for name in value.columns}
    if isinstance(value, pandas.Series | pandas.Index):
        return {"": pandas.Series(value)} if len(value) <= _ROWS_MAX else None
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.ndim == 1 and len(value) <= _ROWS_MAX:
        return {"": pandas.Series(value)}
    return None


def _as_now(column: Any) -> Any:
    """Return a copy of a column that in-place changes do not affect; since pandas 3 a shallow copy suffices."""
    return column.copy(deep=int(sys.modules["pandas"].__version__.partition(".")[0]) < 3)


def _kind(value: Any) -> str:
    return "table" if hasattr(value, "columns") else "column"


def _length(columns: _Columns) -> int:
    return max(map(len, columns.values()), default=0)


def _distinct(column: Any) -> int:
    try:
        return int(column.nunique())
    except TypeError:  # lists and dicts have no hash
        return len(set(map(repr, column)))


def _is_number(column: Any) -> bool:
    return any(word in str(column.dtype).lower() for word in ("int", "float"))


def _shown(value: Any) -> str:
    text = repr(value.item() if hasattr(value, "item") else value)
    return text if len(text) <= 40 else f"{text[:39]}…"
