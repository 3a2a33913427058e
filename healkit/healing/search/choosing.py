"""Which of several plausible patches is likeliest right.

Each passes all checks, so they are told apart by what nobody asked for: how likely the kind of edit is and how
suspicious its line, how small it is and whether it makes sense, and what it does on inputs near those of the checks.
One that changes what the code did near the inputs where it was right, that fails where others do not, or that gives the
same whatever it is given, is less likely. Patches that agree with each other support each other, as independent ways to
the same behaviour.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import compress

import msgspec

from healkit.contracts.healing import Check, CheckResult, difference
from healkit.healing.advisor import Workbench
from healkit.healing.inputs import Accepts
from healkit.healing.search.fuzzing import edges, nearby
from healkit.healing.search.liveness import unused
from healkit.healing.search.ranking import Candidate
from healkit.healing.search.sense import sense
from healkit.healing.search.subject import Subject

#: So many patches are compared by behaviour; the rest keep the order of their scores, behind them.
_COMPARED = 40
#: How many inputs there are: at the edges, near what passes, near what fails.
_EDGES, _NEAR_PASSING, _NEAR_FAILING = 6, 16, 6
#: What counts how much, as the logarithm of odds.
_KEPT, _KEPT_LOUD, _FAILED, _CONSTANT = 0.8, 3.0, 0.8, 1.5
#: Agreement counts little, and no more however many agree: ten ways to switch a condition off are not ten opinions.
#: (Of 75 tools of the project's own sets where some patches were right and some wrong, the likeliest was right for 65
#: where it counted half and up to 3, and for 70 so.)
_AGREED, _AGREED_MOST = 0.35, 1.3
#: The kind of an edit tells more than its place: the place has done its work when the edit is tried early.
_PRIOR, _PLACE = 1.6, 0.5
_REMOVED, _ADDED, _MOVED, _MOST_TOKENS = 0.05, 0.02, 0.03, 20
_UNREAD, _FOREIGN, _IDLE, _MENDED, _SILENT = 1.3, 0.8, 1.0, 0.8, 1.6
_GUARD, _GUARD_DEMANDED = 2.0, 0.6
_UNUSED, _MOST_UNUSED = 1.2, 2
#: Of how many, the likeliest by themselves, it is found out what they leave unused.
_WATCHED = 16


@dataclasses.dataclass(frozen=True)
class Plausible:
    """A code that passes every check, and the candidate it came from."""

    code: str
    candidate: Candidate


@dataclasses.dataclass(frozen=True)
class Compared:
    """How a code's variants do on inputs near those of its checks, as letters of `Workbench.score`.

    before: how the code itself ended there; empty where all variants do as it did on what counts. same: for each
    variant, `.` where it does as the code did, or merely returns where the code failed. agreed: `.` where it does as
    the likeliest variant. counted: which inputs say something of what should stay: those where the code returned, and
    (not loud) was not near a failing check.
    """

    before: list[CheckResult]
    same: list[str]
    agreed: list[str]
    constant: list[bool]
    counted: list[bool]

    def kept(self, place: int) -> float:
        """On which part of the inputs that count a variant does as the code did; each answer of the code weighs alike.

        Most inputs near others are told "no" or "not found"; what is said seldom says more.
        """
        if not self.before:
            return 1.0
        groups: dict[bytes, list[bool]] = {}
        for letter, result, counts in zip(self.same[place], self.before, self.counted, strict=True):
            if counts:
                groups.setdefault(msgspec.json.encode(result.value), []).append(letter == ".")
        if not groups:
            return 1.0
        return sum(sum(group) / len(group) for group in groups.values()) / len(groups)

    def failed(self, place: int) -> float:
        """On which part of all inputs a variant fails."""
        return sum(letter in "etd" for letter in self.same[place]) / max(len(self.same[place]), 1)


@dataclasses.dataclass(frozen=True)
class Ranked:
    """A plausible patch with its rank.

    kept: on which part of the inputs that count it does as the code did. share: how much of all that speaks for any
    of the patches speaks for those that do as this one does, on all inputs that were tried; from 0 to 1. behaviours: in
    how many ways the patches differ there. unused: how many statements it never runs that the code as it was ran. does:
    what it does on all those inputs, for comparison; empty where it was not tried.
    """

    patch: Plausible
    rank: float
    kept: float = 0.0
    share: float = 0.0
    behaviours: int = 1
    unused: int = 0
    does: tuple[str, str] = ("", "")


def ranked(
    bench: Workbench, subject: Subject, found: Sequence[Plausible], accepts: Accepts = lambda _: True
) -> list[Ranked]:
    """The patches, likeliest first; they are run on inputs that `accepts` allows. Raises `BudgetSpent`.

    Code that ended on no check is not asked what it does elsewhere. What one returns that never returned something
    wrong is likely right elsewhere too, also near a failing check.
    """
    code, loud = subject.code, subject.loud
    demanded = any(check.known for check in subject.failing)
    own = [(_own(code, one, demanded=demanded), one) for one in found]
    own.sort(key=lambda pair: -pair[0])
    first, rest = [one for _, one in own[:_COMPARED]], [one for _, one in own[_COMPARED:]]
    if not first:
        return []
    ranks = [rank for rank, _ in own[:_COMPARED]]
    left = unused(bench, subject, [one.candidate for one in first[:_WATCHED]])
    left += [0] * (len(first) - len(left))
    compared = _compare(bench, subject, first, accepts)
    alike = list(zip(compared.same, compared.agreed, strict=True))
    support = _support(ranks, alike)
    order = [
        Ranked(
            one,
            ranks[place]
            + _AGREED * min(support[alike[place]] - ranks[place], _AGREED_MOST)
            + (_KEPT_LOUD if loud else _KEPT) * compared.kept(place)
            - _FAILED * compared.failed(place)
            - _CONSTANT * compared.constant[place]
            - _UNUSED * min(left[place], _MOST_UNUSED),
            compared.kept(place),
            unused=left[place],
            does=alike[place],
        )
        for place, one in enumerate(first)
    ]
    order = _with_shares(order, alike)
    order.sort(key=lambda one: -one.rank)
    lowest = order[-1].rank
    return order + [Ranked(one, lowest - 1 - place) for place, one in enumerate(rest)]


def _support(ranks: Sequence[float], alike: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """What speaks for each behaviour, as a logarithm of odds."""
    found = defaultdict[tuple[str, str], float](float)
    for rank, letters in zip(ranks, alike, strict=True):
        found[letters] += math.exp(rank)
    return {letters: math.log(odds) for letters, odds in found.items()}


def _with_shares(order: Sequence[Ranked], alike: Sequence[tuple[str, str]]) -> list[Ranked]:
    """The patches with the share of each one's behaviour; a rank is a logarithm of odds."""
    most = max(one.rank for one in order)
    weights = [math.exp(one.rank - most) for one in order]
    total, of_kind = sum(weights), defaultdict[tuple[str, str], float](float)
    for weight, letters in zip(weights, alike, strict=True):
        of_kind[letters] += weight
    return [
        dataclasses.replace(one, share=of_kind[letters] / total, behaviours=len(of_kind))
        for one, letters in zip(order, alike, strict=True)
    ]


def _own(code: str, one: Plausible, *, demanded: bool) -> float:
    """What a patch itself says for it: how likely its edits are and where, how little they change, how odd they are."""
    candidate, change = one.candidate, sense(code, one.code)
    guard = _GUARD_DEMANDED if demanded else _GUARD
    return (
        _PRIOR * math.log(max(candidate.prior, 1e-9))
        + _PLACE * math.log(max(candidate.score, 1e-9) / max(candidate.prior, 1e-9))
        - _REMOVED * min(change.removed, _MOST_TOKENS)
        - _ADDED * min(change.added, _MOST_TOKENS)
        - _MOVED * min(change.moved, _MOST_TOKENS)
        - _UNREAD * change.unread
        - _FOREIGN * min(change.foreign, 2.0)
        - _IDLE * min(change.idle, 2)
        + _MENDED * min(change.mended, 1)
        - _SILENT * min(change.silent, 1)
        - (guard if candidate.guard else 0.0)
    )


def _compare(bench: Workbench, subject: Subject, found: Sequence[Plausible], accepts: Accepts) -> Compared:
    """Try the patches on inputs near those of the checks, against what the code and the likeliest patch do there."""
    code, passing, failing, limit_s = subject.code, subject.passing, subject.failing, subject.probe_s
    near_right = _allowed([*edges([*passing, *failing], _EDGES), *nearby(passing, _NEAR_PASSING)], accepts)
    probes = [*near_right, *_allowed(nearby(failing, _NEAR_FAILING), accepts)]
    if not probes:
        nothing = ["" for _ in found]
        return Compared([], nothing, nothing, [False for _ in found], [])
    own = "t" * len(probes)
    if not subject.hangs:
        own = dict(bench.score(code, [()], probes, every=True, limit_s=limit_s)).get(0, "-" * len(probes))
    codes = [one.code for one in found]
    same = _beside(bench, code, own, codes, probes, limit_s)
    counted = [
        letter == "." and (subject.loud or place < len(near_right)) for place, letter in enumerate(own)
    ]
    agreed = same
    if len(found) > 1:
        agreed = _beside(bench, found[0].code, same[0].replace("w", "."), codes, probes, limit_s)
    constant = [False for _ in found]
    values = [check.expected for check in (*passing, *failing) if check.known and not check.raises]
    alike = bool(values) and all(value == values[0] for value in values)
    parted = any(row[place] != "." for row in same for place in compress(range(len(probes)), counted))
    # What the code gives there takes longer to find out than all else, and often says nothing.
    before = _values(bench, code, probes, own, limit_s) if alike or parted else []
    varies = len({msgspec.json.encode(result.value) for result in before if result.outcome == "passed"}) > 1
    if alike and varies:
        always = [msgspec.structs.replace(probe, known=True, expected=values[0]) for probe in probes]
        constant = [set(letters) == {"."} for letters in _letters(bench, code, found, always, limit_s)]
    return Compared(before, same, agreed, constant, counted)


def _allowed(probes: Sequence[Check], accepts: Accepts) -> list[Check]:
    return [probe for probe in probes if probe.call or accepts(probe.arguments)]


def _beside(
    bench: Workbench, code: str, own: str, others: Sequence[str], probes: Sequence[Check], limit_s: float
) -> list[str]:
    """For each of the others, in letters, where it does as a code does, or merely returns where that fails.

    own: that code's letters. Where it fails it is not run again, which may take long.
    """
    edits = [[difference(code, other)] if other != code else [] for other in others]
    rows = [["-"] * len(probes) for _ in others]
    for returns in (True, False):
        places = [place for place, letter in enumerate(own) if (letter == ".") == returns]
        if not places:
            continue
        some = [probes[place] for place in places]
        for other, letters in bench.score(code, edits, some, every=True, as_code=returns, limit_s=limit_s):
            for place, letter in zip(places, letters, strict=True):
                rows[other][place] = letter
    return ["".join(row) for row in rows]


def _values(
    bench: Workbench, code: str, probes: Sequence[Check], letters: str, limit_s: float
) -> list[CheckResult]:
    """What a code gives on inputs of which its letters are known."""
    returning = [probe for probe, letter in zip(probes, letters, strict=True) if letter == "."]
    values = iter(bench.values(code, returning, limit_s) if returning else ())
    return [next(values) if letter == "." else CheckResult(outcome="raised") for letter in letters]


def _letters(
    bench: Workbench, code: str, found: Sequence[Plausible], checks: Sequence[Check], limit_s: float
) -> list[str]:
    edits = [one.candidate.edits for one in found]
    outcomes = dict(bench.score(code, edits, checks, every=True, limit_s=limit_s))
    return [outcomes.get(place, "-" * len(checks)) for place in range(len(found))]
