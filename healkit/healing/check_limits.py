"""Time limits of checks, from their time on the code as it is.

Most variants of a code fail at once, and those that hang cost their whole limit. So a limit is short, a variant that
needs more gets more later (the slow lane), and the time that a candidate once needed is never refused to it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from healkit.contracts.healing import Check, CheckResult

#: Limit of a check by its own time on the code as it is: so many times that, and at least so many seconds.
LIMIT_TIMES, LIMIT_LEAST_S = 6.0, 0.005
#: Limit of a long check: twice its time and half a second.
LONG_TIMES, LONG_S = 2.0, 0.5
#: Least limit where a check's time is unknown. Each of many hanging candidates costs this time.
UNKNOWN_LEAST_S = 0.005
#: Limit of the slow lane, and of another try in a process of its own, by the ordinary limit.
SLOW_TIMES = 10.0
#: Least such limit: few candidates are tried so, and right code may take longer than code that failed at once.
_RUN_LEAST_S = 2.0


class CheckLimits:
    """Limits of checks in seconds of computing; all benches of one healing share one."""

    def __init__(self) -> None:
        self._limits: dict[bytes, float] = {}
        self._hanging: set[bytes] = set()
        self._granted: dict[bytes, float] = {}

    def __contains__(self, check: Check) -> bool:
        return _key(check) in self._limits

    def __getitem__(self, check: Check) -> float:
        return self._limits[_key(check)]

    def hangs(self, check: Check) -> bool:
        """Return True for a check on which the code as it is was seen, or is known, not to end."""
        return _key(check) in self._hanging

    def expect_hanging(self, checks: Iterable[Check]) -> None:
        """Mark checks as known not to end."""
        self._hanging.update(map(_key, checks))

    def learn(self, checks: Sequence[Check], results: Sequence[CheckResult]) -> None:
        """Set the limits of checks from their results with the code as it is."""
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
            else:  # right code may take longer than wrong code, and hardly less time
                self._limits[_key(check)] = max(own_s, unknown_s)

    def grant(self, checks: Iterable[Check], limit_s: float) -> None:
        """Note that a candidate passed with that limit, so that it gets as long again when it is validated."""
        if limit_s <= _RUN_LEAST_S:
            return  # every rare run has that long
        for key in map(_key, checks):
            self._granted[key] = max(limit_s, self._granted.get(key, 0.0))

    def lengthened(self, checks: Sequence[Check], limits_s: Sequence[float]) -> list[float]:
        """Return the limits for rare runs: at least their minimum, and at least the granted time."""
        granted_s = [self._granted.get(_key(check), 0.0) for check in checks]
        return [max(*both, _RUN_LEAST_S) for both in zip(limits_s, granted_s, strict=True)]


def _key(check: Check) -> bytes:
    return msgspec.json.encode(check)


def _limit_s(own_s: float) -> float:
    """Return the limit for a duration: some times that, less for a long one, which costs it in full."""
    return min(LIMIT_TIMES * own_s, LONG_S + LONG_TIMES * own_s)
