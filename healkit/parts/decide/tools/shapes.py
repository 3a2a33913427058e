"""Tools that join, group and reshape views."""

import collections
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa


def select_columns(data: pd.DataFrame, columns: list[str], rename: dict | None = None) -> pd.DataFrame:
    """Keep some columns, in the order given, and rename them: {"old": "new"}."""
    table = _table(data)
    positions = _positions(table, columns)
    new = dict(rename or {})
    _positions(table, list(new))
    for name in new:
        if _position(table, name) not in positions:
            raise ValueError(f"The column {_shown(name)} is renamed but not selected.")
    by_position = {_position(table, name): str(label) for name, label in new.items()}
    selected = table.iloc[:, positions]
    labels = [by_position.get(at, table.columns[at]) for at in positions]
    _require_new(labels)
    return selected.set_axis(labels, axis=1)


def join_views(
    left: pd.DataFrame,
    right: pd.DataFrame,
    on: list[str],
    right_on: list[str] | None = None,
    how: Literal["inner", "left", "right", "outer", "semi", "anti"] = "inner",
    expect: Literal["any", "one to one", "one to many", "many to one"] = "any",
    suffix: str = "_right",
) -> pd.DataFrame:
    """Join two views on columns of equal values; a null equals nothing, as in SQL.

    `right_on` names the columns of the right view where they differ. A column of the right view that the left one has
    too gets `suffix`. `expect` stops the join where a key stands more than once on a side that should have it once.
    `semi` and `anti` keep the left rows with and without a match. The rows stay in the order of the left view.
    """
    left, right = _table(left, "left"), _table(right, "right")
    at_left, at_right = _positions(left, on, "left"), _positions(right, right_on or on, "right")
    if len(at_left) != len(at_right) or not at_left:
        raise ValueError(
            "A join needs at least one column, and the same number of columns of the right view."
        )
    one, other = _keys(left, at_left), _keys(right, at_right)
    _check_kinds(one, other, on)
    one, other = one.dropna(), other.dropna()
    for keys, side, wanted in (
        (one, "left", ("one to one", "one to many")),
        (other, "right", ("one to one", "many to one")),
    ):
        if expect in wanted and keys.duplicated().any():
            raise ValueError(f"Not {expect}: a key occurs more than once in the {side} view.")
    if how in ("semi", "anti"):
        matched = left.index.isin(one.assign(row=one.index).merge(other.drop_duplicates())["row"])
        return left[matched if how == "semi" else ~matched].reset_index(drop=True)
    pairs = _pairs(one, other, len(left), len(right), how)
    kept = [at for at in range(right.shape[1]) if at not in at_right]
    taken = {str(label) for label in left.columns}
    labels = [
        f"{right.columns[at]}{suffix}" if str(right.columns[at]) in taken else right.columns[at]
        for at in kept
    ]
    _require_new([*left.columns, *labels])
    columns = [_taken(left.iloc[:, at], pairs["left"]) for at in range(left.shape[1])]
    for place, other_place in zip(at_left, at_right, strict=True):
        if (pairs["left"] < 0).any():
            from_right = _taken(right.iloc[:, other_place], pairs["right"])
            columns[place] = _plain(columns[place]).where(pairs["left"] >= 0, _plain(from_right))
    columns += [_taken(right.iloc[:, at], pairs["right"]) for at in kept]
    joined = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=pairs.index)
    return joined.set_axis([*left.columns, *labels], axis=1)


def _keys(frame, positions):
    """Return the columns to join on, named by number."""
    keys = [_plain(frame.iloc[:, at]) for at in positions]
    return pd.concat(keys, axis=1).set_axis(range(len(keys)), axis=1)


def _check_kinds(one, other, names):
    for at, name in enumerate(names):
        kinds = [_kind(keys[at]) for keys in (one, other)]
        if "nothing" in kinds:
            one[at], other[at] = one[at].astype(object), other[at].astype(object)
            continue
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"{_shown(name)} holds {kinds[0]} values in the left view, but {kinds[1]} values in the right view."
            )
        if (getattr(one[at].dtype, "tz", None) is None) != (getattr(other[at].dtype, "tz", None) is None):
            raise ValueError(f"{_shown(name)} has a time zone in only one of the views.")
        if kinds[0] == "mixed":
            raise ValueError(f"{_shown(name)} holds mixed values, so it cannot be a join key.")


def _pairs(one, other, left_count, right_count, how):
    """Return which row of the left view stands beside which of the right; -1 for none."""
    names = list(one.columns)
    counts = (
        one.value_counts()
        .rename("n")
        .reset_index()
        .merge(other.value_counts().rename("m").reset_index(), on=names)
    )
    if (counts["n"].astype(float) * counts["m"]).sum() > 20_000_000:
        raise ValueError(
            "The join would have more than 20,000,000 rows. Aggregate one side first, or add a column to join on."
        )
    found = one.assign(left=one.index).merge(other.assign(right=other.index), on=names)[["left", "right"]]
    parts = [found]
    if how in ("left", "outer"):
        alone = sorted(set(range(left_count)) - set(found["left"]))
        parts.append(pd.DataFrame({"left": alone, "right": -1}, dtype="int64"))
    pairs = pd.concat(parts).astype("int64").sort_values(["left", "right"], kind="stable")
    if how in ("right", "outer"):
        alone = sorted(set(range(right_count)) - set(found["right"]))
        pairs = pd.concat([pairs, pd.DataFrame({"left": -1, "right": alone}, dtype="int64")])
    return pairs.reset_index(drop=True)


def _taken(values, rows):
    """Return the values at those rows, null where there is none."""
    if (rows >= 0).all():
        return values.take(rows.to_numpy()).reset_index(drop=True)
    return _with_gaps(values).reindex(rows.to_numpy()).reset_index(drop=True)


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


def pivot_rows(
    data: pd.DataFrame,
    rows: list[str],
    columns: str,
    values: str,
    function: Literal["sum", "mean", "median", "min", "max", "count", "first", "last"] = "sum",
) -> pd.DataFrame:
    """Make a column of each value in the column `columns`, filled with a function of the column `values`.

    Rows and new columns are in order of first appearance. A cell without rows is null, and 0 for count.
    """
    table = _table(data)
    at_rows, at_column, at_values = (
        _positions(table, rows),
        _position(table, columns),
        _position(table, values),
    )
    if not rows or at_column in at_rows:
        raise ValueError("Name at least one column in `rows`, and another one in `columns`.")
    row_ids, column_ids = _group_ids(table, at_rows), _group_ids(table, [at_column])
    names = [
        _label(value) for value in table.iloc[column_ids.drop_duplicates().index, at_column].astype(object)
    ]
    if len(names) > 1_000:
        raise ValueError(
            f"The column {_shown(columns)} has {len(names):,} values; a pivot makes at most 1,000 columns."
        )
    keys = table.iloc[row_ids.drop_duplicates().index, at_rows].reset_index(drop=True)
    _require_new([*keys.columns, *names])
    cells = row_ids * max(len(names), 1) + column_ids
    found = _aggregated(table.iloc[:, at_values], cells, len(keys) * len(names), function, values)
    found = found.fillna(0).astype("int64") if function == "count" else found
    parts = [_tightened(found.iloc[at :: len(names)].reset_index(drop=True)) for at in range(len(names))]
    return pd.concat([keys, *parts], axis=1).set_axis([*keys.columns, *names], axis=1)


def _label(value):
    """Return the name of the column for a value."""
    if pd.isna(value):
        return "(null)"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _tightened(values):
    """Return whole numbers as whole numbers again."""
    if values.dtype == "Int64" and values.notna().all():
        return values.astype("int64")
    return values


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
        raise ValueError("Name at least one column to turn into rows that is not among the columns to keep.")
    labels = [table.columns[at] for at in kept]
    _require_new([*labels, name, value])
    _require_new([table.columns[at] for at in turned], "the view")
    if len(table) * len(turned) > 20_000_000:
        raise ValueError("The result would have more than 20,000,000 rows. Turn fewer columns.")
    kinds = {_kind(table.iloc[:, at]) for at in turned} - {"nothing"}
    if len(kinds) > 1:
        raise ValueError(
            f"The columns hold values of several types ({', '.join(sorted(kinds))}), which one column cannot hold."
        )
    repeated = np.tile(np.arange(len(table)), len(turned))
    rows = table.iloc[:, kept].take(repeated).set_axis(range(len(kept)), axis=1).reset_index(drop=True)
    names = pd.Series([str(table.columns[at]) for at in turned for _ in range(len(table))], dtype="str")
    values = pd.concat([_plain(table.iloc[:, at]) for at in turned], ignore_index=True)
    return pd.concat([rows, names, values], axis=1).set_axis([*labels, name, value], axis=1)


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
            raise ValueError("Give one SELECT; other statements do not run.")
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
            raise ValueError(f"Two columns of {name} are called {_shown(label)} in SQL, which ignores case.")
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
