"""Record of one execution, and the writer of the log.

All information about an execution passes through its `Recording`, on its way to the log, the journal, the trace and its
run. Contents that a tool does not log are removed here, and nowhere else. Only the `Recorder` writes to the log. An
error of the log never changes a tool's outcome, so the `Recorder` does not raise. A record that the database does not
accept waits in the `Backlog`. Writing a record takes at most `log_wait_s` seconds, including waits for other threads
and other writers. A step, which is a bridged call or a branch decision, waits in its execution's `Journal` for the end.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import (
    NOT_KEPT,
    NOT_KEPT_OBJECT,
    NOT_KEPT_VALUE,
    CallRecord,
    DecisionRecord,
    Finished,
    Record,
    Started,
    Step,
)
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.vault import DEFAULT_PERSONA
from healkit.core.host import host_identity
from healkit.core.pysource.tracebacks import fingerprint, format_frames
from healkit.core.runtime.collecting import LogCleaner, StepCollector
from healkit.core.runtime.events import UNRECORDED, Ended, Event, Prepared, Running, Sink
from healkit.core.runtime.execution import calls_cut_short, orphans, why_dead
from healkit.core.runtime.outcomes import fault_of
from healkit.core.store.database import Database
from healkit.core.store.heartbeat import Heartbeat
from healkit.core.store.log_writer import LogWriter, RecordRefused
from healkit.core.store.spool import RecordRejected, Spool
from healkit.core.store.statements import OWNERS, RUNNING
from healkit.core.times import pause_s
from healkit.core.wire.record_text import storable
from healkit.errors import DatabaseError

if TYPE_CHECKING:
    from healkit.core.store.log_reader import Log


class Recording:
    """Record of one execution; `started` is its beginning with all that is known so far, contents included.

    sink: Receiver for the run that the execution belongs to, or for its retries.
    contents: False omits the tool's arguments, results and outputs from the record; set it as soon as this is known.
    leaves_out: Called with the name of a vault tool that this one calls; True omits that call's contents from the
        record.

    log_id: The row's id; None before there is a row.
    fault: The recorded failure, if an internal error of healkit prevented the record of the real end.
    ended: True once the row says how it ended.
    """

    def __init__(
        self,
        recorder: Recorder,
        started: Started,
        sink: Sink = UNRECORDED,
        *,
        contents: bool = True,
        leaves_out: Callable[[str], bool] = lambda _tool: False,
    ) -> None:
        self.started = started
        self.sink = sink
        self.contents = contents
        self.log_id: int | None = None
        self.fault: Failure | None = None
        self.ended = False
        self._placed = self._begun = False
        self._ending = threading.Lock()
        self._leaves_out = leaves_out
        self._recorder = recorder
        self._clock_s = time.perf_counter()
        self._journal = recorder.journal(started.trace_id)
        self._collector: StepCollector | None = None

    @property
    def elapsed_ms(self) -> float:
        """Time since the execution was requested, in milliseconds."""
        return (time.perf_counter() - self._clock_s) * 1000

    @property
    def decisions(self) -> list[DecisionRecord]:
        """Recorded branch decisions, in order."""
        return self._traced().decisions

    def add(self, **known: Any) -> None:
        """Add known facts about the beginning, by field of `Started`."""
        self.started = msgspec.structs.replace(self.started, **known)

    def emit(self, event: Event) -> None:
        """Send an event to the run of this execution; never raises, and cannot change how the execution ends."""
        if self.sink is not UNRECORDED:
            with suppress(Exception):
                self.sink.take(self._kept(self.started), event)

    def begin(self, prepared: Prepared | None = None) -> None:
        """Commit the beginning as RUNNING, after all rows in the log; call it again when more is known.

        prepared: Event for the run, sent if all checks passed and the worker is next.
        """
        if prepared is not None:
            self.emit(prepared)
        started = self._kept(self.started)
        log_id, moment = self._recorder.open_row(started)
        self.log_id, self._begun = log_id or self.log_id, True
        if not self._placed:
            self.add(timestamp=moment)
            started, self._placed = msgspec.structs.replace(started, timestamp=moment), True
        self._collector = self._recorder.collector(started)
        if prepared is not None:
            self.emit(Running(self.log_id))

    def record(self, step: Step) -> None:
        """Record a call or a decision; when this returns, kill -9 cannot undo it. Works on any thread."""
        step, collector = self._kept_step(step), self._collector
        self._journal.append(step if collector is None else collector.taken(step))

    @property
    def has_steps(self) -> bool:
        """True once a call or a decision was recorded, so that there is a journal to close."""
        return self._journal.used

    def close_journal(self) -> None:
        """Move the steps into their tables, before the execution's end is recorded. May wait."""
        self._journal.close()

    def refuse(self, finished: Finished) -> int | None:
        """Commit the end of an execution that had no worker or was interrupted; return its row's id. May wait.

        If there is no row yet, beginning and end are committed as one.
        """
        return self._end(Ended(finished))

    def finish(
        self,
        finished: Finished,
        encoded: str | None = None,
        outputs: Sequence[dict[str, Any]] = (),
        calls: Sequence[CallRecord] = (),
    ) -> int | None:
        """Commit how it ended; return its row's id. May wait for a locked database.

        encoded: The whole value as JSON, if any.
        """
        return self._end(Ended(finished, True, encoded, outputs, calls))

    def _end(self, event: Ended) -> int | None:
        """Commit the end and emit it; only the first call has an effect. An error in healkit becomes the end."""
        with self._ending:
            if self.ended:
                return self.log_id
            try:
                event = self._kept_end(event)
                row_id = self._write(event)
                started = self._kept(self.started)
            except Exception as error:  # noqa: BLE001 - in any case, the row must not remain RUNNING
                started = without_contents(self.started)
                end = fault_of(started, error, self.elapsed_ms, quoted=False)
                self.fault = end.failure
                row_id, event = self._recorder.add_fault(started, end), Ended(end)
            self.log_id, self.ended = row_id or self.log_id, True
            if self.sink is not UNRECORDED:
                with suppress(Exception):
                    self.sink.take(started, event)
        return self.log_id

    def _write(self, event: Ended) -> int | None:
        """Commit row and trace; if there is no row yet, beginning and end are committed as one."""
        if event.ran or self._begun:
            collector = self._traced()
            collector.result = event.encoded if event.ran and event.finished.failure is None else None
            return self._recorder.close_row(event.finished, collector)
        if not self._placed:
            self.started, self._placed = self._recorder.in_order(self.started), True
        return self._recorder.add_row(self._kept(self.started), event.finished)

    def _traced(self) -> StepCollector:
        if self._collector is None:
            self._collector = self._recorder.collector(self._kept(self.started))
        return self._collector

    def _kept(self, record: AnyRecord) -> AnyRecord:
        return record if self.contents else without_contents(record)

    def _kept_step(self, step: AnyRecord) -> AnyRecord:
        called_off = isinstance(step, CallRecord) and step.server == "vault" and self._leaves_out(step.tool)
        return step if self.contents and not called_off else without_contents(step)

    def _kept_end(self, event: Ended) -> Ended:
        """Return the end without contents that this tool, or a tool that it called, does not log."""
        calls = event.calls
        if self.contents and (not calls or self.sink is UNRECORDED):
            return event
        return Ended(
            self._kept(event.finished),
            event.ran,
            event.encoded if self.contents or event.encoded is None else NOT_KEPT_VALUE,
            event.outputs if self.contents else (),
            [self._kept_step(call) for call in calls],
        )


class Recorder:
    """Writes executions to the log of one database; safe to use from several threads. Close it at the end.

    An ending and its trace are written in one transaction. Then `on_trace` is called, with whether the trace is to be
    sent.
    """

    def __init__(
        self,
        database: Database,
        config: Config | None = None,
        cleaner: LogCleaner | None = None,
        on_trace: Callable[[bool], None] = lambda _send: None,
    ) -> None:
        self._config = config or Config()
        self._cleaner = cleaner or LogCleaner(self._config)
        self._on_trace = on_trace
        self._database = database
        host_identity()  # cached here, so that the first execution does not read it on the event loop
        self._writer = LogWriter(database)
        self.in_order = self._writer.in_order
        backlog = self._backlog = Backlog(database, self._writer, self._config.log_wait_s, self._tell)
        self._heartbeat = Heartbeat(
            database, self._writer, lambda: backlog.waiting, lambda: self.ingest() + self.recover_orphans()
        )
        self.ingest()

    @property
    def problem(self) -> str:
        """Sentence for the user about a problem of the log; empty if there is none."""
        return self._backlog.problem

    @functools.cached_property
    def _log(self) -> Log:
        """The log for reading; loaded only if an earlier process left something behind."""
        from healkit.core.store.log_reader import Log

        return Log(self._database)

    def open_row(self, started: Started) -> tuple[int | None, datetime]:
        """Commit the execution as RUNNING, after all rows in the log; return its row's id and its time.

        The id is None if the record went to the spool.
        """
        self._heartbeat.began(started.trace_id)
        if self._backlog.waiting:
            self._backlog.store()
        cleaned = self._cleaner.for_log(started)
        error: Exception | None = None
        if not self._backlog.holds(started.trace_id):
            try:
                return self._writer.begin_in_order(cleaned, self._config.log_wait_s)
            except Exception as raised:  # noqa: BLE001 - an error of the log must not reach the tool's caller
                error = raised
        cleaned = self._writer.in_order(cleaned)
        self._backlog.add(cleaned, error)
        return None, cleaned.timestamp

    def call(self, record: CallRecord) -> None:
        """Commit a bridged call; called on the bridge's thread when it begins and when it ends."""
        self._write_or_keep(record, lambda: self._writer.call(record, self._config.log_wait_s))

    def steps(self, records: list[Step]) -> None:
        """Commit calls and decisions together, or keep each for later; called by their journal."""
        if records and not self._backlog.holds(records[0].trace_id):
            try:
                self._writer.steps(records, self._config.log_wait_s)
                return
            except Exception as error:  # noqa: BLE001 - an error of the log must not reach the tool's caller
                self._backlog.add(records[0], error)
                records = records[1:]
        for record in records:
            self._backlog.add(record, None)

    def collector(self, started: Started) -> StepCollector:
        """Return the collector of an execution's steps while it runs; pass it to `close_row`."""
        return self._cleaner.collector(started, persona_served(self._database, started))

    def without_secret_facts(self, failure: Failure | None) -> Failure | None:
        """Return the failure without secrets in the facts about its values, as all code outside the worker gets it."""
        return self._cleaner.without_secret_facts(failure)

    def secret_columns(self, columns: Mapping[str, Sequence[Any]]) -> set[str]:
        """Return the names of the columns to hide, judged by name and first values."""
        return self._cleaner.secret_columns(columns)

    def journal(self, trace_id: str) -> Journal:
        """Return the journal for an execution's calls and decisions; close it before its end is recorded."""
        return Journal(self._backlog.spool.folders, trace_id, self.steps)

    def close_row(self, finished: Finished, collector: StepCollector | None = None) -> int | None:
        """Commit how the execution ended; return its row's id, or None if the record went to the spool."""
        finished = self._concluded(finished, collector)
        row_id = self._write_or_keep(finished, lambda: self._writer.finish(finished, self._config.log_wait_s))
        self._heartbeat.ended(finished.trace_id)
        if row_id is not None:
            return row_id
        self._backlog.store()
        try:
            # No wait: if the spool could be emptied, the row exists.
            row = None if self._backlog.waiting else self._log.by_trace(finished.trace_id)
        except DatabaseError:
            row = None
        return None if row is None else row.id

    def add_row(self, started: Started, finished: Finished) -> int | None:
        """Commit a call that was refused before a worker was touched, as one row with its own time."""
        self._heartbeat.ended(started.trace_id)
        if self._backlog.waiting:
            self._backlog.store()
        finished = self._concluded(finished, self.collector(started))
        started = self._cleaner.for_log(started)
        try:
            row_id = self._writer.insert_finished(started, finished, self._config.log_wait_s)
            self._tell(finished)
            return row_id
        except Exception as error:  # noqa: BLE001 - an error of the log must not reach the tool's caller
            self._backlog.add(started, error)
            self._backlog.add(finished, error)
            return None

    def add_fault(self, started: Started, finished: Finished) -> int | None:
        """Commit the end of an execution that healkit failed to record, whether it has a row or not.

        The two records are only written, without any processing, so they must not have contents. Never raises.
        """
        self._heartbeat.ended(started.trace_id)
        try:
            return self._writer.insert_finished(started, finished, self._config.log_wait_s)
        except Exception as error:  # noqa: BLE001 - the last resort
            with contextlib.suppress(Exception):
                self._backlog.add(started, error)
                self._backlog.add(finished, error)
            return None

    def _concluded(self, finished: Finished, collector: StepCollector | None) -> Finished:
        """Return the ending in the form for storage: with its trace, and cleaned if the log is to be cleaned."""
        return self._cleaner.for_log(finished if collector is None else collector.conclude(finished))

    def _tell(self, record: Record) -> None:
        if isinstance(record, Finished) and record.trace is not None:
            self._on_trace(record.trace.send)

    def ingest(self) -> int:
        """Store the waiting records, without waiting for the database; return their number. Never raises.

        Called before each read of the log. If another thread is already storing them, this waits for that thread, but
        no longer than a record may wait.
        """
        return self._backlog.store_all()

    def _recover_journals(self) -> None:
        """Store the steps of executions that are over, or whose host is dead; other journals belong to live hosts."""
        for trace_id, file in left_behind(self._backlog.spool.folders):
            row = self._log.by_trace(trace_id)
            if row is not None and (row.status != "RUNNING" or why_dead(row, self._database)):
                steps = read_journal(file)
                self.steps([*steps, *(calls_cut_short(steps) if row.status != "RUNNING" else ())])
                with contextlib.suppress(OSError):
                    file.unlink()
                    file.parent.rmdir()

    def recover_orphans(self) -> int:
        """Turn each RUNNING row whose host is dead into a FAILURE that says so; return their number.

        Called at start-up, and regularly while a heartbeat runs. The spool is read first, because a dead host may have
        left the true ending there. Never raises; if the log cannot be read, it returns 0.
        """
        count = 0
        try:
            self._recover_journals()
            running = not self._database.read_only and self._database.fetch(RUNNING)
            for started, steps, ending in orphans(self._log, self._database) if running else ():
                ended = calls_cut_short(steps)
                self.steps(ended)
                served = persona_served(self._database, started)
                collector = self._cleaner.collector(started, served, [*steps, *ended])
                finished = self._concluded(ending, collector)
                if self._writer.finish_running(finished, self._config.log_wait_s) is not None:
                    count += 1
                    self._tell(finished)
        except DatabaseError as error:
            self._backlog.note(error)
        return count

    def close(self) -> None:
        """Store or spool the waiting records, and release the connection."""
        self._backlog.close()
        self._heartbeat.close()
        self._writer.close()

    def _write_or_keep(self, record: Record, write: Callable[[], int | None]) -> int | None:
        """Write a record, or keep it for later; return None for a kept record, and for calls."""
        if not self._backlog.holds(record.trace_id):
            try:
                row_id = write()
                self._tell(record)
                return row_id
            except Exception as error:  # noqa: BLE001 - an error of the log must not reach the tool's caller
                self._backlog.add(record, error)
        else:
            self._backlog.add(record, None)
        return None


def persona_served(database: Database, started: Started) -> str:
    """Return the persona whose entry runs: the requested one, or `default` if it has no entry."""
    if started.persona == DEFAULT_PERSONA or started.code_hash is None:
        return started.persona
    try:
        rows = database.fetch(OWNERS, name=started.tool_name, code_hash=started.code_hash)
        owners = {row["target_persona"] for row in rows}
    except DatabaseError:
        return started.persona
    return DEFAULT_PERSONA if started.persona not in owners and DEFAULT_PERSONA in owners else started.persona


# A tool with the flag `log=False` still has a row, a trace and calls for every execution. They record that it
# ran, when, for whom, which revision, for how long and how it ended. They contain neither its arguments nor
# its output nor its result; the same holds for run folders, spools and journals. The place of a failure is
# recorded, as function names and lines of the tool's own code, without the exception's message. The caller
# gets everything, as always. If such a tool calls another, the other tool's flag decides about the other's
# record. If another tool calls it, the call's contents are also omitted from that tool's record. `Recording`
# decides.


AnyRecord = TypeVar("AnyRecord", bound=Started | CallRecord | DecisionRecord | Finished)


def without_contents(record: AnyRecord) -> AnyRecord:
    """Return the record without contents."""
    replace = msgspec.structs.replace
    if isinstance(record, Started):
        return replace(record, arguments=NOT_KEPT_OBJECT)
    if isinstance(record, DecisionRecord):
        return replace(record, outcome=NOT_KEPT, condition="")
    if isinstance(record, CallRecord):
        summary = NOT_KEPT_VALUE if record.success else ""
        error = NOT_KEPT if record.error else ""
        return replace(record, arguments=NOT_KEPT_OBJECT, result_summary=summary, error=error)
    if record.failure is None:
        return replace(record, result_summary=NOT_KEPT_VALUE, last_output="")
    traceback = format_frames(record.failure.frames, f"{record.failure.ename}: {NOT_KEPT}")
    failure = replace(
        record.failure,
        evalue=NOT_KEPT,
        traceback=traceback,
        hint="",
        linked=[],
        near=[],
        known=[],
        facts={},
        secrets=[],
    )
    mark = None if record.fingerprint is None else fingerprint(failure)
    return replace(record, failure=failure, result_summary=failure.summary, fingerprint=mark, last_output="")


# Records that wait for the database.
#
# A record that the database does not accept goes to the spool file; if no disk accepts it, it remains in memory.
# Waiting records are stored as soon as the database is back: before the next execution, before each read of the log,
# and by a thread that lives only while records wait. If a record of an execution had to wait, its later records go to
# the backlog directly. Its ending would not find a row, and if the caller itself holds the lock, waiting does not help.


#: Maximum number of records in memory, if not even a spool file can be written.
MEMORY_RECORDS = 1000

#: First and longest pause between the attempts of the retry thread, in seconds.
RETRY_FIRST_S, RETRY_LONGEST_S = 0.2, 5.0


class Backlog:
    """Records for the log of one database that wait to be stored; safe to use from several threads.

    wait_s: How long `store_all` may wait for another thread that is storing them.
    on_stored: Called for each ending that was stored.
    """

    def __init__(
        self, database: Database, writer: LogWriter, wait_s: float, on_stored: Callable[[Record], None]
    ) -> None:
        self.spool = Spool(database.path or database.url)
        #: Whether any record waits.
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
        """Sentence for the user about a problem of the log; empty if there is none."""
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
        """Remember an error of the log."""
        self._trouble = _trouble_of(error)

    def add(self, record: Record, error: BaseException | None) -> None:
        """Keep a record for later: in the spool, else in memory."""
        with self._lock:
            if error is not None:
                self._trouble = _trouble_of(error)
            self._behind.add(record.trace_id)
            self.waiting = True
            try:
                self.spool.append(record)
            except Exception:  # noqa: BLE001 - only memory is left
                self._lost += len(self._memory) == self._memory.maxlen
                self._memory.append(record)
            self._retry_later()

    def store_all(self) -> int:
        """Store the waiting records and return their number; waits for another thread that is storing them."""
        return self.store(self._wait_s)

    def store(self, patience_s: float = 0.0) -> int:
        # Not under the state's lock: an execution must be able to spool during a long replay.
        if self._database.read_only or not self._storing.acquire(timeout=patience_s):
            return 0
        count, trouble = 0, ""
        try:
            # One execution's records may be in both places; its ending needs its row.
            count += self._store_memory(endings=False)
            count += self.spool.drain(self._store_one)
            count += self._store_memory(endings=True)
        except Exception as error:  # noqa: BLE001 - the spool keeps its records for the next attempt
            trouble = _trouble_of(error)
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
        """Store or spool the waiting records, and stop the retry thread."""
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
        """Store one waiting record, as read from the spool."""
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
        """Store the records in memory, either the endings or all others; return their number."""
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
            ):  # the oldest may have been removed in the meantime
                self._memory.remove(record)
        return len(records)

    def _retry_later(self) -> None:
        """Start a thread that retries while records wait; it would not help for a read-only database."""
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


def _trouble_of(error: BaseException) -> str:
    return error.message if isinstance(error, DatabaseError) else f"{type(error).__name__}: {error}."


# Steps on their way to their tables.
#
# A commit costs more than a bridged call itself. So each step is first appended to a file. Many steps go into the table
# together: when the execution ends, or with the next call after a while. An appended record survives a kill -9. It may
# be lost in a power failure, since the file is not synced. The next host that opens the database stores the records
# that a killed host left behind.


_encode_step = msgspec.json.Encoder().encode
_decode_step = msgspec.json.Decoder(Step).decode

_JOURNAL_PREFIX, _JOURNAL_SUFFIX = "calls-", ".jsonl"
#: Records younger than this wait for more, in seconds.
_FLUSH_AFTER_S = 0.2


class Journal:
    """Steps of one execution on their way to their tables; safe to use from several threads.

    `store` writes records to the tables, or keeps them elsewhere; it must not raise. If no folder accepts the file, it
    gets every record at once. It also gets records that arrive after the end, since a call may outlive its worker.
    """

    def __init__(self, folders: list[Path], trace_id: str, store: Callable[[list[Step]], None]) -> None:
        self._folders = folders
        self._name = f"{_JOURNAL_PREFIX}{trace_id}{_JOURNAL_SUFFIX}"
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str | int, Step] = {}
        self._since = 0.0
        self._file: Path | None = None
        self._descriptor = -1
        self._closed = False

    def append(self, record: Step) -> None:
        """Record a decision, or a call's beginning or end; when this returns, kill -9 cannot undo it."""
        with self._lock:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting[_step_key(record)] = record
            if self._closed or not self._write(record) or time.monotonic() - self._since > _FLUSH_AFTER_S:
                self._flush()

    @property
    def used(self) -> bool:
        """True once a record was appended."""
        return self._file is not None or bool(self._waiting)

    def close(self) -> None:
        """Move the waiting records to the table and remove the file, before the execution's own end is recorded."""
        with self._lock:
            self._closed = True
            self._flush()
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            if self._file is not None:
                with suppress(OSError):
                    self._file.unlink()
                    self._file.parent.rmdir()  # only if it is empty

    def _write(self, record: Step) -> bool:
        if self._descriptor < 0 and not self._open():
            return False
        try:
            line = _encode_step(record) + b"\n"
        except UnicodeEncodeError:
            line = _encode_step(storable(record)) + b"\n"
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
    """Yield trace id and file of every journal in these folders, whether its execution is over or not."""
    for folder in folders:
        with suppress(OSError):
            for file in sorted(folder.glob(f"{_JOURNAL_PREFIX}*{_JOURNAL_SUFFIX}")):
                yield file.name.removeprefix(_JOURNAL_PREFIX).removesuffix(_JOURNAL_SUFFIX), file


def read_journal(file: Path) -> list[Step]:
    """Return the steps in a journal, each in its last state; a line that a crash cut off is skipped."""
    steps: dict[str | int, Step] = {}
    with suppress(OSError):
        for line in file.read_bytes().splitlines():
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                record = _decode_step(line)
                steps[_step_key(record)] = record
    return list(steps.values())


def _step_key(step: Step) -> str | int:
    """Return a key that distinguishes a step from the others of its execution."""
    return step.task_id if isinstance(step, CallRecord) else step.number
