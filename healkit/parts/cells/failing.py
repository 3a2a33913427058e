"""Failing cells of the notebook, as healing gets them.

The extension of IPython knows them; it hands over what finds one (`notebook_cells`). Without it there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from healkit.core.contracts.failure import Failure
from healkit.parts.cells.advice import CellAdvice
from healkit.parts.cells.notebook_file import CellRun


@dataclass(frozen=True)
class FailingCell:
    """Cell of the user's own that failed, and what is known of the notebook around it.

    run: the cell. failure: what it raised, its frames named as the prompts are. advice: on the order of the cells.
    namespace: the notebook's variables now. before: values that the cell has changed, as they were before it ran.
    unknown: names that it changed in place, whose values before are not known. history: runs of this kernel, oldest
    first. below: the texts and the labels of the code cells below it in the notebook. saved: the text that the
    notebook has saved as its result. folder: the kernel's working directory.
    within: where the files may be that it reads; None for anywhere.
    """

    run: CellRun
    failure: Failure
    advice: CellAdvice | None
    namespace: Mapping[str, Any]
    before: Mapping[str, Any]
    unknown: tuple[str, ...] = ()
    history: Sequence[CellRun] = ()
    below: Sequence[tuple[str, str]] = ()
    saved: str = ""
    folder: str = ""
    within: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        """Its prompt, `In [7]`."""
        return prompt_of(self.run)


def prompt_of(run: CellRun) -> str:
    """Return the prompt of a run: `In [7]`."""
    return f"In [{'*' if run.count is None else run.count}]"


#: Finds the failing cell of a prompt's number, the newest for None; returns None where there is none.
FindCell = Callable[[int | None], FailingCell | None]


@dataclass
class NotebookCells:
    """Finder of the failing cells of this process's notebook."""

    find: FindCell = field(default=lambda _number: None)


notebook_cells = NotebookCells()
