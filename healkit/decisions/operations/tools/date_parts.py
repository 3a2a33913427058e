from typing import Literal

import pandas as pd


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
    zone are told in `timezone` if it is given, else in their own. week is ISO 8601's, weekday is 1 (Monday) to 7.
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
        columns.append(_part(moments, part))
        labels.append(f"{column}_{part}")
    for label in labels[len(table.columns) :]:
        if labels.count(label) > 1:
            raise ValueError(f"There is a column {_shown(label)} already.")
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
                f"The times in {_shown(name)} have several zones, or no such format. Give a `timezone`."
            ) from None
        if moments.dtype == object:
            raise ValueError(f"The times in {_shown(name)} have several zones. Give a `timezone`.")
        wrong = moments.isna() & values.notna()
        if wrong.any():
            where = f"the first of {int(wrong.sum())} is in row {int(wrong.idxmax())}"
            raise ValueError(
                f"{_shown(name)} holds values that are no dates in {form or 'ISO 8601'}; {where}."
            )
    else:
        raise ValueError(
            f"The column {_shown(name)} holds {kind} values. Dates in whole numbers need a `format`, such as '%Y%m%d'."
        )
    if zone is None:
        return moments
    if moments.dt.tz is None:
        raise ValueError(f"The times in {_shown(name)} have no zone, so they cannot be told in another one.")
    try:
        return moments.dt.tz_convert(zone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"There is no time zone {_shown(zone)}.") from None


def _zoned(text):
    """Return if the first text has a zone."""
    first = text.dropna()
    return len(first) > 0 and pd.Timestamp(first.iloc[0]).tzinfo is not None


def _part(moments, part):
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
