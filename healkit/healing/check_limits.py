"""How long each check may take: by how long it takes on the code as it is.

Most variants of a code fail at once, and those that hang cost their whole limit. So a limit is short, what needs more
gets more later (the slow lane), and what a candidate once needed is never held against it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from healkit.contracts.healing import Check, CheckResult

#: A check's limit by its own time on the code as it is: so many times that, and at least so many seconds.
LIMIT_TIMES, LIMIT_LEAST_S = 6.0, 0.005
#: Of what takes long by itself: twice that and half a second.
LONG_TIMES, LONG_S = 2.0, 0.5
#: Where that time is not known, by the longest that is. It is what a candidate costs that hangs, and there are many.
UNKNOWN_LEAST_S = 0.005
#: The slow lane's limit, and the one for trying once more in a process of its own, by the ordinary one.
SLOW_TIMES = 10.0
#: Which is at least this: few are tried so, and what is right may take longer than what failed at once.
_RUN_LEAST_S = 2.0


class Limits:
    """The limits of checks, in seconds of computing; of one healing, shared by all its benches."""

    def __init__(self) -> None:
        self._limits: dict[bytes, float] = {}
        self._hanging: set[bytes] = set()
        self._granted: dict[bytes, float] = {}

    def __contains__(self, check: Check) -> bool:
        return _key(check) in self._limits

    def __getitem__(self, check: Check) -> float:
        return self._limits[_key(check)]

    def hangs(self, check: Check) -> bool:
        """Whether the code as it is was seen, or is known, not to end on it."""
        return _key(check) in self._hanging

    def expect_hanging(self, checks: Iterable[Check]) -> None:
        """These are known not to end."""
        self._hanging.update(map(_key, checks))

    def learn(self, checks: Sequence[Check], results: Sequence[CheckResult]) -> None:
        """Limits for checks of which it is known how the code as it is does."""
        ended = [result.duration_s for result in results if result.outcome != "timeout"]
        passed = [result.duration_s for result in results if result.outcome == "passed"]
        unknown_s = max(UNKNOWN_LEAST_S, _limit_s(max(passed or ended, default=0.0)))
        for check, result in zip(checks, results, strict=True):
            own_s = max(LIMIT_LEAST_S, _limit_s(result.duration_s))
            if result.outcome == "passed":
                self._limits[_key(check)] = own_s
            elif result.outcome == "timeout":
                self._limits[_key(check)] = unknown_s
                self._hanging.add(_key(check))
            else:  # what is right there may take longer than to go wrong, and hardly less than that
                self._limits[_key(check)] = max(own_s, unknown_s)

    def grant(self, checks: Iterable[Check], limit_s: float) -> None:
        """A candidate passed these with that limit, and may need as long again when it is validated."""
        if limit_s <= _RUN_LEAST_S:
            return  # so long it has anyway
        for key in map(_key, checks):
            self._granted[key] = max(limit_s, self._granted.get(key, 0.0))

    def lengthened(self, checks: Sequence[Check], limits_s: Sequence[float]) -> list[float]:
        """For what is run seldom: these limits, but the least of such runs, and no less than was granted."""
        granted_s = [self._granted.get(_key(check), 0.0) for check in checks]
        return [max(*both, _RUN_LEAST_S) for both in zip(limits_s, granted_s, strict=True)]


def _key(check: Check) -> bytes:
    return msgspec.json.encode(check)


def _limit_s(own_s: float) -> float:
    """The limit of what takes that long: some times that; less of what is long already, and costs it in full."""
    return min(LIMIT_TIMES * own_s, LONG_S + LONG_TIMES * own_s)
