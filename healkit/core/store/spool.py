"""Spool files of records that wait for their database.

The preferred place is beside the database, so that a person who repairs the database finds them. If that place is not
usable (a full disk, a read-only folder), it is the user's state folder or the temporary folder. Each line is one JSON
object, synced to disk before `append` returns, because the file is the only copy.

There are two locks: `append.lock` is held for one line, `drain.lock` for a whole replay. So a replay into a slow
database never delays an execution. A crash between the replay and the cut of the file repeats records, which the log's
writer allows. Nothing is ever deleted: a line that cannot be read goes to `records.rejected`, a line that a crash cut
off goes to `records.torn`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from healkit.core.contracts.execution import CallRecord, DecisionRecord, Finished, Record, Started
from healkit.core.plain_files import temporary_folder
from healkit.core.store.locations import sqlite_path
from healkit.core.wire.record_text import storable
from healkit.errors import ConfigError, DatabaseFull

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode

#: Order of the records of one execution that are in several places.
_RANK: dict[type, int] = {Started: 0, CallRecord: 1, DecisionRecord: 1, Finished: 2}


class RecordRejected(Exception):
    """Raised by `apply` for a record that no later attempt can store; the spool moves it to another file."""


class Spool:
    """Waiting records of one database, given by URL or path; shared by all processes that use it."""

    def __init__(self, database_key: str | Path) -> None:
        self.folders = _folders(str(database_key))
        #: The folder of the latest record, and the number of lines that this object has moved to other files.
        self.folder: Path | None = None
        self.put_aside = 0

    def append(self, record: Record) -> None:
        """Write the record in the first folder that accepts it; raise `DatabaseError` if none does."""
        try:
            line = _encode(record) + b"\n"
        except UnicodeEncodeError:
            line = _encode(storable(record)) + b"\n"
        problems = []
        for folder in self.folders:
            try:
                self._append_to(folder, line)
            except OSError as error:
                problems.append(f"{folder}: {error.strerror or error}")
            else:
                self.folder = folder
                return
        raise DatabaseFull(
            f"No spool file can be written ({'; '.join(problems)}).", hint="Free some disk space."
        )

    def pending(self) -> int:
        """Count the waiting records, in all places."""
        count = 0
        for file in self._files():
            with suppress(OSError):
                count += sum(bool(line.strip()) for line in file.read_bytes().splitlines())
        return count

    def drain(self, apply: Callable[[Record], object]) -> int:
        """Pass every waiting record to `apply`, oldest first, and remove the accepted ones; return their number.

        It stops at the first `DatabaseError`, which is raised; that record and the rest are kept. It does nothing if
        another process is already draining.
        """
        if not any(True for _ in self._files()):
            return 0
        with _all_locked(self.folders) as folders:
            waiting = [(folder, number, line) for folder in folders for number, line in self._lines(folder)]
            records = list(self._readable(waiting))
            if len({folder for folder, _, _ in records}) > 1:
                records.sort(key=lambda item: _RANK[type(item[2])])
            applied: dict[Path, set[int]] = {folder: set() for folder in folders}
            aside = {(folder, number) for folder, number, _ in waiting} - {(f, n) for f, n, _ in records}
            for folder, number in aside:
                applied[folder].add(number)
            count = 0
            try:
                for folder, number, record in records:
                    try:
                        apply(record)
                        count += 1
                    except RecordRejected:
                        self._keep_aside(folder, "records.rejected", _encode(record) + b"\n")
                    applied[folder].add(number)
            finally:
                for folder in folders:
                    # Lines that cannot be removed now are replayed again, which the log allows.
                    with suppress(OSError):
                        _cut(folder, applied[folder])
            return count

    def _files(self) -> Iterator[Path]:
        for folder in self.folders:
            file = folder / "records.jsonl"
            with suppress(OSError):
                if file.stat().st_size:
                    yield file

    def _append_to(self, folder: Path, line: bytes) -> None:
        _make_private(folder)
        with _locked(folder / "append.lock"):
            descriptor = os.open(folder / "records.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                size = os.fstat(descriptor).st_size
                # An incomplete line from a crash must not damage this one.
                torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
                data = b"\n" + line if torn else line
                try:
                    if os.write(descriptor, data) != len(data):
                        raise OSError(28, "No space left on device")
                    os.fsync(descriptor)
                except OSError:
                    os.ftruncate(descriptor, size)
                    raise
            finally:
                os.close(descriptor)

    def _lines(self, folder: Path) -> list[tuple[int, bytes]]:
        """Return the complete lines by number; an incomplete last line is first moved to another file."""
        file = folder / "records.jsonl"
        with _locked(folder / "append.lock"):
            try:
                content = file.read_bytes()
            except OSError:
                return []
            whole = content[: content.rfind(b"\n") + 1]
            if len(whole) < len(content):
                self._keep_aside(folder, "records.torn", content[len(whole) :] + b"\n")
                os.truncate(file, len(whole))
        return [(n, line) for n, line in enumerate(whole.splitlines(keepends=True)) if line.strip()]

    def _readable(self, waiting: list[tuple[Path, int, bytes]]) -> Iterator[tuple[Path, int, Record]]:
        for folder, number, line in waiting:
            try:
                yield folder, number, _decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self._keep_aside(folder, "records.rejected", line)

    def _keep_aside(self, folder: Path, name: str, line: bytes) -> None:
        with (folder / name).open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.put_aside += 1


def _folders(key: str) -> list[Path]:
    """Return the folders where records may wait, the best first."""
    import platformdirs

    path = sqlite_path(key) if "://" in key else Path(key).absolute()
    name = hashlib.sha256(str(path or key).encode()).hexdigest()[:16]
    state = Path(platformdirs.user_state_dir("healkit", appauthor=False)) / "spool" / name
    folders = [*([path.with_name(f"{path.name}.spool")] if path else []), state]
    with suppress(ConfigError):  # the last resort, if it exists
        folders.append(temporary_folder() / f"healkit-spool-{os.getuid()}" / name)
    return folders


def _make_private(folder: Path) -> None:
    """Make the folder, for this user only; raise `PermissionError` if another user made it first.

    Other users can guess the name of a folder in the temporary folder. The database's own folder is not made here, and
    its spool is shared by all users of that database.
    """
    beside_database = folder.suffix == ".spool"
    folder.mkdir(mode=0o700, parents=not beside_database, exist_ok=True)
    if not beside_database and (folder.is_symlink() or folder.stat().st_uid != os.geteuid()):
        raise PermissionError(1, "belongs to another user", str(folder))


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold a lock between threads and processes (flock); the system releases it if its holder dies."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _all_locked(folders: list[Path]) -> Iterator[list[Path]]:
    """Lock the folders whose drain lock is free, until the end of the block, and yield them."""
    locks: list[tuple[int, Path]] = []
    try:
        for folder in folders:
            with suppress(OSError):
                if not (folder / "records.jsonl").exists():
                    continue
                descriptor = os.open(folder / "drain.lock", os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    locks.append((descriptor, folder))
                except OSError:
                    os.close(descriptor)
        yield [folder for _, folder in locks]
    finally:
        for descriptor, _ in locks:
            os.close(descriptor)


def _cut(folder: Path, done: set[int]) -> None:
    """Blank the lines with those numbers in place; lines that were added in the meantime are kept.

    A shorter copy would need room on a disk that may be full. Without this, every attempt would replay the same records
    again.
    """
    if not done:
        return
    file = folder / "records.jsonl"
    with _locked(folder / "append.lock"), file.open("r+b") as content:
        has_records, start = False, 0
        for number, line in enumerate(content.read().splitlines(keepends=True)):
            if number in done:
                content.seek(start)
                content.write(b" " * (len(line) - 1))
            has_records = has_records or (number not in done and bool(line.strip()))
            start += len(line)
        content.flush()
        if not has_records:
            content.truncate(0)
