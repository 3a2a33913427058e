"""Previews of large values for records, outlines for schemas."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from healkit.values import frames
from healkit.values.frames import label
from healkit.values.plain import FRAME

#: Up to this many items a frame or an array is kept whole in a record; of a larger one, this many rows are shown.
_WHOLE_ITEMS, _PREVIEW_ROWS = 200, 5
#: Longest text of an item that a preview shows.
_TEXT_CHARS = 1000
#: Up to this many items, nulls are counted while the caller waits; the view of a larger frame has the counts.
_COUNTED_ITEMS = 100_000
#: Stands in a preview for each value of a column that holds secrets.
HIDDEN = "(hidden)"
_TABLES = {"Table", "RecordBatch", "DataFrame"}


def preview(
    value: Any, secret_columns: Callable[[Mapping[str, Sequence[Any]]], Collection[str]] | None = None
) -> dict[str, Any] | None:
    """Return what a record shows of a large frame, array or table; None for a small one, or another value.

    secret_columns: asked with the first values of each column; returns the names of those that are not shown.
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


def _is_small(value: Any) -> bool:
    """Return whether a record keeps a value whole: it and its labels and categories are few, and none of these is long.

    Written out, each item has its category's text by itself.
    """
    if max((math.prod(value.shape), *value.shape)) > _WHOLE_ITEMS:
        return False
    if type(value).__module__.partition(".")[0] != "pandas":
        return True
    parts = [value, *getattr(value, "axes", ())]
    dtypes = [*getattr(value, "dtypes", ())] if getattr(value, "ndim", 1) == 2 else []
    dtypes += [getattr(one, "dtype", None) for one in parts]
    shared = [level for one in parts for level in getattr(one, "levels", ())]
    shared += [dtype.categories for dtype in dtypes if hasattr(dtype, "categories")]
    return all(len(one) <= _WHOLE_ITEMS for one in shared) and not any(
        isinstance(text, str) and len(text) > _TEXT_CHARS for one in shared for text in one
    )


def _cut(item: Any) -> Any:
    return item[:_TEXT_CHARS] + "…" if isinstance(item, str) and len(item) > _TEXT_CHARS else item


def outside_of(value: Any) -> dict[str, Any]:
    """Return what can be shown of a value whose items cannot: its class and its shape."""
    return _preview(type(value).__name__, [int(size) for size in value.shape], [])


def first_rows(
    frame: Any, secret_columns: Callable[[Mapping[str, Sequence[Any]]], Collection[str]], columns: int
) -> tuple[list[str], list[list[Any]]]:
    """Return the first columns of a DataFrame and their first rows, masked as in `preview`."""
    shown = _frame_preview(frame.iloc[:_PREVIEW_ROWS, :columns], secret_columns)
    return shown["columns"], shown["first"]


def is_tabular(value: Any) -> bool:
    """Return whether a value is a frame, an array, an index or a table."""
    kind = type(value)
    package, name = kind.__module__.partition(".")[0], kind.__name__
    if package == "pandas":
        return name in {"DataFrame", "Series"} or frames.is_array(value)
    return (package, name) == ("numpy", "ndarray") or (package in {"pyarrow", "polars"} and name in _TABLES)


def outline(value: Any) -> Any:
    """Return what a schema is held against: a frame's columns, an array's first items; None for another value."""
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


def _preview(name: str, shape: list[int], first: list[Any], **more: Any) -> dict[str, Any]:
    return {"type": name, "shape": shape, **more, "first": list(map(_cut, first))}


def _frame_preview(value: Any, secret_columns: Any) -> dict[str, Any]:
    table = value.to_frame() if value.ndim == 1 else value
    columns = [label(name) if type(name) is not str else name for name in table.columns]
    counted = {"nulls": table.isna().sum().tolist()} if table.size <= _COUNTED_ITEMS else {}
    first = [column.tolist() for _, column in table.iloc[:_PREVIEW_ROWS].items()]
    return {
        "type": type(value).__name__, "shape": list(value.shape), "columns": columns,
        "dtypes": [str(dtype) for dtype in table.dtypes], **counted, "first": _rows(columns, first, secret_columns),
    }  # fmt: skip


def _table_preview(value: Any, secret_columns: Any) -> dict[str, Any]:
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
        "nulls": nulls, "first": _rows(columns, first, secret_columns),
    }  # fmt: skip


def _rows(columns: list[str], first: list[list[Any]], secret_columns: Any) -> list[list[Any]]:
    """Return the first rows, with a word in the place of what a secret column holds."""
    shown = {name: values for name, values in zip(columns, first, strict=True) if values}
    hidden = secret_columns(shown) if secret_columns is not None else ()
    masked = [
        [HIDDEN] * len(values) if name in hidden else list(map(_cut, values))
        for name, values in zip(columns, first, strict=True)
    ]
    return [list(row) for row in zip(*masked, strict=True)]
