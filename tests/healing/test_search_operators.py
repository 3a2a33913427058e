"""Edit operators: their examples, and the candidates made of them."""

from __future__ import annotations

import ast

import pytest

from healkit.contracts.healing import apply_edits
from healkit.healing.advisors.search.edit_space import Candidate, EditSpace
from healkit.healing.advisors.search.fault_localization import Suspicion
from healkit.healing.advisors.search.operators import TABLE, Operator
from healkit.healing.advisors.search.program import Hints, Program

NAMES = [row.name for row in TABLE]


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    """Return a mixed program, and every operator's example."""
    hints = Hints(("3", "'x'"), ("ValueError",), raised=("KeyError", "IndexError"))
    return [Program(text, hints) for text in (MIXED, *(row.before for row in TABLE))]


@pytest.fixture(scope="module")
def candidates() -> list[Candidate]:
    """Return all candidates of the mixed program, in order."""
    return list(EditSpace(Program(MIXED), Suspicion([])))


def made(row: Operator, text: str, hints: Hints | None = None) -> list[str]:
    program = Program(text, hints)
    return [
        apply_edits(text, list(change.edits))
        for node in program.nodes
        if isinstance(node, row.nodes)
        for change in row.make(program, node)
    ]


@pytest.mark.parametrize("row", TABLE, ids=NAMES)
def test_an_operator_turns_its_before_into_its_after(row: Operator) -> None:
    results = made(row, row.before)
    assert row.after in results
    ast.parse(row.after)


@pytest.mark.parametrize("row", TABLE, ids=NAMES)
def test_all_changes_of_an_example_parse(row: Operator) -> None:
    for text in made(row, row.before):
        ast.parse(text)


def test_operators_have_unique_names_and_priors_up_to_one() -> None:
    assert len(TABLE) >= 50
    assert len(set(NAMES)) == len(TABLE)
    assert all(0 < row.prior <= 1 for row in TABLE)


@pytest.mark.parametrize("row", TABLE, ids=NAMES)
def test_no_change_outweighs_its_operators_most(row: Operator, programs: list[Program]) -> None:
    for program in programs:
        nodes = [node for node in program.nodes if isinstance(node, row.nodes)]
        weights = [change.weight for node in nodes for change in row.make(program, node)]
        assert all(0 < weight <= row.most for weight in weights)


MIXED = '''"""What it does: é, ü, 日本."""
import re


def tidy(text, *, width=10, marks=("ü", "é")):
    """Docs stay."""
    out = []  # collected
    for i, line in enumerate(text.split("\\n")):
        if not line or len(line) > width and i < 3:
            continue
        elif line.startswith("#"): out.append(line); continue
        out.append(f"{i + 1}: {line.strip()!r} {'é' + marks[0]}" if i % 2 == 0
                   else line[: width - 1] + "…")
    total = sum(len(x) for x in out if x) / (len(out) or 1)
    return {"lines": out, "total": round(total, 1), **{m: True for m in marks}}
'''


@pytest.mark.slow
def test_nearly_all_edits_of_a_mixed_program_parse() -> None:
    program = Program(MIXED, Hints(("'a'", "3"), ("ValueError",)))
    broken = total = 0
    for candidate in list(EditSpace(program, Suspicion([])))[::4]:
        total += 1
        try:
            ast.parse(apply_edits(MIXED, list(candidate.edits)))
        except SyntaxError:
            broken += 1
    assert total > 500
    assert broken < total * 0.01


@pytest.mark.slow
def test_docstrings_and_comments_are_never_edited(candidates: list[Candidate]) -> None:
    for candidate in candidates:
        text = apply_edits(MIXED, list(candidate.edits))
        assert text.startswith('"""What it does: é, ü, 日本."""\n')
        assert '"""Docs stay."""' in text


@pytest.mark.slow
def test_candidates_are_deterministic(candidates: list[Candidate]) -> None:
    again = EditSpace(Program(MIXED), Suspicion([]))
    assert [(one.edits, one.score) for one in again] == [(one.edits, one.score) for one in candidates]


@pytest.mark.slow
def test_candidates_are_ordered_by_score_and_unique(
    candidates: list[Candidate],
) -> None:
    assert [one.score for one in candidates] == sorted((one.score for one in candidates), reverse=True)
    texts = [apply_edits(MIXED, list(one.edits)) for one in candidates]
    assert len(set(texts)) == len(texts)
    assert MIXED not in texts


def test_a_variable_is_not_replaced_by_one_of_an_unrelated_type() -> None:
    text = "def f(n, names):\n    m = n\n    return n - 1\n"
    seen = {"f.n": frozenset({"int"}), "f.m": frozenset({"int"}), "f.names": frozenset({"list"})}
    row = next(row for row in TABLE if row.name == "another variable")
    results = made(row, text, Hints(types=seen))
    assert "def f(n, names):\n    m = n\n    return m - 1\n" in results
    assert "def f(n, names):\n    m = n\n    return names - 1\n" not in results
