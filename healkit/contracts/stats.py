"""Counts of executions: groups of failures, sums of tools."""

from __future__ import annotations

import dataclasses
from datetime import date, datetime


@dataclasses.dataclass(frozen=True)
class GroupInfo:
    """Group of equal failures; ids are of rows of the log.

    `first_revision` is the first that failed so, `last_revision` the last, `cured_by` the one that has cured it; None
    where a call was refused before a revision was known, or while nothing has cured it.
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
        """Exception and message of the last failure: `KeyError: 'x'`."""
        return f"{self.ename}: {self.evalue}" if self.evalue else self.ename


@dataclasses.dataclass(frozen=True)
class ToolSummary:
    """Sum of finished executions; a column that they were not summed by is None, as is the revision of refused calls.

    `runs` counts all of them, `failures` those of code, `refused` the calls that were refused before any code ran.
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
    refused: int = 0

    @property
    def failure_rate(self) -> float:
        """Share of failures among the runs that were not refused, from 0 to 1; 0 where there is none."""
        return self.failures / max(self.runs - self.refused, 1)


@dataclasses.dataclass(frozen=True)
class Ran:
    """Finished execution, as far as a plot shows it."""

    timestamp: datetime
    failed: bool
    revision: int | None
    duration_ms: float | None
