import pandas as pd


def top_rows(
    data: pd.DataFrame, by: str, n: int, smallest: bool = False, within: list[str] | None = None
) -> pd.DataFrame:
    """Keep the `n` rows with the largest (or smallest) values in a column, of each group in `within`.

    The result is sorted by that column. Rows with a null there are left out; of equal rows the first are kept.
    """
    table = _table(data)
    at = _position(table, by)
    groups = _positions(table, within or [])
    if n < 1:
        raise ValueError("n must be at least 1.")
    if _kind(table.iloc[:, at]) == "mixed":
        raise ValueError(f"The column {_shown(by)} holds mixed values, which have no order.")
    values = table.iloc[:, at].dropna().sort_values(ascending=smallest, kind="stable")
    ranked = table.take(values.index)
    ids = _group_ids(ranked, groups)
    return ranked[ids.groupby(ids).cumcount() < n].reset_index(drop=True)
