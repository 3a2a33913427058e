"""Order of a notebook's cells, read off its file."""

from __future__ import annotations

import builtins
import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from healkit.parts.cells.dataflow import dataflow_of
from healkit.parts.cells.notebook_file import NotebookCell
from healkit.parts.cells.notebook_state import Cell

_REMARKS_MAX = 20
#: Names that IPython and Python give to a notebook.
_GIVEN = frozenset({*dir(builtins), "In", "Out", "get_ipython", "display", "exit", "quit", "_", "__", "___"})


@dataclasses.dataclass(frozen=True)
class OrderRemark:
    """Remark on the order of a notebook's cells, which is no failure by itself."""

    number: int
    sentence: str


def order_remarks(cells: Sequence[NotebookCell]) -> tuple[OrderRemark, ...]:
    """Return what is out of order in code cells as they were saved, at most 20 remarks."""
    return tuple(itertools.islice(itertools.chain(_prompts(cells), _names(cells)), _REMARKS_MAX))


def _prompts(cells: Sequence[NotebookCell]) -> Iterator[OrderRemark]:
    """Yield remarks on saved prompts; a notebook without any was cleared, and tells nothing."""
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
    defined = set(_GIVEN)
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
