"""How long a stage of the search goes on trying: until its part of the budget is spent, or enough has passed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

#: After the first plausible patch, others are looked for: for so many candidates, or as many as it took, within these
#: bounds and this part of the budget; by time, as long as it took and so many seconds more.
_MORE_LEAST, _MORE_LEAST_S, _MORE_S, _MORE_MOST_S, _MORE_PART = 400, 0.15, 1.0, 3.0, 0.15
#: And as long as they are at least so likely, compared with the likeliest that passed, and for so many in any case. (Of
#: 159 tools for which a right patch was proposed first, none was less likely than 0.6 times another one that passed.)
_MORE_LIKELY, _MORE_ANYHOW = 0.2, 200
#: How many times its part of the budget a stage may take that has tried too few.
_LEAST_TIMES = 4.0
#: How long those are heard of that were drawn before it was enough; a few of them may take as long as all others.
_OVERDUE_S = 0.5


@dataclasses.dataclass(frozen=True)
class _Success:
    """A candidate that passed every check: when that was seen, after how many had been drawn, and its score."""

    at: float
    after: int
    score: float


class Patience:
    """That of one stage, from now on.

    part: of the budget, which it may take. least: so many candidates are tried also where they are slow, and take up to
    four times that part. after_success: whether a success is a reason to end. clock: what tells the time, in seconds.
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

    def success(self, tried: int, score: float) -> None:
        """A candidate with that score has passed every check, when so many had been tried."""
        self._passed.append(_Success(self._clock(), tried, score))

    def ends(self, tried: int, score: float) -> bool:
        """Whether to try no more, after so many candidates, the latest of which has that score."""
        spent_s = self._clock() - self._began
        late = spent_s > self._part_s and (tried >= self._least or spent_s > _LEAST_TIMES * self._part_s)
        if late or (self._after_success and self._passed and self._looked_on(tried, score)):
            self._ended = self._clock()
        return self._ended is not None

    @property
    def overdue(self) -> bool:
        """Whether what still comes is too late to be waited for."""
        return self._ended is not None and self._clock() - self._ended > _OVERDUE_S

    def _looked_on(self, tried: int, score: float) -> bool:
        """Whether enough was tried after the first candidate that passed."""
        first = self._passed[0]
        since, more = self._clock() - first.at, tried - first.after
        if since < _MORE_LEAST_S:
            return False
        most_s = min(first.at - self._began + _MORE_S, _MORE_MOST_S, self._budget_s * _MORE_PART)
        unlikely = score < _MORE_LIKELY * max(one.score for one in self._passed)
        return (
            since > max(most_s, _MORE_LEAST_S)
            or more >= max(_MORE_LEAST, first.after)
            or (unlikely and more > _MORE_ANYHOW)
        )
