"""Executions counted: groups of failures, and how each tool fared."""

from __future__ import annotations

import dataclasses
from datetime import date, datetime


@dataclasses.dataclass(frozen=True)
class GroupInfo:
    """One failure, however often it happened; ids are of rows of the log.

    `first_revision` is the one that first showed it, `last_revision` the one that last did, `cured_by` the one that
    cured it since; None where a call was refused before a revision was known, or while nothing has cured it.
    """

    fingerprint: str
    tool_name: str
    persona: str
    count: int
    first_seen: datetime
    last_seen: datetime
    first_log_id: int
    last_log_id: int
    first_revision: int | None
    last_revision: int | None
    cured_by: int | None
    ename: str
    evalue: str

    @property
    def summary(self) -> str:
        """`KeyError: 'x'`, as it happened last."""
        return f"{self.ename}: {self.evalue}" if self.evalue else self.ename


@dataclasses.dataclass(frozen=True)
class ToolSummary:
    """Finished runs together; what they were not grouped by is None, as is the revision of calls that had none.

    `mean_ms` is exact; half of the runs took at most `p50_ms`, 95 % at most `p95_ms` (upper ends of classes; None
    where no duration is on record, infinite over 1,000,000,000 ms).
    """

    tool_name: str
    runs: int
    failures: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    persona: str | None = None
    revision: int | None = None
    day: date | None = None

    @property
    def failure_rate(self) -> float:
        """Failures for each run, from 0 to 1."""
        return self.failures / self.runs


@dataclasses.dataclass(frozen=True)
class Ran:
    """One finished execution, as far as a plot shows it."""

    timestamp: datetime
    failed: bool
    revision: int | None
    duration_ms: float | None
