"""Answers, with how many traces wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from healkit.plain_text import count

_T = TypeVar("_T")


class Answers(list[_T]):
    """Answer from the learned data.

    waiting: How many traces were not learned yet.
    """

    def __init__(self, rows: Iterable[_T] = (), waiting: int = 0) -> None:
        super().__init__(rows)
        self.waiting = waiting


def sentence_of(waiting: int) -> str:
    """Say how many traces are waiting, and how to wait for them; empty if there are none."""
    if not waiting:
        return ""
    many = count(waiting, "trace")
    return f"Not learned yet: {many}. To wait for them: hk.learning.catch_up(), or `healkit learn catch-up`."
