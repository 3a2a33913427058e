"""The notebook's cells, as file and history together know them.

A file says how cells stand in the notebook, the kernel's history says what was run. The two are matched by cell id, and
where a page gives no ids by text. Which of two texts of one cell is the newer one is a matter of time: a file that was
saved before the cell ran tells nothing about what became of it since.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from healkit.healing.cells.bindings import Names, names_of
from healkit.healing.cells.records import CellRun, NotebookCell, NotebookFile

#: What has become of a cell's present text: never run; run as another text; run and ended well; run and failed; run
#: before anybody watched.
CellState = Literal["not_run", "edited", "ran", "failed", "unknown"]
_LINE_MAX_CHARS = 60


@dataclass(frozen=True)
class Known:
    """One cell: its newest text, where it stands, and the last run of it.

    run: the last one, if it was of this text; `older`: the last one, if it was of another. gone: it is in the history
    and no longer in the notebook. place: larger is further down. saved_count: the prompt in the file.
    """

    source: str
    place: float
    number: int | None = None
    cell_id: str = ""
    run: CellRun | None = None
    older: CellRun | None = None
    gone: bool = False
    saved_count: int | None = None

    @functools.cached_property
    def names(self) -> Names:
        """What its text binds and reads."""
        return names_of(self.source)

    @property
    def state(self) -> CellState:
        """What has become of its text."""
        if self.run is None:
            return "not_run" if self.older is None else "edited"
        return "unknown" if self.run.ok is None else "ran" if self.run.ok else "failed"

    @property
    def label(self) -> str:
        """`cell 3`, or `In [7]` for one that is not in the file."""
        if self.number is not None:
            return f"cell {self.number}"
        run = self.run or self.older
        return f"In [{run.count}]" if run is not None and run.count is not None else "a cell"

    def where(self, line: int = 0) -> str:
        """`cell 3 (In [ ]: `prices = load()`)`, with the line that is meant, or its first one."""
        run = self.run or self.older
        prompt = "In [ ]" if run is None and self.saved_count is None else ""
        if run is not None and run.count is not None and self.number is not None:
            prompt = f"In [{run.count}]"
        text = self.line(line) if line else next(filter(None, map(self.line, range(1, 50))), "")
        told = ": ".join(part for part in (prompt, f"`{text}`" if text else "") if part)
        return f"{self.label} ({told})" if told else self.label

    def line(self, number: int) -> str:
        """A line of its text, cut."""
        lines = self.source.splitlines()
        text = " ".join(lines[number - 1].split()) if 0 < number <= len(lines) else ""
        text = text.replace("`", "'")
        return text if len(text) <= _LINE_MAX_CHARS else text[: _LINE_MAX_CHARS - 1] + "…"


class World:
    """All cells: the failed one, `here`, and the others."""

    def __init__(self, failed: CellRun, history: Sequence[CellRun], notebook: NotebookFile | None) -> None:
        self.history = tuple(history)
        self.notebook = notebook
        self.failed = failed
        runs = [*self.history, failed]
        self._same = _Same(runs, notebook)
        every = list(self._merged(runs))
        here = next(cell for cell in every if self._key(cell) == self._same.cell(failed))
        self.cells = [cell for cell in every if cell is not here]
        self.here = replace(here, source=failed.source, run=failed, older=None)

    def _merged(self, runs: list[CellRun]) -> Iterator[Known]:
        last: dict[str, CellRun] = {}
        for run in runs:
            key = self._same.cell(run)
            last.pop(key, None)
            last[key] = run
        file = self.notebook.cells if self.notebook is not None else ()
        for place, cell in enumerate(file):
            newest = last.pop(self._same.key(cell.cell_id, cell.source), None)
            yield self._in_file(cell, place, newest)
        for place, run in enumerate(last.values(), len(file)):
            gone = self.notebook is not None and self._saved_after(run)
            yield Known(run.source, place, None, run.cell_id, run, gone=gone)

    def _in_file(self, cell: NotebookCell, place: int, newest: CellRun | None) -> Known:
        if newest is None or alike(newest.source, cell.source):
            return Known(cell.source, place, cell.number, cell.cell_id, newest, saved_count=cell.count)
        if self._saved_after(newest):
            return Known(cell.source, place, cell.number, cell.cell_id, older=newest)
        return Known(newest.source, place, cell.number, cell.cell_id, newest)

    def _saved_after(self, run: CellRun) -> bool:
        saved = self.notebook.saved_at if self.notebook is not None else None
        return saved is None or run.at is None or saved > run.at

    def binders(self, name: str, place: float) -> list[Known]:
        """Cells that give the name a value: those above nearest first, then those below, then those that are gone."""
        # A text without the name need not be read, which is most of what a large notebook would take.
        found = [cell for cell in self.cells if name in cell.source and name in cell.names.bound]
        above = sorted((c for c in found if c.place < place and not c.gone), key=lambda c: -c.place)
        below = sorted((c for c in found if c.place > place and not c.gone), key=lambda c: c.place)
        return [*above, *below, *reversed([cell for cell in found if cell.gone])]

    def run_numbered(self, count: int) -> CellRun | None:
        """The run with that prompt number."""
        return next((run for run in reversed([*self.history, self.failed]) if run.count == count), None)

    def cell_of(self, run: CellRun) -> Known:
        """The cell that a run was of, the failed one included."""
        key = self._same.cell(run)
        return next(cell for cell in (self.here, *self.cells) if self._key(cell) == key)

    def _key(self, cell: Known) -> str:
        return self._same.key(cell.cell_id, cell.source if cell.run is None else cell.run.source)


class _Same:
    """Which runs are of which cell: by id where the file has it, else by text."""

    def __init__(self, runs: Sequence[CellRun], notebook: NotebookFile | None) -> None:
        cells = notebook.cells if notebook is not None else ()
        self._ids = {cell.cell_id for cell in cells if cell.cell_id}
        texts: dict[str, list[str]] = {}
        for cell in cells:
            texts.setdefault(cell.source.strip(), []).append(cell.cell_id or cell.source.strip())
        self._texts = {text: keys[0] for text, keys in texts.items() if len(keys) == 1}
        self._aliases: dict[str, str] = {}  # a page's own ids (VS Code has some) → the file's
        for run in runs:
            if run.cell_id and run.cell_id not in self._ids and run.source.strip() in self._texts:
                self._aliases[run.cell_id] = self._texts[run.source.strip()]

    def key(self, cell_id: str, source: str) -> str:
        """What is the same for all that is one cell."""
        return self._aliases.get(cell_id, cell_id) or self._texts.get(source.strip(), source.strip())

    def cell(self, run: CellRun) -> str:
        """The key of the cell that was run."""
        return self.key(run.cell_id, run.source)


def alike(one: str, other: str) -> bool:
    """Whether two texts are the same but for spaces at the ends of lines."""
    return [line.rstrip() for line in one.strip().splitlines()] == [
        line.rstrip() for line in other.strip().splitlines()
    ]
