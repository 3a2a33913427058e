"""Functions that several tools need.

An entry gets those that it uses, after its own code.
"""

import difflib

import pandas as pd


def _shown(name):
    """Return a name as messages show it, cut where it is long."""
    text = repr(name)
    return text if len(text) <= 80 else text[:79] + "…"


def _table(frame, name="data"):
    """Return the frame with rows numbered from 0; row labels that are data become columns."""
    if frame.columns.nlevels > 1:
        raise ValueError(
            f"{name} has {frame.columns.nlevels} levels of column labels. Give it one level first."
        )
    index = frame.index
    if (
        index.nlevels == 1
        and index.name is None
        and (len(index) == 0 or pd.api.types.is_integer_dtype(index.dtype))
    ):
        return frame.reset_index(drop=True)
    unnamed = "index" if index.nlevels == 1 else "level_{}"
    names = [unnamed.format(at) if label is None else label for at, label in enumerate(index.names)]
    for label in names:
        if label in frame.columns or names.count(label) > 1:
            raise ValueError(
                f"The row labels {_shown(label)} of {name} have the same name as a column. Rename one of them."
            )
    return frame.reset_index(names=names)


def _position(frame, name, of="data"):
    """Return the position of the column with that name; raise ValueError with the nearest name."""
    labels = list(frame.columns)
    same = [at for at, label in enumerate(labels) if type(label) is type(name) and label == name]
    found = same or [at for at, label in enumerate(labels) if str(label) == str(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{of} has {len(found)} columns {_shown(name)}. Give each its own name first.")
    wanted, texts = str(name)[:200], [str(label)[:200] for label in labels[:2000]]
    near = [text for text in texts if text.casefold().strip() == wanted.casefold().strip()]
    near = near or difflib.get_close_matches(wanted, texts, n=1)
    hint = f" Did you mean {_shown(near[0])}?" if near else ""
    raise ValueError(f"{of} has no column {_shown(name)}.{hint}")


def _positions(frame, names, of="data"):
    """Return the positions of several columns; raise ValueError for one that is named twice."""
    found = [_position(frame, name, of) for name in names]
    for at, name in enumerate(names):
        if found.index(found[at]) != at:
            raise ValueError(f"The column {_shown(name)} is named twice.")
    return found


def _plain(values):
    """Return a column of categories as a column of what they stand for."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.astype(values.cat.categories.dtype if not values.isna().any() else object)
    return values


def _kind(values):
    """Return what a column holds: number, text, truth, moment, day, span, nothing or mixed."""
    dtype = values.dtype
    if values.isna().all():
        return "nothing"
    if isinstance(dtype, pd.CategoricalDtype):
        return _kind(pd.Series(values.cat.categories))
    types = pd.api.types
    if types.is_bool_dtype(dtype):
        return "truth"
    if types.is_numeric_dtype(dtype):
        return "number"
    if types.is_datetime64_any_dtype(dtype):
        return "moment"
    if types.is_timedelta64_dtype(dtype):
        return "span"
    inferred = types.infer_dtype(values, skipna=True)
    known = {
        "string": "text",
        "boolean": "truth",
        "date": "day",
        "datetime": "moment",
        "datetime64": "moment",
    }
    known |= {"timedelta": "span", "timedelta64": "span"}
    known |= dict.fromkeys(["integer", "floating", "decimal", "mixed-integer-float"], "number")
    return known.get(inferred, "mixed")


def _value_of(value, values, name):
    """Return a JSON value as the column can be compared with; raise ValueError where it cannot."""
    kind = _kind(values)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {"number": number, "truth": isinstance(value, bool), "text": isinstance(value, str)}
    if fits.get(kind, True) is False:
        raise ValueError(
            f"The column {_shown(name)} holds {kind} values, but the given value is of type {type(value).__name__}."
        )
    if kind not in ("moment", "day", "span"):
        return value
    try:
        converted = pd.Timedelta(value) if kind == "span" else pd.Timestamp(value)
    except (ValueError, TypeError):
        raise ValueError(
            f"The column {_shown(name)} holds {kind} values; write one in the ISO 8601 format."
        ) from None
    if kind == "day":
        return converted.date()
    zone = getattr(_plain(values).dtype, "tz", None)
    if kind == "moment" and zone is not None:
        return converted.tz_localize(zone) if converted.tzinfo is None else converted
    if kind == "moment" and converted.tzinfo is not None:
        raise ValueError(f"The column {_shown(name)} has no time zone, but the given time has one.")
    return converted


def _with_gaps(values):
    """Return whole numbers and truths in a dtype that can hold nulls; others as they are."""
    if isinstance(values.dtype, pd.api.extensions.ExtensionDtype):
        return values
    if pd.api.types.is_bool_dtype(values.dtype):
        return values.astype("boolean")
    if pd.api.types.is_integer_dtype(values.dtype):
        return values.astype("UInt64" if values.dtype.kind == "u" else "Int64")
    return values


def _group_ids(frame, positions):
    """Return the number of each row's group, in order of first appearance; nulls are a group of their own."""
    if not positions:
        return pd.Series(0, index=frame.index)
    keys = [_plain(frame.iloc[:, at]) for at in positions]
    try:
        return frame.iloc[:, :0].groupby(keys, sort=False, dropna=False).ngroup()
    except TypeError:
        names = ", ".join(_shown(frame.columns[at]) for at in positions)
        raise ValueError(f"Rows cannot be compared by {names}: a value there is a list or a dict.") from None


def _aggregated(values, ids, count, function, name):
    """Return `function` of the values of each group 0 … count - 1."""
    kind = _kind(values)
    if function in ("sum", "mean", "median", "std", "var") and kind not in (
        "number",
        "truth",
        "span",
        "nothing",
    ):
        raise ValueError(f"{function} needs numbers, but the column {_shown(name)} holds {kind} values.")
    if function in ("min", "max") and kind == "mixed":
        raise ValueError(
            f"{function} needs values of one type, but the column {_shown(name)} holds mixed values."
        )
    whole = pd.api.types.is_integer_dtype(values.dtype)
    plain = _plain(values)
    if kind == "nothing" and function not in ("count", "distinct"):
        return pd.Series(pd.array([None] * count, dtype="Float64" if whole else "float64"))
    if kind == "truth" and function in ("sum", "mean", "median", "std", "var"):
        plain = plain.astype("Int64")
    if (
        function == "sum"
        and whole
        and len(values)
        and values.abs().astype("float64").groupby(ids).sum().max() > 9e18
    ):
        raise ValueError(f"The sum of {_shown(name)} does not fit into 64 bits.")
    if function == "median" and plain.dtype == object:
        plain = plain.astype("float64")
    grouped = plain.groupby(ids)
    if function == "distinct":
        try:
            found = grouped.nunique()
        except TypeError:
            raise ValueError(
                f"The values of {_shown(name)} cannot be compared: one is a list or a dict."
            ) from None
    elif function == "sum":
        found = grouped.sum(min_count=1)
    else:
        found = getattr(grouped, function)()
    return found.reindex(range(count))


def _require_new(names, of="the result"):
    """Raise ValueError where two of the result's columns would have one name."""
    seen = set()
    for name in names:
        if str(name) in seen:
            raise ValueError(f"Two columns of {of} would be called {_shown(name)}. Choose another name.")
        seen.add(str(name))
