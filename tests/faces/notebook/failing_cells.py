"""Cells that fail, and their healing."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import nbformat
import pytest

from healkit.faces.defaults import default_healkit
from healkit.parts.heal.records import CellFix
from healkit.parts.heal.report import CellReport

ORDERS = """
import pandas as pd
orders = pd.DataFrame({"order_id": [1, 2, 3], "revenue": [1.5, 2.5, 3.0], "region": ["a", "b", "a"]})
"""


def ran(shell: Any, *cells: str) -> Any:
    """Run cells in a shell with healkit, as a notebook does."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        shell.reset()
        shell.run_cell("%load_ext healkit", store_history=True)
        for cell in cells:
            result = shell.run_cell(cell, store_history=True)
    return result


def healed(shell: Any, *cells: str, **options: Any) -> CellReport:
    """Run cells of which the last fails, and heal that."""
    result = ran(shell, *cells)
    assert (result.error_in_exec or result.error_before_exec) is not None
    return default_healkit().heal_cell(**options)


def fix_of(report: CellReport) -> CellFix:
    """Return the fix, which there is."""
    assert report.fix is not None, report
    return report.fix


def ran_on(shell: Any, cell: str) -> BaseException | None:
    """Run one more cell, and return what it raised."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return shell.run_cell(cell, store_history=True).error_in_exec


def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *cells: str, **result: str) -> None:
    """Write the notebook that these cells are of, with the result that it has saved of one."""
    book = nbformat.v4.new_notebook()
    for cell in cells:
        made = nbformat.v4.new_code_cell(cell)
        if text := result.get("saved") if cell == cells[-2] else None:
            made.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": text}, execution_count=1)]
        book.cells.append(made)
    nbformat.write(book, tmp_path / "book.ipynb")
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "book.ipynb"))
