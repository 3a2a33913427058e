"""Tasks on public data: the same frame as with plain pandas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from decide_tasks import TASKS, load

from healkit.parts.decide.operations import OPERATIONS, operation


def in_process(name: str) -> Callable[..., Any]:
    """Return an operation as a function of this process: its code, as the vault stores it."""
    namespace: dict[str, Any] = {}
    exec(compile(operation(name).code, name, "exec"), namespace)
    return namespace[name]


def played(task: dict[str, Any]) -> tuple[pd.DataFrame, list[tuple[str, Any]]]:
    """Take the steps of a task in this process; return the final view and the outputs."""
    views: dict[str, Any] = load(task["data"])
    outputs: list[tuple[str, Any]] = []
    for step in task["steps"]:
        if step["type"] == "finalize":
            return views[step["finalViewName"]], outputs
        frames = {"data", "left", "right"} if step["tool"] != "view_sql" else set(step["params"]) - {"query"}
        params = {name: views[value] if name in frames else value for name, value in step["params"].items()}
        value = in_process(step["tool"])(**params)
        if step["type"] == "execute_data_op":
            views[step["viewName"]] = value
        elif step["type"] == "execute_output":
            outputs.append((step["tool"], value))
    raise AssertionError("no final view")


def check_output(tool: str, value: Any, view: pd.DataFrame) -> None:
    import io

    if tool == "draw_chart":
        assert (
            value.startswith(b"\x89PNG")
            if isinstance(value, bytes)
            else len(json.loads(value)["data"]["values"]) == len(view)
        )
    elif tool == "export_parquet":
        pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(value)), view)
    elif tool == "export_csv":
        pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(value)), view)
    elif tool == "export_report":
        assert f"{len(view)} rows, {view.shape[1]} columns." in value
    else:
        import nbformat

        nbformat.validate(nbformat.reads(value, as_version=4))


def test_each_operation_is_in_a_task() -> None:
    assert len({task["name"] for task in TASKS}) == len(TASKS)
    used = {step["tool"] for task in TASKS for step in task["steps"] if "tool" in step}
    assert used == {one.name for one in OPERATIONS}
    json.dumps([task["steps"] for task in TASKS])


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["name"])
def test_a_task_ends_in_the_right_frame(task: dict[str, Any]) -> None:
    found, outputs = played(task)
    pd.testing.assert_frame_equal(found, task["expect"](load(task["data"])), check_exact=False, rtol=1e-12)
    assert isinstance(found.index, pd.RangeIndex)
    for tool, value in outputs:
        check_output(tool, value, found)
