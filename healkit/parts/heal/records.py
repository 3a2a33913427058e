"""Healing as data: patches, attempts, verdicts, reports.

A *patch* is other code for the tool, proposed by an advisor. A patch that passes every check is *plausible*. It is
*correct* only as far as a person has said what is right. The verdict keeps the two apart.
"""

from __future__ import annotations

import dataclasses
import difflib
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import Check, CheckResult, EditKind
from healkit.core.contracts.tools import revision_label
from healkit.parts.cells.notebook_state import OrderRemark

#: `cured`: regression-free, and the failing input is known to give what is right. `unproven`: it no longer fails, but
#: no example says what is right there, or not which of several plausible patches is. `silenced`: it no longer fails
#: because a guard hides it, or an answer was copied. `undecided`: a check could not be run to its end, because the code
#: made a call that is not on record. `not_cured`: it still fails.
Verdict = Literal["cured", "unproven", "silenced", "undecided", "not_cured"]


class VerdictText(NamedTuple):
    """Verdict as every face shows it: its words, sign, colour and meaning, and what remains open."""

    words: str
    mark: str
    tone: Literal["", "good", "warn", "bad"]
    meaning: str = ""
    caveat: str = ""


VERDICTS: dict[Verdict, VerdictText] = {
    "cured": VerdictText(
        "fixed, no regressions",
        "✓",
        "good",
        "Every check passes, and an example says what is right where it failed.",
        "Verified against these examples only.",
    ),
    "unproven": VerdictText(
        "passes all checks, unverified",
        "?",
        "warn",
        "The failing call no longer fails, but no example says what it should return.",
        "Check what it returns.",
    ),
    "silenced": VerdictText(
        "only hides the error",
        "–",
        "warn",
        "No exception, but the failing step is skipped or its result is made up.",
        "Check whether that is right.",
    ),
    "undecided": VerdictText(
        "not decided, a call or a file is missing",
        "?",
        "warn",
        "It makes a call that is not on record, or reads a file that only accepted code may read.",
        "Allow it by name (live=…, files=…), or decide yourself.",
    ),
    "not_cured": VerdictText("does not fix it", "✗", "bad"),
}


class Patch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """New code for a tool. `rank` compares an advisor's own patches: higher is likelier right.

    `reason` says in one sentence what changes and why. `guard`: It prevents the failure without saying what is right
    instead. `doubt` is a sentence on why the advisor is not sure; such a patch is never called cured, unless a person
    has said since then what is right. `kind` is what it does to the meaning, first by the advisor's own account, later
    by the judged code. `cost` is the cost of getting it, in the advisor's units (`{"input_tokens": 812, …}`).
    """

    code: str
    advisor: str
    author: Literal["person", "rule", "search", "model", "agent"]
    reason: str
    rank: float = 0.0
    guard: bool = False
    doubt: str = ""
    kind: EditKind | Literal[""] = ""
    cost: dict[str, float] = {}


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Patch with the results of its validation; `why` names the first failed check, in one sentence.

    unasked: Without an example that says what is right, it changes results, or returns what the annotation forbids.
        Such an attempt comes after the other plausible ones. reach: What its code reaches for and the old code does
        not, in words; such an attempt is never kept without a person. lost: Its loss of data in numbers; its doubt
        begins with it.
    """

    number: int
    patch: Patch
    diff: str
    verdict: Verdict
    why: str = ""
    passed: int = 0
    total: int = 0
    results: list[CheckResult] = []
    duration_s: float = 0.0
    step_id: str | None = None
    unasked: bool = False
    reach: list[str] = []
    lost: str = ""

    @property
    def plausible(self) -> bool:
        """True if it passes every check."""
        return self.verdict in ("cured", "unproven", "silenced")


# The report of a healing.


#: `kept`: a patch is the tool's active revision now. `shown`: a dry run's. `pending`: it waits for consent. `declined`:
#: the person said no. `denied`: the policy forbids it. `rolled_back`: it was kept, failed when it ran, and was taken
#: back. `not_cured`: no attempt passes. `healthy`: the tool does not fail any more. `by_chance`: it passes and fails
#: with the same code and arguments. `not_mendable`: no change of the code helps. `halted`: the policy ended the run; a
#: patch that failed once it was active may still be there. `stopped`: Stop was pressed.
Outcome = Literal[
    "kept", "shown", "pending", "declined", "denied", "rolled_back", "not_cured", "healthy", "by_chance",
    "not_mendable", "halted", "stopped",
]  # fmt: skip
#: Each in words.
HEAL_ENDINGS: dict[str, str] = {
    "kept": "patch accepted",
    "shown": "patch found, not applied",
    "pending": "a patch is waiting for approval",
    "declined": "patch declined",
    "denied": "the policy forbids the patch",
    "rolled_back": "patch rolled back",
    "not_cured": "no fix found",
    "healthy": "nothing fails any more",
    "by_chance": "it sometimes passes and sometimes fails",
    "not_mendable": "changing the code does not help",
    "halted": "halted by the policy",
    "stopped": "stopped",
}


@dataclasses.dataclass(frozen=True)
class Answered:
    """Question that was asked: the input, each plausible patch's result, and the answer, as JSON text."""

    call: str
    choices: tuple[str, ...]
    answer: str | None


@dataclasses.dataclass(frozen=True)
class HealReportData:
    """Report of one healing from observation to revision.

    revision: The active revision, if the healing made one.
    best: The chosen attempt; `not_cured` if it failed once it was active.
    reason: One sentence.
    notes: Deviations on the way, such as an advisor that was not usable.
    cost: Cost of the advisors' work, summed by unit.
    folder: The run folder; `healkit trace show` reads it.
    nearest: If no patch passes every check, the one that passes most, if that is more than the unpatched code.
    calls_answered: Calls in its checks that were answered from the record.
    calls_live: Calls that were made.
    duration_s: Wall-clock time of all of it.
    think_time_s: The part spent waiting for a person, at a question, for consent, or in an editor.
    """

    tool_name: str
    persona: str
    label: str
    outcome: Outcome
    reason: str
    diagnosis: str
    attempts: tuple[Attempt, ...]
    best: Attempt | None
    checks: tuple[Check, ...]
    duration_s: float
    candidates_tried: int
    run_id: str
    folder: Path
    revision: int | None = None
    request_id: int | None = None
    questions: tuple[Answered, ...] = ()
    notes: tuple[str, ...] = ()
    cost: dict[str, float] = dataclasses.field(default_factory=dict)
    think_time_s: float = 0.0
    nearest: Attempt | None = None
    calls_answered: int = 0
    calls_live: int = 0

    @property
    def working_time_s(self) -> float:
        """Wall-clock time without the time of waiting for a person."""
        return max(0.0, self.duration_s - self.think_time_s)

    @property
    def ok(self) -> bool:
        """True if a patch was kept, or none was needed."""
        return self.outcome in ("kept", "healthy")

    @property
    def verdict_code(self) -> Verdict | None:
        """Chosen attempt's verdict as a code; None if none was chosen."""
        return None if self.best is None else self.best.verdict

    @property
    def verdict(self) -> str:
        """Chosen attempt's verdict in words for the user; empty if none was chosen."""
        return "" if self.best is None else VERDICTS[self.best.verdict].words

    @property
    def plausible(self) -> tuple[Attempt, ...]:
        """Attempts that pass every check, likeliest first."""
        return tuple(attempt for attempt in self.attempts if attempt.plausible)


# Patch requests: patches that wait for consent.


#: `pending` until it is decided. `overtaken`: it was accepted, but by then the tool had another revision that this
#: patch was not made from; nothing was changed.
RequestState = Literal["pending", "accepted", "declined", "overtaken"]
#: Author of the patch, in the words for a revision's author.
RequestAuthor = Literal["person", "rule", "search", "model", "agent"]


class PatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Proposed code for a tool.

    parent: The revision from which it was made.
    diff: The difference between that code and this one.
    advisor: The proposer, in the advisor's own name for itself.
    verdict: The verdict of its validation, empty without one.
    motivating_log_id, run_id: The execution that it answers, and the healing that made it.
    revision: The revision that it became once it was accepted.
    note: Why it was declined, or both sides if it was overtaken.
    """

    id: int
    tool_name: str
    persona: str
    parent: int
    code: str
    code_hash: str
    diff: str
    author: RequestAuthor
    created_at: datetime
    advisor: str = ""
    reason: str = ""
    verdict: Verdict | Literal[""] = ""
    motivating_log_id: int | None = None
    run_id: str | None = None
    state: RequestState = "pending"
    decided_at: datetime | None = None
    decided_by: str = ""
    revision: int | None = None
    note: str = ""

    @property
    def label(self) -> str:
        """Revision from which it was made: `fibonacci v2`, or `fibonacci v2 (teacher)`."""
        return revision_label(self.tool_name, self.persona, self.parent)

    @property
    def said(self) -> str:
        """Verdict in words."""
        return VERDICTS[self.verdict].words if self.verdict else "not validated"


# Fixes of a notebook's cells, and checks of notebooks.


#: `proposed`: there is a fix. `question`: there are edits that read the cell in different ways. `rerun`: other cells
#: have to be run first. `not_cured`: nothing that was tried helps.
#: `not_tried`: the failing statement cannot be run in a worker, and no fix is known from the message alone.
CellOutcome = Literal["proposed", "question", "rerun", "not_cured", "not_tried"]


@dataclasses.dataclass(frozen=True)
class CellPlace:
    """Cell as it ran: its prompt, `In [7]`, its text, and its id in the notebook, empty if unknown."""

    cell: str
    source: str
    cell_id: str = ""


@dataclasses.dataclass(frozen=True)
class CellFix:
    """Edit of one cell.

    cell: The prompt of the cell to edit, `In [7]`.
    code: Its complete new text.
    before: Its old text.
    reason: What changes, in a sentence.
    advisor: The advisor that proposed it.
    ran: Whether the failing cell ran with it, in a worker.
    gave: Its result then, in words, such as `a table of 4 rows × 3 columns`.
    verdict: None if it did not run.
    unknown: What is not known about it, in sentences.
    cell_id: The notebook's own id of that cell, empty if unknown.
    first: The cells to run before it, because they made lost values that it reads.
    then: The cells to run after it, the failing one last; none if that is the edited cell.
    kind: What it does to the meaning.
    lost: Its measured loss of data.
    support: Evidence for it, in sentences.
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
        """Sentence on the cells to run for it to help; empty if that is only the failing cell."""
        cells = [*(place.cell for place in self.first), self.cell, *(place.cell for place in self.then)]
        return f"Run {cells[0]} again, then {', then '.join(cells[1:])}." if cells[1:] else ""

    @property
    def hunks(self) -> list[tuple[list[str], list[str]]]:
        """Lines that it removes and the lines that replace them, for each place in the cell."""
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
        """Sentence on its result."""
        if not self.ran:
            return "Not run."
        if self.verdict == "silenced":
            return f"Runs, but {VERDICTS['silenced'].words}."
        sentence = f"Runs, and gives {self.gave}." if self.gave else "Runs without an error."
        return " ".join([sentence, *self.support])


@dataclasses.dataclass(frozen=True)
class CellReportData:
    """Report of the healing of a failing cell.

    label: Its prompt.
    found: The failure in a sentence.
    reason: The result in a sentence.
    fix: The likeliest fix.
    others: Further fixes, and readings that only you can choose from.
    not_fixes: Edits that run, but change or lose data.
    notes: Which values were used, and what was left out.
    cells: Labels of cells to run first.
    report: The healing behind it.
    refutes: Whether the card names another change than the first edit here, so that it must not be shown.
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
        """Edit for a user who wants one: the fix, or the only reading."""
        only = self.others if self.outcome == "question" else ()
        return self.fix or (only[0] if len(only) == 1 else None)

    @property
    def edits(self) -> tuple[CellFix, ...]:
        """All edits that a card shows, in its order: the first is number 1."""
        first = self.chosen
        return (
            *((first,) if first is not None else ()),
            *(edit for edit in self.others if edit is not first),
        )


#: `passed`: every cell ran. `healed`: it fails, and ran to its end with the fixes. `failed`: it did not.
NotebookOutcome = Literal["passed", "healed", "failed", "stopped"]


@dataclasses.dataclass(frozen=True)
class CheckedCell:
    """Code cell in the last run of a check.

    number: Its number among all cells of the notebook, from 1.
    """

    number: int
    state: Literal["passed", "failed", "not_run"] = "not_run"
    prompt: int | None = None
    duration_s: float = 0.0


@dataclasses.dataclass(frozen=True)
class CellEdit:
    """New text of a cell with which the notebook got further."""

    number: int
    before: str
    code: str


@dataclasses.dataclass(frozen=True)
class NotebookFailure:
    """Failure of a cell in a check.

    number: The cell's number among all cells.
    prompt: Its prompt in this run, 3 for `In [3]`.
    line: The line in the cell, 0 if unknown.
    file_line: The line in the notebook's file.
    report: The report of its healing.
    fixed: Whether the notebook got further with the fix.
    why: Why it happened; shorter cards omit it.
    """

    number: int
    prompt: int
    line: int
    file_line: int
    failure: Failure
    explanation: str
    report: CellReportData | None = None
    fixed: bool = False
    why: str = ""


@dataclasses.dataclass(frozen=True)
class NotebookReportData:
    """Report of a notebook's check.

    cells: Its code cells, as the last counted run left them.
    failures: Its first failure; with healing, also the later ones.
    edits: The edits of the fixes with which it got further.
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
