"""The sieve: candidates go in, and those that pass every check stay."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from healkit.contracts.healing import Check, Edit, apply_edits
from healkit.healing.advisor import Workbench
from healkit.healing.search.choosing import Plausible
from healkit.healing.search.patience import Patience
from healkit.healing.search.ranking import Candidate, same_code


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

        least: so many are tried also where they are slow, and take up to four times that part. slow, limit_s: as in
        `Workbench.score`; so few are tried with more time that each of them is waited for.
        """
        offset = len(tried.candidates)
        patience = Patience(self._budget_s, part, least, after_success=enough)

        def drawn() -> Iterator[tuple[Edit, ...]]:
            for candidate in source:
                tried.candidates.append(candidate)
                yield candidate.edits
                if patience.ends(len(tried.candidates) - offset, candidate.score):
                    return

        for position, outcomes in self._bench.score(
            self._code, drawn(), self._checks, slow=slow, limit_s=limit_s
        ):
            tried.outcomes[offset + position] = self._in_place(outcomes)
            if outcomes == "." * len(self._checks):
                candidate = tried.candidates[offset + position]
                self._keep(candidate)
                patience.success(len(tried.candidates) - offset, candidate.score)
            if patience.overdue and not (slow or limit_s):
                break

    def _in_place(self, outcomes: str) -> str:
        """The letters in the order in which the checks were given."""
        letters = dict(zip(self._turns, outcomes, strict=True))
        return "".join(letters[place] for place in range(len(outcomes)))

    def _keep(self, candidate: Candidate) -> None:
        code = apply_edits(self._code, list(candidate.edits))
        if (same := same_code(code)) not in self._same:
            self._same.add(same)
            self.found.append(Plausible(code, candidate))
            self.passed = True
