"""Several edits at once: variants of variants, and pairs.

A tool with two mistakes passes its checks only when both are fixed, but fixing one is often visible: a failing check
passes and none breaks, or a failure becomes another one. Such variants are bases. The single edits of each base are
tried in the order of their scores times the base's progress. A variant of a base that gets further is a base in turn.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from healkit.contracts.healing import apply_edits, difference
from healkit.healing.advisors.search.edit_space import Candidate, EditSpace

#: How many bases are used, and how many of them at one place or with the same outcomes.
_BASES, _OF_A_KIND = 24, 3
#: A failure that became another one is worth less than a check that passes.
_OTHER_FAILURE = 0.25


@dataclasses.dataclass(frozen=True)
class BaseVariant:
    """Variant to search from; `gain` is its progress over the original code, up to 2."""

    code: str
    candidate: Candidate
    gain: float


def gain(before: str, after: str, failing: int) -> float:
    """Return the progress from one set of outcomes to another: 0 if a check broke or nothing changed.

    before, after: outcomes by letter (`Workbench.score`), the failing checks first; failing: their number.
    """
    if any(letter != "." for letter in after[failing:]):
        return 0.0
    passed = sum(letter == "." for letter in after[:failing])
    if passed:
        return 1.0 + passed / max(failing, 1)
    worse = {"w": 0, "e": 1, "t": 2, "d": 2, "-": 3}
    better = sum(
        worse[b] > worse[a] for b, a in zip(before[:failing], after[:failing], strict=True) if a != "."
    )
    return (
        _OTHER_FAILURE
        if better and better == sum(b != a for b, a in zip(before, after, strict=True))
        else 0.0
    )


def bases(code: str, tried: Sequence[tuple[Candidate, str]], before: str, failing: int) -> list[BaseVariant]:
    """Return the variants to search from, best first."""
    found = []
    for candidate, after in tried:
        nearer = gain(before, after, failing)
        if nearer:
            found.append((nearer * candidate.score**0.3, nearer, after, candidate))
    found.sort(key=lambda one: -one[0])
    alike: Counter[object] = Counter()
    chosen = []
    for _, nearer, after, candidate in found:
        kinds = (after, (after, candidate.edits[0].start // 40))
        if alike[kinds[1]] >= _OF_A_KIND or alike[kinds[0]] >= _BASES // 2:
            continue
        alike.update(kinds)
        chosen.append(BaseVariant(apply_edits(code, list(candidate.edits)), candidate, nearer))
        if len(chosen) >= _BASES:
            break
    return chosen


class HigherOrderSpace:
    """Single edits of several bases as edits of the original code, likeliest first; bases may be added meanwhile."""

    def __init__(self, code: str, space_of: Callable[[str], EditSpace | None]) -> None:
        self._code, self._space_of = code, space_of
        self._heap: list[tuple[float, int, Candidate, Iterator[Candidate], BaseVariant]] = []
        self._count = 0

    def add(self, base: BaseVariant) -> None:
        """Search from that base too."""
        space = self._space_of(base.code)
        if space is not None:
            self._next(iter(space), base)

    def __iter__(self) -> Iterator[Candidate]:
        while self._heap:
            _, _, candidate, source, base = heapq.heappop(self._heap)
            self._next(source, base)
            yield candidate

    def _next(self, source: Iterator[Candidate], base: BaseVariant) -> None:
        step = next(source, None)
        if step is None:
            return
        text = apply_edits(base.code, list(step.edits))
        score = step.score * base.gain * base.candidate.score**0.3
        both = Candidate(
            (difference(self._code, text),),
            score,
            step.prior * base.candidate.prior,
            base.candidate.made_by + step.made_by,
            step.guard or base.candidate.guard,
        )
        self._count += 1
        heapq.heappush(self._heap, (-score, self._count, both, source, base))


def pairs(best: Sequence[Candidate], most: int) -> Iterator[Candidate]:
    """Yield pairs of the first `most` single edits that do not touch each other, likeliest first."""
    first = best[:most]
    found = []
    for place, one in enumerate(first):
        apart = [other for other in first[place + 1 :] if _apart(one, other)]
        found += [(one.score * other.score, one, other) for other in apart]
    found.sort(key=lambda pair: -pair[0])
    for score, one, other in found:
        yield Candidate(
            one.edits + other.edits,
            score,
            one.prior * other.prior,
            one.made_by + other.made_by,
            one.guard or other.guard,
        )


def _apart(one: Candidate, other: Candidate) -> bool:
    return all(a.end < b.start or b.end < a.start for a in one.edits for b in other.edits)


def passed_first(outcomes: str) -> int:
    """Return how many checks passed before the first that did not."""
    return len(outcomes) - len(outcomes.lstrip("."))


def progress(outcomes: str, before: str) -> float:
    """Return how far a variant got: past the first failing checks, or at least to another failure."""
    return passed_first(outcomes) or 0.5 * (outcomes[:1] == "w" and before[:1] != "w")


def timed_out(tried: Sequence[tuple[Candidate, str]], passed: int = 0) -> list[Candidate]:
    """Return candidates that only ran out of time, after at least `passed` passed checks; nearest first."""
    found = [
        pair
        for pair in tried
        if not pair[1].strip("t.-") and "t" in pair[1] and passed_first(pair[1]) >= passed
    ]
    found.sort(key=lambda pair: (-passed_first(pair[1]), -pair[0].score))
    return [candidate for candidate, _ in found]
