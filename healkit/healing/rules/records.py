"""What a rule is, and what it proposes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

from healkit.contracts.failure import Failure
from healkit.contracts.healing import Edit
from healkit.healing.rules.sites import Site


@dataclasses.dataclass(frozen=True)
class Fix:
    """One change that a rule proposes: the splices, and in one plain sentence what is changed and why.

    less: how much less likely it is than the rule's first one. guard: it keeps the failure from happening without
    saying what is right.
    """

    reason: str
    edits: list[Edit]
    less: float = 0.0
    guard: bool = False


@dataclasses.dataclass(frozen=True)
class Example:
    """A broken tool, the arguments it fails for, and one of the codes that the rule makes of it ("" for none).

    right: what is declared to be right for these arguments, where that matters.
    """

    before: str
    after: str = ""
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    right: Any = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
    """One row: which failures it is for, and what it makes of them.

    name: unique. mends: the mistake, in a few words. enames: exception types by their bare names; empty for tools that
    raise nothing and return something wrong. message: a regular expression searched for in the message. priority: 0 to
    1, how likely its first proposal is the right one; it orders the patches of different rules. example: what it
    mends. lookalike: what fails in much the same way and is not this mistake; nothing is proposed for it.
    """

    name: str
    mends: str
    enames: tuple[str, ...]
    message: str = ""
    priority: float
    propose: Callable[[Site, re.Match[str]], Iterator[Fix]]
    example: Example
    lookalike: Example

    def match(self, failure: Failure | None) -> re.Match[str] | None:
        """The message's match if the rule is for that failure."""
        if failure is None:
            return None if self.enames else re.match("", "")
        if failure.ename.rpartition(".")[2] not in self.enames:
            return None
        return re.search(self.message, failure.evalue, re.DOTALL)


def wrong_value(
    name: str,
    mends: str,
    priority: float,
    propose: Callable[[Site, re.Match[str]], Iterator[Fix]],
    before: str,
    after: str,
    arguments: dict[str, Any],
    lookalike: str,
) -> Rule:
    """A row for what raises nothing; `lookalike` is code that is right as it is."""
    return Rule(
        name=name,
        mends=mends,
        enames=(),
        priority=priority,
        propose=propose,
        example=Example(before, after, arguments),
        lookalike=Example(lookalike, "", arguments),
    )
