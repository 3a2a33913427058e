"""Further frames and arrays for a tool, made from a known one.

Each is the known one with fewer rows, in another order, or with one changed cell: small enough to be shown as a table,
with the same columns and dtypes, so that the tool still takes it. A sample stands for one that is too long to be tried
many times.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator
from typing import Any

from healkit import values

#: Rows and columns that are looked at one by one, and the longest frame that is varied whole.
_ROWS_MAX, _COLUMNS_MAX = 5, 8
_HEAD_ROWS = 30
#: Number of rows of a sample.
_SAMPLE_ROWS = 1000


def frame_variants(kept: dict[str, Any], numbers: tuple[float, ...] = ()) -> list[Any]:
    """Return variants of a kept frame, series or array; none of another value.

    numbers: those that a cell may be at, such as the limits that the code compares with.
    """
    return list(_variants(json.dumps(kept), numbers))


def sample(value: Any, items_max: int) -> Any:
    """Return a long frame, series or array with rows at even distances, the first and the last among them.

    items_max: how many items it may have. Any other value comes back as it is.
    """
    if not _is_known(value) or value.size <= items_max:
        return value
    count = max(1, min(_SAMPLE_ROWS, items_max * len(value) // value.size))
    places = sorted({round(at * (len(value) - 1) / max(1, count - 1)) for at in range(count)})
    return _rows(value, places)


def without_columns(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield kept arguments with one column of a frame left out."""
    for name, kept in arguments.items():
        known: Any = values.remade(kept) if values.has_tags(kept) else None
        if type(known).__name__ == "DataFrame" and known.shape[1] > 1:
            for place in range(min(known.shape[1], _COLUMNS_MAX)):
                fewer = known.drop(columns=known.columns[place])
                yield {**arguments, name: values.kept(fewer)}


def frame_edges(kept: dict[str, Any]) -> list[Any]:
    """Return it with its first row only.

    Without rows it would tell little: dtypes of empty results often differ without meaning anything.
    """
    known = values.remade(kept)
    return [values.kept(_rows(known, range(1)))] if _is_known(known) and len(known) > 1 else []


@functools.lru_cache(maxsize=64)
def _variants(text: str, numbers: tuple[float, ...]) -> tuple[Any, ...]:
    known = values.remade(json.loads(text))
    if not _is_known(known):
        return ()
    found = {json.dumps(made): made for made in map(values.kept, _made(known, numbers))}
    found.pop(text, None)
    return tuple(found.values())


def _is_known(value: Any) -> bool:
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    if package == "pandas":
        return name in {"DataFrame", "Series"}
    return package == "numpy" and name == "ndarray" and value.ndim > 0


def _rows(known: Any, places: Any) -> Any:
    """Return these rows of it; an index that only counts them counts anew."""
    chosen = list(places)
    if not hasattr(known, "iloc"):
        return known[chosen]
    rows = known.iloc[chosen]
    return rows.reset_index(drop=True) if type(known.index).__name__ == "RangeIndex" else rows


def _made(known: Any, numbers: tuple[float, ...]) -> Iterator[Any]:
    known = _rows(known, range(min(len(known), _HEAD_ROWS)))
    count = len(known)
    places = range(count)
    for size in (1, 2, 3):
        if size < count:
            yield _rows(known, places[:size])
            yield _rows(known, places[-size:])
    for place in places[:_ROWS_MAX] if count > 1 else ():
        yield _rows(known, [one for one in places if one != place])
    if count:
        yield _rows(known, reversed(places))
        yield _rows(known, [*places, 0])
        yield _rows(known, [*places[1:], 0])
    if getattr(known, "columns", None) is not None:
        yield from _with_other_cells(known, numbers)
    else:
        for cell in _other_cells(known, numbers):
            yield from _with_cell(known, None, *cell)


def _with_other_cells(frame: Any, numbers: tuple[float, ...]) -> Iterator[Any]:
    small = _rows(frame, range(min(len(frame), 3)))
    for source in (small, frame) if len(small) < len(frame) else (frame,):
        for place in range(min(source.shape[1], _COLUMNS_MAX)):
            for cell in _other_cells(source.iloc[:, place], numbers):
                yield from _with_cell(source, place, *cell)


def _other_cells(column: Any, numbers: tuple[float, ...]) -> Iterator[tuple[int, Any]]:
    """Yield rows and other values for them: another row's, a number nearby, a missing one where some are."""
    items = column[:3].tolist() if column.ndim == 1 else list(column[:3])
    kind = getattr(column.dtype, "kind", "O")
    has_missing = hasattr(column, "isna") and bool(column.isna().any())
    for row, item in enumerate(items):
        for other in (*items[:row], *items[row + 1 :]):
            yield row, other
        if kind in "if":
            yield from ((row, item + 1), (row, -item), (row, item * 0))
            if row == 0:
                yield from ((row, number) for number in numbers if kind == "f" or number == int(number))
        if has_missing:  # a tool that never meets a missing value says nothing by what it does with one
            yield row, float("nan") if kind == "f" else None


def _with_cell(known: Any, column: int | None, row: int, value: Any) -> Iterator[Any]:
    """Yield a copy with that cell changed; nothing where the dtype does not hold the value."""
    made = known.copy()
    with contextlib.suppress(Exception):  # pandas raises errors of many kinds, some of its own
        if hasattr(made, "iloc"):
            made.iloc[row if column is None else (row, column)] = value
        else:
            made[row] = value
        yield made
