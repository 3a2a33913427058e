"""Failing cells that healing is measured on."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def books() -> Any:
    """Import the benchmark's module, which is a script's and not the package's."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from cells import books
    finally:
        sys.path.remove(str(BENCHMARKS))
    return books.books()


def test_half_of_the_sixty_cells_are_unseen(books: Any) -> None:
    cases = [case for book in books for case in book.cases.values()]
    assert len(cases) == 60
    assert sum(not case.seen for case in cases) == 30
    split = tomllib.loads((BENCHMARKS / "cells" / "split.toml").read_text())
    assert set(split["unseen"]) == {case.name for case in cases if not case.seen}


def test_each_failing_cell_has_one_kind_of_fix_and_a_check_of_it(books: Any) -> None:
    for book in books:
        for case in book.cases.values():
            assert bool(case.edits) + bool(case.rerun) + case.none == 1, case.name
            assert case.none == (case.check == "True"), case.name
            assert {*case.edits, *case.rerun} <= set(book.cells), case.name
            assert all(book.cells[name] != text for name, text in case.edits.items()), case.name


def test_each_public_problem_has_a_rule_that_can_be_read() -> None:
    problems = tomllib.loads((BENCHMARKS / "cells" / "public.toml").read_text())["case"]
    assert len({problem["name"] for problem in problems}) == len(problems) >= 50
    for problem in problems:
        assert problem["rule"].endswith("."), problem["name"]
        for pattern in (*problem["needs"], *problem.get("misleads", [])):
            re.compile(pattern)
