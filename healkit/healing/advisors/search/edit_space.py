"""All single edits of a program, likeliest first.

Changes are made lazily: each pair of an operator and a node waits in a heap under the best score that its changes could
have, and is expanded when nothing better is left. So the first candidates are there at once, however long the program.
"""

from __future__ import annotations

import ast
import dataclasses
import heapq
from collections.abc import Iterator
from typing import Any

from healkit.contracts.healing import Edit, apply_edits
from healkit.healing.advisors.search.fault_localization import Suspicion
from healkit.healing.advisors.search.operators.definition import Operator
from healkit.healing.advisors.search.operators.table import TABLE
from healkit.healing.advisors.search.program import Change, Program


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """Variant of a code: its edits, how likely it is, and the names of the operators that made it."""

    edits: tuple[Edit, ...]
    score: float
    prior: float
    made_by: tuple[str, ...]
    guard: bool = False

    @property
    def size(self) -> int:
        """Number of characters that it removes and adds."""
        return sum(edit.end - edit.start + len(edit.text) for edit in self.edits)


class EditSpace:
    """Single edits of a program; iterates over candidates in the order of their scores.

    Candidates with the same resulting text count once. The order depends only on the code, the hints and the suspicion.
    seen: hashes of texts to leave out; those that are yielded are added.
    """

    def __init__(self, program: Program, suspicion: Suspicion, seen: set[int] | None = None) -> None:
        self._program, self._suspicion = program, suspicion
        self._seen = seen if seen is not None else set()
        self._seen.add(hash(program.text))
        self._heap: list[tuple[float, int, Any]] = []
        self._count = 0
        by_type: dict[type[ast.AST], list[Operator]] = {}
        for node in program.nodes:
            kind = type(node)
            if kind not in by_type:
                by_type[kind] = [row for row in TABLE if issubclass(kind, row.nodes)]
            most = suspicion.most(program, node) if by_type[kind] else 0.0
            for row in by_type[kind]:
                self._push(row.prior * row.most * most, (row, node))

    def __iter__(self) -> Iterator[Candidate]:
        while self._heap:
            _, _, item = heapq.heappop(self._heap)
            if not isinstance(item, Candidate):
                self._open(*item)
            elif self._is_new(item):
                yield item

    def _is_new(self, candidate: Candidate) -> bool:
        """Return whether its text is new; tested this late because most candidates are never drawn."""
        key = hash(apply_edits(self._program.text, list(candidate.edits)))
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _push(self, score: float, item: Any) -> None:
        self._count += 1
        heapq.heappush(self._heap, (-score, self._count, item))

    def _open(self, row: Operator, node: ast.AST) -> None:
        suspicion: dict[int, float] = {}  # by line of the change; most are at the node's own line
        for change in self._changes(row, node):
            prior = row.prior * min(change.weight, row.most)
            if change.line not in suspicion:
                suspicion[change.line] = self._suspicion.of(self._program, node, change.line)
            score = prior * suspicion[change.line]
            self._push(score, Candidate(change.edits, score, prior, (row.name,), change.guard))

    def _changes(self, row: Operator, node: ast.AST) -> Iterator[Change]:
        try:
            yield from row.make(self._program, node)
        except Exception:  # noqa: BLE001 - such as a SyntaxError, where a part of the text is no code by itself
            return


def normalized_code(text: str) -> Any:
    """Return what texts with the same syntax tree have in common; the text itself if it does not parse."""
    try:
        return ast.dump(ast.parse(text), annotate_fields=False)
    except (SyntaxError, ValueError):
        return text
