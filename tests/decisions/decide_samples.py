"""Choices, and a chooser that makes them in turn."""

from __future__ import annotations

from typing import Any

from healkit.decisions import Turn

Choice = dict[str, Any]


def op(tool: str, view: str, **params: Any) -> Choice:
    return {"type": "execute_data_op", "tool": tool, "params": params, "viewName": view}


def look(tool: str, **params: Any) -> Choice:
    return {"type": "gather_info", "tool": tool, "params": params}


def end(view: str) -> Choice:
    return {"type": "finalize", "finalViewName": view}


class Scripted:
    """Chooser that makes each choice in turn, whatever it is told; a stranger, unless it is told in full."""

    name = "scripted"

    def __init__(self, *choices: Any, told_in_full: bool = False) -> None:
        self.told_in_full = told_in_full
        self._choices = iter(choices)

    def choose(self, turn: Turn) -> Any:
        chosen = next(self._choices, None)
        if isinstance(chosen, BaseException):
            raise chosen
        return chosen
