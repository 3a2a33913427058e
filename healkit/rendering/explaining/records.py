"""What an explanation is, and what a rule is that makes one."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Literal, get_args

from healkit.config import ExplainLevel

#: How much is told, from nothing to all.
LEVELS: tuple[ExplainLevel, ...] = get_args(ExplainLevel)
_TITLES = {
    "what": "What happened",
    "where": "Where",
    "why": "Why",
    "hint": "Hint",
    "fix": "A way to mend it",
}


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A failure in plain words, step by step; a step that there is nothing to say about is empty.

    `rule` names the row of the tables that it was made by.
    """

    rule: str
    what: str
    where: str = ""
    why: str = ""
    hint: str = ""
    fix: str = ""

    def at(self, level: ExplainLevel) -> Explanation:
        """The same, up to that level: a teacher's `hint` keeps the way to mend it back."""
        kept = LEVELS.index(level)
        blank = {name: "" for i, name in enumerate(LEVELS) if i > kept}
        return dataclasses.replace(self, **blank)

    def steps(self) -> Iterator[tuple[str, str]]:
        """Title and text of each step that has one, in their order."""
        for name, title in _TITLES.items():
            if text := getattr(self, name):
                yield title, text

    def to_text(self) -> str:
        """One step a line."""
        return "\n".join(f"{title}: {text}" for title, text in self.steps())

    def __str__(self) -> str:
        return self.to_text()


@dataclasses.dataclass(frozen=True)
class Rule:
    """One kind of failure.

    enames: exception types by their bare names, or codes of `healkit.errors`. message: a regular expression that is
    searched for in the message; its named groups, and `{ename}`, `{message}`, `{near}` (names like the one that was
    not found) and `{known}` (names that were there) can stand in the texts. needs: only where there are such names.
    example: code that fails so; the tests run it and see that this rule explains it.
    """

    name: str
    enames: tuple[str, ...]
    message: str
    what: str
    why: str = ""
    hint: str = ""
    fix: str = ""
    needs: Literal["", "near", "known"] = ""
    example: str = ""

    def match(self, ename: str, evalue: str) -> re.Match[str] | None:
        """The message's match if the rule is about that failure; a rule without types is about all of them."""
        if self.enames and ename not in self.enames:
            return None
        return re.search(self.message, evalue, re.DOTALL)
