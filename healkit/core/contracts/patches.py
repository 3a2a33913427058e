"""Edits of code, checks on it, and their results.

A *check* says what a tool has to do: return this value for these arguments. An *edit* replaces a part of the code.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import msgspec

#: Origin of a check: an example that the tool's owner declared, or an answer to a question of the healing
#: loop. Others are a recorded run that passed and must stay equal, and the recorded failure.
CheckOrigin = Literal["declared", "answered", "passing", "failing"]
#: Outcome of a check: the tool passed, returned something else, raised, was too slow, or killed its process.
#: Or it was not run. Or it was ended, because it made an unrecorded call or asked for a withheld file.
CheckOutcome = Literal["passed", "wrong", "raised", "timeout", "died", "not_run", "not_on_record"]


#: Effect of an edit on the meaning of the code; only the first five keep it. `renames`: an existing name,
#: column, key or file replaces a missing one. `migrates`: a removed interface is replaced by its successor.
#: `converts`: values change their type without loss. `restores`: undoes what an earlier cell or line
#: overwrote, shadowed or omitted. `restructures`: parentheses, an axis, `await`, the position of an argument.
#: `assumes`: chooses one of several readings. `invents`: adds a value that is neither in the code nor in the
#: data. `discards`: drops rows, values or errors.
EditKind = Literal[
    "renames", "migrates", "converts", "restores", "restructures", "assumes", "invents", "discards"
]
EDIT_KINDS: tuple[EditKind, ...] = get_args(EditKind)


class Edit(msgspec.Struct, frozen=True, array_like=True):
    """Edit of a source text: `text` replaces the characters from `start` to `end` (half-open)."""

    start: int
    end: int
    text: str


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Check on a tool: one requirement for a patch.

    Arguments and expected value are in their stored form (`values.kept`): JSON, with tags for what JSON lacks.

    arguments: Arguments of the call.
    call: Python source to evaluate beside the tool's code instead: statements and a last expression, whose value is the
        result (a line of a doctest).
    known: Whether the right outcome is known. Then `expected` is the value as JSON, or `raises` the name of the right
        exception. Otherwise the tool only has to return.
    sampled: Part of a long frame that the arguments contain, such as `1,000 of 200,000 rows`; empty for the whole
        frame.
    shown: Short form of the call, if its source also runs a caller of the tool.
    setup: Python source to run before the code, in its namespace. Then the code is a notebook cell, which may await,
        and whose value is `_`.
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
        """Source of the call for display; empty if the check has arguments."""
        return self.shown or self.call

    @property
    def binding(self) -> bool:
        """True if a person stated the right result; False for a recorded outcome."""
        return self.known and self.origin in ("declared", "answered")


class CheckResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of one check: the value in its stored form, else the failure in one line.

    outline: Types of the value that its JSON does not show, such as `set` or `list[tuple]`; empty if there are none.
    answered: Number of calls that were answered from the record.
    displaced: Number of these whose recorded call had other arguments.
    live: Number of calls that were made.
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
    """Result of one check that ran under observation.

    lines: Executed lines of the tool's code (from 1).
    failed_lines: Lines in the traceback, innermost last.
    types: For each local or global name of the tool's own functions, the names of the types seen when the functions
        returned or raised: `function.name` → names.
    """

    result: CheckResult
    lines: list[int] = []
    failed_lines: list[int] = []
    types: dict[str, list[str]] = {}


def same_value(expected: object, found: object) -> bool:
    """Compare two JSON values: numbers to nine digits (1 is 1.0, but True is not 1), all others exactly."""
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, int | float) and isinstance(found, int | float):
        if isinstance(expected, int) and isinstance(found, int):
            return expected == found
        try:
            return math.isclose(expected, found, rel_tol=1e-9, abs_tol=1e-12)
        except OverflowError:  # an int that is too large for a float
            return False
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(same_value, expected, found))
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(
            same_value(value, found[key]) for key, value in expected.items()
        )
    return type(expected) is type(found) and bool(expected == found)


def apply_edits(code: str, edits: list[Edit]) -> str:
    """Return the text after the edits, which may not overlap."""
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
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
