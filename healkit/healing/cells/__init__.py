"""Cell order: what a failing cell lacks, and which cells give it.

`advise(CellCase(…))` is pure: what is known of the notebook is handed in, and what comes back is data. `find_notebook`
reads the notebook's file, where there is one.
"""

from __future__ import annotations

from healkit.healing.cells.advice import AdviceKind, CellAdvice, CellCase, CellStep, Confidence, advise
from healkit.healing.cells.file import FILE_MAX_BYTES, find_notebook, read_notebook
from healkit.healing.cells.world import CellRun, NotebookCell, NotebookFile

__all__ = [
    "FILE_MAX_BYTES",
    "AdviceKind",
    "CellAdvice",
    "CellCase",
    "CellRun",
    "CellStep",
    "Confidence",
    "NotebookCell",
    "NotebookFile",
    "advise",
    "find_notebook",
    "read_notebook",
]
