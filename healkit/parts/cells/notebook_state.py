"""State of a notebook, and a plan of cells to run again.

The file has the order of the cells, the history has the runs. The two are matched by cell id, or by text if the
frontend gives no ids. If a cell has two texts, the newer one counts: a file that was saved before the cell ran does not
have its later text.
"""

from __future__ import annotations

import builtins
import functools
import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from healkit.parts.cells.dataflow import CellDataflow, dataflow_of, function_reads
from healkit.parts.cells.notebook_file import GIVEN, CellRun, NotebookCell, NotebookFile

#: State of a cell's present text: never run; only an earlier text was run; ran without an error; failed; ran before
#: healkit was loaded.
CellState = Literal["not_run", "edited", "ran", "failed", "unknown"]
_LINE_MAX_CHARS = 60


@dataclass(frozen=True)
class Cell:
    """Cell of a notebook: its newest text, its position, and its last run.

    position: Larger is further down.
    run: The last run, if it had this text.
    older: The last run, if it had another text.
    deleted: In the history, but no longer in the notebook.
    saved_count: The prompt in the file.
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
        """`In [7]`, its prompt; `cell 3`, its place in the file, if it did not run."""
        run = self.run or self.older
        if run is not None and run.count is not None:
            return f"In [{run.count}]"
        return "a cell" if self.number is None else f"cell {self.number}"

    def where(self, line: int = 0) -> str:
        """Return `cell 3 (In [ ]: `prices = load()`)`, or `In [7] (`…`)`, with that line or the first one."""
        prompt = "In [ ]" if (self.run or self.older) is None and self.saved_count is None else ""
        text = self.line(line) if line else next(filter(None, map(self.line, range(1, 50))), "")
        details = ": ".join(part for part in (prompt, f"`{text}`" if text else "") if part)
        return f"{self.label} ({details})" if details else self.label

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
        definers = [cell for cell in self.cells if name in cell.source and name in cell.flow.bound]
        above = sorted(
            (c for c in definers if c.position < position and not c.deleted), key=lambda c: -c.position
        )
        below = sorted(
            (c for c in definers if c.position > position and not c.deleted), key=lambda c: c.position
        )
        return [*above, *below, *reversed([cell for cell in definers if cell.deleted])]

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
    """Matching of runs to cells: by id if the file has it, otherwise by text."""

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


# Plan of cells to run so that names are defined
#
# The definer of a name is the nearest cell above that binds it unconditionally. Cells between it and the reader that
# change the value run too. If such a cell reads a name that the kernel does not have, this name is looked up in the
# same way. The order is that of the notebook, unless a cell needs one further down.


#: A cell that needs more cells than this is better served by running the notebook from the top.
STEPS_MAX = 60


@dataclass
class RerunPlan:
    """Cells to run, each with the reason.

    lacking: Names that no cell binds, with the cell of the plan that reads them.
    blocked: Cells that would fail again.
    """

    steps: list[tuple[Cell, str]] = field(default_factory=list)
    lacking: dict[str, Cell] = field(default_factory=dict)
    blocked: list[Cell] = field(default_factory=list)


class RerunPlanner:
    """Search for the cells that names need.

    defined: Tells which names the kernel and Python have.
    """

    def __init__(self, state: NotebookState, defined: Callable[[str], bool]) -> None:
        self._state = state
        self._defined = defined
        self._why: dict[int, str] = {}
        self._cells: dict[int, Cell] = {}
        self._after: dict[int, set[int]] = {}  # cell → cells to run before it
        self._lacking: dict[str, Cell] = {}
        self._called: set[tuple[int, str]] = set()

    def require(self, name: str, reader: Cell, why: str) -> Cell | None:
        """Add the cells that bind a name for a reader; return the definer, or None if there is none."""
        definer = self.definer(name, reader)
        if definer is None:
            return None
        for cell in [definer, *self._mutators(name, definer, reader)]:
            self.add(cell, why if cell is definer else f"changes `{name}`")
            if cell is not definer:
                self._after[id(cell)].add(id(definer))
            if reader is not self._state.failed_cell:
                self._after[id(reader)].add(id(cell))
        return definer

    def definer(self, name: str, reader: Cell) -> Cell | None:
        """Return the cell that binds a name for a reader; None if each cell that binds it reads it first."""
        cells_binding = [
            cell
            for cell in self._state.cells_binding(name, reader.position)
            if cell is not reader and (name not in cell.flow.bound or not _skipped_binding(cell, name))
        ]
        if all(name in cell.flow.reads for cell in cells_binding):
            return None
        above = [cell for cell in cells_binding if cell.position < reader.position and not cell.deleted]
        return next(
            (cell for cell in above if not cell.flow.bound[name].under), next(iter(cells_binding), None)
        )

    def _mutators(self, name: str, definer: Cell, reader: Cell) -> list[Cell]:
        return [
            cell
            for cell in self._state.cells
            if definer.position < cell.position < reader.position
            and not cell.deleted
            and name in cell.source
            and (name in cell.flow.mutated or name in cell.flow.bound)
            and not cell.flow.deleted.get(name)
            and not _failing(cell)
        ]

    def add(self, cell: Cell, why: str) -> None:
        """Add a cell and the cells that it needs itself."""
        if id(cell) in self._cells or len(self._cells) >= STEPS_MAX:
            return
        self._cells[id(cell)], self._why[id(cell)] = cell, why
        self._after[id(cell)] = set()
        for name in cell.flow.reads:
            if self._defined(name):
                self.require_deferred(name, cell)
            elif self.require(name, cell, f"defines `{name}` for {cell.label}") is None:
                self._lacking.setdefault(name, cell)
        for name in cell.flow.deferred_reads:
            if self._defined(name):
                self.require_deferred(name, cell)
            else:
                self.require(name, cell, f"defines `{name}` for {cell.label}")

    def require_deferred(self, name: str, reader: Cell) -> None:
        """Add the cells for names that an existing function looks up when the reader calls it."""
        if (id(reader), name) in self._called:
            return
        self._called.add((id(reader), name))
        cells_binding = self._state.cells_binding(name, reader.position)
        definer = next((cell for cell in cells_binding if cell.run is not None), None)
        if definer is None:
            return
        reads = function_reads(definer.source, name)
        for late in (deferred for deferred in definer.flow.deferred_reads if deferred in reads):
            if self._defined(late):
                self.require_deferred(late, reader)
            else:
                self.require(late, reader, f"defines `{late}`, which `{name}` looks up")

    def plan(self) -> RerunPlan:
        """Return the cells in the order in which to run them."""
        waiting = {
            key: {predecessor for predecessor in before if predecessor != key}
            for key, before in self._after.items()
        }
        ready = [(self._cells[key].position, key) for key, before in waiting.items() if not before]
        heapq.heapify(ready)
        plan = RerunPlan(lacking=self._lacking)
        while waiting:
            if not ready:  # a circle: begin with the topmost
                first = min(waiting, key=lambda one: self._cells[one].position)
                ready.append((self._cells[first].position, first))
            key = heapq.heappop(ready)[1]
            del waiting[key]
            for dependent, before in waiting.items():
                if key in before:
                    before.discard(key)
                    if not before:
                        heapq.heappush(ready, (self._cells[dependent].position, dependent))
            plan.steps.append((self._cells[key], self._why[key]))
        plan.blocked = [cell for cell, _ in plan.steps if self._blocked(cell)]
        return plan

    def _blocked(self, cell: Cell) -> bool:
        """Return whether a cell would fail again."""
        if not cell.flow.parsed:
            return True
        if not _failing(cell) or cell.run is None or cell.run.ename == "KeyboardInterrupt":
            return False
        if cell.run.missing:
            is_defined = any(
                cell.run.missing in other_cell.flow.bound
                for other_cell in self._cells.values()
                if other_cell is not cell
            )
            return not is_defined and not self._defined(cell.run.missing)
        return True


def _failing(cell: Cell) -> bool:
    return cell.state == "failed"


def _skipped_binding(cell: Cell, name: str) -> bool:
    """Return whether the cell ran without an error but its condition for binding the name was false."""
    return cell.state == "ran" and bool(cell.flow.bound[name].under)


# Order of a notebook's cells, read off its file


_REMARKS_MAX = 20


@dataclass(frozen=True)
class OrderRemark:
    """Remark on the order of a notebook's cells, which is not a failure by itself."""

    number: int
    sentence: str


def order_remarks(cells: Sequence[NotebookCell]) -> tuple[OrderRemark, ...]:
    """Return what is out of order in the saved code cells, at most 20 remarks."""
    return tuple(itertools.islice(itertools.chain(_prompts(cells), _names(cells)), _REMARKS_MAX))


def _prompts(cells: Sequence[NotebookCell]) -> Iterator[OrderRemark]:
    """Yield remarks on saved prompts; a notebook without prompts was cleared, so it has none."""
    saved = [(cell.number, cell.count) for cell in cells if cell.count is not None]
    for cell in cells if saved else ():
        if cell.count is None:
            yield OrderRemark(cell.number, f"Cell {cell.number} was not run before it was saved.")
    for (above, earlier), (below, later) in itertools.pairwise(saved):
        if later < earlier:
            message = f"Cell {below} (In [{later}]) was run before cell {above} (In [{earlier}]) above it."
            yield OrderRemark(below, message)


def _names(cells: Sequence[NotebookCell]) -> Iterator[OrderRemark]:
    """Yield remarks on names that a cell reads and that only cells further down define."""
    defined = {*dir(builtins), *GIVEN}
    for place, cell in enumerate(cells):
        flow = dataflow_of(cell.source)
        for name in (name for name in flow.reads if name not in defined):
            below = (
                later_cell
                for later_cell in cells[place + 1 :]
                if name in dataflow_of(later_cell.source).bound
            )
            for definer in itertools.islice(below, 1):
                where = Cell(definer.source, 0, definer.number, saved_count=0)
                label_text = where.where(where.flow.bound[name].line)
                yield OrderRemark(
                    cell.number, f"Cell {cell.number} reads `{name}`, which {label_text} defines."
                )
        defined |= flow.bound.keys()
        if flow.star_imports or flow.opaque or not flow.parsed:
            return  # what it defines is not known
