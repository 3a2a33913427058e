"""Times and spans of time, as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from healkit.errors import UsageInvalid

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


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
