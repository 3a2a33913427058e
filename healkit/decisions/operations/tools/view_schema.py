import pandas as pd


def view_schema(data: pd.DataFrame) -> pd.DataFrame:
    """List the columns of a view: name, type, nulls, and number of distinct values.

    The number is null for a column whose values cannot be compared, such as lists.
    """
    table = _table(data)
    rows = []
    for at, label in enumerate(table.columns):
        values = table.iloc[:, at]
        try:
            distinct = int(values.nunique())
        except TypeError:
            distinct = None
        rows.append((str(label), str(values.dtype), int(values.isna().sum()), distinct))
    columns = ["column", "type", "nulls", "distinct"]
    schema = pd.DataFrame(rows, columns=columns)
    return schema.astype({"column": "str", "type": "str", "nulls": "int64", "distinct": "Int64"})
