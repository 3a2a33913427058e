"""Parts of a task: its views, its steps, its right result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

DATA = Path(__file__).parents[1] / "data"
Frames = dict[str, pd.DataFrame]


def load(names: list[str]) -> Frames:
    """Read the task's views."""
    return {name: pd.read_csv(DATA / f"{name}.csv") for name in names}


def op(view: str, tool: str, **params: Any) -> dict[str, Any]:
    return {"type": "execute_data_op", "tool": tool, "params": params, "viewName": view}


def look(tool: str, **params: Any) -> dict[str, Any]:
    return {"type": "gather_info", "tool": tool, "params": params}


def out(tool: str, **params: Any) -> dict[str, Any]:
    return {"type": "execute_output", "tool": tool, "params": params}


def agg(column: str, function: str) -> dict[str, str]:
    return {"column": column, "function": function}


TASKS: list[dict[str, Any]] = []


def task(name: str, data: str, *steps: dict[str, Any]) -> Callable[[Callable[..., pd.DataFrame]], None]:
    """Add a task; the function decorated computes what is right."""
    names = data.split()
    final = [step for step in steps if step["type"] == "execute_data_op"][-1]["viewName"]
    every = [*steps, {"type": "finalize", "finalViewName": final}]

    def add(expect: Callable[..., pd.DataFrame]) -> None:
        TASKS.append({"name": name, "data": names, "steps": every, "expect": lambda frames: expect(**frames)})

    return add


def numbered(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.reset_index(drop=True)
