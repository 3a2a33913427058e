"""Records that wait for the database, steps for their end.

A record that the database does not take goes to the spool file, one that no disk takes stays in memory. What waits is
stored as soon as the database is back: before the next execution, before each look at the log, and by a thread that
lives only while something waits.

An execution whose record had to wait once sends its later records straight here. Its ending would find no row, and
where the caller itself holds the lock, waiting again could not help.

A step, a bridged call or a branch decision, waits in its execution's `Journal`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from healkit.contracts.backoff import pause_s
from healkit.contracts.execution import CallRecord, DecisionRecord, Finished, Record, Started, Step, storable
from healkit.errors import DatabaseError
from healkit.store.database import Database
from healkit.store.log_writer import LogWriter, RecordRefused
from healkit.store.spool import RecordRejected, Spool

#: Records kept in memory when not even a spool file can be written.
MEMORY_RECORDS = 1000

#: First and longest pause between the retry thread's attempts, in seconds.
RETRY_FIRST_S, RETRY_LONGEST_S = 0.2, 5.0


class Backlog:
    """Records of one database's log that wait to be stored; safe to use from several threads.

    wait_s: how long `store_all` may wait for another thread that is at it. on_stored: gets each ending that was stored.
    """

    def __init__(
        self, database: Database, writer: LogWriter, wait_s: float, on_stored: Callable[[Record], None]
    ) -> None:
        self.spool = Spool(database.path or database.url)
        #: Whether anything waits.
        self.waiting = False
        self._database, self._writer = database, writer
        self._wait_s, self._on_stored = wait_s, on_stored
        self._lock = threading.RLock()
        self._storing = threading.Lock()
        self._behind: set[str] = set()
        self._memory: deque[Record] = deque(maxlen=MEMORY_RECORDS)
        self._lost = 0
        self._trouble = ""
        self._closed = threading.Event()
        self._retrier: threading.Thread | None = None

    @property
    def problem(self) -> str:
        """Sentence for the user on what is wrong with the log; empty when nothing is."""
        with self._lock:
            parts = []
            if self._trouble:
                place = f"in {self.spool.folder}" if self.spool.folder else "in a spool file"
                if self._memory:
                    place = f"in memory only ({len(self._memory)}), and are lost if this process ends"
                parts.append(
                    f"The log could not be written: {self._trouble} Its records wait {place}, "
                    "and are brought in when the database is back."
                )
            if self._lost:
                parts.append(
                    f"{self._lost} log records were lost, because neither database nor disk took them."
                )
            if self.spool.put_aside:
                parts.append(
                    f"{self.spool.put_aside} spooled records could not be used; they were put aside as "
                    f"records.rejected or records.torn in {self.spool.folder or self.spool.folders[0]}."
                )
            return " ".join(parts)

    def holds(self, trace_id: str) -> bool:
        """Return whether an earlier record of that execution waits."""
        return trace_id in self._behind

    def note(self, error: BaseException) -> None:
        """Remember what is wrong with the log."""
        self._trouble = _sentence(error)

    def add(self, record: Record, error: BaseException | None) -> None:
        """Keep a record for later: in the spool, else in memory."""
        with self._lock:
            if error is not None:
                self._trouble = _sentence(error)
            self._behind.add(record.trace_id)
            self.waiting = True
            try:
                self.spool.append(record)
            except Exception:  # noqa: BLE001 - memory is what is left
                self._lost += len(self._memory) == self._memory.maxlen
                self._memory.append(record)
            self._retry_later()

    def store_all(self) -> int:
        """Store what waits, and return how many records that were; waits for another thread that is at it."""
        return self.store(self._wait_s)

    def store(self, patience_s: float = 0.0) -> int:
        # Not under the lock of the state: an execution must be able to spool while a long replay goes on.
        if self._database.read_only or not self._storing.acquire(timeout=patience_s):
            return 0
        count, trouble = 0, ""
        try:
            # One execution's records may lie in both places; its ending needs its row.
            count += self._store_memory(endings=False)
            count += self.spool.drain(self._store_one)
            count += self._store_memory(endings=True)
        except Exception as error:  # noqa: BLE001 - the spool keeps its records; the next attempt may do better
            trouble = _sentence(error)
        finally:
            self._storing.release()
        with self._lock:
            self.waiting = bool(trouble or self._memory or self.spool.pending())
            self._trouble = trouble or (self._trouble if self.waiting else "")
            if not self.waiting:
                self._behind.clear()
            self._retry_later()
        return count

    def close(self) -> None:
        """Store or spool what waits, and stop the retry thread."""
        self._closed.set()
        retrier = self._retrier
        if retrier is not None and retrier is not threading.current_thread():
            retrier.join(timeout=RETRY_LONGEST_S)
        if self.waiting:
            self.store_all()
        for record in list(self._memory):
            try:
                self.spool.append(record)
                self._memory.popleft()
            except DatabaseError:
                break

    def _store_one(self, record: Record) -> None:
        """Store one waiting record, as the spool gives it back."""
        try:
            match record:
                case Started():
                    self._writer.begin(record, 0.0)
                case CallRecord():
                    self._writer.call(record, 0.0)
                case DecisionRecord():
                    self._writer.decision(record, 0.0)
                case Finished():
                    self._writer.finish(record, 0.0)
                    self._on_stored(record)
        except RecordRefused as error:
            raise RecordRejected(str(error)) from None

    def _store_memory(self, *, endings: bool) -> int:
        """Store what is in memory, either the endings or all the rest; return how many."""
        with self._lock:
            waiting = list(self._memory)
        records = [record for record in waiting if isinstance(record, Finished) is endings]
        for record in records:
            try:
                self._store_one(record)
            except RecordRejected:
                self._lost += 1
            with (
                self._lock,
                contextlib.suppress(ValueError),
            ):  # the oldest may have been crowded out meanwhile
                self._memory.remove(record)
        return len(records)

    def _retry_later(self) -> None:
        """Have a thread try again while something waits; it could not help a database that is read-only."""
        if not self.waiting or self._retrier is not None or self._closed.is_set() or self._database.read_only:
            return
        self._retrier = threading.Thread(target=self._retry, name="healkit-log-retry", daemon=True)
        self._retrier.start()

    def _retry(self) -> None:
        for attempt in itertools.count(1):
            if self._closed.wait(pause_s(attempt, RETRY_FIRST_S, RETRY_LONGEST_S)):
                return
            self.store_all()
            with self._lock:
                if not self.waiting:
                    self._retrier = None
                    return


def _sentence(error: BaseException) -> str:
    return error.message if isinstance(error, DatabaseError) else f"{type(error).__name__}: {error}."


# A commit costs more than a bridged call itself. So each step is first appended to a file, and many of them go into
# the table together: when the execution ends, or with the next call after a while. Once a record is appended, a kill
# -9 does not lose it; a power failure may, since the file is not synced. The next host that opens the database brings
# in what a killed one left behind.


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Step).decode

_PREFIX, _SUFFIX = "calls-", ".jsonl"
#: Records younger than this wait for more of their kind.
_FLUSH_AFTER_S = 0.2


class Journal:
    """Steps of one execution on their way to their tables; safe to use from several threads.

    `store` writes records to the tables, or keeps them elsewhere; it must not raise. Where no folder takes the file,
    every record goes to it at once; so does one that comes after the end, since a call may outlive its worker.
    """

    def __init__(self, folders: list[Path], trace_id: str, store: Callable[[list[Step]], None]) -> None:
        self._folders = folders
        self._name = f"{_PREFIX}{trace_id}{_SUFFIX}"
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str | int, Step] = {}
        self._since = 0.0
        self._file: Path | None = None
        self._descriptor = -1
        self._closed = False

    def append(self, record: Step) -> None:
        """Put a decision, or a call's beginning or end, on record; when this returns, kill -9 cannot undo it."""
        with self._lock:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting[_key(record)] = record
            if self._closed or not self._write(record) or time.monotonic() - self._since > _FLUSH_AFTER_S:
                self._flush()

    @property
    def used(self) -> bool:
        """True once anything was put into it."""
        return self._file is not None or bool(self._waiting)

    def close(self) -> None:
        """Move what waits to the table and remove the file; before the execution's own end is recorded."""
        with self._lock:
            self._closed = True
            self._flush()
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            if self._file is not None:
                with suppress(OSError):
                    self._file.unlink()
                    self._file.parent.rmdir()  # only if nothing else waits there

    def _write(self, record: Step) -> bool:
        if self._descriptor < 0 and not self._open():
            return False
        try:
            line = _encode(record) + b"\n"
        except UnicodeEncodeError:
            line = _encode(storable(record)) + b"\n"
        try:
            return os.write(self._descriptor, line) == len(line)
        except OSError:
            return False

    def _open(self) -> bool:
        for folder in self._folders:
            with suppress(OSError):
                folder.mkdir(mode=0o700, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL
                self._descriptor = os.open(folder / self._name, flags, 0o600)
                self._file = folder / self._name
                return True
        return False

    def _flush(self) -> None:
        if self._waiting:
            self._store(list(self._waiting.values()))
            self._waiting.clear()
            if self._descriptor >= 0:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, 0)


def left_behind(folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """Trace id and file of every journal that lies there, its execution over or not."""
    for folder in folders:
        with suppress(OSError):
            for file in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}")):
                yield file.name.removeprefix(_PREFIX).removesuffix(_SUFFIX), file


def read_journal(file: Path) -> list[Step]:
    """Return the steps in a journal, each as it was last seen; a line that a crash tore is left out."""
    found: dict[str | int, Step] = {}
    with suppress(OSError):
        for line in file.read_bytes().splitlines():
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                record = _decode(line)
                found[_key(record)] = record
    return list(found.values())


def _key(step: Step) -> str | int:
    """Return what tells it from the other steps of its execution."""
    return step.task_id if isinstance(step, CallRecord) else step.number
