"""Fault localization: which lines are likely to be wrong.

Ochiai's coefficient over passing and failing checks (Abreu et al., "On the Accuracy of Spectrum-based Fault
Localization", 2007): for a line executed by `f` of the `F` failing checks and by `p` passing ones,
f / sqrt(F * (f + p)). Lines of a traceback are more suspicious, the innermost most.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from healkit.contracts.healing import Observed
from healkit.healing.advisors.search.program import Program

#: Added for the innermost line of a traceback; each frame further out adds half of that.
TRACEBACK_BONUS = 0.3
#: Suspicion of every line, executed or not: a check that ends early may never have reached the mistake.
FLOOR = 0.05
#: Suspicion of every line of a loop that does not end.
ENDLESS = 0.7


class Suspicion:
    """Suspicion of each line, from 0 to 1.3, by the lines that failing and passing checks executed."""

    def __init__(self, failing: Sequence[Observed], passing: Sequence[Observed] = ()) -> None:
        in_failing, in_passing = Counter[int](), Counter[int]()
        for counter, group in ((in_failing, failing), (in_passing, passing)):
            for one in group:
                counter.update(set(one.lines))
        self.lines: dict[int, float] = {
            line: in_failing[line] / math.sqrt(len(failing) * (in_failing[line] + in_passing[line]))
            for line in in_failing.keys() | in_passing.keys()
            if failing
        }
        bonus: dict[int, float] = {}
        for one in failing:
            for away, line in enumerate(reversed(one.failed_lines)):
                bonus[line] = max(bonus.get(line, 0.0), TRACEBACK_BONUS / 2 ** min(away, 3))
        for line, more in bonus.items():
            self.lines[line] = self.lines.get(line, 0.0) + more

    def lift(self, lines: Iterable[int], least: float) -> None:
        """Make lines at least this suspicious, whether they were executed or not."""
        for line in lines:
            self.lines[line] = max(self.lines.get(line, 0.0), least)

    def of(self, program: Program, node: ast.AST, line: int = 0) -> float:
        """Return the suspicion of a node: by its own lines, else by the first of its statement; at least `FLOOR`."""
        first = line or getattr(node, "lineno", 0)
        last = (
            first
            if line or (isinstance(node, ast.stmt) and hasattr(node, "body"))
            else getattr(node, "end_lineno", first)
        )
        seen = [self.lines[one] for one in range(first, (last or first) + 1) if one in self.lines]
        if not seen and isinstance(node, ast.AST) and node in program.parents:
            statement = program.statement(node)
            seen = [self.lines[one] for one in (statement.lineno,) if one in self.lines]
        return FLOOR + max(seen, default=0.0)

    def most(self, program: Program, node: ast.AST) -> float:
        """Return an upper bound of `of` for a node and everything in it."""
        if isinstance(node, ast.stmt):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            return max(
                self.of(program, node), FLOOR + max((self.lines.get(one, 0.0) for one in lines), default=0.0)
            )
        return self.of(program, node)


def types_seen(observed: Sequence[Observed]) -> dict[str, frozenset[str]]:
    """Return the types of names over all checks: `function.name` → type names."""
    found: dict[str, set[str]] = {}
    for one in observed:
        for name, kinds in one.types.items():
            found.setdefault(name, set()).update(kinds)
    return {name: frozenset(kinds) for name, kinds in found.items()}


def endless_loops(program: Program, failed: Sequence[Observed]) -> set[int]:
    """Return all lines of the `while` loops that ran: what should end one may be on a path never taken."""
    seen = {line for one in failed for line in one.lines}
    found: set[int] = set()
    for loop in program.nodes:
        if isinstance(loop, ast.While):
            lines = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
            found.update(lines if seen & set(lines) else ())
    return found
