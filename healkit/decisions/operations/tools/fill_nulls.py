from typing import Any, Literal

import pandas as pd


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
                f"{method} needs numbers, and the column {_shown(column)} holds {_kind(values)} values."
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
