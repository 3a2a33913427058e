"""What is known of the code that is searched on, found out by running it before any candidate is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec

from healkit.contracts.healing import Check, Observed
from healkit.healing.advisor import Case, Workbench
from healkit.healing.search.ingredients import constants
from healkit.healing.search.localise import ENDLESS, Suspicion, endless_loops, types_seen
from healkit.healing.search.program import Hints, Program
from healkit.healing.search.ranking import Space

#: How many checks of a kind are watched, and how many of those that do not end; and of a code on the way.
_WATCHED, _WATCHED_HANGING, _WATCHED_AGAIN = 10, 1, 3
#: How long plausible patches are run on an input near those of the checks: by the longest check that passes, of which
#: it is known how long it took while it was watched, which takes several times as long.
_PROBE_LEAST_S, _PROBE_MOST_S, _PROBE_WATCHED = 0.03, 0.5, 0.25
_NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclasses.dataclass(frozen=True)
class Subject:
    """A code and how it does.

    failing, passing: its checks, each kind in the order in which candidates meet them, the failing ones first.
    before: their letters (`Workbench.score`). wrong: the checks with a wrong result, with that as what is expected.
    ran: the lines that it was seen to run. hints: what edits are made of. probe_s: how long a patch is run on an
    input that is not a check's.
    """

    code: str
    failing: list[Check]
    passing: list[Check]
    before: str
    wrong: list[Check]
    suspicion: Suspicion
    ran: frozenset[int]
    hints: Hints
    probe_s: float

    @property
    def checks(self) -> list[Check]:
        """All of them, the failing ones first."""
        return self.failing + self.passing

    @property
    def loud(self) -> bool:
        """Whether it fails where it is wrong: it never returned something wrong, and always ended."""
        return not set(self.before) & set("wt")

    @property
    def hangs(self) -> bool:
        """Whether it ended on no check."""
        return set(self.before) == {"t"}

    def space(self, seen: set[int]) -> Space | None:
        """Its single edits but for those seen before; None where it does not parse."""
        return _space(self.code, self.hints, self.suspicion, seen)

    def space_of(self, bench: Workbench, code: str, seen: set[int], *, watched: bool) -> Space | None:
        """The single edits of a variant.

        watched: where it goes wrong is found out anew, which takes time. One that fails elsewhere, or later, has its
        mistake there too.
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
    """Whether it is a program."""
    try:
        Program(code)
    except _NO_PROGRAM:
        return False
    return True


def look(case: Case, bench: Workbench, code: str) -> Subject | None:
    """Run it against the case's checks, and watch some of them; None where there is nothing to search."""
    checks = list(case.checks)
    if not checks or not parses(code):
        return None
    letters = dict(bench.score(code, [()], checks, every=True)).get(0, "-" * len(checks))
    failing = [(check, letter) for check, letter in zip(checks, letters, strict=True) if letter != "."]
    if not failing:
        return None
    # What hangs comes last, then what is large: most variants are refuted by something that costs less.
    failing.sort(key=lambda pair: (pair[1] in "td", _size(pair[0])))
    passing = [check for check, letter in zip(checks, letters, strict=True) if letter == "."]
    passing.sort(key=_size)
    # What does not end is watched only where nothing else fails; being watched may take one's time away.
    watched = [check for check, letter in failing if letter not in "td"][:_WATCHED]
    watched = watched or [check for check, _ in failing[:_WATCHED_HANGING]]
    observed = bench.observe(code, watched + passing[:_WATCHED])
    failed, passed = observed[: len(watched)], observed[len(watched) :]
    suspicion = Suspicion(failed, passed)
    if "t" in letters:
        suspicion.lift(endless_loops(Program(code), failed), ENDLESS)
    longest_s = max((one.result.duration_s for one in passed), default=0.0)
    return Subject(
        code,
        [check for check, _ in failing],
        passing,
        "".join(letter for _, letter in failing) + "." * len(passing),
        _wrong(watched, failed),
        suspicion,
        frozenset(line for one in observed for line in one.lines),
        _hints(case, [check for check, _ in failing], passing, failed, passed),
        min(max(_PROBE_LEAST_S, _PROBE_WATCHED * longest_s), _PROBE_MOST_S),
    )


def _wrong(watched: Sequence[Check], failed: Sequence[Observed]) -> list[Check]:
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
    )


def _space(code: str, hints: Hints, suspicion: Suspicion, seen: set[int]) -> Space | None:
    try:
        return Space(Program(code, hints), suspicion, seen)
    except _NO_PROGRAM:
        return None


def _size(check: Check) -> int:
    return len(check.call) or len(repr(check.arguments))
