"""Choices, and a chooser that makes them in turn."""

from __future__ import annotations

from typing import Any

import pandas as pd

from healkit import Healkit
from healkit.parts.decide import Turn
from healkit.parts.decide.decision import Decision

#: The tools of `deciding`, and its usual data.
ALL = ["pick", "totals", "spread", "regions", "as_numbers", "to_csv"]
SALES = pd.DataFrame(
    {"region": ["North", "South", "Meta Inc", "North", None], "sales": [1.0, 2.0, 3.0, 4.0, 5.0]}
)
Choice = dict[str, Any]


def op(tool: str, view: str, **params: Any) -> Choice:
    return {"type": "execute_data_op", "tool": tool, "params": params, "viewName": view}


def look(tool: str, **params: Any) -> Choice:
    return {"type": "gather_info", "tool": tool, "params": params}


def end(view: str) -> Choice:
    return {"type": "finalize", "finalViewName": view}


def decide(hk: Healkit, chooser: Any, data: Any = None, **more: Any) -> Decision:
    """Decide with all tools, on the sales unless other data is given."""
    return hk.decide("Which?", {"sales": SALES} if data is None else data, tools=ALL, chooser=chooser, **more)


class Scripted:
    """Chooser that makes the given choices in turn; a stranger, unless `told_in_full` is set."""

    name = "scripted"

    def __init__(self, *choices: Any, told_in_full: bool = False) -> None:
        self.told_in_full = told_in_full
        self._choices = iter(choices)

    def choose(self, turn: Turn) -> Any:
        chosen = next(self._choices, None)
        if isinstance(chosen, BaseException):
            raise chosen
        return chosen
