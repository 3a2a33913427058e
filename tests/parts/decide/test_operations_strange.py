"""Operations on strange views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_operations_tasks import in_process

from healkit.parts.decide.operations import OPERATIONS

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
