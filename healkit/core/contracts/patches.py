"""Edits of a code, checks on it, and what came of them.

A *check* says what a tool has to do: for these arguments, return this. An *edit* replaces a part of the code's text.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import msgspec

#: Origin of a check: an example that the tool's owner declared, an answer to a question of the loop, a recorded
#: run that passed and must stay equal, or the recorded failure.
CheckOrigin = Literal["declared", "answered", "passing", "failing"]
#: Outcome of a check: the tool did what it has to, returned something else, raised, did not end in time, took its
#: process with it, was not run, or made a call that is not on record, or asked for a file that is withheld, and so was
#: ended there.
CheckOutcome = Literal["passed", "wrong", "raised", "timeout", "died", "not_run", "not_on_record"]


#: What an edit does to the meaning of the code; only the first five keep it. `renames`: a name, column, key or file for
#: the one that exists. `migrates`: an interface that was removed, for its successor. `converts`: values to another
#: type, each of which stays what it is. `restores`: what an earlier cell or line has overwritten, shadowed or not made.
#: `restructures`: parentheses, an axis, `await`, the place of an argument. `assumes`: one of several readings.
#: `invents`: a value that stands neither in the code nor in the data. `discards`: rows, values or errors.
EditKind = Literal[
    "renames", "migrates", "converts", "restores", "restructures", "assumes", "invents", "discards"
]
EDIT_KINDS: tuple[EditKind, ...] = get_args(EditKind)


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
