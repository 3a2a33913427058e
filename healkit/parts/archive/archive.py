"""Archive: old executions moved to files.

Each archiving that moves anything adds one file to the folder:

    executions-…jsonl.partial    being written; nothing is deleted yet
    executions-…jsonl.verified   complete, on disk, read back, counted and compared; its rows are being deleted
    executions-…jsonl            done

A kill between any two steps loses nothing and duplicates nothing. A partial file is written again. The next archiving
first deletes the rows of a verified file; it reads from the file which rows these are.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

from sqlalchemy import (
    ColumnElement,
    select,
)
from sqlalchemy.orm import Session

from healkit.core.contracts.execution import Filters, utc_now
from healkit.core.store.log_reader import Imported, LogFiles
from healkit.core.store.models import (
    LOG,
)
from healkit.core.store.retention import PruneReport, Retention
from healkit.errors import ArchiveBusy, LogFileError
from healkit.parts.archive.log_files import (
    PARTS,
    Record,
    check_suffix,
    count_parts,
    digest_of,
    export_log,
    import_log,
    read_file,
    records_of,
    sync_folder,
    write_unfinished,
)


class Archive(Retention):
    """Round of retention that moves executions to a folder of files."""

    def move(self, older_than: timedelta | None, keep: int | None, folder: Path, suffix: str) -> PruneReport:
        """Move executions older than an age, or beyond the newest ones, to a file with that suffix.

        Also deletes the views of data that only these executions used; an archive does not contain views. Raises
        `LogFileError`.
        """
        check_suffix(Path(f"x{suffix}"))
        try:
            with _locked(folder):
                return self._move(older_than, keep, folder, suffix)
        except OSError as error:
            raise LogFileError(
                f"Cannot write the archive {str(folder)!r}: {error.strerror or error}.",
                hint="Only executions that are in a complete archive file were deleted.",
            ) from None

    def _move(self, older_than: timedelta | None, keep: int | None, folder: Path, suffix: str) -> PruneReport:
        name = hashlib.sha256(self._database.url.encode()).hexdigest()[:6]
        archives: list[Path] = []
        resumed = 0
        for verified in sorted(folder.glob(f"executions-{name}-*.verified")):
            if verified.is_symlink():
                raise LogFileError(
                    f"{str(verified)!r} is a link, and healkit does not follow links.",
                    hint="Nothing was deleted. Remove the link, or replace it by the archive's file.",
                )
            resumed += self._delete_archived(verified, archives)
        for partial in folder.glob(f"executions-{name}-*.partial"):
            partial.unlink()
        due = self._due(older_than, keep)
        partial = folder / f"executions-{name}-{utc_now():%Y%m%dT%H%M%S%f}{suffix}.partial"
        count, digest = write_unfinished(partial, suffix, self._records(due))
        if not count:
            partial.unlink()
            return self._ended(resumed, archives, resumed)
        if digest_of(partial, suffix) != (count, digest):
            raise LogFileError(
                f"The archive {str(partial)!r} could not be read back correctly.",
                hint="Nothing was deleted. Check the disk.",
            )
        verified = partial.with_suffix(".verified")
        partial.replace(verified)
        sync_folder(folder)
        deleted = self._delete_archived(verified, archives)
        return self._ended(resumed + deleted, archives, resumed)

    def _records(self, due: ColumnElement[bool]) -> Iterator[Record]:
        for ids in self._chunks(due, lambda: 500):
            with self._database.read() as session:
                rows = session.execute(
                    select(LOG).where(LOG.c.id.in_(ids)).order_by(LOG.c.timestamp, LOG.c.id)
                ).all()
                records = records_of(session, rows)
            yield from records

    def _delete_archived(self, verified: Path, archives: list[Path]) -> int:
        """Delete the rows that the file contains and that still exist, and give the file its final name."""
        suffix = Path(verified.stem).suffix
        records: Iterable[Record] = (record for _, record in read_file(verified, suffix))
        records, deleted = iter(records), 0
        while batch := list(itertools.islice(records, self._batch)):
            parts = {
                record["trace_id"]: sum(len(record.get(name) or ()) for name in PARTS) for record in batch
            }
            deleted += self._delete(LOG.c.trace_id.in_(list(parts)), functools.partial(_whole, parts))
        done = verified.with_suffix("")
        verified.replace(done)
        sync_folder(done.parent)
        archives.append(done)
        return deleted


def _whole(archived_parts: dict[str, int], session: Session, trace_ids: list[str]) -> list[str]:
    """Leave out executions that now have more parts than their archive contains."""
    counts = count_parts(session, trace_ids)
    return [trace_id for trace_id in trace_ids if counts[trace_id] <= archived_parts[trace_id]]


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the archive's folder for this process, and create it if needed; raise `ArchiveBusy`."""
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


class Files(LogFiles):
    """Files of executions, in the formats that their file extensions name."""

    def export(self, path: Path, filters: Filters, *, overwrite: bool) -> int:
        """Write the finished executions that match the filters."""
        return export_log(self.database, path, filters, overwrite=overwrite)

    def bring_in(self, path: Path) -> Imported:
        """Import the executions of a file that do not exist here yet."""
        return import_log(self.database, path)

    def archive(
        self, older_than: timedelta | None, keep: int | None, folder: Path, suffix: str
    ) -> PruneReport:
        """Move old executions to a file in that folder."""
        return Archive(self.database).move(older_than, keep, folder, suffix)
