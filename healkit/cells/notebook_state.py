"""State of a notebook, from its file and its history.

The file has the order of the cells, the history has what was run. The two are matched by cell id, or by text if the
frontend gives no ids. Of two texts of one cell the newer one counts: a file that was saved before the cell ran does not
know its later text.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from healkit.cells.dataflow import CellDataflow, dataflow_of
from healkit.cells.notebook_file import CellRun, NotebookCell, NotebookFile

#: State of a cell's present text: never run; only an earlier text was run; ran without an error; failed; ran before
#: healkit was loaded.
CellState = Literal["not_run", "edited", "ran", "failed", "unknown"]
_LINE_MAX_CHARS = 60


@dataclass(frozen=True)
class Cell:
    """Cell of a notebook: its newest text, its position, and its last run.

    position: larger is further down. run: the last run, if it was of this text; older: the last run, if it was of
    another. deleted: in the history, but no longer in the notebook. saved_count: the prompt in the file.
    """

    source: str
    position: float
    number: int | None = None
    cell_id: str = ""
    run: CellRun | None = None
    older: CellRun | None = None
    deleted: bool = False
    saved_count: int | None = None

    @functools.cached_property
    def flow(self) -> CellDataflow:
        """Dataflow of its text."""
        return dataflow_of(self.source)

    @property
    def state(self) -> CellState:
        """State of its present text."""
        if self.run is None:
            return "not_run" if self.older is None else "edited"
        return "unknown" if self.run.ok is None else "ran" if self.run.ok else "failed"

    @property
    def label(self) -> str:
        """`In [7]`, its prompt; `cell 3`, its place in the file, where it has not been run."""
        run = self.run or self.older
        if run is not None and run.count is not None:
            return f"In [{run.count}]"
        return "a cell" if self.number is None else f"cell {self.number}"

    def where(self, line: int = 0) -> str:
        """Return `cell 3 (In [ ]: `prices = load()`)`, or `In [7] (`…`)`, with that line or the first one."""
        prompt = "In [ ]" if (self.run or self.older) is None and self.saved_count is None else ""
        text = self.line(line) if line else next(filter(None, map(self.line, range(1, 50))), "")
        told = ": ".join(part for part in (prompt, f"`{text}`" if text else "") if part)
        return f"{self.label} ({told})" if told else self.label

    def line(self, number: int) -> str:
        """Return a line of its text, cut."""
        lines = self.source.splitlines()
        text = " ".join(lines[number - 1].split()) if 0 < number <= len(lines) else ""
        text = text.replace("`", "'")
        return text if len(text) <= _LINE_MAX_CHARS else text[: _LINE_MAX_CHARS - 1] + "…"


class NotebookState:
    """Cells of a notebook: `failed_cell` and the other `cells`."""

    def __init__(self, failed: CellRun, history: Sequence[CellRun], notebook: NotebookFile | None) -> None:
        self.history = tuple(history)
        self.notebook = notebook
        self.failed_run = failed
        runs = [*self.history, failed]
        self._keys = _CellKeys(runs, notebook)
        every = list(self._merged(runs))
        failed_cell = next(cell for cell in every if self._key(cell) == self._keys.cell(failed))
        self.cells = [cell for cell in every if cell is not failed_cell]
        self.failed_cell = replace(failed_cell, source=failed.source, run=failed, older=None)

    def _merged(self, runs: list[CellRun]) -> Iterator[Cell]:
        last: dict[str, CellRun] = {}
        for run in runs:
            key = self._keys.cell(run)
            last.pop(key, None)
            last[key] = run
        file = self.notebook.cells if self.notebook is not None else ()
        for place, cell in enumerate(file):
            newest = last.pop(self._keys.key(cell.cell_id, cell.source), None)
            yield self._in_file(cell, place, newest)
        for place, run in enumerate(last.values(), len(file)):
            gone = self.notebook is not None and self._saved_after(run)
            yield Cell(run.source, place, None, run.cell_id, run, deleted=gone)

    def _in_file(self, cell: NotebookCell, place: int, newest: CellRun | None) -> Cell:
        if newest is None or same_text(newest.source, cell.source):
            return Cell(cell.source, place, cell.number, cell.cell_id, newest, saved_count=cell.count)
        if self._saved_after(newest):
            return Cell(cell.source, place, cell.number, cell.cell_id, older=newest)
        return Cell(newest.source, place, cell.number, cell.cell_id, newest)

    def _saved_after(self, run: CellRun) -> bool:
        saved = self.notebook.saved_at if self.notebook is not None else None
        return saved is None or run.at is None or saved > run.at

    def cells_binding(self, name: str, position: float) -> list[Cell]:
        """Return the cells that bind a name: above nearest first, then below, then deleted ones."""
        # Skip cells without the text of the name: parsing them all is the main cost in a large notebook.
        found = [cell for cell in self.cells if name in cell.source and name in cell.flow.bound]
        above = sorted(
            (c for c in found if c.position < position and not c.deleted), key=lambda c: -c.position
        )
        below = sorted(
            (c for c in found if c.position > position and not c.deleted), key=lambda c: c.position
        )
        return [*above, *below, *reversed([cell for cell in found if cell.deleted])]

    def run_with_count(self, count: int) -> CellRun | None:
        """Return the run with that prompt number."""
        return next((run for run in reversed([*self.history, self.failed_run]) if run.count == count), None)

    def cell_of(self, run: CellRun) -> Cell:
        """Return the cell of a run."""
        key = self._keys.cell(run)
        return next(cell for cell in (self.failed_cell, *self.cells) if self._key(cell) == key)

    def _key(self, cell: Cell) -> str:
        return self._keys.key(cell.cell_id, cell.source if cell.run is None else cell.run.source)


class _CellKeys:
    """Matching of runs to cells: by id if the file has it, else by text."""

    def __init__(self, runs: Sequence[CellRun], notebook: NotebookFile | None) -> None:
        cells = notebook.cells if notebook is not None else ()
        self._ids = {cell.cell_id for cell in cells if cell.cell_id}
        texts: dict[str, list[str]] = {}
        for cell in cells:
            texts.setdefault(cell.source.strip(), []).append(cell.cell_id or cell.source.strip())
        self._texts = {text: keys[0] for text, keys in texts.items() if len(keys) == 1}
        self._aliases: dict[str, str] = {}  # a frontend's own ids (VS Code has some) → the file's
        for run in runs:
            if run.cell_id and run.cell_id not in self._ids and run.source.strip() in self._texts:
                self._aliases[run.cell_id] = self._texts[run.source.strip()]

    def key(self, cell_id: str, source: str) -> str:
        """Return a key that all texts and runs of one cell share."""
        return self._aliases.get(cell_id, cell_id) or self._texts.get(source.strip(), source.strip())

    def cell(self, run: CellRun) -> str:
        """Return the key of a run's cell."""
        return self.key(run.cell_id, run.source)


def same_text(one: str, other: str) -> bool:
    """Return whether two texts differ at most in white space at line ends."""
    return [line.rstrip() for line in one.strip().splitlines()] == [
        line.rstrip() for line in other.strip().splitlines()
    ]
