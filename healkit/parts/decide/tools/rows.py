"""Tools that keep, order, change or complete rows of a view."""

from typing import Any, Literal

import pandas as pd


def filter_rows(
    data: pd.DataFrame,
    column: str,
    operator: Literal[
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "in",
        "not in",
        "between",
        "contains",
        "starts with",
        "ends with",
        "is null",
        "not null",
    ],
    value: Any = None,
) -> pd.DataFrame:
    """Keep rows by a column's value: `in` and `not in` take a list, `between` one of the lowest and the highest value.

    A null meets `is null` only.
    """
    table = _table(data)
    values = table.iloc[:, _position(table, column)]
    present = values.notna()
    if operator in ("is null", "not null"):
        return table[present if operator == "not null" else ~present].reset_index(drop=True)
    if operator in ("in", "not in", "between") and not isinstance(value, list):
        raise ValueError(f"{operator!r} takes a list.")
    if operator == "between" and len(value) != 2:
        raise ValueError("'between' takes a list of two: the lowest and the highest value.")
    if value is None or (isinstance(value, list) and None in value):
        raise ValueError("To find nulls, use 'is null' and 'not null'.")
    if _kind(values) == "nothing":
        return table.iloc[:0]
    return table[
        _met(values[present], operator, value, column).reindex(table.index, fill_value=False)
    ].reset_index(drop=True)


def _met(values, operator, value, name):
    """Return for each value if it meets the condition; no value may be null."""
    ordered = isinstance(values.dtype, pd.CategoricalDtype) and values.cat.ordered
    if operator in ("contains", "starts with", "ends with"):
        if _kind(values) != "text" or not isinstance(value, str):
            raise ValueError(f"{operator!r} needs text in the column {_shown(name)} and text as its value.")
        text = _plain(values).astype(object)
        return text.map(lambda cell: _part(cell, operator, value)).astype(bool)
    if operator in ("in", "not in"):
        wanted = [_value_of(item, values, name) for item in value]
        found = _plain(values).isin(wanted).astype(bool)
        return found if operator == "in" else ~found
    if operator == "between":
        low, high = (_value_of(item, values, name) for item in value)
        return _compared(values, ">=", low, name, ordered) & _compared(values, "<=", high, name, ordered)
    return _compared(values, operator, _value_of(value, values, name), name, ordered)


def _part(cell, operator, value):
    if operator == "contains":
        return value in cell
    return cell.startswith(value) if operator == "starts with" else cell.endswith(value)


def _compared(values, operator, value, name, ordered):
    """Compare each value; categories with an order are compared by it."""
    if ordered and value not in values.cat.categories:
        raise ValueError(f"The value is not a category of the column {_shown(name)}.")
    if (
        operator not in ("==", "!=")
        and not ordered
        and isinstance(values.dtype, pd.CategoricalDtype)
        and _kind(values) == "text"
    ):
        raise ValueError(f"The categories of {_shown(name)} have no order, so they cannot be compared.")
    method = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[operator]
    try:
        return getattr(values if ordered else _plain(values), method)(value).astype(bool)
    except TypeError:
        raise ValueError(
            f"The column {_shown(name)} holds mixed values, which {operator!r} cannot compare."
        ) from None


def sort_rows(data: pd.DataFrame, by: list[str], descending: list[bool] | bool = False) -> pd.DataFrame:
    """Sort rows by columns; nulls come last, and rows that are equal keep their order.

    `descending` is one for all columns, or a list with one for each. Categories are sorted in their own order.
    """
    table = _table(data)
    positions = _positions(table, by)
    falling = descending if isinstance(descending, list) else [descending] * len(by)
    if not by or len(falling) != len(by):
        raise ValueError(
            "Sorting needs at least one column. If `descending` is a list, it needs one entry for each column."
        )
    for at, name in zip(positions, by, strict=True):
        if _kind(table.iloc[:, at]) == "mixed":
            raise ValueError(f"The column {_shown(name)} holds mixed values, which have no order.")
    keys = table.iloc[:, positions].set_axis(range(len(by)), axis=1)
    order = keys.sort_values(
        list(range(len(by))), ascending=[not one for one in falling], kind="stable", na_position="last"
    ).index
    return table.take(order).reset_index(drop=True)


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


def drop_duplicates(
    data: pd.DataFrame, columns: list[str] | None = None, keep: Literal["first", "last", "none"] = "first"
) -> pd.DataFrame:
    """Keep one row of those that are equal in some columns, by default in all; `none` keeps no such row."""
    table = _table(data)
    positions = list(range(table.shape[1])) if columns is None else _positions(table, columns)
    if columns is not None and not columns:
        raise ValueError("Name at least one column to compare, or leave `columns` out.")
    if not positions:
        return table
    ids = _group_ids(table, positions)
    return table[~ids.duplicated(keep=False if keep == "none" else keep)].reset_index(drop=True)


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


def fill_nulls(
    data: pd.DataFrame,
    column: str,
    value: Any = None,
    method: Literal["value", "previous", "next", "mean", "median"] = "value",
) -> pd.DataFrame:
    """Fill the nulls of a column with a value, with the row's neighbour above or below, or with a mean or median."""
    table = _table(data)
    at = _position(table, column)
    values = table.iloc[:, at]
    if method == "value" and value is None:
        raise ValueError("Give a value to fill with, or a method.")
    if method != "value" and value is not None:
        raise ValueError(f"Give either a value or the method {method!r}.")
    if method == "value":
        filled = _filled(values, value, column)
    elif method in ("previous", "next"):
        filled = values.ffill() if method == "previous" else values.bfill()
    else:
        if _kind(values) not in ("number", "nothing"):
            raise ValueError(
                f"{method} needs numbers, but the column {_shown(column)} holds {_kind(values)} values."
            )
        whole = pd.api.types.is_integer_dtype(values.dtype)
        plain = _plain(values).astype("Float64" if whole else "float64") if values.isna().any() else values
        filled = values if _kind(values) == "nothing" else plain.fillna(getattr(plain, method)())
    columns = [filled if place == at else table.iloc[:, place] for place in range(table.shape[1])]
    return pd.concat(columns, axis=1).set_axis(table.columns, axis=1)


def _filled(values, value, name):
    if not values.isna().any():
        return values
    if _kind(values) == "nothing" and not isinstance(values.dtype, pd.CategoricalDtype):
        return pd.Series([value] * len(values), index=values.index)
    wanted = _value_of(value, values, name)
    if isinstance(values.dtype, pd.CategoricalDtype) and wanted not in values.cat.categories:
        values = values.cat.add_categories([wanted])
    if pd.api.types.is_integer_dtype(values.dtype) and isinstance(wanted, float):
        if not wanted.is_integer():
            raise ValueError(f"The column {_shown(name)} holds whole numbers.")
        wanted = int(wanted)
    return values.fillna(wanted)


def replace_values(
    data: pd.DataFrame, column: str, replacements: dict, must_occur: bool = True
) -> pd.DataFrame:
    """Replace whole texts in a column: {"old": "new"}; a null as the new one makes it missing.

    With `must_occur` an old text that no row has is an error, since it is most often a misspelling.
    """
    table = _table(data)
    at = _position(table, column)
    values = table.iloc[:, at]
    if _kind(values) not in ("text", "nothing"):
        raise ValueError(
            f"Texts can be replaced only in a column of text, but {_shown(column)} holds {_kind(values)} values."
        )
    if any(not isinstance(new, str | None) for new in replacements.values()):
        raise ValueError("A text can be replaced only by a text or by null.")
    texts = _plain(values).astype(object)
    absent = [old for old in replacements if not (texts == old).any()] if must_occur else []
    if absent:
        raise ValueError(
            f"No row of {_shown(column)} has {len(absent)} of the texts; the first is {_shown(absent[0])}."
        )
    replaced = texts.map(lambda text: replacements.get(text, text) if isinstance(text, str) else text)
    if isinstance(values.dtype, pd.CategoricalDtype):
        order = [replacements.get(text, text) for text in values.cat.categories]
        kept = [text for text in dict.fromkeys(order) if text is not None]
        replaced = pd.Series(pd.Categorical(replaced, kept, ordered=values.cat.ordered), index=values.index)
    else:
        replaced = replaced.astype(values.dtype)
    columns = [replaced if place == at else table.iloc[:, place] for place in range(table.shape[1])]
    return pd.concat(columns, axis=1).set_axis(table.columns, axis=1)


def date_parts(
    data: pd.DataFrame,
    column: str,
    parts: list[
        Literal["year", "quarter", "month", "week", "day", "weekday", "hour", "minute", "date", "year_month"]
    ],
    format: str | None = None,  # noqa: A002 - the name that pandas has for it
    timezone: str | None = None,
) -> pd.DataFrame:
    """Add parts of a date or time as columns, named like `sold_on_year`.

    Text is read as ISO 8601, or by `format` ("%d.%m.%Y"), which whole numbers such as 20240131 need too. Times with a
    zone are converted to `timezone` if it is given. week is ISO 8601's, weekday is 1 (Monday) to 7.
    """
    table = _table(data)
    values = table.iloc[:, _position(table, column)]
    moments = _moments(values, column, format, timezone)
    known = ["year", "quarter", "month", "week", "day", "weekday", "hour", "minute", "date", "year_month"]
    labels = list(table.columns)
    columns = [table.iloc[:, at] for at in range(table.shape[1])]
    for part in parts:
        if part not in known:
            raise ValueError(f"There is no part {_shown(part)}. Choose from {', '.join(known)}.")
        columns.append(_part_of_time(moments, part))
        labels.append(f"{column}_{part}")
    for label in labels[len(table.columns) :]:
        if labels.count(label) > 1:
            raise ValueError(f"The column {_shown(label)} already exists.")
    return pd.concat(columns, axis=1).set_axis(labels, axis=1)


def _moments(values, name, form, zone):
    """Return the column as times."""
    kind = _kind(values)
    plain = _plain(values)
    if kind in ("moment", "day", "nothing"):
        moments = pd.to_datetime(plain.astype(object) if kind == "nothing" else plain)
        moments = moments.astype("datetime64[ns]") if kind == "nothing" else moments
    elif kind == "text" or (kind == "number" and form and pd.api.types.is_integer_dtype(plain.dtype)):
        text = plain if kind == "text" else plain.astype("Int64").astype("string")
        try:
            moments = pd.to_datetime(
                text, format=form or "ISO8601", errors="coerce", utc=zone is not None and _zoned(text)
            )
        except (ValueError, TypeError):
            raise ValueError(
                f"The times in {_shown(name)} have several time zones, or another format. Give a `timezone`."
            ) from None
        if moments.dtype == object:
            raise ValueError(f"The times in {_shown(name)} have several time zones. Give a `timezone`.")
        wrong = moments.isna() & values.notna()
        if wrong.any():
            where = f"the first of {int(wrong.sum())} is in row {int(wrong.idxmax())}"
            raise ValueError(
                f"{_shown(name)} holds values that are not dates in {form or 'ISO 8601'}; {where}."
            )
    else:
        raise ValueError(
            f"The column {_shown(name)} holds {kind} values. Dates in whole numbers need a `format`, such as '%Y%m%d'."
        )
    if zone is None:
        return moments
    if moments.dt.tz is None:
        raise ValueError(
            f"The times in {_shown(name)} have no time zone, so they cannot be converted to another one."
        )
    try:
        return moments.dt.tz_convert(zone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"There is no time zone {_shown(zone)}.") from None


def _zoned(text):
    """Return if the first text has a zone."""
    first = text.dropna()
    return len(first) > 0 and pd.Timestamp(first.iloc[0]).tzinfo is not None


def _part_of_time(moments, part):
    if part == "date":
        return moments.dt.tz_localize(None).dt.normalize()
    if part == "year_month":
        return moments.dt.strftime("%Y-%m")
    if part == "week":
        found = moments.dt.isocalendar().week
    elif part == "weekday":
        found = moments.dt.dayofweek + 1
    else:
        found = getattr(moments.dt, part)
    return found.astype("Int64") if moments.isna().any() else found.astype("int64")
