import numpy as np
import pandas as pd


def unpivot_columns(
    data: pd.DataFrame,
    keep: list[str],
    columns: list[str] | None = None,
    name: str = "name",
    value: str = "value",
) -> pd.DataFrame:
    """Turn columns into rows: one row for each old row and column, with the column's name and the value.

    `columns` are those to turn, by default all but `keep`. The rows come column by column.
    """
    table = _table(data)
    kept = _positions(table, keep)
    turned = (
        [at for at in range(table.shape[1]) if at not in kept]
        if columns is None
        else _positions(table, columns)
    )
    if not turned or set(turned) & set(kept):
        raise ValueError("Name a column or more to turn into rows, none of which is kept.")
    labels = [table.columns[at] for at in kept]
    _require_new([*labels, name, value])
    _require_new([table.columns[at] for at in turned], "the view")
    if len(table) * len(turned) > 20_000_000:
        raise ValueError("The result would have more than 20,000,000 rows. Turn fewer columns.")
    kinds = {_kind(table.iloc[:, at]) for at in turned} - {"nothing"}
    if len(kinds) > 1:
        raise ValueError(
            f"The columns hold values of several kinds ({', '.join(sorted(kinds))}), which one column cannot hold."
        )
    repeated = np.tile(np.arange(len(table)), len(turned))
    rows = table.iloc[:, kept].take(repeated).set_axis(range(len(kept)), axis=1).reset_index(drop=True)
    names = pd.Series([str(table.columns[at]) for at in turned for _ in range(len(table))], dtype="str")
    values = pd.concat([_plain(table.iloc[:, at]) for at in turned], ignore_index=True)
    return pd.concat([rows, names, values], axis=1).set_axis([*labels, name, value], axis=1)
