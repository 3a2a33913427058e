"""Find the file of the notebook that a kernel serves."""

from __future__ import annotations

import json
import os
from pathlib import Path

from healkit.parts.cells.notebook_file import CellRun, find_notebook

IMPORT, SUM, PLOT = "import pandas as pd", "total = sum(prices)", "total.plot()"


def save(path: Path, *cells: tuple[str, str], at: int) -> None:
    """Save a notebook of cells with ids (empty: a format without) at a time."""
    made = [
        {"cell_type": "code", "source": text, "outputs": [], **({"id": one} if one else {})}
        for one, text in cells
    ]
    path.write_text(json.dumps({"cells": made, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}))
    os.utime(path, (at, at))


def found(path: Path, *runs: tuple[str, str]) -> list[str] | None:
    """Return the texts of the file that is found for runs of a session that began at a path."""
    environment = {"JPY_SESSION_NAME": str(path)}
    notebook = find_notebook({}, environment, [CellRun(text, cell_id=one) for one, text in runs])
    return None if notebook is None else [cell.source for cell in notebook.cells]


def test_a_common_text_does_not_hide_the_renamed_notebook_with_the_cells_ids(tmp_path: Path) -> None:
    """A new notebook had the old name, and the line that all begin with; it was taken for the one that ran."""
    save(tmp_path / "book.ipynb", ("new-1", IMPORT), ("new-2", PLOT), at=2)
    save(tmp_path / "renamed.ipynb", ("old-1", IMPORT), ("old-2", SUM), at=1)
    assert found(tmp_path / "book.ipynb", ("old-1", IMPORT), ("old-2", SUM)) == [IMPORT, SUM]


def test_of_copies_the_one_that_has_most_of_the_cells_is_meant(tmp_path: Path) -> None:
    save(tmp_path / "copy.ipynb", ("a", IMPORT), ("b", SUM), at=2)
    save(tmp_path / "renamed.ipynb", ("a", IMPORT), ("b", SUM), ("c", PLOT), at=1)
    assert found(tmp_path / "gone.ipynb", ("a", IMPORT), ("c", PLOT)) == [IMPORT, SUM, PLOT]


def test_the_notebook_of_the_session_is_found_by_id_or_by_text(tmp_path: Path) -> None:
    path = tmp_path / "book.ipynb"
    save(tmp_path / "copy.ipynb", ("a", IMPORT), ("b", SUM), ("c", PLOT), at=2)
    save(path, ("a", IMPORT), ("b", SUM), at=1)
    assert found(path, ("a", "edited since"), ("c", PLOT)) == [IMPORT, SUM]
    assert found(path, ("", SUM)) == [IMPORT, SUM]
    assert found(path, ("vscode-notebook-cell:/work/book.ipynb#W0s", SUM)) == [IMPORT, SUM]
    assert found(path, ("z", "nothing of it")) is None
    save(path, ("", IMPORT), ("", SUM), at=1)
    assert found(path, ("z", SUM)) == [IMPORT, SUM]
