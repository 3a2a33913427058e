"""Table of edit operators.

A row has a small function that looks at one node and yields changes. Its prior is how likely a change of that kind is
the right one, compared with the others. The priors began with a study of single-fault programs: people's mistakes, and
how many candidates of each kind have to be tried for a right one. A kind with few candidates and many hits has a high
prior, one that can put anything anywhere a low one. Then they were corrected by a part of how much more or less often
than its rank suggests a kind was right on the project's own sets of broken tools (`own`, `fresh`, `held_out`; not
QuixBugs, not `sealed`). They are about kinds of mistakes and know nothing of any program. A change's own `weight` lowers
it further within its row. A kind that made no right patch on any of these sets, nor on QuixBugs and the mutants, has no
row; one exception is in `constants`.

Each row has an example, which the tests run: one of the changes turns `before` into `after`.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from healkit.healing.advisors.search.program import Change, Program

Changes = Iterator[Change]


@dataclasses.dataclass(frozen=True)
class Operator:
    """Kind of edit: its nodes, its prior, and its name in a patch's reason.

    most: the highest weight of its changes. They are made only when a candidate of that score is wanted.
    """

    name: str
    prior: float
    nodes: tuple[type[ast.AST], ...]
    make: Callable[[Program, Any], Changes]
    before: str
    after: str
    most: float = 1.0


TABLE: list[Operator] = []


def operator(
    name: str, prior: float, *nodes: type[ast.AST], before: str, after: str, most: float = 1.0
) -> Callable[[Callable[[Program, Any], Changes]], Callable[[Program, Any], Changes]]:
    """Add a row: the decorated function yields the changes for a node of one of those kinds."""

    def add(make: Callable[[Program, Any], Changes]) -> Callable[[Program, Any], Changes]:
        TABLE.append(Operator(name, prior, nodes, make, before, after, most))
        return make

    return add
