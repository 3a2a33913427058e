"""Consumer of traces: each is learned from exactly once.

It reads the traces of finished executions, and those that clients sent, in the order in which they were stored. It
learns from each trace once. The changes of a batch and the checkpoint after it are one transaction, so a kill loses
nothing and duplicates nothing. If several processes use one database, a process whose checkpoint is no longer the
stored one reads again. A thread runs the consumer when nothing else happens, or when a question is asked
(`learning.thread`).
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Table, func, literal, select

from healkit.core.contracts.execution import HostIdentity, utc_now
from healkit.core.host import process_of
from healkit.core.store.database import Database
from healkit.core.store.models import COLLECTED, LOG, TRACES, upsert
from healkit.errors import TraceInvalid
from healkit.parts.learn.facts import Learned, Learner, learned_of
from healkit.parts.learn.priority import MODEL_VERSION
from healkit.parts.learn.tables import LEARNED, LEARNING
from healkit.parts.traces.contract import read_trace

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

#: Traces in one transaction: its lock is held for some milliseconds, and longer where a caller waits for the answer.
#: The last is that of a rebuild, which is a third faster so.
_BATCH, _LARGE_BATCH, _LARGEST_BATCH = 100, 500, 2000
#: Waiting traces that are counted one by one: a million rows would take a second.
_COUNTED_MAX = 1_000
#: PostgreSQL shows a later number before an earlier one that is not committed yet; a gap older than this is no longer
#: waited for.
_GAP = timedelta(seconds=60)
_CHECKPOINT = "checkpoint"
#: Source → its table, and the column with the time of arrival.
_SOURCES: dict[str, tuple[Table, str]] = {
    "log": (TRACES, "created_at"),
    "collected": (COLLECTED, "received_at"),
}


class Consumer:
    """Consumer of one database; safe to use from several threads and processes.

    changing: Locked while the learners' memory is ahead of the stored data.
    """

    def __init__(
        self,
        database: Database,
        learners: Sequence[Learner],
        changing: AbstractContextManager[Any] | None = None,
    ) -> None:
        self._database, self._learners = database, learners
        self._changing = changing or contextlib.nullcontext()
        self._lock = threading.Lock()
        #: The checkpoint that the learners in memory stand at; None before they are loaded.
        self._at: dict[str, int] | None = None

    def catch_up(self, *, large: bool = False, stop: Callable[[], bool] = lambda: False) -> int:
        """Learn from everything stored so far, and return the number of traces; raise `DatabaseError`."""
        return self._catch_up(_LARGE_BATCH if large else _BATCH, stop)

    def _catch_up(self, size: int, stop: Callable[[], bool]) -> int:
        if self._database.read_only:
            return 0
        with self._lock:
            many = 0
            while not stop():
                read = self._next(size)
                if read is None:
                    return many
                began = time.monotonic()
                many += self._consume(*read)
                if size == _BATCH:  # SQLite has no queue: without a pause, no other writer would get a turn
                    time.sleep(min(time.monotonic() - began, 1.0))
            return many

    def waiting(self) -> int:
        """Count the traces that are not learned yet; above a thousand by their numbers, so deleted ones count too."""
        waiting = 0
        with self._database.read() as session:
            before = _checkpoint(session)
            before = before if before["version"] == MODEL_VERSION else _beginning()
            for source, (table, _) in _SOURCES.items():
                ahead = (session.scalar(select(func.max(table.c.id))) or 0) - before[source]
                if 0 < ahead <= _COUNTED_MAX:
                    ahead = session.scalar(select(func.count()).where(table.c.id > before[source])) or 0
                waiting += max(0, ahead)
        return waiting

    def rebuild(self, stop: Callable[[], bool] = lambda: False) -> int:
        """Forget everything that was learned from traces, and learn it again from the log."""
        with self._lock, self._database.write() as session:
            self._begin_anew(session)
        return self._catch_up(_LARGEST_BATCH, stop)

    def _begin_anew(self, session: Session) -> None:
        for learner in self._learners:
            learner.clear(session)
        self._at = None
        reached = _checkpoint(session)
        settled = {_settled(source): max(reached[source], reached[_settled(source)]) for source in _SOURCES}
        _set_checkpoint(session, _beginning() | settled)

    def _next(self, size: int) -> tuple[dict[str, int], dict[str, int], list[Learned]] | None:
        """Read the next batch: the checkpoint before it, the one after it, and its traces; None if there is none."""
        with self._database.read() as session:
            before = _checkpoint(session)
            if before["version"] != MODEL_VERSION:
                return before, before, []
            after, candidates = dict(before), []
            for source, (table, arrived) in _SOURCES.items():
                rows: Sequence[Any] = session.execute(
                    select(table.c.id, table.c.trace_id, table.c.wire, LOG.c.host, table.c[arrived])
                    .outerjoin_from(
                        table, LOG, (LOG.c.trace_id == table.c.trace_id) & literal(table is TRACES)
                    )
                    .where(table.c.id > before[source])
                    .order_by(table.c.id)
                    .limit(size)
                ).all()
                if self._database.path is None:
                    rows = _before_a_gap(rows, max(before[source], before[_settled(source)]))
                if rows:
                    after[source] = rows[-1].id
                    candidates += [(source, row) for row in rows]
            learned_ids = set(
                session.scalars(
                    select(LEARNED.c.trace_id).where(
                        LEARNED.c.trace_id.in_([row.trace_id for _, row in candidates]),
                        LEARNED.c.task_id == "",
                    )
                )
            )
        if after == before:
            return None
        traces = []
        for source, row in candidates:
            if row.trace_id not in learned_ids and (learned := _read(row, source)) is not None:
                learned_ids.add(row.trace_id)
                traces.append(learned)
        return before, after, traces

    def _consume(self, before: dict[str, int], after: dict[str, int], traces: list[Learned]) -> int:
        """Learn from a batch, unless another process has done so since it was read."""
        try:
            with contextlib.ExitStack() as held, self._database.write() as session:
                if before["version"] != MODEL_VERSION:
                    self._begin_anew(session)
                    return 0
                if _checkpoint(session) != before:
                    return 0
                held.enter_context(self._changing)
                if self._at != before:
                    for learner in self._learners:
                        learner.load(session)
                self._at = None
                for learner in self._learners:
                    learner.learn(traces)
                    learner.store(session)
                _set_checkpoint(session, after)
            self._at = after
        except BaseException:
            self._at = None  # what is in memory is ahead of what is stored
            raise
        return len(traces)


def _read(row: Any, source: str) -> Learned | None:
    """Read a stored trace; an old one does not name its process, but its execution's row does."""
    process = process_of(msgspec.convert(row.host, HostIdentity)) if row.host else ""
    try:
        return learned_of(read_trace(row.wire), collected=source == "collected", process=process)
    except TraceInvalid:
        return None  # of a client whose integers are longer than 64 bits


def _before_a_gap(rows: Sequence[Any], last: int) -> list[Any]:
    """Return the rows before a missing number that may still arrive; none is missing up to `last`."""
    settled_rows: list[Any] = []
    for row in rows:
        if row.id > last + 1 and utc_now() - row[-1] < _GAP:
            break
        settled_rows.append(row)
        last = max(last, row.id)
    return settled_rows


def _settled(source: str) -> str:
    """Return the number up to which a source was read before the last rebuild."""
    return f"{source} settled"


def _beginning() -> dict[str, int]:
    numbers = {name: 0 for source in _SOURCES for name in (source, _settled(source))}
    return {**numbers, "version": MODEL_VERSION}


def _checkpoint(session: Session) -> dict[str, int]:
    stored = session.scalar(select(LEARNING.c.value).where(LEARNING.c.name == _CHECKPOINT))
    if stored is None:
        return _beginning()
    checkpoint: dict[str, int] = json.loads(stored)
    return checkpoint


def _set_checkpoint(session: Session, at: dict[str, int]) -> None:
    statement = upsert(session.get_bind().dialect.name, LEARNING, ["name"])
    session.execute(statement, {"name": _CHECKPOINT, "value": json.dumps(at)})
