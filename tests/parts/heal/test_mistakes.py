"""Mistakes planted in working cells."""

from __future__ import annotations

import importlib
import itertools
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def measuring() -> Iterator[Any]:
    """The benchmark, which is a script and not the package's."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("bench_mistakes")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_both_halves_hold_cells_and_kinds(measuring: Any) -> None:
    books, kinds = measuring.working(), sorted(measuring.all_kinds())
    assert sum(len(book.cells) for book in books) >= 200
    assert len(kinds) >= 40
    for names in (kinds, [book.name for book in books]):
        halves = [measuring.half(name) for name in names]
        assert min(halves.count(one) for one in ("written", "measured")) >= len(names) * 0.4


@pytest.mark.requirement("MEAN-7")
def test_the_halves_have_no_kind_and_no_notebook_in_common(measuring: Any) -> None:
    drawn = {
        which: list(itertools.islice(measuring.plants(which, 1, ()), 300))
        for which in ("written", "measured")
    }
    for of in (lambda plant: plant.kind, lambda plant: plant.of.name):
        assert not {of(plant) for plant in drawn["written"]} & {of(plant) for plant in drawn["measured"]}


@pytest.mark.requirement("MEAN-7")
def test_a_seed_draws_the_same_cells_again(measuring: Any) -> None:
    kinds = ("column_case", "loc_for_iloc", "name_misspelt")

    def drawn(seed: int) -> list[str]:
        return [plant.name for plant in itertools.islice(measuring.plants("measured", seed, kinds), 30)]

    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


@pytest.mark.slow
@pytest.mark.requirement("MEAN-7")
def test_each_working_notebook_runs_and_each_kind_plants_a_mistake_that_fails(measuring: Any) -> None:
    books = measuring.working()
    with measuring.Runner() as runner:
        for book in books:
            steps = runner.run(book.cells, book.files)
            assert (len(steps), steps[-1].error) == (len(book.cells), ""), book.name
        for name, kind in measuring.all_kinds().items():
            chance = random.Random(1)
            tried = (plant for book in books for plant in kind.plants(book, chance))
            failed = (
                runner.run([plant.cells[turn] for turn in plant.turns], plant.files)[-1].error
                for plant in tried
            )
            assert any(failed), f"{name} plants nothing that fails"


@pytest.mark.usefixtures("measuring")
def test_results_are_compared_exactly() -> None:
    import numpy as np
    import pandas as pd

    canonical = importlib.import_module("cells.runs").canonical
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    others = [
        table.astype({"a": float}),
        table.rename(columns={"a": "A"}),
        table.iloc[::-1],
        table.set_index("a"),
        table.replace("y", None),
    ]
    assert canonical(table) == canonical(table.copy())
    assert len({canonical(one) for one in (table, *others)}) == 6
    assert canonical(np.array([1, 2])) != canonical(np.array([[1, 2]]))
    assert canonical({"a": 1}) != canonical({"a": True})
    assert canonical(0.1 + 0.2) == canonical(0.3)
