"""Evaluation of candidates, and when to stop trying."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from healkit.contracts.healing import Check, Edit, apply_edits
from healkit.healing.advisor import Workbench
from healkit.healing.advisors.search.edit_space import Candidate, normalized_code
from healkit.healing.advisors.search.patch_ranking import PlausiblePatch

#: After the first candidate that passes, the search goes on for a while, because a better one may follow. It ends at
#: the first of these, but not within `_MORE_MIN_S` seconds:
#: - it has tried as many further candidates as were tried until then, and at least `_MORE_MIN`;
#: - it has taken as long as until then, plus `_MORE_S` seconds;
#: - it has taken `_MORE_MAX_S` seconds, or `_MORE_PART` of the budget;
#: - after `_MORE_LIKELY_MIN` tries, a candidate is less likely than `_LIKELY_SHARE_MIN` times the best one that passed.
#:   (For 159 tools the first proposal was right. It was always at least 0.6 times as likely as any other that passed.)
#: Where candidates are so slow that fewer than `_MORE_MIN` were tried until then, it goes on to `_COMPARED_PART` of the
#: budget; if they are still too few, nothing is claimed of what has passed.
_MORE_MIN, _MORE_MIN_S = 400, 0.15
_MORE_S, _MORE_MAX_S, _MORE_PART = 1.0, 3.0, 0.15
_LIKELY_SHARE_MIN, _MORE_LIKELY_MIN = 0.2, 200
_COMPARED_PART = 0.4
#: A stage that has tried too few candidates may take its part of the budget this many times.
_LEAST_TIMES = 4.0
#: How long to wait for candidates drawn before the stop; a few of them may take as long as all others.
_OVERDUE_S = 0.5


@dataclasses.dataclass(frozen=True)
class _Success:
    """Candidate that passed every check: when, after how many candidates, and with which score."""

    at: float
    after: int
    score: float


class StopCriterion:
    """Decision when a stage of the search ends; its time starts when it is created.

    part: the part of the budget that the stage may take. least: the number of candidates to try even if they are slow,
    in up to four times that part. after_success: whether a success may end the stage. clock: returns the time in
    seconds.
    """

    def __init__(
        self,
        budget_s: float,
        part: float,
        least: int = 0,
        *,
        after_success: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget_s, self._part_s, self._least = budget_s, part * budget_s, least
        self._after_success = after_success
        self._clock = clock
        self._began = clock()
        self._ended: float | None = None
        self._passed: list[_Success] = []

    def record_success(self, tried: int, score: float) -> None:
        """Record that a candidate with that score passed every check after so many tries."""
        self._passed.append(_Success(self._clock(), tried, score))

    def reached(self, tried: int, score: float) -> bool:
        """Return whether to stop after that many candidates, the latest of which has that score.

        After a success the stage's part of the budget does not end it: a comparison that was begun has its own time.
        """
        if self._after_success and self._passed:
            ends = self._enough_after_success(tried, score)
        else:
            spent_s = self._clock() - self._began
            ends = spent_s > self._part_s and (tried >= self._least or spent_s > _LEAST_TIMES * self._part_s)
        if ends:
            self._ended = self._clock()
        return self._ended is not None

    def compared(self, tried: int, score: float) -> bool:
        """Return whether that many candidates are enough to compare the first that passed with, whatever the time."""
        more = tried - self._passed[0].after
        return more >= _MORE_MIN or (self._unlikely(score) and more > _MORE_LIKELY_MIN)

    @property
    def succeeded(self) -> bool:
        """True if a candidate has passed every check."""
        return bool(self._passed)

    @property
    def overdue(self) -> bool:
        """True if candidates that are still running are not worth waiting for."""
        return self._ended is not None and self._clock() - self._ended > _OVERDUE_S

    def _enough_after_success(self, tried: int, score: float) -> bool:
        """Return whether enough was tried after the first candidate that passed."""
        first = self._passed[0]
        since, more = self._clock() - first.at, tried - first.after
        if since < _MORE_MIN_S:
            return False
        if not self.compared(tried, score):
            return since > self._budget_s * _COMPARED_PART
        most_s = min(first.at - self._began + _MORE_S, _MORE_MAX_S, self._budget_s * _MORE_PART)
        return since > max(most_s, _MORE_MIN_S) or more >= first.after or self._unlikely(score)

    def _unlikely(self, score: float) -> bool:
        """Return whether a score is far below that of the best candidate that passed."""
        return score < _LIKELY_SHARE_MIN * max(one.score for one in self._passed)


@dataclasses.dataclass
class Evaluated:
    """Candidates of one stage and their outcomes, by position."""

    candidates: list[Candidate] = dataclasses.field(default_factory=list)
    outcomes: dict[int, str] = dataclasses.field(default_factory=dict)

    def with_outcomes(self) -> list[tuple[Candidate, str]]:
        """Return the candidates that were run, with their outcomes."""
        return [(self.candidates[place], outcomes) for place, outcomes in self.outcomes.items()]


class CandidateEvaluator:
    """Runner of candidates for a code; `found` has those that passed all checks and were not proposed yet.

    before: the outcomes of the code as it is, by letter (`Workbench.score`). Checks on which it does not end are run
    last: most variants do not end there either, which costs the whole time limit, and many of them fail a quick check.
    """

    def __init__(
        self, bench: Workbench, code: str, checks: Sequence[Check], before: str, budget_s: float
    ) -> None:
        self._bench, self._code, self._budget_s = bench, code, budget_s
        self._turns = sorted(range(len(checks)), key=lambda place: before[place] in "td")
        self._checks = [checks[place] for place in self._turns]
        self._same: set[str] = set()
        self.found: list[PlausiblePatch] = []
        #: Whether any candidate has ever passed.
        self.passed = False
        #: False if time ended the last stage with a success before enough other candidates were tried.
        self.compared = True

    def evaluate(
        self,
        source: Iterable[Candidate],
        tried: Evaluated,
        *,
        part: float = 1.0,
        least: int = 0,
        slow: bool = False,
        limit_s: float | None = None,
        enough: bool = True,
    ) -> None:
        """Try candidates until the source ends or the stop criterion is reached.

        part, least: as in `StopCriterion`. enough: whether a success may end it; if not, all of the source is to be
        compared. slow, limit_s: as in
        `Workbench.score`; with them, wait for every candidate, because they are few.
        """
        offset = len(tried.candidates)
        criterion = StopCriterion(self._budget_s, part, least, after_success=enough)
        ended = False

        def drawn() -> Iterator[tuple[Edit, ...]]:
            nonlocal ended
            for candidate in source:
                tried.candidates.append(candidate)
                yield candidate.edits
                if criterion.reached(len(tried.candidates) - offset, candidate.score):
                    return
            ended = True

        for position, outcomes in self._bench.score(
            self._code, drawn(), self._checks, slow=slow, limit_s=limit_s
        ):
            tried.outcomes[offset + position] = self._in_place(outcomes)
            if outcomes == "." * len(self._checks):
                candidate = tried.candidates[offset + position]
                self._keep(candidate)
                criterion.record_success(len(tried.candidates) - offset, candidate.score)
            if criterion.overdue and not (slow or limit_s):
                break
        if not enough:
            self.compared = self.compared and ended
        elif criterion.succeeded:
            last = tried.candidates[-1].score
            self.compared = ended or criterion.compared(len(tried.candidates) - offset, last)

    def _in_place(self, outcomes: str) -> str:
        """Return the letters in the order in which the checks were given."""
        letters = dict(zip(self._turns, outcomes, strict=True))
        return "".join(letters[place] for place in range(len(outcomes)))

    def _keep(self, candidate: Candidate) -> None:
        code = apply_edits(self._code, list(candidate.edits))
        if (same := normalized_code(code)) not in self._same:
            self._same.add(same)
            self.found.append(PlausiblePatch(code, candidate))
            self.passed = True
