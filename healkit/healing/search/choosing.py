"""Which of several plausible patches is likeliest right.

Each passes all checks, so they are told apart by what nobody asked for: how likely the kind of edit is and how
suspicious its line, how small it is, and what it does on inputs near those of the checks. Patches that agree with each
other there support each other, as independent ways to the same behaviour; one that stands alone usually fits the checks
only. One that changes what the code did near the inputs where it was right, or fails there, is less likely.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence

from healkit.contracts.healing import Check, CheckResult
from healkit.healing.advisor import Workbench
from healkit.healing.search.fuzzing import nearby
from healkit.healing.search.ranking import Candidate

#: So many patches are compared by behaviour; the rest keep the order of their scores, behind them.
_COMPARED = 12
#: What agreement with others counts (as the logarithm of their odds), what staying as it was, and what failing. The
#: first is low because many edits are the same edit: ten ways to switch a condition off are not ten opinions.
_AGREED, _KEPT, _FAILED = 0.3, 0.8, 1.5


@dataclasses.dataclass(frozen=True)
class Plausible:
    """A code that passes every check, and the candidate it came from."""

    code: str
    candidate: Candidate
    lines: tuple[str, ...] = ()


def ranked(
    bench: Workbench,
    code: str,
    found: Sequence[Plausible],
    passing: Sequence[Check],
    failing: Sequence[Check],
) -> list[tuple[float, Plausible]]:
    """The patches with their ranks, likeliest first; raises `BudgetSpent`."""
    by_score = sorted(found, key=lambda one: -own(one.candidate))
    first, rest = by_score[:_COMPARED], by_score[_COMPARED:]
    if len(first) < 2:
        return [(own(one.candidate), one) for one in by_score]
    probes = [*nearby(passing, 8 if failing else 14), *nearby(failing, 8)]
    near_right = len(nearby(passing, 8 if failing else 14))
    results = (
        bench.run([code, *(one.code for one in first)], probes)
        if probes
        else [[] for _ in range(len(first) + 1)]
    )
    before, after = _shown(results[0]), [_shown(one) for one in results[1:]]
    support: dict[tuple[str, ...], float] = {}
    for one, values in zip(first, after, strict=True):
        support[tuple(values)] = support.get(tuple(values), 0.0) + math.exp(own(one.candidate))
    ranks = []
    for one, values in zip(first, after, strict=True):
        kept = _share([a == b for a, b in zip(before[:near_right], values[:near_right], strict=True)])
        failed = _share([value.startswith("!") for value in values])
        agreed = math.log(support[tuple(values)]) - own(one.candidate)
        rank = own(one.candidate) + _AGREED * min(agreed, 3.0) + _KEPT * kept - _FAILED * failed
        ranks.append((rank, one))
    ranks.sort(key=lambda pair: -pair[0])
    lowest = ranks[-1][0]
    return ranks + [(lowest - 1 - place, one) for place, one in enumerate(rest)]


def own(candidate: Candidate) -> float:
    """What a candidate itself says for it: its score, and how little it changes."""
    return math.log(max(candidate.score, 1e-9)) - 0.01 * min(candidate.size, 120)


def _share(seen: list[bool]) -> float:
    return sum(seen) / len(seen) if seen else 0.0


def _shown(results: Sequence[CheckResult]) -> list[str]:
    return [
        json.dumps(one.value, sort_keys=True, default=str)
        if one.outcome == "passed"
        else f"!{one.failure.partition(':')[0]}"
        for one in results
    ]
