from typing import Literal

import pandas as pd


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
        raise ValueError("A join needs one column or more, and as many of the right view.")
    one, other = _keys(left, at_left), _keys(right, at_right)
    _check_kinds(one, other, on)
    one, other = one.dropna(), other.dropna()
    for keys, side, wanted in (
        (one, "left", ("one to one", "one to many")),
        (other, "right", ("one to one", "many to one")),
    ):
        if expect in wanted and keys.duplicated().any():
            raise ValueError(f"Not {expect}: a key stands more than once in the {side} view.")
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
                f"{_shown(name)} holds {kinds[0]} values in the left view, {kinds[1]} ones in the right."
            )
        if (getattr(one[at].dtype, "tz", None) is None) != (getattr(other[at].dtype, "tz", None) is None):
            raise ValueError(f"{_shown(name)} has a time zone in one view only.")
        if kinds[0] == "mixed":
            raise ValueError(f"{_shown(name)} holds mixed values, which cannot be joined on.")


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
