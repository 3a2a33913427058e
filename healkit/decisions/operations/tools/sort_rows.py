import pandas as pd


def sort_rows(data: pd.DataFrame, by: list[str], descending: list[bool] | bool = False) -> pd.DataFrame:
    """Sort rows by columns; nulls come last, and rows that are equal keep their order.

    `descending` is one for all columns, or a list with one for each. Categories are sorted in their own order.
    """
    table = _table(data)
    positions = _positions(table, by)
    falling = descending if isinstance(descending, list) else [descending] * len(by)
    if not by or len(falling) != len(by):
        raise ValueError(
            "Sorting needs a column or more, and as many entries in `descending` where it is a list."
        )
    for at, name in zip(positions, by, strict=True):
        if _kind(table.iloc[:, at]) == "mixed":
            raise ValueError(f"The column {_shown(name)} holds mixed values, which have no order.")
    keys = table.iloc[:, positions].set_axis(range(len(by)), axis=1)
    order = keys.sort_values(
        list(range(len(by))), ascending=[not one for one in falling], kind="stable", na_position="last"
    ).index
    return table.take(order).reset_index(drop=True)
