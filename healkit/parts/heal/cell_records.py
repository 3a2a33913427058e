"""Checks of notebooks and fixes of their cells as data."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Literal

from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import EditKind
from healkit.parts.cells.notebook_state import OrderRemark
from healkit.parts.heal.records import VERDICTS, HealReportData, Verdict

#: `proposed`: there is a fix. `question`: there are edits that read the cell in different ways. `rerun`: other cells
#: have to be run first. `not_cured`: nothing that was tried helps.
#: `not_tried`: the failing statement cannot be run in a worker, and no fix is known from the message alone.
CellOutcome = Literal["proposed", "question", "rerun", "not_cured", "not_tried"]


@dataclasses.dataclass(frozen=True)
class CellPlace:
    """Cell as it ran: its prompt, `In [7]`, its text, and the notebook's own id of it, empty where it is not known."""

    cell: str
    source: str
    cell_id: str = ""


@dataclasses.dataclass(frozen=True)
class CellFix:
    """Edit of one cell.

    cell: the prompt of the cell to be edited, `In [7]`. code: its whole new text; before: its old one. reason: what is
    changed, in a sentence. advisor: who proposed it. ran: whether the failing cell was run with it, in a worker. gave:
    what it gave then, in words, such as `a table of 4 rows × 3 columns`. verdict: None where it was not run. unknown:
    what is not known about it, in sentences. cell_id: the notebook's own id of that cell, empty where it is not known.
    first: the cells to be run before it, because they made what it reads and has lost. then: the cells to be run after
    it, the failing one last; none where that is the cell to be edited. kind: what it does to the meaning. lost: what it
    loses of the data, as measured. support: what speaks for it, in sentences.
    """

    cell: str
    code: str
    before: str
    reason: str
    advisor: str
    ran: bool
    gave: str = ""
    verdict: Verdict | None = None
    unknown: tuple[str, ...] = ()
    cell_id: str = ""
    then: tuple[CellPlace, ...] = ()
    kind: EditKind = "restructures"
    lost: tuple[str, ...] = ()
    support: tuple[str, ...] = ()
    first: tuple[CellPlace, ...] = ()

    @property
    def rerun(self) -> str:
        """Sentence on what has to be run for it to help; empty where that is the failing cell alone."""
        cells = [*(place.cell for place in self.first), self.cell, *(place.cell for place in self.then)]
        return f"{cells[0]} has to be run again, then {', then '.join(cells[1:])}." if cells[1:] else ""

    @property
    def hunks(self) -> list[tuple[list[str], list[str]]]:
        """Lines that it takes out and the lines that take their place, for each place in the cell."""
        before, after = self.before.split("\n"), self.code.split("\n")
        changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return [(before[a:b], after[c:d]) for kind, a, b, c, d in changes if kind != "equal"]

    @property
    def diff(self) -> str:
        """Unified diff of the cell."""
        lines = difflib.unified_diff(
            self.before.splitlines(),
            self.code.splitlines(),
            f"{self.cell} now",
            f"{self.cell} fixed",
            lineterm="",
        )
        return "\n".join(lines) + "\n"

    @property
    def said(self) -> str:
        """Sentence on what was seen."""
        if not self.ran:
            return "Not run."
        if self.verdict == "silenced":
            return f"Runs, but {VERDICTS['silenced'].words}."
        sentence = f"Runs, and gives {self.gave}." if self.gave else "Runs without an error."
        return " ".join([sentence, *self.support])


@dataclasses.dataclass(frozen=True)
class CellReportData:
    """Report of the healing of a failing cell.

    label: its prompt. found: the failure in a sentence. reason: the result in a sentence. fix: the likeliest fix;
    others: further ones, and readings that only you can choose from. not_fixes: edits that run, and change or lose
    data. notes: what was run on what, what was left out. cells: labels of cells to run first. report: the healing
    behind it. refutes: whether the card names another change than the first edit here, so that it is not to be told.
    """

    label: str
    outcome: CellOutcome
    found: str
    reason: str
    fix: CellFix | None = None
    others: tuple[CellFix, ...] = ()
    not_fixes: tuple[CellFix, ...] = ()
    notes: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    duration_s: float = 0.0
    report: HealReportData | None = None
    refutes: bool = False

    @property
    def chosen(self) -> CellFix | None:
        """Edit that a person who asks for one gets: the fix, or the only reading that there is."""
        only = self.others if self.outcome == "question" else ()
        return self.fix or (only[0] if len(only) == 1 else None)


#: `passed`: every cell ran. `healed`: it fails, and ran to its end with the fixes. `failed`: it did not.
NotebookOutcome = Literal["passed", "healed", "failed", "stopped"]


@dataclasses.dataclass(frozen=True)
class CheckedCell:
    """Code cell in the last run of a check; number: among all cells of the notebook, from 1."""

    number: int
    state: Literal["passed", "failed", "not_run"] = "not_run"
    prompt: int | None = None
    duration_s: float = 0.0


@dataclasses.dataclass(frozen=True)
class CellEdit:
    """New text of a cell with which the notebook ran on."""

    number: int
    before: str
    code: str


@dataclasses.dataclass(frozen=True)
class NotebookFailure:
    """Failure of a cell in a check.

    number: the cell's, among all cells. prompt: in this run, 3 for `In [3]`. line: in the cell, 0 where that is not
    known; file_line: in the notebook's file. report: what healing found. fixed: whether the notebook ran on with the
    fix.
    """

    number: int
    prompt: int
    line: int
    file_line: int
    failure: Failure
    explanation: str
    report: CellReportData | None = None
    fixed: bool = False


@dataclasses.dataclass(frozen=True)
class NotebookReportData:
    """Report of a notebook's check.

    cells: its code cells, as the last run that counts left them. failures: the first that it ran into; with healing,
    those behind it too. edits: of the fixes with which it ran on.
    """

    path: str
    outcome: NotebookOutcome
    cells: tuple[CheckedCell, ...] = ()
    failures: tuple[NotebookFailure, ...] = ()
    edits: tuple[CellEdit, ...] = ()
    remarks: tuple[OrderRemark, ...] = ()
    duration_s: float = 0.0

    @property
    def cells_run(self) -> int:
        """Number of cells that ran without a failure."""
        return sum(cell.state == "passed" for cell in self.cells)
