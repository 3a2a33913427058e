"""Cell order: what a failing cell lacks, and which cells give it.

`advise(CellCase(…))` is pure: what is known of the notebook is handed in, and what comes back is data. `find_notebook`
reads the notebook's file, where there is one. What takes time to load is loaded when it is first used, since the
extension takes note of every cell and most never fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healkit.lazy import lazy_names

if TYPE_CHECKING:
    from healkit.healing.cells.advice import AdviceKind, CellAdvice, CellCase, CellStep, Confidence, advise
    from healkit.healing.cells.file import FILE_MAX_BYTES, find_notebook, read_notebook
    from healkit.healing.cells.records import CellRun, NotebookCell, NotebookFile

_HOMES = {
    "AdviceKind": "advice",
    "CellAdvice": "advice",
    "CellCase": "advice",
    "CellRun": "records",
    "CellStep": "advice",
    "Confidence": "advice",
    "FILE_MAX_BYTES": "file",
    "NotebookCell": "records",
    "NotebookFile": "records",
    "advise": "advice",
    "find_notebook": "file",
    "read_notebook": "file",
}

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

__getattr__ = lazy_names(__name__, _HOMES)
