"""Explanation of a failure in plain words.

Every face shows it so.
"""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterator
from typing import get_args

from healkit.config import ExplainLevel

#: The steps of an explanation, from nothing to all.
LEVELS: tuple[ExplainLevel, ...] = get_args(ExplainLevel)


_TITLES = {
    "what": "What happened",
    "where": "Where",
    "why": "Why",
    "hint": "Hint",
    "fix": "Suggested fix",
}


#: What a sentence says of tools alone: a clause at its end, or all of it.
_FOR_TOOLS = re.compile(
    r"; for a tool, [^.]*(?=\.)"
    r"|(?:^|(?<=[.?!]) )(?:A tool |[^.?!;]*(?:`%vault grant |`hk\.provide`))[^.?!]*[.?!](?: |$)"
)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A failure in plain words, step by step; a step with nothing to say is empty.

    `code` is the fix as the new text of the lines that it changes, where every name in it is known. `rule` is the name
    of the `ExplanationText` that it was made from. `linked` are the explanations of the exceptions that the failure was
    raised from, or that its group holds; `title` says of such a one what it is to the failure.
    """

    rule: str
    what: str
    where: str = ""
    why: str = ""
    hint: str = ""
    fix: str = ""
    code: str = ""
    linked: tuple[Explanation, ...] = ()
    title: str = ""

    def at(self, level: ExplainLevel) -> Explanation:
        """Return the steps up to that level: at `hint`, a teacher keeps the fix back."""
        level_index = LEVELS.index(level)
        blank = {name: "" for i, name in enumerate(LEVELS) if i > level_index}
        code = self.code if level == LEVELS[-1] else ""
        linked = tuple(explanation.at(level) for explanation in self.linked if level_index)
        return dataclasses.replace(self, linked=linked, code=code, **blank)

    def of_cell(self) -> Explanation:
        """Return it for an ordinary cell, without the sentences that only help with a tool."""
        texts = {name: _FOR_TOOLS.sub("", getattr(self, name)).strip() for name in ("why", "hint", "fix")}
        return dataclasses.replace(
            self, linked=tuple(explanation.of_cell() for explanation in self.linked), **texts
        )

    def steps(self) -> Iterator[tuple[str, str]]:
        """Yield the title and the text of each step that has one, in order."""
        for name, title in _TITLES.items():
            if text := getattr(self, name):
                yield title, text
        if self.code:
            yield ("Code" if self.fix else _TITLES["fix"]), _as_code(self.code)
        for explanation in self.linked:
            yield explanation.title, explanation.in_one_line

    @property
    def in_one_line(self) -> str:
        """Text of what happened, where, why and the fix, one after the other."""
        sentences = (self.what, self.where, self.why, self.fix)
        return " ".join(text if text[-1] in ".?!:" else f"{text}." for text in sentences if text)

    def to_text(self) -> str:
        """Write one step a line."""
        return "\n".join(f"{title}: {text}" for title, text in self.steps())

    def __str__(self) -> str:
        return self.to_text()


def _as_code(code: str) -> str:
    """Write code in backquotes; of several lines, one below the other."""
    return f"`{code}`" if "\n" not in code else "\n" + textwrap.indent(code, "    ")
