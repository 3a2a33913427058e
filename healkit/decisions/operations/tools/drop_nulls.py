from typing import Literal

import pandas as pd


def drop_nulls(
    data: pd.DataFrame, columns: list[str] | None = None, when: Literal["any", "all"] = "any"
) -> pd.DataFrame:
    """Leave out rows with a null in any (or in all) of some columns, by default of all columns."""
    table = _table(data)
    positions = list(range(table.shape[1])) if columns is None else _positions(table, columns)
    if not positions:
        return table
    nulls = table.iloc[:, positions].isna()
    return table[~(nulls.any(axis=1) if when == "any" else nulls.all(axis=1))].reset_index(drop=True)
