"""Ranking of plausible patches by evidence beyond the checks.

All of them pass every check, so other evidence decides: how likely the kind of edit is and how suspicious its line, how
small the patch is and whether its code makes sense, and what it does on inputs near those of the checks. A patch is
less likely if it changes results near inputs where the code was right, fails where others do not, or returns a
constant.
Patches that behave alike support each other, as independent ways to the same behaviour.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import compress

import msgspec

from healkit.contracts.healing import Check, CheckResult, Edit, difference
from healkit.healing.advisor import Workbench
from healkit.healing.advisors.search.baseline import Baseline
from healkit.healing.advisors.search.edit_space import Candidate
from healkit.healing.advisors.search.fuzzing import edges, nearby
from healkit.healing.advisors.search.patch_features import patch_features
from healkit.healing.advisors.search.program import Program
from healkit.healing.inputs import Accepts

#: How many patches are compared by behaviour; the others follow in the order of their scores.
_COMPARED = 40
#: Numbers of inputs: at the edges, near passing checks, near failing checks.
_EDGES, _NEAR_PASSING, _NEAR_FAILING = 6, 16, 6
#: Weights, as logarithms of odds.
_KEPT, _KEPT_LOUD, _FAILED, _CONSTANT = 0.8, 3.0, 0.8, 1.5
#: Where no check says what is right for a failing input: how far a patch that changes other results is put back.
_CHANGED_UNASKED = 6.0
#: Agreement counts little and is capped, however many agree: ten ways to disable a condition are not ten opinions.
#: (Of 75 tools of the project's own sets with right and wrong patches, the top one was right for 65 with a weight of
#: 0.5 and a cap of 3, and for 70 with these.)
_AGREED, _AGREED_MOST = 0.35, 1.3
#: The kind of an edit tells more than its place, which has already decided how early the edit is tried.
_PRIOR, _PLACE = 1.6, 0.5
_REMOVED, _ADDED, _MOVED, _MOST_TOKENS = 0.05, 0.02, 0.03, 20
_UNREAD, _FOREIGN, _IDLE, _FIXED, _SILENT = 1.3, 0.8, 1.0, 0.8, 1.6
_GUARD, _GUARD_DEMANDED = 2.0, 0.6
_UNUSED, _MOST_UNUSED = 1.2, 2
#: How many patches, the likeliest first, are tested for lost coverage.
_WATCHED = 16
#: How many statements are tested: the first of a block, or one after an `if` that may leave it.
_MARKED = 10
_FAILS = ("raise AssertionError",)


@dataclasses.dataclass(frozen=True)
class PlausiblePatch:
    """Code that passes every check, and the candidate it came from."""

    code: str
    candidate: Candidate


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Behaviour of a code's variants on inputs near those of its checks, as letters of `Workbench.score`.

    before: results of the code itself; empty if all variants do the same on the counted inputs. same: for each variant,
    `.` where it does what the code did, or merely returns where the code failed. agreed: `.` where it does what the
    likeliest variant does. constant: whether it returns one value everywhere. counted: inputs whose results should stay
    the same: where the code returned and, unless it fails loudly, that are not near a failing check.
    """

    before: list[CheckResult]
    same: list[str]
    agreed: list[str]
    constant: list[bool]
    counted: list[bool]

    def kept(self, place: int) -> float:
        """Return the share of counted inputs on which a variant does what the code did.

        Each distinct result of the code has the same weight: most inputs give "no" or "not found", and rare results
        tell more.
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
        """Return the share of all inputs on which a variant fails."""
        return sum(letter in "etd" for letter in self.same[place]) / max(len(self.same[place]), 1)


@dataclasses.dataclass(frozen=True)
class RankedPatch:
    """Plausible patch with its rank.

    kept: the share of counted inputs on which it does what the code did. share: the part (0 to 1) of the evidence for
    any patch that supports patches with the same behaviour as this one. behaviours: the number of distinct behaviours
    of all patches. unused: the number of statements that the code ran and it never runs. does: its behaviour on the
    inputs, for comparison; empty if it was not tried.
    """

    patch: PlausiblePatch
    rank: float
    kept: float = 0.0
    share: float = 0.0
    behaviours: int = 1
    unused: int = 0
    does: tuple[str, str] = ("", "")


def rank_patches(
    bench: Workbench, baseline: Baseline, found: Sequence[PlausiblePatch], accepts: Accepts = lambda _: True
) -> list[RankedPatch]:
    """Return the patches, likeliest first; runs them on inputs that `accepts` allows. Raises `BudgetSpent`.

    Code that ended on no check is not run on other inputs. If the code never returned a wrong result, its results near
    failing checks count as right too.
    """
    code, fails_loudly = baseline.code, baseline.fails_loudly
    demanded = any(check.known for check in baseline.failing)
    own = [(_rank_by_text(code, one, demanded=demanded), one) for one in found]
    own.sort(key=lambda pair: -pair[0])
    first, rest = [one for _, one in own[:_COMPARED]], [one for _, one in own[_COMPARED:]]
    if not first:
        return []
    ranks = [rank for rank, _ in own[:_COMPARED]]
    left = _lost_statements(bench, baseline, [one.candidate for one in first[:_WATCHED]])
    left += [0] * (len(first) - len(left))
    compared = _compare(bench, baseline, first, accepts)
    alike = list(zip(compared.same, compared.agreed, strict=True))
    support = _support(ranks, alike)
    order = [
        RankedPatch(
            one,
            ranks[place]
            + _AGREED * min(support[alike[place]] - ranks[place], _AGREED_MOST)
            + (_KEPT_LOUD if fails_loudly else _KEPT) * compared.kept(place)
            - _FAILED * compared.failed(place)
            - (_CHANGED_UNASKED if not demanded and compared.kept(place) < 1.0 else 0.0)
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
    return order + [RankedPatch(one, lowest - 1 - place) for place, one in enumerate(rest)]


def _support(ranks: Sequence[float], alike: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return the evidence for each behaviour, as a logarithm of odds."""
    found = defaultdict[tuple[str, str], float](float)
    for rank, letters in zip(ranks, alike, strict=True):
        found[letters] += math.exp(rank)
    return {letters: math.log(odds) for letters, odds in found.items()}


def _with_shares(order: Sequence[RankedPatch], alike: Sequence[tuple[str, str]]) -> list[RankedPatch]:
    """Return the patches with the share of each one's behaviour; a rank is a logarithm of odds."""
    most = max(one.rank for one in order)
    weights = [math.exp(one.rank - most) for one in order]
    total, of_kind = sum(weights), defaultdict[tuple[str, str], float](float)
    for weight, letters in zip(weights, alike, strict=True):
        of_kind[letters] += weight
    return [
        dataclasses.replace(one, share=of_kind[letters] / total, behaviours=len(of_kind))
        for one, letters in zip(order, alike, strict=True)
    ]


def _rank_by_text(code: str, one: PlausiblePatch, *, demanded: bool) -> float:
    """Return the rank of a patch by its text alone: how likely its edits are, how small, how odd."""
    candidate, features = one.candidate, patch_features(code, one.code)
    guard = _GUARD_DEMANDED if demanded else _GUARD
    return (
        _PRIOR * math.log(max(candidate.prior, 1e-9))
        + _PLACE * math.log(max(candidate.score, 1e-9) / max(candidate.prior, 1e-9))
        - _REMOVED * min(features.removed, _MOST_TOKENS)
        - _ADDED * min(features.added, _MOST_TOKENS)
        - _MOVED * min(features.moved, _MOST_TOKENS)
        - _UNREAD * features.unread
        - _FOREIGN * min(features.foreign, 2.0)
        - _IDLE * min(features.idle, 2)
        + _FIXED * min(features.fixed, 1)
        - _SILENT * min(features.silent, 1)
        - (guard if candidate.guard else 0.0)
    )


def _compare(
    bench: Workbench, baseline: Baseline, found: Sequence[PlausiblePatch], accepts: Accepts
) -> Comparison:
    """Run the patches on inputs near those of the checks; compare with the code and the likeliest patch."""
    code, passing, failing, limit_s = baseline.code, baseline.passing, baseline.failing, baseline.probe_s
    near_right = _allowed([*edges([*passing, *failing], _EDGES), *nearby(passing, _NEAR_PASSING)], accepts)
    probes = [*near_right, *_allowed(nearby(failing, _NEAR_FAILING), accepts)]
    if not probes:
        nothing = ["" for _ in found]
        return Comparison([], nothing, nothing, [False for _ in found], [])
    own = "t" * len(probes)
    if not baseline.hangs:
        own = dict(bench.score(code, [()], probes, every=True, limit_s=limit_s)).get(0, "-" * len(probes))
    codes = [one.code for one in found]
    same = _compare_letters(bench, code, own, codes, probes, limit_s)
    counted = [
        letter == "." and (baseline.fails_loudly or place < len(near_right))
        for place, letter in enumerate(own)
    ]
    agreed = same
    if len(found) > 1:
        agreed = _compare_letters(bench, found[0].code, same[0].replace("w", "."), codes, probes, limit_s)
    constant = [False for _ in found]
    values = [check.expected for check in (*passing, *failing) if check.known and not check.raises]
    alike = bool(values) and all(value == values[0] for value in values)
    parted = any(row[place] != "." for row in same for place in compress(range(len(probes)), counted))
    # Running the code for its values takes longer than all else, and is often not needed.
    before = _results(bench, code, probes, own, limit_s) if alike or parted else []
    varies = len({msgspec.json.encode(result.value) for result in before if result.outcome == "passed"}) > 1
    if alike and varies:
        always = [msgspec.structs.replace(probe, known=True, expected=values[0]) for probe in probes]
        constant = [set(letters) == {"."} for letters in _letters(bench, code, found, always, limit_s)]
    return Comparison(before, same, agreed, constant, counted)


def _allowed(probes: Sequence[Check], accepts: Accepts) -> list[Check]:
    return [probe for probe in probes if probe.call or accepts(probe.arguments)]


def _compare_letters(
    bench: Workbench, code: str, own: str, others: Sequence[str], probes: Sequence[Check], limit_s: float
) -> list[str]:
    """Return for each of the others, by letter, whether it does what a code does, or returns where that fails.

    own: the code's letters. It is not run again on inputs where it fails, which may take long.
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


def _results(
    bench: Workbench, code: str, probes: Sequence[Check], letters: str, limit_s: float
) -> list[CheckResult]:
    """Return the results of a code on inputs for which its letters are known."""
    returning = [probe for probe, letter in zip(probes, letters, strict=True) if letter == "."]
    values = iter(bench.values(code, returning, limit_s) if returning else ())
    return [next(values) if letter == "." else CheckResult(outcome="raised") for letter in letters]


def _letters(
    bench: Workbench, code: str, found: Sequence[PlausiblePatch], checks: Sequence[Check], limit_s: float
) -> list[str]:
    edits = [one.candidate.edits for one in found]
    outcomes = dict(bench.score(code, edits, checks, every=True, limit_s=limit_s))
    return [outcomes.get(place, "-" * len(checks)) for place in range(len(found))]


def _lost_statements(bench: Workbench, baseline: Baseline, found: Sequence[Candidate]) -> list[int]:
    """Return for each patch how many statements that the original code ran it never runs on the checks.

    A patch that makes a condition constant passes a few examples by never reaching the mistake. To detect that, a
    statement is made to fail: a patch that still passes every check never reaches it. Raises `BudgetSpent`. (Of the
    patches for the project's own tools that passed every check, 64 of 719 wrong ones left something unused, and 4 of
    502 right ones.)
    """
    program = Program(baseline.code)
    marks = list(_marks(program, baseline.ran))[:_MARKED]
    pairs = [
        (place, (*one.edits, edit))
        for place, one in enumerate(found)
        for edit in marks
        if all(edit.start < own.start or own.end < edit.start for own in one.edits)
    ]
    letters = dict(bench.score(baseline.code, [edits for _, edits in pairs], baseline.checks))
    counts = Counter(
        place for number, (place, _) in enumerate(pairs) if set(letters.get(number, "-")) == {"."}
    )
    return [counts[place] for place in range(len(found))]


def _marks(program: Program, ran: frozenset[int]) -> Iterator[Edit]:
    """Yield an edit for each such statement that was run, which makes it fail."""
    for statement, (block, position) in program.places.items():
        begins = position == 0 and isinstance(
            program.parent(statement), ast.If | ast.For | ast.While | ast.Try
        )
        behind = position > 0 and isinstance(block[position - 1], ast.If)
        if (begins or behind) and statement.lineno in ran:
            edit = program.insert(statement, _FAILS)
            if edit is not None:
                yield edit
