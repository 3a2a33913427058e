"""The sieve: candidates go in, and those that pass every check stay."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence

from healkit.contracts.healing import Check, Edit, apply_edits
from healkit.healing.advisor import Workbench
from healkit.healing.search.choosing import Plausible
from healkit.healing.search.ranking import Candidate, same_code

#: After the first plausible patch, others are looked for: for so many candidates, or as many as it took, within these
#: bounds and this part of the budget.
_MORE_LEAST, _MORE_LEAST_S, _MORE_MOST_S, _MORE_PART = 800, 0.15, 3.0, 0.15
#: And as long as they are at least so likely, compared with the likeliest that passed, and for so many in any case. (Of
#: 159 tools for which a right patch was proposed first, none was less likely than 0.6 times another one that passed.)
_MORE_LIKELY, _MORE_ANYHOW = 0.2, 200
#: How long those that were drawn before that are waited for; a few of them may take as long as all others.
_PATIENCE_S = 0.5

#: How many times its part of the budget a stage may take that has tried too few.
_LEAST_TIMES = 4.0


@dataclasses.dataclass
class Tried:
    """What became of the candidates of one stage, by position."""

    candidates: list[Candidate] = dataclasses.field(default_factory=list)
    outcomes: dict[int, str] = dataclasses.field(default_factory=dict)

    def with_outcomes(self) -> list[tuple[Candidate, str]]:
        """The candidates that were run, with their letters."""
        return [(self.candidates[place], outcomes) for place, outcomes in self.outcomes.items()]


@dataclasses.dataclass(frozen=True)
class _Success:
    """A candidate that passed every check: when that was seen, after how many had been drawn, and its score."""

    at: float
    after: int
    score: float


class Sieve:
    """Tries candidates for a code against its checks; `found` is what passed all of them and was not taken yet.

    before: the letters of the code as it is. Checks on which it does not end are run last: most variants do not end
    there either, which costs the whole limit, and many of those break something that takes no time.
    """

    def __init__(
        self, bench: Workbench, code: str, checks: Sequence[Check], before: str, budget_s: float
    ) -> None:
        self._bench, self._code, self._budget_s = bench, code, budget_s
        self._turns = sorted(range(len(checks)), key=lambda place: before[place] in "td")
        self._checks = [checks[place] for place in self._turns]
        self._same: set[str] = set()
        self.found: list[Plausible] = []
        #: Whether anything has ever passed.
        self.passed = False

    def fill(
        self,
        source: Iterable[Candidate],
        tried: Tried,
        *,
        part: float = 1.0,
        least: int = 0,
        slow: bool = False,
        limit_s: float | None = None,
        enough: bool = True,
    ) -> None:
        """Try candidates until the source, the part of the budget, or (enough) patience after a success ends.

        least: so many are tried also where they are slow, and take up to four times that part.
        """
        began = time.monotonic()
        most, last = began + part * self._budget_s, began + _LEAST_TIMES * part * self._budget_s
        offset = len(tried.candidates)
        passed: list[_Success] = []

        def drawn() -> Iterator[tuple[Edit, ...]]:
            for candidate in source:
                tried.candidates.append(candidate)
                yield candidate.edits
                now, count = time.monotonic(), len(tried.candidates) - offset
                if (now > most and (count >= least or now > last)) or (
                    passed and self._looked_on(began, passed, count, candidate.score)
                ):
                    return

        patience_s = None if slow or limit_s else _PATIENCE_S
        for position, outcomes in self._bench.score(
            self._code, drawn(), self._checks, slow=slow, limit_s=limit_s, patience_s=patience_s
        ):
            tried.outcomes[offset + position] = self._in_place(outcomes)
            if outcomes == "." * len(self._checks):
                candidate = tried.candidates[offset + position]
                self._keep(candidate)
                if enough:
                    passed.append(_Success(time.monotonic(), len(tried.candidates) - offset, candidate.score))

    def _in_place(self, outcomes: str) -> str:
        """The letters in the order in which the checks were given."""
        letters = dict(zip(self._turns, outcomes, strict=True))
        return "".join(letters[place] for place in range(len(outcomes)))

    def _looked_on(self, began: float, passed: Sequence[_Success], tried: int, score: float) -> bool:
        """Whether enough was tried after the first candidate that passed; `score` is the latest one's."""
        first = passed[0]
        since, more = time.monotonic() - first.at, tried - first.after
        if since < _MORE_LEAST_S:
            return False
        most_s = min(max(_MORE_LEAST_S, first.at - began + 1.0), _MORE_MOST_S, self._budget_s * _MORE_PART)
        unlikely = score < _MORE_LIKELY * max(one.score for one in passed)
        return since > most_s or more >= max(_MORE_LEAST, first.after) or (unlikely and more > _MORE_ANYHOW)

    def _keep(self, candidate: Candidate) -> None:
        code = apply_edits(self._code, list(candidate.edits))
        if (same := same_code(code)) not in self._same:
            self._same.add(same)
            self.found.append(Plausible(code, candidate))
            self.passed = True
