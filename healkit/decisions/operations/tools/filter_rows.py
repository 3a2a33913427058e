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
        raise ValueError("A null is found by 'is null' and 'not null'.")
    if _kind(values) == "nothing":
        return table.iloc[:0]
    return table[
        _met(values[present], operator, value, column).reindex(table.index, fill_value=False)
    ].reset_index(drop=True)


def _met(values, operator, value, name):
    """Return for each value, none of them null, if it meets the condition."""
    ordered = isinstance(values.dtype, pd.CategoricalDtype) and values.cat.ordered
    if operator in ("contains", "starts with", "ends with"):
        if _kind(values) != "text" or not isinstance(value, str):
            raise ValueError(f"{operator!r} needs text in the column {_shown(name)} and as its value.")
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
        raise ValueError(f"The value is no category of the column {_shown(name)}.")
    if (
        operator not in ("==", "!=")
        and not ordered
        and isinstance(values.dtype, pd.CategoricalDtype)
        and _kind(values) == "text"
    ):
        raise ValueError(f"The categories of {_shown(name)} have no order to compare by.")
    method = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[operator]
    try:
        return getattr(values if ordered else _plain(values), method)(value).astype(bool)
    except TypeError:
        raise ValueError(
            f"The column {_shown(name)} holds mixed values, which {operator!r} cannot compare."
        ) from None
