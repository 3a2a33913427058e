"""Retention: old executions deleted, or moved to an archive.

Only finished executions go, oldest first, with all that belongs to them. These stay in any case:

- executions that still run;
- the failure that a revision answers (`motivating_log_id`), which the vault's history refers to;
- executions whose trace still waits to be sent to a collector;
- the newest row, so that no id is ever given twice.

Rows are deleted a few at a time, in transactions as short as an ordinary write is willing to wait for, with a pause as
long after each, so that no record waits for more than one of them.

Each archiving that moves anything adds one file to the folder:

    executions-…jsonl.partial    being written; nothing is deleted yet
    executions-…jsonl.verified   whole, on disk, read back, counted and compared; its rows are being deleted
    executions-…jsonl            done

A kill between any two steps loses nothing and doubles nothing: a partial file is written anew, and the rows of a
verified one are deleted by the next archiving, before anything else. Which rows those are is read from the file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from sqlalchemy import ColumnElement, and_, delete, func, select, tuple_

from healkit.contracts.execution import utc_now
from healkit.errors import ArchiveBusy, LogFileError
from healkit.store.database import Database
from healkit.store.locations import views_folder
from healkit.store.log_files import check_suffix, digest_of, read_file, sync_folder, write_unfinished
from healkit.store.models import LOG, REVISIONS, TRACES, VIEW_USES
from healkit.store.serialization import PARTS, Record, count_parts, records_of
from healkit.store.stats import lock_stats

ArchiveFormat = Literal["jsonl", "parquet"]

#: How long one transaction of deletions should take, in seconds, and how many rows the first one tries.
_HOLD_S = 0.03
_FIRST_BATCH, _LARGEST_BATCH = 50, 2000


@dataclasses.dataclass(frozen=True)
class PruneReport:
    """Result of retention: rows deleted, and the archives that hold them.

    `resumed` counts those that an interrupted archiving had left; `longest_hold_ms` is the longest that another writer
    had to wait.
    """

    deleted: int
    archives: list[Path] = dataclasses.field(default_factory=list)
    resumed: int = 0
    longest_hold_ms: float = 0.0


class Retention:
    """Round of retention on one database; `stop` is asked before each batch, and ends the round."""

    def __init__(self, database: Database, stop: Callable[[], bool] = lambda: False) -> None:
        self._database = database
        self._stop = stop
        self._batch = _FIRST_BATCH
        self._longest_s = 0.0

    def prune(
        self,
        older_than: timedelta | None,
        keep: int | None,
        archive: Path | None = None,
        archive_format: ArchiveFormat = "jsonl",
    ) -> PruneReport:
        """Delete executions older than that or beyond the newest so many, archived first where a folder is given.

        Views of data that only they were given or returned go with them; no archive holds those.
        """
        report = self._prune(older_than, keep, archive, archive_format)
        if report.deleted and views_folder(self._database.path, self._database.url).exists():
            from healkit.store.data_views import DataViews

            DataViews(self._database, 0).remove_unused()
        return report

    def _prune(
        self,
        older_than: timedelta | None,
        keep: int | None,
        archive: Path | None,
        archive_format: ArchiveFormat,
    ) -> PruneReport:
        if archive is None:
            deleted = self._delete_due(self._due(older_than, keep))
            return PruneReport(deleted, longest_hold_ms=self._longest_s * 1000)
        check_suffix(Path(f"x.{archive_format}"))
        try:
            with _locked(archive):
                return self._archive(older_than, keep, archive, f".{archive_format}")
        except OSError as error:
            raise LogFileError(
                f"The archive {str(archive)!r} cannot be written: {error.strerror or error}.",
                hint="Nothing that is not in a whole archive file was deleted.",
            ) from None

    def _archive(
        self, older_than: timedelta | None, keep: int | None, folder: Path, suffix: str
    ) -> PruneReport:
        name = hashlib.sha256(self._database.url.encode()).hexdigest()[:6]
        archives: list[Path] = []
        resumed = 0
        for verified in sorted(folder.glob(f"executions-{name}-*.verified")):
            if verified.is_symlink():
                raise LogFileError(
                    f"{str(verified)!r} is a link, and links are not followed.",
                    hint="Nothing was deleted. Remove it, or put the archive's file in its place.",
                )
            resumed += self._delete_archived(verified, archives)
        for partial in folder.glob(f"executions-{name}-*.partial"):
            partial.unlink()
        due = self._due(older_than, keep)
        partial = folder / f"executions-{name}-{utc_now():%Y%m%dT%H%M%S%f}{suffix}.partial"
        count, digest = write_unfinished(partial, suffix, self._records(due))
        if not count:
            partial.unlink()
            return PruneReport(resumed, archives, resumed, self._longest_s * 1000)
        if digest_of(partial, suffix) != (count, digest):
            raise LogFileError(
                f"The archive {str(partial)!r} does not read back as it was written.",
                hint="Nothing was deleted. Check the disk.",
            )
        verified = partial.with_suffix(".verified")
        partial.replace(verified)
        sync_folder(folder)
        deleted = self._delete_archived(verified, archives)
        return PruneReport(resumed + deleted, archives, resumed, self._longest_s * 1000)

    def _due(self, older_than: timedelta | None, keep: int | None) -> ColumnElement[bool]:
        """Return the condition on rows to go, fixed now, so that later statements mean the same rows."""
        ends: list[tuple[datetime, int]] = []
        if older_than is not None:
            ends.append((utc_now() - older_than, 0))
        if keep is not None:
            newest = select(LOG.c.timestamp, LOG.c.id).order_by(LOG.c.timestamp.desc(), LOG.c.id.desc())
            with self._database.read() as session:
                first = session.execute(newest.offset(keep).limit(1)).first()
            if first is not None:
                ends.append((first.timestamp, first.id))
        # One condition instead of two, so that the scan of the time index ends there.
        due: ColumnElement[bool] = LOG.c.id < 0
        if ends:
            due = tuple_(LOG.c.timestamp, LOG.c.id) <= tuple_(*max(ends))
        return due

    def _chunks(self, due: ColumnElement[bool], size: Callable[[], int]) -> Iterator[list[int]]:
        """Yield the ids of rows that may go, oldest first."""
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

    def _records(self, due: ColumnElement[bool]) -> Iterator[Record]:
        for ids in self._chunks(due, lambda: 500):
            with self._database.read() as session:
                rows = session.execute(
                    select(LOG).where(LOG.c.id.in_(ids)).order_by(LOG.c.timestamp, LOG.c.id)
                ).all()
                records = records_of(session, rows)
            yield from records

    def _delete_due(self, due: ColumnElement[bool]) -> int:
        return sum(self._delete(LOG.c.id.in_(ids)) for ids in self._chunks(due, lambda: self._batch))

    def _delete_archived(self, verified: Path, archives: list[Path]) -> int:
        """Delete the rows that the file holds, as far as they are still here, and give the file its last name."""
        suffix = Path(verified.stem).suffix
        records: Iterable[Record] = (record for _, record in read_file(verified, suffix))
        records, deleted = iter(records), 0
        while batch := list(itertools.islice(records, self._batch)):
            parts = {
                record["trace_id"]: sum(len(record.get(name) or ()) for name in PARTS) for record in batch
            }
            deleted += self._delete(LOG.c.trace_id.in_(list(parts)), parts)
        done = verified.with_suffix("")
        verified.replace(done)
        sync_folder(done.parent)
        archives.append(done)
        return deleted

    def _delete(self, which: ColumnElement[bool], archived_parts: dict[str, int] | None = None) -> int:
        """Delete those rows that may go, with their parts, in one transaction; return how many.

        archived_parts: how many parts of each execution the archive holds; an execution with more by now stays.
        """
        with self._database.write() as session:
            lock_stats(session)
            begun = time.monotonic()
            trace_ids = list(session.scalars(select(LOG.c.trace_id).where(which, _may_go())))
            if archived_parts is not None:
                found = count_parts(session, trace_ids)
                trace_ids = [
                    trace_id for trace_id in trace_ids if found[trace_id] <= archived_parts[trace_id]
                ]
            for table in (*(table for table, _ in PARTS.values()), VIEW_USES, LOG):
                session.execute(delete(table).where(table.c.trace_id.in_(trace_ids)))
        held_s = time.monotonic() - begun
        self._longest_s = max(self._longest_s, held_s)
        self._batch = max(1, min(_LARGEST_BATCH, int(self._batch * min(2.0, _HOLD_S / max(held_s, 1e-6)))))
        time.sleep(min(held_s, 1.0))  # SQLite has no queue: without a pause, no other writer would get a turn
        return len(trace_ids)


def _may_go() -> ColumnElement[bool]:
    """Return the condition on rows that retention may delete at all."""
    motives = select(REVISIONS.c.motivating_log_id).where(REVISIONS.c.motivating_log_id.is_not(None))
    waiting = select(TRACES.c.id).where(TRACES.c.trace_id == LOG.c.trace_id, TRACES.c.state == "pending")
    newest = select(func.max(LOG.c.id)).correlate(None).scalar_subquery()
    return and_(LOG.c.status != "RUNNING", LOG.c.id != newest, LOG.c.id.not_in(motives), ~waiting.exists())


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the archive's folder for this process, made where it is missing; raise `ArchiveBusy`."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArchiveBusy(
                f"Another process is archiving into {str(folder)!r}.", hint="Try again when it is done."
            ) from None
        yield
    finally:
        os.close(descriptor)
