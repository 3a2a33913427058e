"""Which cells have to be run, in which order, so that names are there.

The cell that gives a name its value is the nearest above that does so in any case; cells between that one and the
reader which change the value are run as well. What such a cell reads itself, and the kernel does not have, is found in
the same way. The order is that of the notebook, unless a cell needs one that stands further down.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from healkit.healing.cells.bindings import function_reads
from healkit.healing.cells.world import Known, World

#: A notebook in which one cell needs more cells than that is run from the top.
STEPS_MAX = 60


@dataclass
class Plan:
    """Cells to run and why; `lacking`: what no cell gives, though a cell of the plan reads it at once."""

    steps: list[tuple[Known, str]] = field(default_factory=list)
    lacking: dict[str, Known] = field(default_factory=dict)
    blocked: list[Known] = field(default_factory=list)


class Planner:
    """Finds the cells for names; `defined` are the names that the kernel and Python have."""

    def __init__(self, world: World, defined: Callable[[str], bool]) -> None:
        self._world = world
        self._defined = defined
        self._why: dict[int, str] = {}
        self._cells: dict[int, Known] = {}
        self._after: dict[int, set[int]] = {}  # cell → cells that have to be run before it
        self._lacking: dict[str, Known] = {}
        self._called: set[tuple[int, str]] = set()

    def need(self, name: str, reader: Known, why: str) -> Known | None:
        """Plan for one name that a cell reads; the cell that gives it, or None where none does."""
        giver = self.giver(name, reader)
        if giver is None:
            return None
        for cell in [giver, *self._changers(name, giver, reader)]:
            self.take(cell, why if cell is giver else f"changes `{name}`")
            if cell is not giver:
                self._after[id(cell)].add(id(giver))
            if reader is not self._world.here:
                self._after[id(reader)].add(id(cell))
        return giver

    def giver(self, name: str, reader: Known) -> Known | None:
        """The cell that gives a name its value for a reader."""
        binders = [
            cell
            for cell in self._world.binders(name, reader.place)
            if cell is not reader and (name not in cell.names.bound or not _in_vain(cell, name))
        ]
        above = [cell for cell in binders if cell.place < reader.place and not cell.gone]
        return next((cell for cell in above if not cell.names.bound[name].under), next(iter(binders), None))

    def _changers(self, name: str, giver: Known, reader: Known) -> list[Known]:
        return [
            cell
            for cell in self._world.cells
            if giver.place < cell.place < reader.place
            and not cell.gone
            and name in cell.source
            and (name in cell.names.changed or name in cell.names.bound)
            and not cell.names.deleted.get(name)
            and not _failing(cell)
        ]

    def take(self, cell: Known, why: str) -> None:
        """Plan for a cell to be run, and for what it reads."""
        if id(cell) in self._cells or len(self._cells) >= STEPS_MAX:
            return
        self._cells[id(cell)], self._why[id(cell)] = cell, why
        self._after[id(cell)] = set()
        for name in cell.names.needs:
            if self._defined(name):
                self.called(name, cell)
            elif self.need(name, cell, f"defines `{name}` for {cell.label}") is None:
                self._lacking.setdefault(name, cell)
        for name in cell.names.late:
            if self._defined(name):
                self.called(name, cell)
            else:
                self.need(name, cell, f"defines `{name}` for {cell.label}")

    def called(self, name: str, reader: Known) -> None:
        """Plan for what a function that the kernel has already looks up when the reader calls it."""
        if (id(reader), name) in self._called:
            return
        self._called.add((id(reader), name))
        binders = self._world.binders(name, reader.place)
        giver = next((cell for cell in binders if cell.run is not None), None)
        if giver is None:
            return
        reads = function_reads(giver.source, name)
        for late in (one for one in giver.names.late if one in reads):
            if self._defined(late):
                self.called(late, reader)
            else:
                self.need(late, reader, f"defines `{late}`, which `{name}` looks up")

    def plan(self) -> Plan:
        """All that was asked for, in the order in which it is to be run."""
        waiting = {key: {one for one in before if one != key} for key, before in self._after.items()}
        ready = [(self._cells[key].place, key) for key, before in waiting.items() if not before]
        heapq.heapify(ready)
        found = Plan(lacking=self._lacking)
        while waiting:
            if not ready:  # in a circle: the one that stands first
                first = min(waiting, key=lambda one: self._cells[one].place)
                ready.append((self._cells[first].place, first))
            key = heapq.heappop(ready)[1]
            del waiting[key]
            for other, before in waiting.items():
                if key in before:
                    before.discard(key)
                    if not before:
                        heapq.heappush(ready, (self._cells[other].place, other))
            found.steps.append((self._cells[key], self._why[key]))
        found.blocked = [cell for cell, _ in found.steps if self._blocked(cell)]
        return found

    def _blocked(self, cell: Known) -> bool:
        """Whether running it again would end as it did."""
        if not cell.names.parsed:
            return True
        if not _failing(cell) or cell.run is None or cell.run.ename == "KeyboardInterrupt":
            return False
        if cell.run.missing:
            given = any(
                cell.run.missing in other.names.bound for other in self._cells.values() if other is not cell
            )
            return not given and not self._defined(cell.run.missing)
        return True


def _failing(cell: Known) -> bool:
    return cell.state == "failed"


def _in_vain(cell: Known, name: str) -> bool:
    """Whether the cell ran to its end and did not give the name a value, because of what that depends on."""
    return cell.state == "ran" and bool(cell.names.bound[name].under)
