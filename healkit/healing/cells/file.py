"""The notebook's file: where it is, and what its code cells were when it was saved last.

Kernels are not told which notebook they serve. Jupyter Server leaves the path that the notebook had at the kernel's
start in `JPY_SESSION_NAME`, VS Code in `__vsc_ipynb_file__`, papermill (with `--inject-paths`) in
`PAPERMILL_INPUT_PATH`. A notebook may have been renamed since, so a file counts only if it holds a cell that was run
here. Nothing is validated, because a faulty output is no reason to know less of the cells, and every trouble with a
file means that there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from healkit.healing.cells.records import CellRun, NotebookCell, NotebookFile

FILE_MAX_BYTES = 5_000_000
#: How many files of a folder are looked through for a notebook that was renamed, newest first.
_SIBLINGS_MAX = 20


def find_notebook(
    variables: Mapping[str, Any], environment: Mapping[str, str], runs: Sequence[CellRun]
) -> NotebookFile | None:
    """The file of the notebook whose cells ran here, or None; never raises.

    variables: the kernel's namespace. runs: cells that ran in this kernel; one of them must be in the file.
    """
    ids = {run.cell_id for run in runs if run.cell_id}
    texts = {run.source.strip() for run in runs if run.source.strip()}
    for path in _paths(variables, environment):
        found = read_notebook(path)
        if found is not None and any(c.cell_id in ids or c.source.strip() in texts for c in found.cells):
            return found
        for sibling in _siblings(path) if ids else ():
            found = read_notebook(sibling)
            if found is not None and any(cell.cell_id in ids for cell in found.cells):
                return found
    return None


def read_notebook(path: Path) -> NotebookFile | None:
    """The code cells of an nbformat 4 file; None for one that is absent, broken, of another format or too large."""
    try:
        status = path.stat()
        if status.st_size > FILE_MAX_BYTES or not path.is_file():
            return None
        with path.open("rb") as file:
            content = json.loads(file.read(FILE_MAX_BYTES + 1))
        cells = tuple(_cells(content["cells"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return NotebookFile(cells, status.st_mtime)


def _cells(cells: list[Any]) -> Iterator[NotebookCell]:
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] != "code":
            continue
        source = cell["source"]
        text = source if isinstance(source, str) else "".join(source)
        count, cell_id = cell.get("execution_count"), cell.get("id")
        yield NotebookCell(
            number,
            text,
            cell_id if isinstance(cell_id, str) else "",
            count if isinstance(count, int) else None,
        )


def _paths(variables: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Path]:
    told = [
        variables.get("__vsc_ipynb_file__"),
        environment.get("JPY_SESSION_NAME"),
        variables.get("PAPERMILL_INPUT_PATH"),
    ]
    for text in told:
        if isinstance(text, str) and text:
            yield Path(text.removeprefix("RTC:"))


def _siblings(path: Path) -> list[Path]:
    """Other notebooks of that folder, the one that was saved last first."""
    try:
        found = [(one.stat().st_mtime, one) for one in path.parent.glob("*.ipynb") if one != path]
    except OSError:
        return []
    return [one for _, one in sorted(found, reverse=True)[:_SIBLINGS_MAX]]
