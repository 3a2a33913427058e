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
_MORE_LEAST, _MORE_LEAST_S, _MORE_MOST_S, _MORE_PART = 1200, 0.15, 4.0, 0.15

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
        passed_at: list[tuple[float, int]] = []

        def drawn() -> Iterator[tuple[Edit, ...]]:
            for candidate in source:
                tried.candidates.append(candidate)
                yield candidate.edits
                now, count = time.monotonic(), len(tried.candidates) - offset
                if (now > most and (count >= least or now > last)) or (
                    passed_at and self._looked_on(began, *passed_at[0], count)
                ):
                    return

        for position, outcomes in self._bench.score(
            self._code, drawn(), self._checks, slow=slow, limit_s=limit_s
        ):
            tried.outcomes[offset + position] = self._in_place(outcomes)
            if outcomes == "." * len(self._checks):
                self._keep(tried.candidates[offset + position])
                if enough and not passed_at:
                    passed_at.append((time.monotonic(), len(tried.candidates) - offset))

    def _in_place(self, outcomes: str) -> str:
        """The letters in the order in which the checks were given."""
        letters = dict(zip(self._turns, outcomes, strict=True))
        return "".join(letters[place] for place in range(len(outcomes)))

    def _looked_on(self, began: float, passed_at: float, passed_after: int, tried: int) -> bool:
        """Whether enough was tried after the first candidate that passed."""
        since = time.monotonic() - passed_at
        if since < _MORE_LEAST_S:
            return False
        most_s = min(max(_MORE_LEAST_S, passed_at - began + 2.0), _MORE_MOST_S, self._budget_s * _MORE_PART)
        return since > most_s or tried - passed_after >= max(_MORE_LEAST, passed_after)

    def _keep(self, candidate: Candidate) -> None:
        code = apply_edits(self._code, list(candidate.edits))
        if (same := same_code(code)) not in self._same:
            self._same.add(same)
            self.found.append(Plausible(code, candidate))
            self.passed = True
