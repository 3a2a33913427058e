import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet


def export_parquet(data: pd.DataFrame) -> bytes:
    """Write a view as the bytes of a Parquet file, which keeps every column's type."""
    return _parquet(_table(data))


def _parquet(table):
    """Return the bytes of the file."""
    _require_new(table.columns, "the file")
    columns = []
    for at, label in enumerate(table.columns):
        values = table.iloc[:, at]
        try:
            columns.append(pa.array(values, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError):
            raise ValueError(
                f"Parquet cannot hold the column {_shown(label)}: it holds {_kind(values)} values."
            ) from None
    file = io.BytesIO()
    named = pa.table(columns, names=[str(label) for label in table.columns])
    pa.parquet.write_table(named, file)
    return file.getvalue()
