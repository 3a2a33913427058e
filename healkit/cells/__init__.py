"""Notebook dataflow: which cells define what a cell lacks.

`advise(CellCase(…))` is pure: it takes what is known of the notebook, runs nothing, and returns data. `find_notebook`
reads the notebook's file, if there is one. `extract_function` makes a cell the code of a tool. Modules are loaded when
they are first used, because the extension records every cell and most cells never fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healkit.lazy import lazy_names

if TYPE_CHECKING:
    from healkit.cells.function_extraction import ExtractedFunction, extract_function
    from healkit.cells.notebook_file import (
        FILE_MAX_BYTES,
        CellRun,
        NotebookCell,
        NotebookFile,
        find_notebook,
        read_notebook,
    )
    from healkit.cells.run_order import AdviceKind, CellAdvice, CellCase, CellStep, Confidence, advise

_HOMES = {
    "AdviceKind": "run_order",
    "CellAdvice": "run_order",
    "CellCase": "run_order",
    "CellRun": "notebook_file",
    "CellStep": "run_order",
    "Confidence": "run_order",
    "ExtractedFunction": "function_extraction",
    "FILE_MAX_BYTES": "notebook_file",
    "NotebookCell": "notebook_file",
    "NotebookFile": "notebook_file",
    "advise": "run_order",
    "extract_function": "function_extraction",
    "find_notebook": "notebook_file",
    "read_notebook": "notebook_file",
}

__all__ = [
    "FILE_MAX_BYTES",
    "AdviceKind",
    "CellAdvice",
    "CellCase",
    "CellRun",
    "CellStep",
    "Confidence",
    "ExtractedFunction",
    "NotebookCell",
    "NotebookFile",
    "advise",
    "extract_function",
    "find_notebook",
    "read_notebook",
]

__getattr__ = lazy_names(__name__, _HOMES)
