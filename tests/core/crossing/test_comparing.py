"""Equality of values in checks, NaN equal to NaN.

It is that of `pandas.testing` and `numpy.testing`.
"""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from healkit.core.crossing import values

FRAME = pd.DataFrame({"a": [1, 2], "b": [1.5, float("nan")]})
NAN = float("nan")


EQUAL: list[tuple[Any, Any]] = [
    (FRAME, FRAME.copy()), (FRAME, FRAME.assign(b=[1.5 * (1 + 1e-6), NAN])), (FRAME["b"], FRAME["b"].copy()),
    (pd.date_range("2024-01-01", periods=2), pd.DatetimeIndex(["2024-01-01", "2024-01-02"])),
    (np.array([1.0, NAN]), np.array([1.0 + 1e-7, NAN])), (np.array([1, "a", None], dtype=object), np.array([1, "a", None], dtype=object)),
    (2.5, np.float64(2.5)), (np.int64(3), 3), (NAN, NAN), (pd.NaT, pd.NaT), ([1, FRAME], (1, FRAME)),
    ({"x": FRAME, "n": {1, 2}}, {"n": {2, 1}, "x": FRAME}), (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
]  # fmt: skip
DIFFERENT: list[tuple[Any, Any]] = [
    (FRAME, FRAME.assign(a=[1.0, 2.0])), (FRAME, FRAME[["b", "a"]]), (FRAME, FRAME.set_index(pd.Index([5, 6]))), (FRAME, FRAME.iloc[::-1]),
    (FRAME, FRAME.assign(b=[1.5, 0.0])), (FRAME, FRAME.to_dict()), (FRAME["b"], FRAME["b"].rename("c")), (np.array([1.0, 2.0]), np.array([1, 2])),
    (np.array([1.0, 2.0]), np.array([[1.0, 2.0]])), (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)), ((1, 2), [1, 2]),
    ({1, 2}, [1, 2]), (True, 1), (np.bool_(True), 1), (1.0, 1.0 + 1e-6), (None, NAN), (datetime.date(2024, 1, 1), "2024-01-01"),
    ({"x": 1}, {"x": 1, "y": 2}),
]  # fmt: skip


@pytest.mark.requirement("DATA-5")
@pytest.mark.parametrize(("expected", "found"), EQUAL)
def test_values_that_are_equal_in_a_check(expected: Any, found: Any) -> None:
    """A float may differ by rounding, an index by its frequency, and NaN equals NaN."""
    assert values.equal(expected, found)
    assert values.meets(values.kept(expected), found)


@pytest.mark.requirement("DATA-5")
@pytest.mark.parametrize(("expected", "found"), DIFFERENT)
def test_values_that_differ_in_a_check(expected: Any, found: Any) -> None:
    """Dtypes, labels, order and types count."""
    assert not values.equal(expected, found)


def test_an_expectation_in_json_is_met_as_before_by_tuples_and_sets() -> None:
    assert values.meets([1, 2], (1, 2))
    assert values.meets([1, 2], {1, 2})
    assert values.meets({"shape": [1, 1], "columns": ["a"], "rows": [[1]]}, pd.DataFrame({"a": [1]}))
    assert not values.meets([1, 2], (2, 1))


def test_the_record_of_a_large_frame_is_met_by_its_preview() -> None:
    large = pd.DataFrame({"a": range(1000)})
    recorded = values.readable(large)[0]
    assert recorded["type"] == "DataFrame"
    assert values.meets(recorded, large.copy())
    assert not values.meets(recorded, large + 1)


class _Loud:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    __hash__ = None  # type: ignore[assignment]  # as Python has it for a class with __eq__


def test_a_value_that_cannot_be_compared_is_not_equal() -> None:
    assert not values.equal(_Loud(), _Loud())


KEPT = [
    FRAME,
    {"df": FRAME, "n": 1},
    (1, {2}),
    {1: 2},
    {"@": ["tuple", [1]]},
    NAN,
    np.eye(2),
    [datetime.date(2024, 1, 1)],
]


@pytest.mark.parametrize("value", KEPT)
def test_a_kept_value_is_json_and_can_be_made_again(value: Any) -> None:
    kept = values.kept(value)
    assert values.has_tags(kept)
    assert values.equal(value, values.remade(kept))
    assert values.adopted(kept) == kept


def test_texts_of_frames_and_arrays_are_readable() -> None:
    texts = values.with_texts({"df": values.kept(FRAME), "n": [1]})
    assert texts == {"df": "DataFrame({'a': [1, 2], 'b': [1.5, nan]})", "n": [1]}
    assert values.value_text(values.kept(FRAME["a"])) == "Series([1, 2], name='a')"
    assert values.value_text(values.kept(np.array([1.0]))) == "array([1.0])"
    long = values.value_text(values.kept(pd.DataFrame({"a": range(50)})))
    assert long.endswith("11, …]})")
    days = pd.Series(pd.to_datetime(["2024-01-01"]), index=["x"])
    assert values.value_text(values.kept(days)) == "Series(['2024-01-01'], index=['x'])"
    assert (
        values.call_text("f", {"df": values.kept(FRAME[["a"]]), "n": 2})
        == "f(df=DataFrame({'a': [1, 2]}), n=2)"
    )


def test_the_difference_between_two_frames_fits_one_line() -> None:
    told = values.why_different(values.kept(FRAME), values.kept(FRAME.assign(a=[1, 3])))
    assert "\n" not in told
    assert 'column name="a"' in told
    assert "found: [1, 3]" in told
    assert values.why_different([1], [2]) == ""
    assert values.why_different(values.kept(FRAME), values.kept((1,))) == ""
