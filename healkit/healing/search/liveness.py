"""Which patches leave code unused that the code as it was ran through.

A patch that always answers the question of an `if` in the same way passes a few examples by never getting to what is
wrong. To find that out a statement is made to fail: a patch that passes every check all the same never gets there.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from healkit.contracts.healing import Edit
from healkit.healing.advisor import Workbench
from healkit.healing.search.program import Program
from healkit.healing.search.ranking import Candidate
from healkit.healing.search.subject import Subject

#: So many statements are looked at: the first of a block, or behind one that may leave it.
_MOST = 10
_FAILS = ("raise AssertionError",)


def unused(bench: Workbench, subject: Subject, found: Sequence[Candidate]) -> list[int]:
    """For each patch how many statements it never runs on the checks, of those that the code as it was ran.

    Raises `BudgetSpent`. (Of the patches for the project's own tools that passed every check, 64 of 719 that were not
    right left something unused, and 4 of 502 that were right.)
    """
    program = Program(subject.code)
    marks = list(_marks(program, subject.ran))[:_MOST]
    pairs = [
        (place, (*one.edits, edit))
        for place, one in enumerate(found)
        for edit in marks
        if all(edit.start < own.start or own.end < edit.start for own in one.edits)
    ]
    letters = dict(bench.score(subject.code, [edits for _, edits in pairs], subject.checks))
    counts = Counter(
        place for number, (place, _) in enumerate(pairs) if set(letters.get(number, "-")) == {"."}
    )
    return [counts[place] for place in range(len(found))]


def _marks(program: Program, ran: frozenset[int]) -> Iterator[Edit]:
    """For each such statement that was run an edit that makes it fail."""
    for statement, (block, position) in program.places.items():
        begins = position == 0 and isinstance(
            program.parent(statement), ast.If | ast.For | ast.While | ast.Try
        )
        behind = position > 0 and isinstance(block[position - 1], ast.If)
        if (begins or behind) and statement.lineno in ran:
            edit = program.insert(statement, _FAILS)
            if edit is not None:
                yield edit
