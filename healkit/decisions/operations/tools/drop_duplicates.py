from typing import Literal

import pandas as pd


def drop_duplicates(
    data: pd.DataFrame, columns: list[str] | None = None, keep: Literal["first", "last", "none"] = "first"
) -> pd.DataFrame:
    """Keep one row of those that are equal in some columns, by default in all; `none` keeps no such row."""
    table = _table(data)
    positions = list(range(table.shape[1])) if columns is None else _positions(table, columns)
    if columns is not None and not columns:
        raise ValueError("Name a column or more to compare, or leave `columns` out.")
    if not positions:
        return table
    ids = _group_ids(table, positions)
    return table[~ids.duplicated(keep=False if keep == "none" else keep)].reset_index(drop=True)
