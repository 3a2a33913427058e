"""Rows of the failure catalogue.

A `FailurePattern` is one kind of failure: which exceptions with which message. It explains the failure in sentences,
and where a fix is known, proposes it. A message pattern is written once, and all that is known of it stands below.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar, get_args

from healkit.config import ExplainLevel
from healkit.contracts.healing import Edit
from healkit.failures.site import Site

_log = logging.getLogger(__name__)
Item = TypeVar("Item")

#: The steps of an explanation, from nothing to all.
LEVELS: tuple[ExplainLevel, ...] = get_args(ExplainLevel)
_TITLES = {
    "what": "What happened",
    "where": "Where",
    "why": "Why",
    "hint": "Hint",
    "fix": "Suggested fix",
}

#: In the place of an exception type: the tool returns, and the result is wrong.
NO_EXCEPTION = ""
#: The kinds that a diagnosis tells apart.
Kind = Literal[
    "syntax", "import", "name", "attribute", "key", "path", "type", "value", "zero", "index", "assertion",
    "wrong_value", "timeout", "memory", "crash", "arguments", "limits", "other",
]  # fmt: skip


def spared(items: Iterable[Item], row: str) -> Iterator[Item]:
    """Yield what a row yields until it raises, so that its mistake costs its own rest only."""
    try:
        yield from items
    except Exception:  # noqa: BLE001 - a row of the catalogue reads foreign code and messages
        _log.debug("the row %s of the failure catalogue raises", row, exc_info=True)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A failure in plain words, step by step; a step with nothing to say is empty.

    `rule` is the name of the `ExplanationText` that it was made from. `linked` are the explanations of the exceptions
    that the failure was raised from, or that its group holds; `title` says of such a one what it is to the failure.
    """

    rule: str
    what: str
    where: str = ""
    why: str = ""
    hint: str = ""
    fix: str = ""
    linked: tuple[Explanation, ...] = ()
    title: str = ""

    def at(self, level: ExplainLevel) -> Explanation:
        """Return the steps up to that level: at `hint`, a teacher keeps the fix back."""
        kept = LEVELS.index(level)
        blank = {name: "" for i, name in enumerate(LEVELS) if i > kept}
        linked = tuple(one.at(level) for one in self.linked if kept)
        return dataclasses.replace(self, linked=linked, **blank)

    def steps(self) -> Iterator[tuple[str, str]]:
        """Yield the title and the text of each step that has one, in order."""
        for name, title in _TITLES.items():
            if text := getattr(self, name):
                yield title, text
        for one in self.linked:
            yield one.title, one.in_one_line

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


@dataclasses.dataclass(frozen=True)
class ExplanationText:
    """Sentences that explain a pattern's failures, with places to fill in.

    name: unique in the catalogue. what, why, hint, fix: the steps; the named groups of the pattern's message can stand
    in them, as can `{ename}`, `{message}` and `{near}` (names like the one that was not found). A sentence is left out
    where the failure has nothing for one of its places. needs: used only where there are such names; with `facts`,
    where the failure's facts are about this text, by its name, and they stand in its sentences. only: a narrower
    regular expression, where not all of the pattern's messages are meant. example: code that fails so; the tests run
    it and expect this explanation.
    """

    name: str
    what: str
    why: str = ""
    hint: str = ""
    fix: str = ""
    needs: Literal["", "near", "facts"] = ""
    only: str = ""
    example: str = ""


@dataclasses.dataclass(frozen=True)
class Proposal:
    """A change that a fix proposes: the edits, and a sentence that says what is changed and why.

    less: how much less likely it is than the fix's first proposal. guard: it keeps the failure from happening without
    saying what is right.
    """

    reason: str
    edits: list[Edit]
    less: float = 0.0
    guard: bool = False


@dataclasses.dataclass(frozen=True)
class FixExample:
    """A broken tool, the arguments that it fails for, and one of the codes that the fix makes of it ("" for none).

    right: the declared result for these arguments, where that matters.
    """

    before: str
    after: str = ""
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    right: Any = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fix:
    """A rule that proposes changes against a pattern's failures.

    name: unique in the catalogue. mistake: in a few words. only: a narrower regular expression, where not all
    of the pattern's messages are meant. priority: 0 to 1, how likely its first proposal is right; it orders the patches
    of different fixes. propose: is given the place of the failure and the match of the pattern's message. example: a
    tool that it fixes. lookalike: a tool with the same failure but another mistake, for which the fix must propose
    nothing.
    """

    name: str
    mistake: str
    only: str = ""
    priority: float
    propose: Callable[[Site, re.Match[str]], Iterator[Proposal]]
    example: FixExample
    lookalike: FixExample


@dataclasses.dataclass(frozen=True)
class FailurePattern:
    """A kind of failure.

    enames: exception types by their bare names, or codes of `healkit.errors`; empty for any. message: a regular
    expression searched for in the message. explanations: the first that applies is shown; a pattern may leave the
    explanation to a later, more general one. fixes: the fixes of every pattern that matches propose changes. kind: what
    a diagnosis calls it, where this pattern decides that. no_fix: why no change of the code helps, in one sentence;
    empty where one may.
    """

    enames: tuple[str, ...]
    message: str = ""
    explanations: tuple[ExplanationText, ...] = ()
    fixes: tuple[Fix, ...] = ()
    kind: Kind | None = None
    no_fix: str = ""

    def match(self, ename: str, message: str) -> re.Match[str] | None:
        """Match a failure by the bare name of its exception type, or its code, and its message."""
        if self.enames and ename not in self.enames:
            return None
        return re.search(self.message, message, re.DOTALL)
