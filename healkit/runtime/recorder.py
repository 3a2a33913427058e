"""The sole door to the log.

A failure of the log never alters a tool's outcome: nothing here raises for one. A record that the database
does not take goes to the spool file, one that no disk takes stays in memory, and what waits is brought in as
soon as the database is back: before the next execution, before each look at the log, and by a thread that
lives only while something waits.

An execution whose record had to wait once sends its later records straight to the spool. Its ending would
find no row, and where the caller itself holds the lock, waiting again could not help. Each record waits for
`log_wait_s` at most, all its obstacles together.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from healkit.config import Config
from healkit.contracts.backoff import pause_s
from healkit.contracts.records import CallRecord, DecisionRecord, Finished, Record, Started, Step
from healkit.errors import DatabaseError
from healkit.runtime.history import persona_served, started_of, steps_of
from healkit.runtime.journal import Journal, left_behind, read_journal
from healkit.runtime.orphans import ending_of, why_dead
from healkit.store.database import Database
from healkit.store.log_writer import LogWriter, RecordRefused
from healkit.store.spool import RecordRejected, Spool
from healkit.store.statements import RUNNING
from healkit.tracing.collector import Collector, Tracer

if TYPE_CHECKING:
    from healkit.store.log_reader import Log

#: How many records are kept in memory when not even a spool file can be written.
MEMORY_RECORDS = 1000

#: The pauses between the retry thread's attempts, the first and the longest, in seconds.
RETRY_FIRST_S, RETRY_LONGEST_S = 0.2, 5.0


class Recorder:
    """Writes executions to one database's log; safe to use from several threads. Close it at the end.

    An ending takes its trace along, in one transaction; `on_trace` is called when one that is to be sent is there.
    """

    def __init__(
        self,
        database: Database,
        config: Config | None = None,
        tracer: Tracer | None = None,
        on_trace: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config or Config()
        self._tracer = tracer or Tracer(self._config)
        self._on_trace = on_trace
        self._database = database
        self._writer = LogWriter(database)
        self._spool = Spool(database.path or database.url)
        self._lock = threading.RLock()
        self._replaying = threading.Lock()
        self._behind: set[str] = set()
        self._memory: deque[Record] = deque(maxlen=MEMORY_RECORDS)
        self._lost = 0
        self._trouble = ""
        self._waiting = False
        self._closed = threading.Event()
        self._retrier: threading.Thread | None = None
        self.ingest()

    @functools.cached_property
    def _log(self) -> Log:
        """The log as it is read; loaded where something was left behind."""
        from healkit.store.log_reader import Log

        return Log(self._database)

    @property
    def problem(self) -> str:
        """One sentence for the user on what is wrong with the log; empty when nothing is."""
        with self._lock:
            parts = []
            if self._trouble:
                place = f"in {self._spool.folder}" if self._spool.folder else "in a spool file"
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
            if self._spool.put_aside:
                parts.append(
                    f"{self._spool.put_aside} spooled records could not be used; they were put aside as "
                    f"records.rejected or records.torn in {self._spool.folder or self._spool.folders[0]}."
                )
            return " ".join(parts)

    def begin(self, started: Started, wait_s: float | None = None) -> int | None:
        """Commit the execution as RUNNING; its row's id, or None when the record went to the spool."""
        if self._waiting:
            self._ingest()
        wait_s = self._config.log_wait_s if wait_s is None else wait_s
        kept = self._tracer.kept(started)
        return self._attempt(kept, lambda: self._writer.begin(kept, wait_s))

    def call(self, record: CallRecord) -> None:
        """Commit a bridged call; called on the bridge's thread as it begins and as it ends."""
        self._attempt(record, lambda: self._writer.call(record, self._config.log_wait_s))

    def steps(self, records: list[Step]) -> None:
        """Commit calls and decisions together, or keep each for later; called by their journal."""
        if records and records[0].trace_id not in self._behind:
            try:
                self._writer.steps(records, self._config.log_wait_s)
                return
            except Exception as error:  # noqa: BLE001 - no failure of the log may reach the tool's caller
                self._postpone(records[0], error)
                records = records[1:]
        for record in records:
            self._postpone(record, None)

    def collector(self, begun: Started) -> Collector:
        """What gathers an execution's trace while it runs, to be given to `finish`."""
        return self._tracer.collector(begun, persona_served(self._database, begun))

    def journal(self, trace_id: str) -> Journal:
        """Where an execution's calls and decisions go while it runs; close it before its end is recorded."""
        return Journal(self._spool.folders, trace_id, self.steps)

    def finish(self, finished: Finished, collector: Collector | None = None) -> int | None:
        """Commit how the execution ended; its row's id, or None when the record went to the spool."""
        finished = self._concluded(finished, collector)
        row_id = self._attempt(finished, lambda: self._writer.finish(finished, self._config.log_wait_s))
        if row_id is not None:
            return row_id
        self._ingest()
        try:
            # Read without a wait: if the spool could be emptied, the row is there.
            row = None if self._waiting else self._log.by_trace(finished.trace_id)
        except DatabaseError:
            row = None
        return None if row is None else row.id

    def refuse(self, started: Started, finished: Finished) -> int | None:
        """Commit a call that was refused before a worker was touched, as one row."""
        if self._waiting:
            self._ingest()
        finished, started = (
            self._concluded(finished, self.collector(started)),
            self._tracer.kept(started),
        )
        try:
            row_id = self._writer.insert_finished(started, finished, self._config.log_wait_s)
            self._tell(finished)
            return row_id
        except Exception as error:  # noqa: BLE001 - no failure of the log may reach the tool's caller
            self._postpone(started, error)
            self._postpone(finished, error)
            return None

    def _concluded(self, finished: Finished, collector: Collector | None) -> Finished:
        """The ending as it is stored: with its trace, then cleaned where the log is to be."""
        return self._tracer.kept(finished if collector is None else collector.conclude(finished))

    def _tell(self, record: Record) -> None:
        if isinstance(record, Finished) and record.trace is not None and record.trace.send:
            self._on_trace()

    def ingest(self) -> int:
        """Bring in what waits, without waiting for the database; how many records were. Never raises.

        Called before each look at the log. While another thread is at it, this waits for that one, but no longer
        than a record may wait.
        """
        return self._ingest(self._config.log_wait_s)

    def _ingest(self, patience_s: float = 0.0) -> int:
        # Not under the lock of the state: an execution must be able to spool while a long replay goes on.
        if self._database.read_only or not self._replaying.acquire(timeout=patience_s):
            return 0
        count, trouble = 0, ""
        try:
            # One execution's records may lie in both places; its ending needs its row.
            count += self._store_memory(endings=False)
            count += self._spool.drain(self._store)
            count += self._store_memory(endings=True)
        except Exception as error:  # noqa: BLE001 - the spool keeps its records; the next attempt may do better
            trouble = _sentence(error)
        finally:
            self._replaying.release()
        with self._lock:
            self._waiting = bool(trouble or self._memory or self._spool.pending())
            self._trouble = trouble or (self._trouble if self._waiting else "")
            if not self._waiting:
                self._behind.clear()
            self._retry_later()
        return count

    def _recover_journals(self) -> None:
        """Bring in the steps of executions that are over, or whose host is dead; those of others are theirs."""
        for trace_id, file in left_behind(self._spool.folders):
            row = self._log.by_trace(trace_id)
            if row is not None and (row.status != "RUNNING" or why_dead(row)):
                self.steps(read_journal(file))
                with contextlib.suppress(OSError):
                    file.unlink()
                    file.parent.rmdir()

    def recover_orphans(self) -> int:
        """Turn each RUNNING row whose host is dead into a FAILURE that says so; how many. Called at start-up.

        The spool comes first: a host that died may have left the true ending there. Raises nothing; a log
        that cannot be read has no orphans today.
        """
        self.ingest()
        count = 0
        try:
            self._recover_journals()
            running = self._database.fetch(RUNNING)
            for row in self._log.running() if running else ():
                died = why_dead(row)
                if not died:
                    continue
                begun = started_of(row)
                served = persona_served(self._database, begun)
                collector = Collector(self._tracer, begun, served, steps_of(self._log, row.trace_id))
                finished = self._concluded(ending_of(row, died), collector)
                if self._writer.finish_running(finished, self._config.log_wait_s) is not None:
                    count += 1
                    self._tell(finished)
        except DatabaseError as error:
            self._trouble = _sentence(error)
        return count

    def close(self) -> None:
        """Bring in or spool what waits, stop the retry thread and give the connection back."""
        self._closed.set()
        retrier = self._retrier
        if retrier is not None and retrier is not threading.current_thread():
            retrier.join(timeout=RETRY_LONGEST_S)
        if self._waiting:
            self.ingest()
        for record in list(self._memory):
            try:
                self._spool.append(record)
                self._memory.popleft()
            except DatabaseError:
                break
        self._writer.close()

    def _attempt(self, record: Record, write: Callable[[], int | None]) -> int | None:
        """Write it, or keep it for later; None for what was kept, and for calls."""
        if record.trace_id not in self._behind:
            try:
                row_id = write()
                self._tell(record)
                return row_id
            except Exception as error:  # noqa: BLE001 - no failure of the log may reach the tool's caller
                self._postpone(record, error)
        else:
            self._postpone(record, None)
        return None

    def _postpone(self, record: Record, error: BaseException | None) -> None:
        """Keep a record for later: in the spool, else in memory."""
        with self._lock:
            if error is not None:
                self._trouble = _sentence(error)
            self._behind.add(record.trace_id)
            self._waiting = True
            try:
                self._spool.append(record)
            except Exception:  # noqa: BLE001 - memory is what is left
                self._lost += len(self._memory) == self._memory.maxlen
                self._memory.append(record)
            self._retry_later()

    def _store(self, record: Record) -> None:
        """One waiting record, as the spool gives it back."""
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
                    self._tell(record)
        except RecordRefused as error:
            raise RecordRejected(str(error)) from None

    def _store_memory(self, *, endings: bool) -> int:
        """What is in memory, either the endings or all the rest; how many."""
        with self._lock:
            waiting = list(self._memory)
        records = [record for record in waiting if isinstance(record, Finished) is endings]
        for record in records:
            try:
                self._store(record)
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
        if (
            not self._waiting
            or self._retrier is not None
            or self._closed.is_set()
            or self._database.read_only
        ):
            return
        self._retrier = threading.Thread(target=self._retry, name="healkit-log-retry", daemon=True)
        self._retrier.start()

    def _retry(self) -> None:
        for attempt in itertools.count(1):
            if self._closed.wait(pause_s(attempt, RETRY_FIRST_S, RETRY_LONGEST_S)):
                return
            self.ingest()
            with self._lock:
                if not self._waiting:
                    self._retrier = None
                    return


def _sentence(error: BaseException) -> str:
    return error.message if isinstance(error, DatabaseError) else f"{type(error).__name__}: {error}."
