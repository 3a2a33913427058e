"""What an edit does to tables, columns and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from healkit.parts.trials.table_changes import Seen

pytestmark = pytest.mark.requirement("MEAN-2")
TEXTS = pd.Series(["1", "x", "3"])
DATES = pd.Series(["05/03/2024", "06/04/2024"])
GAPS = pd.Series([1.5, None, 2.5])
TABLE = pd.DataFrame({"k": [1, 2], "v": ["a", "b"]})


@pytest.mark.parametrize(
    ("operand", "result", "lost"),
    [
        (TEXTS, pd.to_numeric(TEXTS, errors="coerce"), ["1 of 3 values become missing."]),
        (GAPS, GAPS.fillna(0), ["1 missing value is filled in."]),
        (GAPS, GAPS.dropna(), []),
        (GAPS, GAPS[GAPS > 9], ["No row is left."]),
        (TEXTS, pd.Series([0, 0, 0]), ["All 3 values become 0."]),
        (pd.Series([1.5, 2.0]), pd.Series([1, 2]), ["1 of 2 numbers lose their decimals."]),
        (np.array([1.0, 2.0]), np.array([1.0, np.nan]), ["1 of 2 values become missing."]),
        (pl.DataFrame({"a": ["x", "y"]}), pl.DataFrame({"a": [None, None]}), None),
        (TABLE, TABLE.assign(v=[None, None]), None),
        (TEXTS, TEXTS.astype("category"), []),
        (pd.Series(["1", "2"]), pd.Series([1, 2]), []),
        (3, "text", []),
    ],
)
def test_what_is_lost_is_said_in_numbers(operand: Any, result: Any, lost: list[str] | None) -> None:
    seen = Seen()
    assert seen.operand(1, operand) is operand
    assert seen.result(result, "f") is result
    found = seen.sentences()["lost"]
    assert (found != []) if lost is None else (found == lost)


def test_rows_that_are_left_out_are_counted() -> None:
    seen = Seen()
    seen.operand(1, TABLE)
    seen.result(TABLE.iloc[:1], "head")
    assert seen.sentences()["rows"] == ["1 row of 2 is left out."]


@pytest.mark.parametrize(
    ("texts", "unsure"), [(DATES, True), (pd.Series(["25/03/2024", "06/04/2024"]), False)]
)
def test_a_day_that_may_be_a_month_is_said(texts: Any, unsure: bool) -> None:
    seen = Seen()
    seen.operand(1, texts)
    seen.result(pd.to_datetime(texts, dayfirst=True), "to_datetime")
    assert bool(seen.sentences()["unsure"]) is unsure


def test_an_operand_is_compared_as_it_was_when_it_was_read() -> None:
    seen, column = Seen(), pd.Series([1.0, 2.0])
    seen.operand(1, column)
    column[:] = np.nan
    seen.result(column, "f")
    assert seen.sentences()["lost"] == ["2 of 2 values become missing."]


def test_a_call_that_makes_gaps_is_not_blamed_for_them() -> None:
    seen, column = Seen(), pd.Series([1.0, 2.0])
    seen.operand(1, column)
    seen.result(column.shift(1), "shift")
    assert seen.sentences()["lost"] == []
