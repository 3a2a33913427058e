"""Times as people type them, and pauses between attempts.

Each failure doubles the pause. Jitter spreads the pauses, so that clients which failed together do not retry together:
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
#: Maximum number of doublings, which keeps the float in range.
_DOUBLINGS_MAX = 30


def parse_since(text: str, now: datetime | None = None) -> datetime:
    """Read a time: `90s`, `15m`, `2h`, `3d` or `1w` ago, or a date or time in ISO 8601 (local if naive)."""
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
    """Read a duration such as `90d`, `12h` or `2w`; raise `UsageInvalid` for anything else."""
    match = _AGO.fullmatch(text.strip())
    if match is None:
        raise UsageInvalid(f"Not a valid age: {text!r}.", hint="Write 12h, 90d or 2w.")
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError:
        return timedelta.max


def pause_s(failures: int, first_s: float, longest_s: float = math.inf, *, least: float = 1.0) -> float:
    """Return a random pause after so many failures (from 1), in seconds.

    least: Smallest share of the full pause; 1 means no jitter.
    """
    full_s = min(longest_s, first_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))
    return random.uniform(least * full_s, full_s)  # noqa: S311 - spreads the load, protects no secret
