"""Definition of an edit operator: a row of the table.

A row has a small function that looks at one node and yields changes. Its prior is how likely a change of that kind is
the right one, compared with the others; a change's own `weight` lowers or raises it.

The priors come from a study of programs with one mistake each. A kind with few candidates and many hits has a high
prior; a kind that can put anything anywhere has a low one. They were then corrected on the project's own sets of broken
tools (`own`, `fresh`, `held_out`; not QuixBugs, not `sealed`). A kind that was right more often than its rank suggested
was raised a little; one that was right less often was lowered. A prior depends only on the kind of mistake, never on a
program. A kind that no first right patch needs, on any set, on QuixBugs or on the mutants, has no row. Five mistakes of
beginners are exceptions: a forgotten `self.`, a name in quotes, a name left over from a renaming, a call without its
parentheses, a mask that is not negated.

Each row has an example, which the tests run: one of the changes turns `before` into `after`.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from healkit.parts.heal.advisors.search.program import Change, Program

Changes = Iterator[Change]


@dataclasses.dataclass(frozen=True)
class Operator:
    """Kind of edit: its nodes, its prior, and its name in a patch's reason.

    most: The highest weight of its changes. The search calls `make` only when no waiting candidate can have a higher
        score than that weight would give.
    """

    name: str
    prior: float
    nodes: tuple[type[ast.AST], ...]
    make: Callable[[Program, Any], Changes]
    before: str
    after: str
    most: float = 1.0


#: Rows in the order in which their modules were loaded.
ROWS: list[Operator] = []


def operator(
    name: str, prior: float, *nodes: type[ast.AST], before: str, after: str, most: float = 1.0
) -> Callable[[Callable[[Program, Any], Changes]], Callable[[Program, Any], Changes]]:
    """Add a row: the decorated function yields the changes for a node of one of those kinds."""

    def add(make: Callable[[Program, Any], Changes]) -> Callable[[Program, Any], Changes]:
        ROWS.append(Operator(name, prior, nodes, make, before, after, most))
        return make

    return add
