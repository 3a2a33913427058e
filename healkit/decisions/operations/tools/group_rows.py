import pandas as pd


def group_rows(data: pd.DataFrame, by: list[str], aggregates: dict) -> pd.DataFrame:
    """Group rows by columns, and aggregate others: {"total": {"column": "sales", "function": "sum"}}.

    Functions: rows (counts them, needs no column), count (of values that are not null), distinct, sum, mean, median,
    min, max, std, var, first, last. Nulls are left out; a group without values has a null. Groups are in order of first
    appearance, a null in `by` is a group of its own, and no column in `by` makes one group of all rows.
    """
    table = _table(data)
    positions = _positions(table, by)
    _require_new([*(table.columns[at] for at in positions), *aggregates])
    ids = _group_ids(table, positions)
    count = 1 if not by else int(ids.max()) + 1 if len(ids) else 0
    firsts = ids.drop_duplicates().index
    columns = {table.columns[at]: table.iloc[firsts, at].reset_index(drop=True) for at in positions}
    for name, wanted in aggregates.items():
        columns[name] = _column(table, ids, count, name, wanted)
    result = pd.DataFrame(columns, index=range(count))
    return result.set_axis(list(columns), axis=1)


def _column(table, ids, count, name, wanted):
    functions = [
        "rows",
        "count",
        "distinct",
        "sum",
        "mean",
        "median",
        "min",
        "max",
        "std",
        "var",
        "first",
        "last",
    ]
    if not isinstance(wanted, dict) or wanted.keys() - {"column", "function"}:
        raise ValueError(f'Write the aggregate {_shown(name)} as {{"column": "sales", "function": "sum"}}.')
    function = wanted.get("function")
    if function not in functions:
        raise ValueError(f"There is no function {_shown(function)}. Choose one of {', '.join(functions)}.")
    if function == "rows":
        return ids.groupby(ids).size().reindex(range(count), fill_value=0).astype("int64")
    if "column" not in wanted:
        raise ValueError(f"The aggregate {_shown(name)} names no column.")
    values = table.iloc[:, _position(table, wanted["column"])]
    found = _aggregated(values, ids, count, function, wanted["column"])
    return found.fillna(0).astype("int64") if function in ("count", "distinct") else found
