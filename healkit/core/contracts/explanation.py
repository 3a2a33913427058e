"""Explanation of a failure in plain words, for every face."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterator
from typing import get_args

from healkit.config import ExplainLevel

#: Levels of explanation, from none to all.
LEVELS: tuple[ExplainLevel, ...] = get_args(ExplainLevel)


_TITLES = {
    "what": "What happened",
    "where": "Where",
    "why": "Why",
    "hint": "Hint",
    "fix": "Suggested fix",
}


#: Parts of an explanation that apply to tools only: a clause at the end of a sentence, or a whole sentence.
_FOR_TOOLS = re.compile(
    r"; for a tool, [^.]*(?=\.)"
    r"|(?:^|(?<=[.?!]) )(?:A tool |[^.?!;]*(?:`%vault grant |`hk\.provide`))[^.?!]*[.?!](?: |$)"
)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A failure in plain words, step by step; an empty step is not shown.

    code: The fix, as the new text of the changed lines; set only if every name in it is known.
    rule: Name of the `ExplanationText` that it was made from.
    linked: Explanations of the exceptions that caused the failure, or that its group contains.
    title: Relation of a linked explanation to the failure.
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
        """Return the steps up to that level; a teacher who chooses `hint` withholds the fix."""
        level_index = LEVELS.index(level)
        blank = {name: "" for i, name in enumerate(LEVELS) if i > level_index}
        code = self.code if level == LEVELS[-1] else ""
        linked = tuple(explanation.at(level) for explanation in self.linked if level_index)
        return dataclasses.replace(self, linked=linked, code=code, **blank)

    def of_cell(self) -> Explanation:
        """Return a copy for an ordinary cell, without the sentences that apply to tools only."""
        texts = {name: _FOR_TOOLS.sub("", getattr(self, name)).strip() for name in ("why", "hint", "fix")}
        return dataclasses.replace(
            self, linked=tuple(explanation.of_cell() for explanation in self.linked), **texts
        )

    def steps(self) -> Iterator[tuple[str, str]]:
        """Yield the title and the text of each step that is not empty, in order."""
        for name, title in _TITLES.items():
            if text := getattr(self, name):
                yield title, text
        if self.code:
            yield ("Code" if self.fix else _TITLES["fix"]), _as_code(self.code)
        for explanation in self.linked:
            yield explanation.title, explanation.in_one_line

    @property
    def in_one_line(self) -> str:
        """Summary of what happened, where, why and the fix, in one line."""
        sentences = (self.what, self.where, self.why, self.fix)
        return " ".join(text if text[-1] in ".?!:" else f"{text}." for text in sentences if text)

    def to_text(self) -> str:
        """Return the steps, one per line."""
        return "\n".join(f"{title}: {text}" for title, text in self.steps())

    def __str__(self) -> str:
        return self.to_text()


def _as_code(code: str) -> str:
    """Format code: in backquotes, or as an indented block if it has several lines."""
    return f"`{code}`" if "\n" not in code else "\n" + textwrap.indent(code, "    ")
