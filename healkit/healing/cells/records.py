"""What is known of a notebook: runs in its kernel, cells in its file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CellRun:
    """One run of a cell in this kernel.

    count: the number of its prompt. ok: None where nobody watched. at: when it ended, in seconds since the epoch.
    failed_line: the cell's own line that failed. missing: the name that a NameError was about.
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
    """One code cell of the file; `number` counts all cells from 1, `count` is the prompt that was saved with it."""

    number: int
    source: str
    cell_id: str = ""
    count: int | None = None


@dataclass(frozen=True)
class NotebookFile:
    """The code cells of a notebook file as it was saved last (seconds since the epoch)."""

    cells: tuple[NotebookCell, ...]
    saved_at: float | None = None
