"""Pauses between attempts, doubled by each failure.

With jitter, so that clients which failed together do not come back together:
https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
"""

from __future__ import annotations

import math
import random

#: Beyond this many doublings a float gains nothing.
_DOUBLINGS_MAX = 30


def pause_s(failures: int, first_s: float, longest_s: float = math.inf, *, least: float = 1.0) -> float:
    """Draw the pause after so many failures (from 1), in seconds.

    least: the share of the full pause that is waited in any case; 1 is no jitter.
    """
    full_s = min(longest_s, first_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))
    return random.uniform(least * full_s, full_s)  # noqa: S311 - spreads load, keeps no secret
