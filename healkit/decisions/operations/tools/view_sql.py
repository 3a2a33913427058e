import collections

import pandas as pd
import pyarrow as pa


def view_sql(query: str, **frames: pd.DataFrame) -> pd.DataFrame:
    """Run one SELECT of DuckDB's SQL on views, which are tables by the names of their arguments.

    It sees no files, no network and no extensions, and its settings are locked. Whole numbers stay whole, a sum of them
    too; times with a zone are read and come back in UTC.
    """
    duckdb = _duckdb()
    config = {
        "enable_external_access": "false", "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false", "allow_community_extensions": "false",
        "allow_persistent_secrets": "false", "memory_limit": "512MB", "temp_directory": "",
        "threads": "1",  # a second one reads Arrow data beside Python, and ended 2 of 8 workers by SIGSEGV
    }  # fmt: skip
    with duckdb.connect(":memory:", config=config) as connection:
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET TimeZone = 'UTC'")  # else hours and days are those of where it runs
        for name, frame in frames.items():
            connection.register(name, _arrow(_table(frame, name), name))
        connection.execute("SET lock_configuration = true")
        statements = connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ValueError("Give one SELECT; other statements are not run.")
        return _pandas(connection.execute(statements[0]).fetch_arrow_table())


def _duckdb():
    """Return the module; raise ImportError where it is missing or cannot run in this process."""
    try:
        import duckdb
    except ImportError:
        raise ImportError("view_sql needs DuckDB. Install it: pip install 'healkit[sql]'") from None
    except Exception as error:  # noqa: BLE001 - DuckDB 1.4 reads a file of /proc as it is imported
        raise ImportError(
            f"This DuckDB cannot run in a restricted worker: {error}. Install: pip install 'duckdb<1.4'"
        ) from None
    if int(duckdb.__version__.partition(".")[0]) * 100 + int(duckdb.__version__.split(".")[1]) >= 104:
        try:
            with open("/proc/self/cgroup"):
                pass
        except FileNotFoundError:
            pass
        except OSError:  # it would end the process
            raise ImportError(
                f"DuckDB {duckdb.__version__} cannot run in a restricted worker. Install: pip install 'duckdb<1.4'"
            ) from None
    return duckdb


def _arrow(frame, name):
    """Return a view as an Arrow table, its labels as text."""
    labels = [str(label) for label in frame.columns]
    counts = collections.Counter(label.casefold() for label in labels)
    for label in labels:
        if counts[label.casefold()] > 1:
            raise ValueError(
                f"Two columns of {name} are called {_shown(label)} in SQL, which takes capitals as equal."
            )
    if not labels:
        raise ValueError(f"{name} has no columns.")
    columns = []
    for at, label in enumerate(labels):
        values = frame.iloc[:, at]
        try:
            column = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            raise ValueError(
                f"SQL cannot read the column {_shown(label)} of {name}: it holds {_kind(values)} values."
            ) from None
        if isinstance(column.type, pa.ExtensionType | pa.BaseExtensionType):
            raise ValueError(
                f"SQL cannot read the column {_shown(label)} of {name}: its type is {values.dtype}."
            )
        columns.append(column)
    return pa.table(columns, names=labels)


def _pandas(table):
    """Return a result as a frame in which no whole number has become a fraction."""
    _require_new(table.column_names)
    columns = []
    for column in map(_whole, table.columns):
        nullable = {getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")() for name in _NULLABLE}
        nullable[pa.bool_()] = pd.BooleanDtype()
        columns.append(column.to_pandas(types_mapper=nullable.get if column.null_count else None))
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame()
    return frame.set_axis(table.column_names, axis=1)


def _whole(column):
    """Return whole numbers that SQL has made decimals as whole numbers, where 64 bits hold them."""
    if not pa.types.is_decimal(column.type) or column.type.scale != 0:
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


_NULLABLE = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
