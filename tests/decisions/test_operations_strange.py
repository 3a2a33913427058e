"""Operations on strange views.

They give a view or say in one sentence what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_operations_tasks import in_process

from healkit import Healkit
from healkit.decisions import Turn
from healkit.decisions.choosers import told
from healkit.decisions.decision import Decision
from healkit.decisions.operations import OPERATIONS, install

LONG = "x" * 2000
WIDE = pd.DataFrame(np.arange(4_000.0).reshape(2, 2_000), columns=[f"c{at}" for at in range(2_000)])
STRANGE: dict[str, tuple[str, pd.DataFrame]] = {
    "no rows": ("v", pd.DataFrame({"k": pd.Series([], dtype="str"), "v": pd.Series([], dtype="float64"),
                                   "d": pd.Series([], dtype="datetime64[ns]")})),
    "no columns": ("v", pd.DataFrame(index=range(3))),
    "labels twice": ("v", pd.DataFrame([["a", 1.0, 2.0, "2024-01-01"], ["b", 1.0, 3.0, None]],
                                       columns=["k", "v", "v", "d"])),
    "a column __proto__": ("__proto__", pd.DataFrame({"k": ["a", "b"], "__proto__": [1.0, 2.0], "d": ["2024-01-01"] * 2})),
    "a long name": (LONG, pd.DataFrame({"k": ["a", "b"], LONG: [1.0, 2.0], "d": ["2024-01-01"] * 2})),
    "2,000 columns": ("c9", WIDE.assign(k=["a", "b"], d=["2024-01-01"] * 2)),
}  # fmt: skip
#: Operations that a view without columns, or with a label twice, still has a right result for.
WHOLE = {"view_schema", "drop_duplicates", "drop_nulls", "export_report"}


def calls(value: str) -> dict[str, dict[str, Any]]:
    """Return the parameters of each operation; value: the column of numbers."""
    return {
        "view_schema": {},
        "resolve_entity": {"column": "k", "entity": "A"},
        "filter_rows": {"column": value, "operator": ">=", "value": 1},
        "select_columns": {"columns": [value], "rename": {value: "__proto__"}},
        "join_views": {"on": ["k"]},
        "group_rows": {"by": ["k"], "aggregates": {"__proto__": {"column": value, "function": "sum"}}},
        "sort_rows": {"by": [value]},
        "top_rows": {"by": value, "n": 1},
        "pivot_rows": {"rows": ["d"], "columns": "k", "values": value},
        "unpivot_columns": {"keep": ["k", "d"]},
        "date_parts": {"column": "d", "parts": ["year"]},
        "drop_duplicates": {},
        "drop_nulls": {},
        "fill_nulls": {"column": value, "value": 0},
        "replace_values": {"column": "k", "replacements": {"a": "c"}, "must_occur": False},
        "view_sql": {"query": "SELECT * FROM data"},
        "draw_chart": {"kind": "bar", "x": "k", "y": [value], "form": "vega-lite"},
        "export_csv": {},
        "export_parquet": {},
        "export_notebook": {"title": "T"},
        "export_report": {"title": "T"},
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGE)
def test_each_operation_has_a_result_or_says_what_is_wrong(name: str) -> None:
    value, frame = STRANGE[name]
    before = frame.copy(deep=True)
    assert set(calls(value)) == {one.name for one in OPERATIONS}
    refused: dict[str, str] = {}
    for tool, params in calls(value).items():
        views = {"left": frame, "right": frame} if tool == "join_views" else {"data": frame}
        try:
            made = in_process(tool)(**views, **params)
        except ValueError as error:
            refused[tool] = str(error)
        else:
            assert isinstance(made, pd.DataFrame | str | bytes)
            assert not isinstance(made, pd.DataFrame) or isinstance(made.index, pd.RangeIndex)
    pd.testing.assert_frame_equal(frame, before)
    assert all(said.endswith((".", "?")) and len(said) < 200 for said in refused.values()), refused
    if name == "labels twice":
        assert all("2 columns 'v'" in said or "Two columns" in said for said in refused.values())
        assert WHOLE.isdisjoint(refused)
    elif name == "no columns":
        assert all("no column" in said for said in refused.values())
        assert WHOLE.isdisjoint(refused)
    else:
        assert refused == {}


@pytest.fixture(scope="module")
def equipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Healkit]:
    with Healkit(tmp_path_factory.mktemp("strange") / "healkit.db") as opened:
        install(opened)
        yield opened


class Scripted:
    """Chooser that makes each choice in turn, whatever it is told."""

    name = "scripted"
    told_in_full = True

    def __init__(self, *choices: Any) -> None:
        self._choices = iter(choices)

    def choose(self, _turn: Turn) -> Any:
        return next(self._choices, None)


def decided(hk: Healkit, frame: pd.DataFrame, *steps: tuple[str, dict[str, Any]]) -> Decision:
    """Let each step make a view of its own of the one before; end with the last."""
    choices = [
        {"type": "execute_data_op", "tool": tool, "viewName": f"v{at}", "params": {"data": f"v{at - 1}" if at > 1 else "data", **params}}
        for at, (tool, params) in enumerate(steps, 1)
    ]  # fmt: skip
    return hk.decide("Which?", {"data": frame}, chooser=Scripted(*choices, {"type": "finalize", "finalViewName": f"v{len(steps)}"}))  # fmt: skip


def result(hk: Healkit, decision: Decision) -> pd.DataFrame:
    assert decision.outcome == "finalized", decision.sent[-1].steps
    assert hk.audit.verify().ok
    return hk.views.load(str(decision.raw_data_view_name))


@pytest.mark.slow
@pytest.mark.requirement("DECIDE-2")
def test_a_view_without_rows_goes_through_a_decision(equipped: Healkit) -> None:
    totals = {"n": {"function": "rows"}, "most": {"column": "v", "function": "max"}}
    decision = decided(
        equipped, STRANGE["no rows"][1],
        ("filter_rows", {"column": "v", "operator": ">", "value": 3}), ("sort_rows", {"by": ["v"]}),
        ("group_rows", {"by": [], "aggregates": totals}),
    )  # fmt: skip
    found = result(equipped, decision)
    assert found["n"].tolist() == [0]
    assert found["most"].isna().tolist() == [True]
    assert [step.row_count for step in decision.sent[-1].steps] == [0, 0, 1]


@pytest.mark.slow
def test_a_column_of_a_strange_name_is_chosen_by_it_or_by_its_number(equipped: Healkit) -> None:
    named = decided(
        equipped, STRANGE["a column __proto__"][1],
        ("filter_rows", {"column": "__proto__", "operator": "==", "value": 2}),
    )  # fmt: skip
    assert result(equipped, named)["k"].tolist() == ["b"]
    numbered = decided(
        equipped, STRANGE["a long name"][1],
        ("filter_rows", {"column": "data#2", "operator": "==", "value": 2}),
        ("select_columns", {"columns": ["k"]}),
    )  # fmt: skip
    assert result(equipped, numbered)["k"].tolist() == ["b"]
    assert LONG[:100] not in "".join(map(told, numbered.sent))


@pytest.mark.slow
def test_a_label_that_stands_twice_fails_a_step_and_keeps_the_others(equipped: Healkit) -> None:
    frame = STRANGE["labels twice"][1]
    choices = [
        {"type": "execute_data_op", "tool": "sort_rows", "viewName": "a", "params": {"data": "data", "by": ["v"]}},
        {"type": "execute_data_op", "tool": "sort_rows", "viewName": "b", "params": {"data": "data", "by": ["k"]}},
        {"type": "finalize", "finalViewName": "b"},
    ]  # fmt: skip
    decision = equipped.decide("Which?", {"data": frame}, chooser=Scripted(*choices))
    failed, done = decision.sent[-1].steps
    assert (failed.error_code, failed.error_type, failed.error_column) == (
        "TOOL_EXCEPTION",
        "ValueError",
        "v",
    )
    assert done.success
    pd.testing.assert_frame_equal(result(equipped, decision), frame)


@pytest.mark.slow
def test_a_view_of_2_000_columns_goes_through_a_decision(equipped: Healkit) -> None:
    decision = decided(
        equipped, WIDE,
        ("top_rows", {"by": "c5", "n": 1}),
        ("select_columns", {"columns": ["c0", "c1999"]}),
    )  # fmt: skip
    assert result(equipped, decision).values.tolist() == [[2_000.0, 3_999.0]]
    assert [view.columns_left_out for view in decision.sent[-1].views] == [1_800, 1_800, 0]
    assert max(len(told(turn)) for turn in decision.sent) < 200_000
