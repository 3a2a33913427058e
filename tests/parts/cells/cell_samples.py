"""Small notebook whose cells are really run."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from typing import Any

from healkit.parts.cells.advice import CellAdvice, CellCase, advise
from healkit.parts.cells.dataflow import read_cell
from healkit.parts.cells.notebook_file import CellRun, NotebookCell, NotebookFile

#: A cell of the file by its number from 1; that cell with another text than the file's; or a text that is in no file.
Step = int | tuple[int, str] | str


class Notebook:
    """Cells, and a kernel that runs them."""

    def __init__(self, cells: Sequence[str], *, saved_at: float = 1e6, ids: bool = True) -> None:
        self.cells = cells
        self.space: dict[str, Any] = {"__name__": "__main__"}
        self.runs: list[CellRun] = []
        self.frames: tuple[tuple[str, int], ...] = ()
        self._ids = ids
        told = [NotebookCell(i, text, f"c{i}" if ids else "") for i, text in enumerate(cells, 1)]
        self.file = NotebookFile(tuple(told), saved_at)

    def run(self, step: Step) -> CellRun:
        """Run a cell, and record how it ended."""
        if isinstance(step, tuple):
            number, text = step
        else:
            number, text = (step, self.cells[step - 1]) if isinstance(step, int) else (0, step)
        count = len(self.runs) + 1
        error = self._error(text, count)
        told = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:] if error is not None else []
        lines = traceback.walk_tb(error.__traceback__) if error is not None else ()
        own = next((line for frame, line in lines if frame in told), None)
        functions = [
            (f.f_code.co_name, f.f_code.co_filename) for f in reversed(told) if f.f_code.co_name != "<module>"
        ]
        self.frames = tuple((name, int(file[6:-1])) for name, file in functions if file.startswith("<cell "))
        missing = ""
        if type(error) is NameError and told[-1].f_globals is self.space:
            found = re.match(r"name '(\w+)' is not defined", str(error))
            missing = found[1] if found is not None and found[1] not in self.space else ""
        cell_id = f"c{number}" if number and self._ids else ""
        line = error.lineno if isinstance(error, SyntaxError) else own
        ename = type(error).__name__ if error is not None else ""
        run = CellRun(text, count, error is None, cell_id, float(count), line, ename, missing)
        self.runs.append(run)
        return run

    def _error(self, text: str, count: int) -> BaseException | None:
        code = read_cell(text).code
        try:
            exec(compile(code, f"<cell {count}>", "exec"), self.space)
        except BaseException as error:
            return error
        return None

    def case(self, **more: Any) -> CellCase:
        """Return the known facts about the last run, which failed."""
        failed = self.runs[-1]
        assert not failed.ok, "the last cell of a case has to fail"
        known: dict[str, Any] = {"notebook": self.file, "frames": self.frames, **more}
        return CellCase(failed, self.runs[:-1], defined=frozenset(self.space), **known)

    def advice(self, **more: Any) -> CellAdvice | None:
        """Return the advice after the last run."""
        return advise(self.case(**more))

    def follow(self, advice: CellAdvice) -> CellRun:
        """Run the cells of the advice, then the failed one again; return that run."""
        failed = self.runs[-1]
        for step in advice.steps:
            done = self.run((step.number, step.source) if step.number is not None else step.source)
            assert done.ok, (step, done)
        return self.run(failed.source)
