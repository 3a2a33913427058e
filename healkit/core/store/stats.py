"""Counts of the log that triggers keep beside it.

**Sums.** `executionday` counts finished runs by tool, day (UTC), persona, revision and class of duration. It is small:
a tool's year has a few thousand rows at most. A quantile of durations is the upper end of its class (1, 2, 5, 10, 20,
50 … ms): "95 % took at most 50 ms" is exact, but coarse. Its runs are all finished rows. Its failures are failures of
code; calls that were refused before any code ran are counted separately.

**Groups.** A group is one fingerprint of one tool and persona, because revisions are numbered for each of those.
Triggers keep its row too, so that listing groups costs the same for any number of failures. It counts the rows in the
log; rows that retention deleted no longer count. A group is cured by the first revision after its last failing one that
passed with arguments of the failure, as in `vault.blame`. A success of another persona counts if the same vault entry
serves both.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Row, and_, func, select
from sqlalchemy.orm import Session

from healkit.core.contracts.execution import Filters, GroupInfo, Moment, ToolSummary
from healkit.core.store import vault_names
from healkit.core.store.log_pages import count_refused, ran, refused, utc_moment
from healkit.core.store.models import DAYS, GROUPS, LOG, TOOLS
from healkit.core.store.vault_history import passing_revisions
from healkit.errors import UsageInvalid

if TYPE_CHECKING:
    import pandas as pd


#: Upper end of the last class that has one.
LONGEST_MS = 10**9

#: Numbers of finished runs, failures and refused calls.
_COUNTS = ("runs", "failures", "refused")

#: Columns by which a summary can be split.
BY = ("tool_name", "persona", "revision", "day")


@dataclasses.dataclass(frozen=True)
class Summary:
    """Sums of tools, sorted by tool and the other requested columns."""

    rows: list[ToolSummary]

    def __iter__(self) -> Iterator[ToolSummary]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a DataFrame with a `failure_rate`."""
        import pandas as pd

        names = [field.name for field in dataclasses.fields(ToolSummary)]
        records = [(*dataclasses.astuple(row), row.failure_rate) for row in self.rows]
        return pd.DataFrame(records, columns=[*names, "failure_rate"])


def read_summary(session: Session, filters: Filters, by: Sequence[str]) -> Summary:
    """Sum up the days (in UTC) from `since` to the one before `until`, of the filters' tool and persona.

    by: Any of `BY`. Raises `ValueError` for another word.
    """
    if unknown := [word for word in by if word not in BY]:
        raise ValueError(f"by={unknown[0]!r} is not one of {', '.join(BY)}")
    wanted = [name for name in BY if name == "tool_name" or name in by]
    keys, sums = [DAYS.c[name] for name in wanted], (*_COUNTS, "total_us")
    statement = select(*keys, DAYS.c.within_ms, *(func.sum(DAYS.c[name]).label(name) for name in sums))
    statement = statement.where(DAYS.c.revision >= 0)  # trials and searches are counted below
    for column, value in ((DAYS.c.tool_name, filters.tool), (DAYS.c.persona, filters.persona)):
        if value is not None:
            statement = statement.where(column == value)
    if filters.since is not None:
        statement = statement.where(DAYS.c.day >= _day(filters.since))
    if filters.until is not None:
        statement = statement.where(DAYS.c.day < _day(filters.until))
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in session.execute(statement.group_by(*keys, DAYS.c.within_ms)):
        groups.setdefault(tuple(getattr(row, name) for name in wanted), []).append(row)
    return Summary([_sum_of(dict(zip(wanted, key, strict=True)), groups[key]) for key in sorted(groups)])


def _day(value: Moment) -> date:
    """Return the day: the date itself, or the day of a moment in UTC."""
    if isinstance(value, str) and len(value) == len("2026-01-01"):
        value = date.fromisoformat(value)
    return value if isinstance(value, date) and not isinstance(value, datetime) else utc_moment(value).date()


def _sum_of(key: dict[str, Any], rows: list[Any]) -> ToolSummary:
    runs, failures, refused = (sum(int(getattr(row, name)) for row in rows) for name in _COUNTS)
    classes = {row.within_ms: int(row.runs) for row in rows if row.within_ms}
    timed = sum(classes.values())
    if "revision" in key:
        key["revision"] = key["revision"] or None
    return ToolSummary(
        **key,
        runs=runs,
        failures=failures,
        refused=refused,
        mean_ms=sum(int(row.total_us) for row in rows) / 1000 / timed if timed else None,
        p50_ms=_quantile(classes, timed * 0.5),
        p95_ms=_quantile(classes, timed * 0.95),
    )


def _quantile(classes: dict[int, int], rank: float) -> float | None:
    """Return the upper end of the class that contains the run of that rank."""
    passed = 0
    for end in sorted(classes):
        passed += classes[end]
        if passed >= rank:
            return float(end) if end <= LONGEST_MS else float("inf")
    return None


@dataclasses.dataclass(frozen=True)
class Groups:
    """Groups of failures, the latest first; `left_out` counts the refused calls that they omit."""

    rows: list[GroupInfo]
    left_out: int = 0

    def __iter__(self) -> Iterator[GroupInfo]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame with a row for each group, indexed by fingerprint."""
        import pandas as pd

        names = [field.name for field in dataclasses.fields(GroupInfo)]
        records = [dataclasses.astuple(row) for row in self.rows]
        return pd.DataFrame(records, columns=names).set_index("fingerprint")


def read_groups(session: Session, filters: Filters, limit: int) -> Groups:
    """Read at most `limit` groups; `since` and `until` limit the time of the latest failure.

    Raises `UsageInvalid` for a status that no failure has.
    """
    if filters.status not in {None, "FAILURE", "REFUSED"}:
        raise UsageInvalid(f"Groups are of failures, and none has the status {filters.status!r}.")
    first, last = LOG.alias("first"), LOG.alias("last")
    statement = (
        select(
            *GROUPS.c,
            first.c.revision.label("first_revision"),
            last.c.revision.label("last_revision"),
            last.c.ename,
            last.c.evalue,
        )
        .join(first, first.c.id == GROUPS.c.first_log_id)
        .join(last, last.c.id == GROUPS.c.last_log_id)
        .order_by(GROUPS.c.last_seen.desc(), GROUPS.c.last_log_id.desc())
        .limit(max(1, limit))
    )
    for column, value in (
        (GROUPS.c.tool_name, filters.tool),
        (GROUPS.c.persona, filters.persona),
        (GROUPS.c.fingerprint, filters.fingerprint),
    ):
        if value is not None:
            statement = statement.where(column == value)
    if filters.status != "FAILURE":
        statement = statement.where((ran if filters.status is None else refused)(last.c.error_code))
    if filters.since is not None:
        statement = statement.where(GROUPS.c.last_seen >= utc_moment(filters.since))
    if filters.until is not None:
        statement = statement.where(GROUPS.c.last_seen < utc_moment(filters.until))
    rows = session.execute(statement).all()
    successes = _Successes(session, {row.tool_name for row in rows})
    left_out = count_refused(session, filters) if filters.status is None else 0
    return Groups([_info(row, successes) for row in rows], left_out)


def _info(row: Row[*tuple[Any, ...]], successes: _Successes) -> GroupInfo:
    return GroupInfo(
        fingerprint=row.fingerprint,
        tool_name=row.tool_name,
        persona=row.persona,
        count=row.failures,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        first_log_id=row.first_log_id,
        last_log_id=row.last_log_id,
        first_revision=row.first_revision,
        last_revision=row.last_revision,
        cured_by=successes.cure_of(row),
        ename=row.ename or "",
        evalue=row.evalue or "",
    )


class _Successes:
    """Revisions of some tools with a recorded success, by the vault entry that ran."""

    def __init__(self, session: Session, tools: Collection[str]) -> None:
        # A tool's rows have its name at that time; its revisions continue to count after a renaming.
        self._session = session
        self._names = vault_names.current_names(session, sorted(tools))
        wanted = set(self._names.values())
        entries = select(TOOLS.c.tool_name, TOOLS.c.target_persona).where(TOOLS.c.tool_name.in_(wanted))
        self._entries = {(tool, persona) for tool, persona in session.execute(entries)}
        succeeded = (
            select(DAYS.c.tool_name, DAYS.c.persona, DAYS.c.revision)
            .where(
                DAYS.c.tool_name.in_(self._names),
                DAYS.c.runs > DAYS.c.failures + DAYS.c.refused,
                DAYS.c.revision > 0,
            )
            .distinct()
        )
        self._revisions: dict[tuple[str, str], set[int]] = {}
        for tool, persona, revision in session.execute(succeeded):
            self._revisions.setdefault(self._entry(tool, persona), set()).add(revision)

    def cure_of(self, group: Row[*tuple[Any, ...]]) -> int | None:
        """Return the first such revision after the last failing one that passed with arguments of the failure."""
        entry = self._entry(group.tool_name, group.persona)
        numbers = self._revisions.get(entry, set())
        if group.last_revision is None or max(numbers, default=0) <= group.last_revision:
            return None
        passed = self.passing_revisions(group.tool_name, group.persona, group.fingerprint)
        return min((number for number in passed if number > group.last_revision), default=None)

    def passing_revisions(self, tool: str, persona: str, fingerprint: str) -> list[int]:
        """Return the revisions that passed with arguments of the entry's failure."""
        name, served = self._entry(tool, persona)
        names = [old for old, current in self._names.items() if current == name]
        personas = [
            entry_persona
            for owner, entry_persona in self._entries
            if owner == name and entry_persona != served
        ]
        whose = LOG.c.persona == served if served != "default" else LOG.c.persona.not_in(personas)
        return passing_revisions(self._session, names, and_(whose, LOG.c.revision.is_not(None)), fingerprint)

    def _entry(self, tool: str, persona: str) -> tuple[str, str]:
        """Return the entry that serves that persona: its own, or the default one."""
        tool = self._names.get(tool, tool)
        return (tool, persona if (tool, persona) in self._entries else "default")


def read_passing_revisions(session: Session, tool: str, persona: str, fingerprint: str) -> list[int]:
    """Return the revisions that passed with recorded arguments of that failure."""
    return _Successes(session, {tool}).passing_revisions(tool, persona, fingerprint)


def lock_stats(session: Session) -> None:
    """Lock the counts for this transaction; call it before a transaction that changes many rows of the log.

    On PostgreSQL, the triggers lock many days and groups. Two writers may lock them in a different order, and would
    wait for each other. SQLite has one write lock for everything.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.connection().exec_driver_sql(
            "LOCK TABLE executionday, failuregroup IN SHARE ROW EXCLUSIVE MODE"
        )


# Metrics for Prometheus.
#
# FAILURE counts failures of code; calls that were refused before any code ran have the status REFUSED.
#
# The metrics come from the daily counts, so they cost the same for any number of rows. They count the rows in the log:
# when retention deletes rows, a count falls, which Prometheus reads as a restart of the counter.


#: Class of durations above all others.
_LONGER_MS = 2_000_000_000
_SUMS = ("runs", "failures", "refused", "total_us")


class _Executions(Collector):
    """Metrics made from rows with tool, persona, class of durations and sums; sorted by them."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = list(rows)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; called by the registry."""
        counts = CounterMetricFamily(
            "healkit_executions", "Finished executions.", labels=["tool", "persona", "status"]
        )
        seconds = HistogramMetricFamily(
            "healkit_execution_seconds", "Time of finished executions.", labels=["tool", "persona"]
        )
        for key, group in itertools.groupby(self._rows, key=lambda row: (row.tool_name, row.persona)):
            rows, labels = list(group), list(key)
            runs, failures, refused = (
                sum(int(getattr(row, name)) for row in rows) for name in ("runs", "failures", "refused")
            )
            counts.add_metric([*labels, "SUCCESS"], runs - failures - refused)
            counts.add_metric([*labels, "FAILURE"], failures)
            counts.add_metric([*labels, "REFUSED"], refused)
            timed = [row for row in rows if row.within_ms]
            passed, buckets = 0, []
            for row in timed:
                passed += int(row.runs)
                if row.within_ms < _LONGER_MS:
                    buckets.append((f"{row.within_ms / 1000:g}", passed))
            total_s = sum(int(row.total_us) for row in timed) / 1e6
            seconds.add_metric(labels, [*buckets, ("+Inf", passed)], total_s)
        yield counts
        yield seconds


def metrics_text(session: Session) -> str:
    """Return the metrics in Prometheus' text format; trials and searches do not count."""
    keys = (DAYS.c.tool_name, DAYS.c.persona, DAYS.c.within_ms)
    sums = (func.sum(DAYS.c[name]).label(name) for name in _SUMS)
    statement = select(*keys, *sums).where(DAYS.c.revision >= 0).group_by(*keys).order_by(*keys)
    registry = CollectorRegistry()
    registry.register(_Executions(session.execute(statement)))
    return generate_latest(registry).decode()
