import pandas as pd


def export_csv(data: pd.DataFrame, separator: str = ",") -> str:
    """Write a view as the text of a CSV file: a line of column names, then a line a row; a null is an empty cell."""
    table = _table(data)
    _require_new(table.columns, "the file")
    if len(separator) != 1 or separator in '"\r\n':
        raise ValueError("The separator must be one character, and no quotation mark or line break.")
    return table.to_csv(index=False, sep=separator, lineterminator="\n")
