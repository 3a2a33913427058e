"""Checks, patches and attempts of a healing.

A *check* says what a tool has to do: for these arguments, return this. A *patch* is other code for the tool, proposed
by an advisor. A patch that passes every check is *plausible*; it is *correct* only as far as a person has said what is
right. The verdict keeps the two apart.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import msgspec

#: Origin of a check: an example that the tool's owner declared, an answer to a question of the loop, a recorded
#: run that passed and must stay equal, or the recorded failure.
CheckOrigin = Literal["declared", "answered", "passing", "failing"]
#: Outcome of a check: the tool did what it has to, returned something else, raised, did not end in time, took its
#: process with it, or was not run.
CheckOutcome = Literal["passed", "wrong", "raised", "timeout", "died", "not_run"]
#: `cured`: regression-free, and the failing input is known to give what is right. `unproven`: it no longer fails, but
#: no example says what is right there, or not which of several plausible patches is. `silenced`: it no longer fails
#: because a guard hides it, or an answer was copied. `not_cured`: it still fails.
Verdict = Literal["cured", "unproven", "silenced", "not_cured"]


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
    part of a long frame that is in the arguments, `1,000 of 200,000 rows`; empty for all of it.
    """

    origin: CheckOrigin
    arguments: dict[str, Any] = {}
    call: str = ""
    known: bool = False
    expected: Any = None
    raises: str = ""
    log_id: int | None = None
    sampled: str = ""

    @property
    def binding(self) -> bool:
        """True if a person has said what is right; False for a recorded outcome."""
        return self.known and self.origin in ("declared", "answered")


class CheckResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of one check: the value in its kept form where it returned, else the failure in one line.

    outline: what the JSON does not say of the value's types, such as `set` or `list[tuple]`; empty where it says all.
    """

    outcome: CheckOutcome
    value: Any = None
    outline: str = ""
    failure: str = ""
    error_code: str = ""
    duration_s: float = 0.0
    trace_id: str = ""


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
    cured, unless a person has said meanwhile what is right. `cost` is what it took to get, in the advisor's units
    (`{"input_tokens": 812, …}`).
    """

    code: str
    advisor: str
    author: Literal["person", "rule", "search", "model", "agent"]
    reason: str
    rank: float = 0.0
    guard: bool = False
    doubt: str = ""
    cost: dict[str, float] = {}


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Patch with the results of its validation; `why` names the first failed check, in one sentence.

    unasked: without an example that says what is right, it changes results, or returns what the annotation forbids;
    such an attempt comes after the other plausible ones.
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


def same_value(expected: Any, found: Any) -> bool:
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
