"""A change of a text that is no Python yet."""

from __future__ import annotations

from typing import NamedTuple

from healkit.failures.compiler import CompilerMessage
from healkit.failures.syntax_repair.lexing import Lines


class Change(NamedTuple):
    """What a text becomes, how far-fetched that is (about 1 for one sign), and what was done, as part of a sentence."""

    text: str
    cost: float
    done: str


class Draft:
    """A text, where Python stops reading it, and its lines."""

    def __init__(self, text: str, complaint: CompilerMessage) -> None:
        self.text = text
        self.lines = Lines(text)
        self.message = complaint.message
        self.line = min(max(complaint.line, 1), len(self.lines))
        self.column = min(complaint.column, len(self.lines.line(self.line)))
        self.at = self.lines.start(self.line) + self.column
        self.end_at = self.at
        if complaint.end_line and complaint.end_line <= len(self.lines) and complaint.end_column >= 0:
            self.end_at = max(self.at, self.lines.start(complaint.end_line) + complaint.end_column)

    @property
    def left(self) -> tuple[int, int]:
        """How much is not read yet: lines, and characters of the line."""
        return len(self.lines) - self.line, len(self.lines.line(self.line)) - self.column

    def replaced(self, start: int, end: int, new: str, cost: float, done: str) -> Change:
        """The change that puts something else between two places."""
        return Change(self.text[:start] + new + self.text[end:], cost, done)

    def where(self, at: int) -> int:
        """The line of a place."""
        return self.text.count("\n", 0, at) + 1
