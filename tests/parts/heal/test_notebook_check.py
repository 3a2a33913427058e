"""Checks of notebooks in a program: `hk.check_notebook`."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from healkit import Healkit
from healkit.config import Config
from healkit.errors import HealError, UsageInvalid
from healkit.parts.heal.notebook_check import NotebookReport, written_by

FRAME = "import pandas as pd\norders = pd.DataFrame({'region': ['a', 'b'], 'revenue': [1.5, 2.5]})"


def book(folder: Path, *sources: str) -> Path:
    """Write a notebook with these code cells."""
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": one}
        for one in sources
    ]
    path = folder / "book.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 4, "metadata": {}}))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder for the notebook; the database is beside it."""
    (tmp_path / "books").mkdir()
    return tmp_path / "books"


def checked(folder: Path, *sources: str, heal: bool = True) -> NotebookReport:
    """Check a notebook of these cells."""
    with Healkit(folder.parent / "healkit.db") as healkit:
        return healkit.check_notebook(book(folder, *sources), heal=heal)


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_a_fix_with_which_the_notebook_gets_no_further_is_shown_and_not_written(folder: Path) -> None:
    by = "def by(frame):\n    return frame.groupby('region')['revnue'].sum()"
    relies = "try:\n    by(orders)\nexcept KeyError:\n    pass\nelse:\n    raise RuntimeError('it worked')"
    report = checked(folder, FRAME, by, relies, "by(orders)")
    (failure,) = report.failures
    assert (report.outcome, report.edits, failure.number, failure.fixed) == ("failed", (), 4, False)
    assert failure.report is not None
    assert failure.report.fix is not None
    assert "the notebook did not get further with it" in str(report)
    assert [cell.state for cell in report.cells] == ["passed", "passed", "passed", "failed"]
    assert not written_by(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sources", "gave"),
    [
        (["rows = [1, 2]", "rows.append(3)\nrows.add(4)\nlen(rows)"], "4"),
        ([FRAME, "orders['n'] = 1\norders['regon'] = 2\norders['revnue'].sum()"], "4.0 (float64)"),
        (["\n".join(f"v{n} = [{n}]" for n in range(999)), "x = {'total': 1}\ny = 2", "x['totl']"], "1"),
        (["total = 1", "total = total + 1\nprint(totl)\ntotal"], "2"),
        (["from pathlib import Path\nimport math as m", "m.sqr(Path('a').name == 'a')"], "1.0"),
        (
            [
                "class Account:\n    def __init__(self, n):\n        self.balance = n",
                "one = Account(3)",
                "one.balanc + 1",
            ],
            "4",
        ),
    ],
    ids=["list", "frame", "many names", "bound anew", "imports", "own class"],
)
def test_a_cell_is_tried_on_the_values_that_its_kernel_had_before_it(
    folder: Path, sources: list[str], gave: str
) -> None:
    report = checked(folder, *sources)
    assert report.outcome == "healed", str(report)
    healed = report.failures[0].report
    assert healed is not None
    assert healed.fix is not None
    assert healed.fix.gave == gave


@pytest.mark.slow
def test_stop_ends_a_check_in_the_middle_of_a_cell(folder: Path) -> None:
    stop, said = threading.Event(), list[str]()

    def progress(sentence: str) -> None:
        said.append(sentence)
        if sentence == "cell 2 of 3":
            stop.set()

    path = book(folder, "1", "import time\ntime.sleep(600)", "3")
    with Healkit(folder.parent / "healkit.db") as healkit:
        report = healkit.check_notebook(path, stop=stop, progress=progress)
    assert said == ["cell 1 of 3", "cell 2 of 3"]
    assert (report.outcome, report.failures) == ("stopped", ())
    assert [cell.state for cell in report.cells] == ["passed", "not_run", "not_run"]


@pytest.mark.slow
def test_a_notebook_that_was_saved_meanwhile_is_not_written_over(folder: Path) -> None:
    report = checked(folder, "rows = [1]", "rows.appendd(2)")
    path = book(folder, "rows = [1]", "rows.appendd(3)")
    before = path.read_bytes()
    with pytest.raises(UsageInvalid, match="was changed while it was checked"):
        written_by(report)
    assert path.read_bytes() == before


def test_no_fix_is_looked_for_where_explanations_end_before_it(folder: Path) -> None:
    with (
        Healkit(folder.parent / "healkit.db", config=Config(explain="hint")) as healkit,
        pytest.raises(HealError, match="explained up to 'hint'"),
    ):
        healkit.check_notebook(book(folder, "1"), heal=True)


def test_a_report_is_a_card_in_a_notebook(folder: Path) -> None:
    report = checked(folder, "x = 1", "y", heal=False)
    assert "NameError" in report._repr_html_()
    assert "cell 2 (In [2]), line 1: NameError: name 'y' is not defined" in str(report)
