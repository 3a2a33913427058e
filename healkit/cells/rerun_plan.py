"""Plan of cells to run so that names are defined.

The definer of a name is the nearest cell above that binds it unconditionally; cells between it and the reader that
change the value are run as well. Names that such a cell reads itself, and that the kernel does not have, are looked up
in the same way. The order is that of the notebook, unless a cell needs one further down.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from healkit.cells.dataflow import function_reads
from healkit.cells.notebook_state import Cell, NotebookState

#: A cell that needs more cells than this is better served by running the notebook from the top.
STEPS_MAX = 60


@dataclass
class RerunPlan:
    """Cells to run, each with the reason.

    lacking: names that no cell binds, with the cell of the plan that reads them. blocked: cells that would fail again.
    """

    steps: list[tuple[Cell, str]] = field(default_factory=list)
    lacking: dict[str, Cell] = field(default_factory=dict)
    blocked: list[Cell] = field(default_factory=list)


class RerunPlanner:
    """Search for the cells that names need; `defined` tells which names the kernel and Python have."""

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
        """Return the cell that binds a name for a reader."""
        cells_binding = [
            cell
            for cell in self._state.cells_binding(name, reader.position)
            if cell is not reader and (name not in cell.flow.bound or not _skipped_binding(cell, name))
        ]
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
        for late in (one for one in definer.flow.deferred_reads if one in reads):
            if self._defined(late):
                self.require_deferred(late, reader)
            else:
                self.require(late, reader, f"defines `{late}`, which `{name}` looks up")

    def plan(self) -> RerunPlan:
        """Return the cells in the order in which to run them."""
        waiting = {key: {one for one in before if one != key} for key, before in self._after.items()}
        ready = [(self._cells[key].position, key) for key, before in waiting.items() if not before]
        heapq.heapify(ready)
        found = RerunPlan(lacking=self._lacking)
        while waiting:
            if not ready:  # a circle: begin with the topmost
                first = min(waiting, key=lambda one: self._cells[one].position)
                ready.append((self._cells[first].position, first))
            key = heapq.heappop(ready)[1]
            del waiting[key]
            for other, before in waiting.items():
                if key in before:
                    before.discard(key)
                    if not before:
                        heapq.heappush(ready, (self._cells[other].position, other))
            found.steps.append((self._cells[key], self._why[key]))
        found.blocked = [cell for cell, _ in found.steps if self._blocked(cell)]
        return found

    def _blocked(self, cell: Cell) -> bool:
        """Return whether a cell would fail again."""
        if not cell.flow.parsed:
            return True
        if not _failing(cell) or cell.run is None or cell.run.ename == "KeyboardInterrupt":
            return False
        if cell.run.missing:
            given = any(
                cell.run.missing in other.flow.bound for other in self._cells.values() if other is not cell
            )
            return not given and not self._defined(cell.run.missing)
        return True


def _failing(cell: Cell) -> bool:
    return cell.state == "failed"


def _skipped_binding(cell: Cell, name: str) -> bool:
    """Return whether the cell ran without an error but its condition for binding the name was false."""
    return cell.state == "ran" and bool(cell.flow.bound[name].under)
