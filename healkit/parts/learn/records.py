"""Executions with what was expected of them."""

from __future__ import annotations

import dataclasses
from datetime import datetime


@dataclasses.dataclass(frozen=True)
class Surprise:
    """Execution, or a call in it (`task_id`), with what was expected of it; its fields are the table's columns.

    predicted: how likely it was to end well, 0 to 1, for a call discounted by the calls after it. visits: how often its
    state was seen before. model_version: which way of counting made the numbers.
    """

    trace_id: str
    task_id: str
    tool_name: str
    timestamp: datetime
    predicted: float
    succeeded: bool
    td_error: float
    priority: float
    visits: int
    model_version: int

    def __str__(self) -> str:
        """Say it in one line."""
        call = f" {self.task_id}" if self.task_id else ""
        ended = "succeeded" if self.succeeded else "failed"
        expected = f"expected to succeed at {self.predicted:.0%}"
        return f"{self.tool_name}{call} {ended}, {expected}: priority {self.priority:.2f}"


@dataclasses.dataclass(frozen=True, repr=False)
class Sampled(Surprise):
    """Execution that was drawn.

    probability: the chance of one draw to give it. weight: its importance, 1/(N·P)^β over the largest of the sample, by
    which what is learned from it is scaled.
    """

    probability: float
    weight: float
