"""Baseline: how the code behaves before any patch."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
from collections.abc import Sequence
from typing import Any

import msgspec

from healkit import values
from healkit.contracts.healing import Check, Observed
from healkit.healing.advisor import Case, Workbench
from healkit.healing.advisors.search.edit_space import EditSpace
from healkit.healing.advisors.search.fault_localization import ENDLESS, Suspicion, endless_loops, types_seen
from healkit.healing.advisors.search.ingredients import constants, frame_columns
from healkit.healing.advisors.search.program import Hints, Program

#: How many checks of a kind are observed, how many of those that do not end, and how many for a variant.
_WATCHED, _WATCHED_HANGING, _WATCHED_AGAIN = 10, 1, 3
#: Time limit of a plausible patch on an input near those of the checks: bounds in seconds, and the part of the longest
#: passing check's time under observation, which takes several times as long as a plain run.
_PROBE_LEAST_S, _PROBE_MOST_S, _PROBE_WATCHED = 0.03, 0.5, 0.25
#: How many wrong cells of a table count.
_CELLS_MAX = 3
_NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclasses.dataclass(frozen=True)
class Baseline:
    """Code and its behaviour before any patch.

    failing, passing: its checks, in the order in which candidates are run on them, the failing ones first. before:
    their outcomes by letter (`Workbench.score`). wrong_results: checks whose result was wrong, each expecting
    that wrong result, so that a change of it is seen. ran:
    lines that it executed. hints: facts that edits are made of. probe_s: time limit of a patch on other inputs.
    """

    code: str
    failing: list[Check]
    passing: list[Check]
    before: str
    wrong_results: list[Check]
    suspicion: Suspicion
    ran: frozenset[int]
    hints: Hints
    probe_s: float

    @property
    def checks(self) -> list[Check]:
        """All checks, the failing ones first."""
        return self.failing + self.passing

    @property
    def fails_loudly(self) -> bool:
        """True if every failure is an exception: no result was wrong, and all runs ended."""
        return not set(self.before) & set("wt")

    @functools.cached_property
    def evidence(self) -> int:
        """Number of failing checks; one about a table counts for each of its wrong cells, up to three."""
        wrong = {json.dumps(check.arguments): check.expected for check in self.wrong_results}
        return sum(_cells(check, wrong.get(json.dumps(check.arguments))) for check in self.failing)

    @property
    def hangs(self) -> bool:
        """True if it ended on no check."""
        return set(self.before) == {"t"}

    def space(self, seen: set[int]) -> EditSpace | None:
        """Return its single edits except those seen before; None if it does not parse."""
        return _space(self.code, self.hints, self.suspicion, seen)

    def space_of(self, bench: Workbench, code: str, seen: set[int], *, watched: bool) -> EditSpace | None:
        """Return the single edits of a variant.

        watched: localize its fault anew, which takes time: a variant that fails elsewhere or later may have its mistake
        there.
        """
        if not watched:
            return _space(code, self.hints, self.suspicion, seen)
        observed = bench.observe(code, self.failing[:_WATCHED_AGAIN] + self.passing[:_WATCHED_AGAIN])
        failed = [one for one in observed if one.result.outcome != "passed"]
        passed = [one for one in observed if one.result.outcome == "passed"]
        types = {**self.hints.types, **types_seen(observed)}
        hints = dataclasses.replace(self.hints, types=types)
        return _space(code, hints, Suspicion(failed, passed), seen)


def parses(code: str) -> bool:
    """Return whether a text parses."""
    try:
        Program(code)
    except _NO_PROGRAM:
        return False
    return True


def observe_baseline(case: Case, bench: Workbench, code: str) -> Baseline | None:
    """Run code on the case's checks, some of them observed; None if there is nothing to search."""
    checks = list(case.checks)
    if not checks or not parses(code):
        return None
    letters = dict(bench.score(code, [()], checks, every=True)).get(0, "-" * len(checks))
    failing = [(check, letter) for check, letter in zip(checks, letters, strict=True) if letter != "."]
    if not failing:
        return None
    # Checks that hang come last, large ones before them: most variants fail a check that costs less.
    failing.sort(key=lambda pair: (pair[1] in "td", _size(pair[0])))
    passing = [check for check, letter in zip(checks, letters, strict=True) if letter == "."]
    passing.sort(key=_size)
    # Checks that do not end are observed only if nothing else fails: observation may use up their time.
    watched = [check for check, letter in failing if letter not in "td"][:_WATCHED]
    watched = watched or [check for check, _ in failing[:_WATCHED_HANGING]]
    observed = bench.observe(code, watched + passing[:_WATCHED])
    failed, passed = observed[: len(watched)], observed[len(watched) :]
    suspicion = Suspicion(failed, passed)
    if "t" in letters:
        suspicion.lift(endless_loops(Program(code), failed), ENDLESS)
    longest_s = max((one.result.duration_s for one in passed), default=0.0)
    return Baseline(
        code,
        [check for check, _ in failing],
        passing,
        "".join(letter for _, letter in failing) + "." * len(passing),
        _wrong_results(watched, failed),
        suspicion,
        frozenset(line for one in observed for line in one.lines),
        _hints(case, [check for check, _ in failing], passing, failed, passed),
        min(max(_PROBE_LEAST_S, _PROBE_WATCHED * longest_s), _PROBE_MOST_S),
    )


def _wrong_results(watched: Sequence[Check], failed: Sequence[Observed]) -> list[Check]:
    return [
        msgspec.structs.replace(check, known=True, expected=one.result.value)
        for check, one in zip(watched, failed, strict=True)
        if one.result.outcome == "wrong" and not one.result.failure
    ]


def _hints(
    case: Case,
    failing: Sequence[Check],
    passing: Sequence[Check],
    failed: Sequence[Observed],
    passed: Sequence[Observed],
) -> Hints:
    raised = dict.fromkeys(one.result.failure.partition(":")[0] for one in failed if one.result.failure)
    return Hints(
        constants([*failing, *passing]),
        tuple(dict.fromkeys(check.raises for check in failing if check.raises)),
        types=types_seen([*failed, *passed]),
        peers=tuple(peer.code for peer in case.peers),
        raised=tuple(raised),
        columns=frame_columns([*failing, *passing]),
    )


def _space(code: str, hints: Hints, suspicion: Suspicion, seen: set[int]) -> EditSpace | None:
    try:
        return EditSpace(Program(code, hints), suspicion, seen)
    except _NO_PROGRAM:
        return None


def _cells(check: Check, wrong: Any) -> int:
    """Return how many values of an expected frame or array were wrong, at least one and at most three."""
    if not values.has_tags(check.expected):
        return 1
    expected, found = _items(values.as_parts(check.expected)), _items(values.as_parts(wrong))
    if len(expected) != len(found):
        return min(max(len(expected), 1), _CELLS_MAX)
    wrong_cells: int = sum(map(operator.ne, expected, found))
    return min(max(wrong_cells, 1), _CELLS_MAX)


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [item for part in value for item in _items(part)] if isinstance(value, list) else [value]


def _size(check: Check) -> int:
    return len(check.call) or len(repr(check.arguments))
