from typing import Literal

import pandas as pd


def pivot_rows(
    data: pd.DataFrame,
    rows: list[str],
    columns: str,
    values: str,
    function: Literal["sum", "mean", "median", "min", "max", "count", "first", "last"] = "sum",
) -> pd.DataFrame:
    """Make a column of each value in the column `columns`, filled with a function of the column `values`.

    Rows and new columns are in order of first appearance. A cell without rows is null, and 0 for count.
    """
    table = _table(data)
    at_rows, at_column, at_values = (
        _positions(table, rows),
        _position(table, columns),
        _position(table, values),
    )
    if not rows or at_column in at_rows:
        raise ValueError("Name a column or more in `rows`, and another one in `columns`.")
    row_ids, column_ids = _group_ids(table, at_rows), _group_ids(table, [at_column])
    names = [
        _label(value) for value in table.iloc[column_ids.drop_duplicates().index, at_column].astype(object)
    ]
    if len(names) > 1_000:
        raise ValueError(
            f"The column {_shown(columns)} has {len(names):,} values; a pivot makes 1,000 columns at most."
        )
    keys = table.iloc[row_ids.drop_duplicates().index, at_rows].reset_index(drop=True)
    _require_new([*keys.columns, *names])
    cells = row_ids * max(len(names), 1) + column_ids
    found = _aggregated(table.iloc[:, at_values], cells, len(keys) * len(names), function, values)
    found = found.fillna(0).astype("int64") if function == "count" else found
    parts = [_tightened(found.iloc[at :: len(names)].reset_index(drop=True)) for at in range(len(names))]
    return pd.concat([keys, *parts], axis=1).set_axis([*keys.columns, *names], axis=1)


def _label(value):
    """Return the name of the column for a value."""
    if pd.isna(value):
        return "(null)"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _tightened(values):
    """Return whole numbers as whole numbers again."""
    if values.dtype == "Int64" and values.notna().all():
        return values.astype("int64")
    return values
