"""Edits of the order of conditions."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.pysource.nodes import Jump

#: Branch: the span of its condition, and the first and last line of its block.
_Branch = tuple[tuple[int, int], tuple[int, int]]
#: Longer chains are not reordered.
_MOST = 8


@operator(
    "conditions tested in another order",
    0.5,
    ast.If,
    before="if a > 0:\n    b = 1\nelif a > 9:\n    b = 2\nelse:\n    b = 3\n",
    after="if a > 9:\n    b = 2\nelif a > 0:\n    b = 1\nelse:\n    b = 3\n",
)
def reorder_branches(program: Program, node: ast.If) -> Changes:
    """Reorder branches: a wider condition that is tested first leaves nothing for a narrower one."""
    branches = _chain(program, node)
    if branches is None or not 2 <= len(branches) <= _MOST:
        return
    order = range(len(branches))
    yield Change(_edits(program, branches, order[::-1]), 1.0)
    if len(branches) > 2:
        for one, other in itertools.combinations(order, 2):
            swapped = [other if place == one else one if place == other else place for place in order]
            yield Change(_edits(program, branches, swapped), 1.0 if other == one + 1 else 0.6)


def _chain(program: Program, node: ast.If) -> list[_Branch] | None:
    """Return the branches of an `if` with its `elif`s, or of `if`s in a row that each leave; None otherwise."""
    if program.text.startswith("elif", program.source.span(node)[0]):
        return None
    found = [node]
    while len(found[-1].orelse) == 1 and isinstance(following := found[-1].orelse[0], ast.If):
        if not program.text.startswith("elif", program.source.span(following)[0]):
            break
        found.append(following)
    if len(found) == 1 and not node.orelse:
        found = list(_in_a_row(program, node))
    branches = [_branch(program, one) for one in found]
    return None if None in branches else [one for one in branches if one is not None]


def _in_a_row(program: Program, node: ast.If) -> Iterator[ast.If]:
    block, position = program.places[node]
    before = block[position - 1] if position else None
    if _leaves(node) and not (before is not None and _leaves(before)):
        yield from (one for one in itertools.takewhile(_leaves, block[position:]) if isinstance(one, ast.If))


def _leaves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], Jump)


def _branch(program: Program, node: ast.If) -> _Branch | None:
    first, last = program.rows(node.body[0]), program.rows(node.body[-1])
    return None if first is None or last is None else (program.source.span(node.test), (first[0], last[1]))


def _edits(program: Program, branches: Sequence[_Branch], order: Sequence[int]) -> tuple[Edit, ...]:
    edits = []
    for (test, rows), source in zip(branches, order, strict=True):
        other_test, other_rows = branches[source]
        if other_test != test:
            edits.append(Edit(*test, program.text[slice(*other_test)]))
            edits.append(Edit(*_span(program, rows), program.text[slice(*_span(program, other_rows))]))
    return tuple(edits)


def _span(program: Program, rows: tuple[int, int]) -> tuple[int, int]:
    return program.source.line_start(rows[0]), program.source.line_end(rows[1])
