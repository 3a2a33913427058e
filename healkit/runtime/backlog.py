"""Records that wait for the database.

A record that the database does not take goes to the spool file, one that no disk takes stays in memory. What waits is
stored as soon as the database is back: before the next execution, before each look at the log, and by a thread that
lives only while something waits.

An execution whose record had to wait once sends its later records straight here. Its ending would find no row, and
where the caller itself holds the lock, waiting again could not help.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import deque
from collections.abc import Callable

from healkit.contracts.backoff import pause_s
from healkit.contracts.execution import CallRecord, DecisionRecord, Finished, Record, Started
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
