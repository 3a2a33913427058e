"""Summaries of frames and arrays."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from healkit.errors import UsageInvalid
from healkit.parts.decide.frame_summaries import COLUMNS_MAX
from healkit.parts.decide.summaries import summarize
from healkit.parts.decide.summary_records import ColumnSummary, Counted, FrameSummary
from healkit.parts.sanitizer.sanitizer import Sanitizer

pytestmark = pytest.mark.requirement("DECIDE-7")
SANITIZER = Sanitizer()


def summary_of(frame: Any, top: int = 10) -> FrameSummary:
    found = summarize(frame, SANITIZER, top=top)
    assert isinstance(found, FrameSummary)
    return found


def column(values: Any, name: str = "x") -> ColumnSummary:
    return summary_of(pd.DataFrame({name: values})).columns[0]


def test_numbers_have_what_pandas_describes() -> None:
    values = pd.Series([3.5, None, 1, 2, 2])
    found, described = column(values), values.describe()
    assert (found.dtype, found.nulls, found.distinct) == ("float64", 1, 3)
    assert [found.mean, found.std, found.min, found.q25, found.median, found.q75, found.max] == pytest.approx(
        described.tolist()[1:]
    )


def test_texts_categories_and_truth_values_have_the_most_frequent() -> None:
    assert column(["b", "a", "b", None, "longer"]) == ColumnSummary(
        "x",
        "str",
        1,
        3,
        min_chars=1,
        max_chars=6,
        top=(Counted("b", 2), Counted("a", 1), Counted("longer", 1)),
    )
    assert column(pd.Categorical(["a", "b", "a"], ["a", "b", "z"])).top == (Counted("a", 2), Counted("b", 1))
    assert column([True, False, True]).top == (Counted("True", 2), Counted("False", 1))


def test_times_have_their_range() -> None:
    found = column(pd.date_range("2024-01-01", periods=3, tz="Europe/Zurich"))
    assert (found.min, found.max) == ("2024-01-01T00:00:00+01:00", "2024-01-03T00:00:00+01:00")
    assert column([dt.date(2024, 1, 2), dt.date(2024, 1, 1)]).min == "2024-01-01"
    assert column(pd.to_timedelta([1, 2], unit="s")).max == "0 days 00:00:02"


def test_objects_have_their_classes() -> None:
    found = column(pd.Series([1, "a", [2], None], dtype=object))
    assert found.types == (Counted("int", 1), Counted("str", 1), Counted("list", 1))
    assert (found.nulls, found.distinct) == (1, None)
    assert column([decimal.Decimal("1.10"), decimal.Decimal(2)]).min == "1.10"


def test_an_object_whose_own_code_raises_costs_its_column_the_statistics_only() -> None:
    class Hostile:
        def __hash__(self) -> int:
            raise RuntimeError

        __lt__ = __eq__ = __str__ = __repr__ = __hash__  # type: ignore[assignment]  # they raise too

    found = summary_of(pd.DataFrame({"x": [Hostile(), Hostile()], "y": [1, 2]}))
    assert found.columns[0].types == (Counted("Hostile", 2),)
    assert found.columns[1].max == 2
    for objects in (pd.Series([object(), 1]), pl.Series([object(), 1], dtype=pl.Object)):
        assert summary_of(objects).columns[0].min is None  # its text has an address, which differs each time


FRAME = pd.DataFrame(
    {"n": pd.array([1, None, 2**60 + 1], "Int64"), "t": ["a", "b", None], "f": [1.5, float("nan"), 3]}
)
FORMS: dict[str, Any] = {
    "pandas.DataFrame": FRAME,
    "pyarrow.Table": pa.Table.from_pandas(FRAME),
    "pyarrow.RecordBatch": pa.RecordBatch.from_pandas(FRAME),
    "polars.DataFrame": pl.from_arrow(pa.Table.from_pandas(FRAME)),
}


@pytest.mark.parametrize("kind", FORMS)
def test_each_kind_of_frame_has_the_same_facts(kind: str) -> None:
    found = summary_of(FORMS[kind])
    assert (found.kind, found.shape, found.nulls) == (kind, (3, 3), 3)
    facts = [(one.name, one.nulls, one.distinct, one.min, one.max, one.top) for one in found.columns]
    assert facts == [
        ("n", 1, 2, 1, 2**60 + 1, ()),
        ("t", 1, 2, None, None, (Counted("a", 1), Counted("b", 1))),
        ("f", 1, 2, 1.5, 3, ()),
    ]


class Speaks:
    """Frame of another package, which has Arrow's interface."""

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return FORMS["pyarrow.Table"].__arrow_c_stream__(requested)


@pytest.mark.parametrize(
    ("value", "shape", "names"),
    [
        (np.zeros((2, 3)), (2, 3), ["0", "1", "2"]), (np.zeros((2, 3, 4)), (2, 3, 4), ["values"]),
        (np.array(3), (), ["values"]), (np.array([("a", 1)], [("n", "U2"), ("v", "i4")]), (1,), ["n", "v"]),
        (pd.Series([1, 2], name="s"), (2,), ["s"]), (pd.Index(["a"]), (1,), ["values"]),
        (pa.array([1]), (1,), ["values"]), (pa.chunked_array([[1], [2]]), (2,), ["values"]),
        (pl.Series("z", [1, 2]), (2,), ["z"]), (Speaks(), (3, 3), ["n", "t", "f"]), (pd.DataFrame(), (0, 0), []),
        (np.ones((1, 2)).view(np.matrix), (1, 2), ["0", "1"]), (np.zeros(2, "V4"), (2,), ["values"]),
        (np.zeros(2, np.longdouble), (2,), ["values"]), (np.ma.array([1, 2], mask=[False, True]), (2,), ["values"]),
        (pl.DataFrame({"i": pl.Series([2**100], dtype=pl.Int128)}), (1, 1), ["i"]),
        (pa.table({"n": pa.nulls(2), "u": pa.array([b"0" * 16] * 2, pa.uuid())}), (2, 2), ["n", "u"]),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), (1, 2), ["a", "a"]),
        (pa.table({"l": [[1], None], "s": [{"k": 1}] * 2, "b": [b"x", b"y"]}), (2, 3), ["l", "s", "b"]),
    ],
)  # fmt: skip
def test_arrays_and_series_are_summarised_too(value: Any, shape: tuple[int, ...], names: list[str]) -> None:
    found = summary_of(value)
    assert (found.shape, [one.name for one in found.columns]) == (shape, names)
    assert str(found)
    assert msgspec.json.decode(msgspec.json.encode(found), type=FrameSummary).shape == shape


@pytest.mark.parametrize("value", [{}, [1, 2], b"x", None, 3, object()])
def test_a_value_of_another_kind_is_refused_with_its_type(value: object) -> None:
    with pytest.raises(UsageInvalid, match=type(value).__name__):
        summary_of(value)


def test_what_the_sanitiser_hides_is_hidden_in_names_ranges_and_values() -> None:
    frame = pd.DataFrame(
        {"password": ["Quetzal-77-Zebra", "abc"], "phone": [4155552671, 4155552672], "ann@corp.com": [1, 2],
         "note": ["write to bob@corp.com", "none"]}
    )  # fmt: skip
    found = summary_of(frame)
    password, phone, named, note = found.columns
    assert {entry.text for entry in password.top} == {"[REDACTED:secret-name]"}
    assert (phone.min, phone.max, phone.mean, phone.median) == ("[PHONE]", "[PHONE]", None, None)
    assert named.name == "[EMAIL]"
    assert note.top[0].text == "write to [EMAIL]"
    enum = pl.Series(["bob@corp.com"], dtype=pl.Enum(["bob@corp.com"]))
    told = msgspec.json.encode((found, summary_of(enum))).decode() + str(found) + str(summary_of(enum))
    assert not any(part in told for part in ("Quetzal", "abc", "41555", "corp.com"))


def test_control_characters_and_long_values_are_shown_on_one_short_line() -> None:
    found = column(pd.Series(["\u202ea\x1b[31m\nb", "x" * 10_000, "\ud800"], dtype=object))
    assert found.max_chars == 10_000
    assert all(len(entry.text) <= 80 and "\n" not in entry.text for entry in found.top)
    assert "\u202e" not in str(found)
    assert msgspec.json.encode(found)


@pytest.mark.slow
def test_a_wide_frame_is_summarised_in_part_and_says_so() -> None:
    found = summary_of(pd.DataFrame(np.zeros((1, COLUMNS_MAX + 5))))
    assert (len(found.columns), found.left_out) == (COLUMNS_MAX, 5)
    assert "5 more columns" in str(found)
