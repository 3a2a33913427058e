"""Notebook files and the runs of their cells.

Kernels are not told which notebook they serve. Jupyter Server sets `JPY_SESSION_NAME` to the path that the notebook had
when the kernel started, VS Code sets `__vsc_ipynb_file__`, papermill (with `--inject-paths`) `PAPERMILL_INPUT_PATH`.
A notebook may have been renamed since, so a file counts only if it has a cell that was run in this kernel. The file is
not validated, because a faulty output does not make its cells useless; a file that cannot be read is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE_MAX_BYTES = 5_000_000
#: How many files of a folder are searched for a renamed notebook, newest first.
_SIBLINGS_MAX = 20


@dataclass(frozen=True)
class CellRun:
    """Run of a cell in this kernel.

    count: the number of its prompt. ok: None if it ran before healkit was loaded. at: when it ended, in seconds since
    the epoch. failed_line: the line of the cell that failed. missing: the name of a NameError.
    """

    source: str
    count: int | None = None
    ok: bool | None = True
    cell_id: str = ""
    at: float | None = None
    failed_line: int | None = None
    ename: str = ""
    missing: str = ""


@dataclass(frozen=True)
class NotebookCell:
    """Code cell of a file; `number` counts all cells from 1, `count` is the prompt that was saved with it.

    result: the saved text of its last expression's value; empty where it has none.
    """

    number: int
    source: str
    cell_id: str = ""
    count: int | None = None
    result: str = ""


@dataclass(frozen=True)
class NotebookFile:
    """Code cells of a notebook file as it was last saved (seconds since the epoch)."""

    cells: tuple[NotebookCell, ...]
    saved_at: float | None = None

    def from_run(self, run: CellRun) -> tuple[NotebookCell, ...]:
        """Return the cell that was run, and those below it; none where it is not in the file."""
        texts = [cell.source.strip() for cell in self.cells]
        places = [i for i, cell in enumerate(self.cells) if run.cell_id and cell.cell_id == run.cell_id]
        places = places or [i for i, text in enumerate(texts) if text == run.source.strip()]
        return self.cells[places[0] :] if len(places) == 1 else ()


def find_notebook(
    variables: Mapping[str, Any], environment: Mapping[str, str], runs: Sequence[CellRun]
) -> NotebookFile | None:
    """Return the file of the notebook whose cells ran here, or None; never raises.

    variables: the kernel's namespace. runs: cells that ran in this kernel; one of them must be in the file. Their ids
    decide, also in a renamed file; texts only where no file has them.
    """
    ids = {run.cell_id for run in runs if re.fullmatch(r"[\w-]{1,64}", run.cell_id)}  # editors have others
    texts = {run.source.strip() for run in runs if run.source.strip()}

    def common(found: NotebookFile) -> tuple[int, int]:
        cells = found.cells
        return sum(cell.cell_id in ids for cell in cells), sum(cell.source.strip() in texts for cell in cells)

    paths = list(_paths(variables, environment))
    notebooks = list(filter(None, map(read_notebook, paths)))
    sure = [notebook for notebook in notebooks if common(notebook)[0]]
    if not sure and ids:
        beside = filter(None, (read_notebook(sibling) for path in paths for sibling in _siblings(path)))
        sure = [notebook for notebook in beside if common(notebook)[0]]
    best = max(sure or notebooks, key=common, default=None)
    return best if best is not None and any(common(best)) else None


def read_notebook(path: Path) -> NotebookFile | None:
    """Return the code cells of an nbformat 4 file; None if it is absent, broken, of another format or too large."""
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
            _result(cell),
        )


def _result(cell: Mapping[str, Any]) -> str:
    """Return the text of the value that a cell is saved with."""
    for output in cell.get("outputs", ()):
        if output.get("output_type") == "execute_result":
            text = output.get("data", {}).get("text/plain", "")
            return text if isinstance(text, str) else "".join(text)
    return ""


def _paths(variables: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Path]:
    candidates = [
        variables.get("__vsc_ipynb_file__"),
        environment.get("JPY_SESSION_NAME"),
        variables.get("PAPERMILL_INPUT_PATH"),
    ]
    for text in candidates:
        if isinstance(text, str) and text:
            yield Path(text.removeprefix("RTC:"))


def _siblings(path: Path) -> list[Path]:
    """Return the other notebooks of that folder, the last saved one first."""
    try:
        dated_paths = [
            (sibling.stat().st_mtime, sibling) for sibling in path.parent.glob("*.ipynb") if sibling != path
        ]
    except OSError:
        return []
    return [sibling for _, sibling in sorted(dated_paths, reverse=True)[:_SIBLINGS_MAX]]
