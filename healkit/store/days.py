"""How each tool fared, day by day, without reading the log.

`executionday` counts finished runs by tool, day (UTC), persona, revision and class of duration; triggers keep it
(migration 0002), and it is small: a tool's year is a few thousand rows at most. A duration quantile read off it is
the upper end of its class (1, 2, 5, 10, 20, 50 … ms): "95 % took at most 50 ms" is exact, only coarse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from healkit.contracts.filters import Filters, Moment
from healkit.contracts.stats import ToolSummary
from healkit.store.filters import moment
from healkit.store.tallies import DAYS

if TYPE_CHECKING:
    import pandas as pd

#: The end of the last class that has one.
LONGEST_MS = 10**9

#: What a summary may have one row for each of, besides the tool.
BY = ("tool_name", "persona", "revision", "day")


@dataclasses.dataclass(frozen=True)
class Summary:
    """One row a tool, and whatever else was asked for; in the order of those columns."""

    rows: list[ToolSummary]

    def __iter__(self) -> Iterator[ToolSummary]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame with a `failure_rate`."""
        import pandas as pd

        names = [field.name for field in dataclasses.fields(ToolSummary)]
        records = [(*dataclasses.astuple(row), row.failure_rate) for row in self.rows]
        return pd.DataFrame(records, columns=[*names, "failure_rate"])


def read_summary(session: Session, filters: Filters, by: Sequence[str]) -> Summary:
    """Days from `since` up to the one before `until` (both as days in UTC) of the tool and persona filtered by.

    by: any of `BY`. Raises `ValueError` for another word, and for filters that days are not counted by.
    """
    if unknown := [word for word in by if word not in BY]:
        raise ValueError(f"by={unknown[0]!r} is none of {', '.join(BY)}")
    wanted = [name for name in BY if name == "tool_name" or name in by]
    keys, sums = [DAYS.c[name] for name in wanted], ("runs", "failures", "total_us")
    statement = select(*keys, DAYS.c.within_ms, *(func.sum(DAYS.c[name]).label(name) for name in sums))
    statement = statement.where(DAYS.c.revision >= 0)  # trials and searches are counted below
    for column, value in ((DAYS.c.tool_name, filters.tool), (DAYS.c.persona, filters.persona)):
        if value is not None:
            statement = statement.where(column == value)
    if filters.since is not None:
        statement = statement.where(DAYS.c.day >= _day(filters.since))
    if filters.until is not None:
        statement = statement.where(DAYS.c.day < _day(filters.until))
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in session.execute(statement.group_by(*keys, DAYS.c.within_ms)):
        found.setdefault(tuple(getattr(row, name) for name in wanted), []).append(row)
    return Summary([_together(dict(zip(wanted, key, strict=True)), found[key]) for key in sorted(found)])


def _day(value: Moment) -> date:
    """The day meant: itself where only a day is given, else that of the moment in UTC."""
    if isinstance(value, str) and len(value) == len("2026-01-01"):
        value = date.fromisoformat(value)
    return value if isinstance(value, date) and not isinstance(value, datetime) else moment(value).date()


def _together(key: dict[str, Any], rows: list[Any]) -> ToolSummary:
    runs, failures = (sum(int(getattr(row, name)) for row in rows) for name in ("runs", "failures"))
    classes = {row.within_ms: int(row.runs) for row in rows if row.within_ms}
    timed = sum(classes.values())
    if "revision" in key:
        key["revision"] = key["revision"] or None
    return ToolSummary(
        **key,
        runs=runs,
        failures=failures,
        mean_ms=sum(int(row.total_us) for row in rows) / 1000 / timed if timed else None,
        p50_ms=_quantile(classes, timed * 0.5),
        p95_ms=_quantile(classes, timed * 0.95),
    )


def _quantile(classes: dict[int, int], rank: float) -> float | None:
    """The upper end of the class that the run of that rank is in."""
    passed = 0
    for end in sorted(classes):
        passed += classes[end]
        if passed >= rank:
            return float(end) if end <= LONGEST_MS else float("inf")
    return None
