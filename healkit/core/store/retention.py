"""Retention: deletion of old executions.

Only finished executions are deleted, oldest first, with everything that belongs to them. The following are always kept:

- executions that are still running;
- a failure that a revision responds to (`motivating_log_id`), because the vault's history refers to it;
- executions whose trace still waits to be sent to a collector;
- the newest row, so that no id is used twice.

Rows are deleted a few at a time, in short transactions that do not delay an ordinary write. Each is followed by a pause
of the same length, so that no record waits for more than one of them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import (
    ColumnElement,
    and_,
    delete,
    func,
    select,
    tuple_,
)
from sqlalchemy.orm import Session

from healkit import hooks
from healkit.core.contracts.execution import utc_now
from healkit.core.store.database import Database
from healkit.core.store.log_pages import status_is
from healkit.core.store.models import CALLS, DAYS, DECISIONS, LOG, REVISIONS, TRACES
from healkit.core.store.stats import lock_stats

#: Target duration of one transaction of deletions, in seconds, and number of rows in the first.
_HOLD_S = 0.03
_FIRST_BATCH, _LARGEST_BATCH = 50, 2000


@dataclasses.dataclass(frozen=True)
class PruneReport:
    """Result of retention: rows deleted, and their archives.

    `resumed` counts the rows that an interrupted archiving had left; `longest_hold_ms` is the longest time that another
    writer had to wait.
    """

    deleted: int
    archives: list[Path] = dataclasses.field(default_factory=list)
    resumed: int = 0
    longest_hold_ms: float = 0.0


class Retention:
    """Round of retention on one database; `stop` is called before each batch, and can end the round."""

    def __init__(self, database: Database, stop: Callable[[], bool] = lambda: False) -> None:
        self._database = database
        self._stop = stop
        self._batch = _FIRST_BATCH
        self._longest_s = 0.0

    def prune(self, older_than: timedelta | None, keep: int | None) -> PruneReport:
        """Delete executions that are older, or beyond the newest `keep`.

        Views of data that only they used are deleted too.
        """
        return self._ended(self._delete_due(self._due(older_than, keep)))

    def _ended(self, deleted: int, archives: Sequence[Path] = (), resumed: int = 0) -> PruneReport:
        if deleted:
            hooks.every("pruned", database=self._database)
        return PruneReport(deleted, [*archives], resumed, self._longest_s * 1000)

    def _due(self, older_than: timedelta | None, keep: int | None) -> ColumnElement[bool]:
        """Return the condition on rows to delete, fixed now, so that later statements select the same rows."""
        ends: list[tuple[datetime, int]] = []
        if older_than is not None:
            ends.append((utc_now() - older_than, 0))
        if keep is not None:
            with self._database.read() as session:
                first = _after_newest(session, keep)
            if first is not None:
                ends.append(first)
        # One condition instead of two, so that the scan of the time index ends there.
        due: ColumnElement[bool] = LOG.c.id < 0
        if ends:
            due = tuple_(LOG.c.timestamp, LOG.c.id) <= tuple_(*max(ends))
        return due

    def _chunks(self, due: ColumnElement[bool], size: Callable[[], int]) -> Iterator[list[int]]:
        """Yield the ids of rows that may be deleted, oldest first."""
        last: tuple[datetime, int] | None = None
        while not self._stop():
            statement = select(LOG.c.timestamp, LOG.c.id).where(due, _may_go())
            if last is not None:
                statement = statement.where(tuple_(LOG.c.timestamp, LOG.c.id) > tuple_(*last))
            limit = size()
            with self._database.read() as session:
                rows = session.execute(statement.order_by(LOG.c.timestamp, LOG.c.id).limit(limit)).all()
            if rows:
                yield [row.id for row in rows]
                last = (rows[-1].timestamp, rows[-1].id)
            if len(rows) < limit:
                return

    def _delete_due(self, due: ColumnElement[bool]) -> int:
        return sum(self._delete(LOG.c.id.in_(ids)) for ids in self._chunks(due, lambda: self._batch))

    def _delete(
        self, which: ColumnElement[bool], may_go: Callable[[Session, list[str]], list[str]] | None = None
    ) -> int:
        """Delete those of these rows that may go, with their parts, in one transaction; return their number.

        may_go: Selects from their trace ids, in the same transaction.
        """
        with self._database.write() as session:
            lock_stats(session)
            begun = time.monotonic()
            trace_ids = list(session.scalars(select(LOG.c.trace_id).where(which, _may_go())))
            if may_go is not None:
                trace_ids = may_go(session, trace_ids)
            hooks.every("deleting", session=session, trace_ids=trace_ids)
            for table in (CALLS, DECISIONS, TRACES, LOG):
                session.execute(delete(table).where(table.c.trace_id.in_(trace_ids)))
        held_s = time.monotonic() - begun
        self._longest_s = max(self._longest_s, held_s)
        self._batch = max(1, min(_LARGEST_BATCH, int(self._batch * min(2.0, _HOLD_S / max(held_s, 1e-6)))))
        time.sleep(min(held_s, 1.0))  # SQLite has no queue: without a pause, no other writer would get a turn
        return len(trace_ids)


def _after_newest(session: Session, keep: int) -> tuple[datetime, int] | None:
    """Return time and id of the first row after the newest `keep`; daily counts skip whole days (`stats`)."""
    running = session.scalars(select(LOG.c.timestamp).where(status_is("RUNNING"))).all()
    ended = select(DAYS.c.day, func.sum(DAYS.c.runs)).group_by(DAYS.c.day).order_by(DAYS.c.day.desc())
    newest = select(LOG.c.timestamp, LOG.c.id).order_by(LOG.c.timestamp.desc(), LOG.c.id.desc())
    end: datetime | None = None
    for day, runs in session.execute(ended):
        begin = datetime.combine(day, datetime.min.time(), UTC)
        newer = int(runs) + sum(time >= begin for time in running)
        if newer > keep:
            break
        keep, running = keep - newer, [time for time in running if time < begin]
        end = begin
    newest = newest if end is None else newest.where(LOG.c.timestamp < end)
    first = session.execute(newest.offset(keep).limit(1)).first()
    return None if first is None else (first.timestamp, first.id)


def _may_go() -> ColumnElement[bool]:
    """Return the condition on rows that retention may delete."""
    motives = select(REVISIONS.c.motivating_log_id).where(REVISIONS.c.motivating_log_id.is_not(None))
    waiting = select(TRACES.c.id).where(TRACES.c.trace_id == LOG.c.trace_id, TRACES.c.state == "pending")
    newest = select(func.max(LOG.c.id)).correlate(None).scalar_subquery()
    # SQLite would use its number again, for a trace that a reader in order has already passed.
    last = select(TRACES.c.trace_id).order_by(TRACES.c.id.desc()).limit(1).scalar_subquery()
    return and_(
        LOG.c.status != "RUNNING",
        LOG.c.id != newest,
        LOG.c.id.not_in(motives),
        ~waiting.exists(),
        LOG.c.trace_id != func.coalesce(last, ""),
    )
