"""Token buckets, one for each client.

Each client has a bucket that holds up to `burst` tokens and gets `rate_per_s` of them back a second; a request takes
one. Buckets are full when they are made, so one that has not been used for long enough to be full again may be
forgotten, and the least recently used is when there are too many.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

#: How many clients are told apart at once.
MAX_CLIENTS = 10_000


class RateLimiter:
    """Says who has to wait; used by one thread. `clock` counts seconds."""

    def __init__(self, rate_per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate_per_s = rate_per_s
        self.burst = burst
        self._clock = clock
        #: Client → tokens left, and when that was.
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, client: Hashable) -> float:
        """Take one token; 0.0, or how many seconds the client has to wait until there is one."""
        now = self._clock()
        left, then = self._buckets.pop(client, (float(self.burst), now))
        left = min(float(self.burst), left + max(0.0, now - then) * self.rate_per_s)
        allowed = left >= 1.0
        self._buckets[client] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self.rate_per_s
