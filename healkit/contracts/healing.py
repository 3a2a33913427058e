"""Healing as data: checks, patches, attempts, requests.

A *check* says what a tool has to do: for these arguments, return this. A *patch* is other code for the tool, proposed
by an advisor. A patch that passes every check is *plausible*; it is *correct* only as far as a person has said what is
right. The verdict keeps the two apart.
"""

from __future__ import annotations

import dataclasses
import math
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from healkit.contracts.cassette import Cassette
from healkit.contracts.tools import EntryRef, Withheld, revision_label

#: Origin of a check: an example that the tool's owner declared, an answer to a question of the loop, a recorded
#: run that passed and must stay equal, or the recorded failure.
CheckOrigin = Literal["declared", "answered", "passing", "failing"]
#: Outcome of a check: the tool did what it has to, returned something else, raised, did not end in time, took its
#: process with it, was not run, or made a call that is not on record, or asked for a file that is withheld, and so was
#: ended there.
CheckOutcome = Literal["passed", "wrong", "raised", "timeout", "died", "not_run", "not_on_record"]
#: `cured`: regression-free, and the failing input is known to give what is right. `unproven`: it no longer fails, but
#: no example says what is right there, or not which of several plausible patches is. `silenced`: it no longer fails
#: because a guard hides it, or an answer was copied. `undecided`: a check could not be run to its end, because the code
#: made a call that is not on record. `not_cured`: it still fails.
Verdict = Literal["cured", "unproven", "silenced", "undecided", "not_cured"]


#: What an edit does to the meaning of the code; only the first five keep it. `renames`: a name, column, key or file for
#: the one that exists. `migrates`: an interface that was removed, for its successor. `converts`: values to another
#: type, each of which stays what it is. `restores`: what an earlier cell or line has overwritten, shadowed or not made.
#: `restructures`: parentheses, an axis, `await`, the place of an argument. `assumes`: one of several readings.
#: `invents`: a value that stands neither in the code nor in the data. `discards`: rows, values or errors.
EditKind = Literal[
    "renames", "migrates", "converts", "restores", "restructures", "assumes", "invents", "discards"
]
EDIT_KINDS: tuple[EditKind, ...] = get_args(EditKind)


class VerdictText(NamedTuple):
    """Verdict as every face shows it: its words, its sign, its colour, what it means, and what it leaves open."""

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
        "No exception, but the failing step is skipped or its result made up.",
        "Check whether that is right.",
    ),
    "undecided": VerdictText(
        "not decided, a call or a file is missing",
        "?",
        "warn",
        "It makes a call that no recorded execution made, or reads a file that only accepted code may read.",
        "Allow it by name (live=…, files=…), or decide yourself.",
    ),
    "not_cured": VerdictText("does not fix it", "✗", "bad"),
}


class Edit(msgspec.Struct, frozen=True, array_like=True):
    """Splice of a source text: `text` replaces the characters from `start` to `end` (half-open)."""

    start: int
    end: int
    text: str


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Check on a tool: one thing that a patch has to do.

    Arguments and expected value are in their kept form (`values.kept`): JSON, with tags for what JSON lacks.

    arguments: what the tool is called with. call: Python source instead, evaluated beside the tool's code: statements
    and a last expression, whose value counts (a doctest's line). known: the right outcome is known; then `expected` is
    the value as JSON, or `raises` the name of the right exception. Otherwise the tool only has to return. sampled: the
    part of a long frame that is in the arguments, `1,000 of 200,000 rows`; empty for all of it. shown: the call in few
    words, where its source is more than that, as a caller of the tool is run beside it. setup: Python source run before
    the code, in its namespace; the code is that of a notebook's cell then, which may await, and whose value is `_`.
    """

    origin: CheckOrigin
    arguments: dict[str, Any] = {}
    call: str = ""
    known: bool = False
    expected: Any = None
    raises: str = ""
    log_id: int | None = None
    sampled: str = ""
    shown: str = ""
    setup: str = ""

    @property
    def told(self) -> str:
        """Source of its call as a person reads it; empty where it has arguments."""
        return self.shown or self.call

    @property
    def binding(self) -> bool:
        """True if a person has said what is right; False for a recorded outcome."""
        return self.known and self.origin in ("declared", "answered")


class CheckResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of one check: the value in its kept form where it returned, else the failure in one line.

    outline: what the JSON does not say of the value's types, such as `set` or `list[tuple]`; empty where it says all.
    answered: its calls that were answered from the record; displaced: those of them that had other arguments there.
    live: its calls that were made.
    """

    outcome: CheckOutcome
    value: Any = None
    outline: str = ""
    failure: str = ""
    error_code: str = ""
    duration_s: float = 0.0
    trace_id: str = ""
    answered: int = 0
    displaced: int = 0
    live: int = 0


class Observed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of one check run under observation.

    lines: the executed lines of the tool's code (from 1). failed_lines: those that the traceback passes through,
    innermost last. types: for each local or global name of the tool's own functions, the type names seen at their
    returns and exceptions, `function.name` → names.
    """

    result: CheckResult
    lines: list[int] = []
    failed_lines: list[int] = []
    types: dict[str, list[str]] = {}


class Patch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """New code for a tool. `rank` compares an advisor's own patches: higher is likelier right.

    `reason` says in one sentence what is changed and why. `guard`: it keeps the failure from happening without saying
    what is right instead. `doubt`: why the advisor itself is not sure, in a sentence; such a patch is never called
    cured, unless a person has said meanwhile what is right. `kind` is what the advisor says that it does to the
    meaning, and once it was judged, what is seen of it. `cost` is what it took to get, in the advisor's units
    (`{"input_tokens": 812, …}`).
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

    unasked: without an example that says what is right, it changes results, or returns what the annotation forbids;
    such an attempt comes after the other plausible ones. reach: what its code reaches for and the old one does not, in
    words; such an attempt is never kept without a person. lost: its loss of data in numbers; its doubt begins with it.
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


def same_value(expected: object, found: object) -> bool:
    """Compare two JSON values: numbers to nine digits (1 is 1.0, but True is not 1), the rest exactly."""
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, int | float) and isinstance(found, int | float):
        if isinstance(expected, int) and isinstance(found, int):
            return expected == found
        try:
            return math.isclose(expected, found, rel_tol=1e-9, abs_tol=1e-12)
        except OverflowError:  # an int beyond every float
            return False
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(same_value, expected, found))
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(
            same_value(value, found[key]) for key, value in expected.items()
        )
    return type(expected) is type(found) and bool(expected == found)


def apply_edits(code: str, edits: list[Edit]) -> str:
    """Return the text with the edits made; they may not overlap."""
    if len(edits) > 1:
        edits = sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True)
    for edit in edits:
        code = code[: edit.start] + edit.text + code[edit.end :]
    return code


def difference(before: str, after: str) -> Edit:
    """Return the one edit that turns the first text into the second."""
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    return Edit(start, len(before) - end, after[start : len(after) - end])


def _alike(one: str, other: str) -> int:
    """Count the characters that two texts have in common at their beginnings."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


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
    "by_chance": "it passes and fails by chance",
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

    revision: the active one, where the healing made a revision. best: the attempt that was chosen; `not_cured` if it
    failed once it was active. reason: one sentence.
    notes: deviations on the way, such as an advisor that could not be asked. cost: of the advisors' work, summed by
    unit. folder: the run folder; `healkit trace show` reads it. nearest: where no patch passes every check, the one
    that passes most, if that is more than the code as it is.

    calls_answered: calls in its checks that were answered from the record. calls_live: those that were made.
    duration_s: wall-clock time of all of it. think_time_s: the part in which a person was waited for, at a question,
    for consent, or in an editor.
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
        """Wall-clock time without the time in which a person was waited for."""
        return max(0.0, self.duration_s - self.think_time_s)

    @property
    def ok(self) -> bool:
        """True if a patch was kept, or none was needed."""
        return self.outcome in ("kept", "healthy")

    @property
    def verdict_code(self) -> Verdict | None:
        """Chosen attempt's verdict as a code; None where none was chosen."""
        return None if self.best is None else self.best.verdict

    @property
    def verdict(self) -> str:
        """Chosen attempt's verdict in words, for people; empty where none was chosen."""
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

    parent: the revision that it was made from. diff: from that one's code to this. advisor: the proposer, in the
    advisor's own name for itself. verdict: of its validation, empty without one. motivating_log_id, run_id: the
    execution that it answers, and the healing that made it. revision: the one that it became once it was accepted.
    note: why it was declined, or both sides where it was overtaken.
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
        """Revision that it was made from: `fibonacci v2`, or `fibonacci v2 (teacher)`."""
        return revision_label(self.tool_name, self.persona, self.parent)

    @property
    def said(self) -> str:
        """Verdict in words."""
        return VERDICTS[self.verdict].words if self.verdict else "not validated"


# Messages that try many variants of one code on its checks.
#
# host → trial server: `batch` once, then `share` after `share`, each answered by `outcomes` as they come and a
# `share_done`. A candidate is a list of splices of the batch's code, so that a variant travels in a few bytes.


PASSED, WRONG, RAISED, TIMED_OUT, DIED, NOT_RUN, NOT_ON_RECORD = ".wetd-n"
#: Outcomes of a check, one letter each (`healing.advisor.Workbench.score`).
LETTERS = PASSED + WRONG + RAISED + TIMED_OUT + DIED + NOT_RUN + NOT_ON_RECORD
#: Limits of a share's candidates and outcomes; one page of shared memory holds that many.
SHARE_MAX, SHARE_OUTCOMES_MAX = 4000, 1_000_000


class BatchCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Check as a trial server gets it (`contracts.healing.Check`), with its time limit in seconds.

    Arguments travel as JSON, because they are decoded afresh for each candidate. `exact` says that arguments and
    expected value hold tags (`values.kept`), and that the result is compared as it is; `typed`, that
    a set or a dict with other keys than texts is wrong (`encoding.is_beyond_json`). `run` is the execution whose own
    calls the batch's cassette answers with first. `setup` is run before the code, which is a cell's then.
    """

    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    call: str = ""
    known: bool = False
    expected: msgspec.Raw = msgspec.Raw(b"null")
    raises: str = ""
    timeout_s: float = 1.0
    exact: bool = False
    typed: bool = False
    run: str = ""
    setup: str = ""


class Batch(msgspec.Struct, frozen=True, tag="batch", kw_only=True):
    """Part of a search that stays the same for all candidates; `every` goes on after the first failed check.

    as_code: where a check's right answer is unknown, the code's own result there is right, a value or an exception;
    where the code does not end, any value is. cassette: answers the candidates' calls. withheld: the files that end a
    run which asks for one.
    """

    entry: EntryRef
    code: str
    checks: list[BatchCheck]
    every: bool
    memory_bytes: int
    result_max_bytes: int
    output_max_bytes: int
    as_code: bool = False
    cassette: Cassette = Cassette()
    withheld: Withheld = Withheld()


class Share(msgspec.Struct, frozen=True, tag="share"):
    """Next candidates of the batch."""

    candidates: list[list[Edit]]


class Outcomes(msgspec.Struct, frozen=True, tag="outcomes"):
    """Outcomes of some candidates: from `first` on in the share, as many letters each as there are checks."""

    first: int
    letters: list[str]


class ShareDone(msgspec.Struct, frozen=True, tag="share_done"):
    """End of a share; `setup_s` is the time spent on getting ready for it."""

    setup_s: float
    children: int
