"""Times as people type them, and pauses between attempts.

Pauses are doubled by each failure, with jitter, so that clients which failed together do not come back together:
https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
"""

from __future__ import annotations

import math
import random
import re
from datetime import UTC, datetime, timedelta

from healkit.errors import UsageInvalid

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
#: Beyond this many doublings a float gains nothing.
_DOUBLINGS_MAX = 30


def parse_since(text: str, now: datetime | None = None) -> datetime:
    """Read `90s`, `15m`, `2h`, `3d`, `1w` ago, or a date or time in ISO 8601 (a naive one is in the reader's zone)."""
    if match := _AGO.fullmatch(text.strip()):
        try:
            return (now or datetime.now(UTC)) - timedelta(**{_UNITS[match[2]]: float(match[1])})
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageInvalid(
            f"Not a valid time: {text!r}.", hint="Write 2h, 3d, 2025-03-01 or 2025-03-01T14:00."
        ) from None


def parse_age(text: str) -> timedelta:
    """Read `90d`, `12h` or `2w` as a span of time; raise `UsageInvalid` for anything else."""
    match = _AGO.fullmatch(text.strip())
    if match is None:
        raise UsageInvalid(f"Not a valid age: {text!r}.", hint="Write 12h, 90d or 2w.")
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError:
        return timedelta.max


def pause_s(failures: int, first_s: float, longest_s: float = math.inf, *, least: float = 1.0) -> float:
    """Draw the pause after so many failures (from 1), in seconds.

    least: the share of the full pause that is waited in any case; 1 is no jitter.
    """
    full_s = min(longest_s, first_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))
    return random.uniform(least * full_s, full_s)  # noqa: S311 - spreads load, keeps no secret
