"""Markers planted in data: they never reach a chooser.

benchmarks/decide_markers.py tries 10,000 frames.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from healkit.parts.decide import told

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
pytestmark = [
    pytest.mark.requirement("DECIDE-1"),
    pytest.mark.filterwarnings("ignore:The DataFrame has column names of mixed type:UserWarning"),
]


@pytest.fixture
def markers(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import decide_markers

    yield decide_markers
    sys.modules.pop("decide_markers")


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("cases", [100])
def test_no_marker_reaches_a_chooser(markers: ModuleType, tmp_path: Path, cases: int) -> None:
    with markers.opened(tmp_path / "healkit.db") as healkit:
        found, planted, turns = markers.leaks(healkit, random.Random(cases), cases)
    assert found == []
    assert (planted > cases * 3, turns > 5) == (True, True)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_what_an_attacker_sees_does_not_depend_on_cells(markers: ModuleType, tmp_path: Path) -> None:
    """Two frames with other names and salaries: names made of cells, counts that spell them, guesses by the dozen."""
    with markers.opened(tmp_path / "healkit.db") as healkit:
        assert markers.differences(healkit, random.Random(25)) == []


def test_the_search_finds_a_marker_in_any_form(markers: ModuleType, tmp_path: Path) -> None:
    """If the search could find nothing, it would prove nothing: a column that is shared is found."""
    word = markers.marker(random.Random(1))
    for form in (word, word[2:9].upper(), word[::-1], word.encode().hex()):
        assert any(needle in f'{{"x": "{form}"}}'.lower() for needle in markers.needles(word)), form
    with markers.opened(tmp_path / "healkit.db") as healkit:
        frame = pd.DataFrame({"kind": [word], "n": [1]})
        sent = healkit.decide(
            "Which?", {"data": frame}, tools=["pivot"], chooser=markers.Tries([]), share=["kind"]
        ).sent
    text = "".join(map(told, sent)).lower()
    assert any(needle in text for needle in markers.needles(word))
