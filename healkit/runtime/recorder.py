"""Sole door to the log; each execution has a `Recording`.

Everything that becomes known of an execution passes through its `Recording` on its way to the log, the journal, the
trace and the run that it is a step of. What its tool keeps off the record is taken out there, and nowhere else.

A failure of the log never alters a tool's outcome: nothing here raises for one. What the database does not take waits
(`runtime.backlog`). A record waits `log_wait_s` seconds in all, for other threads and for other writers together.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import Config
from healkit.contracts.entries import VaultEntry
from healkit.contracts.records import (
    NOT_KEPT_VALUE,
    CallRecord,
    DecisionRecord,
    Finished,
    Record,
    Started,
    Step,
)
from healkit.errors import DatabaseError
from healkit.runtime.backlog import Backlog
from healkit.runtime.contents import AnyRecord, without_contents
from healkit.runtime.journal import Journal, left_behind, read_journal
from healkit.runtime.log_rows import orphan_ending, persona_served, started_of, steps_of, why_dead
from healkit.runtime.steps import UNRECORDED, StepListener
from healkit.store.database import Database
from healkit.store.log_writer import LogWriter
from healkit.store.statements import RUNNING
from healkit.tracing.trace_collector import TraceCollector, Tracer

if TYPE_CHECKING:
    from healkit.store.log_reader import Log


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
        self.in_order = self._writer.in_order
        self._backlog = Backlog(database, self._writer, self._config.log_wait_s, self._tell)
        self.ingest()

    @property
    def problem(self) -> str:
        """Sentence for the user on what is wrong with the log; empty when nothing is."""
        return self._backlog.problem

    @functools.cached_property
    def _log(self) -> Log:
        """Log as it is read; loaded where something was left behind."""
        from healkit.store.log_reader import Log

        return Log(self._database)

    def begin(self, started: Started, wait_s: float | None = None) -> int | None:
        """Commit the execution as RUNNING; its row's id, or None when the record went to the spool."""
        if self._backlog.waiting:
            self._backlog.store()
        wait_s = self._config.log_wait_s if wait_s is None else wait_s
        kept = self._tracer.for_log(started)
        return self._write_or_keep(kept, lambda: self._writer.begin(kept, wait_s))

    def call(self, record: CallRecord) -> None:
        """Commit a bridged call; called on the bridge's thread as it begins and as it ends."""
        self._write_or_keep(record, lambda: self._writer.call(record, self._config.log_wait_s))

    def steps(self, records: list[Step]) -> None:
        """Commit calls and decisions together, or keep each for later; called by their journal."""
        if records and not self._backlog.holds(records[0].trace_id):
            try:
                self._writer.steps(records, self._config.log_wait_s)
                return
            except Exception as error:  # noqa: BLE001 - no failure of the log may reach the tool's caller
                self._backlog.add(records[0], error)
                records = records[1:]
        for record in records:
            self._backlog.add(record, None)

    def collector(self, started: Started) -> TraceCollector:
        """Return what gathers an execution's trace while it runs, to be given to `finish`."""
        return self._tracer.collector(started, persona_served(self._database, started))

    def journal(self, trace_id: str) -> Journal:
        """Return where an execution's calls and decisions go while it runs; close it before its end is recorded."""
        return Journal(self._backlog.spool.folders, trace_id, self.steps)

    def finish(self, finished: Finished, collector: TraceCollector | None = None) -> int | None:
        """Commit how the execution ended; its row's id, or None when the record went to the spool."""
        finished = self._concluded(finished, collector)
        row_id = self._write_or_keep(finished, lambda: self._writer.finish(finished, self._config.log_wait_s))
        if row_id is not None:
            return row_id
        self._backlog.store()
        try:
            # No wait: if the spool could be emptied, the row is there.
            row = None if self._backlog.waiting else self._log.by_trace(finished.trace_id)
        except DatabaseError:
            row = None
        return None if row is None else row.id

    def refuse(self, started: Started, finished: Finished) -> int | None:
        """Commit a call that was refused before a worker was touched, as one row."""
        if self._backlog.waiting:
            self._backlog.store()
        finished, started = (
            self._concluded(finished, self.collector(started)),
            self._tracer.for_log(started),
        )
        try:
            row_id = self._writer.insert_finished(started, finished, self._config.log_wait_s)
            self._tell(finished)
            return row_id
        except Exception as error:  # noqa: BLE001 - no failure of the log may reach the tool's caller
            self._backlog.add(started, error)
            self._backlog.add(finished, error)
            return None

    def _concluded(self, finished: Finished, collector: TraceCollector | None) -> Finished:
        """Return the ending as it is stored: with its trace, then cleaned where the log is to be."""
        return self._tracer.for_log(finished if collector is None else collector.conclude(finished))

    def _tell(self, record: Record) -> None:
        if isinstance(record, Finished) and record.trace is not None and record.trace.send:
            self._on_trace()

    def ingest(self) -> int:
        """Bring in what waits, without waiting for the database; how many records were. Never raises.

        Called before each look at the log. While another thread is at it, this waits for that one, but no longer
        than a record may wait.
        """
        return self._backlog.store_all()

    def _recover_journals(self) -> None:
        """Bring in the steps of executions that are over, or whose host is dead; those of others are theirs."""
        for trace_id, file in left_behind(self._backlog.spool.folders):
            row = self._log.by_trace(trace_id)
            if row is not None and (row.status != "RUNNING" or why_dead(row)):
                self.steps(read_journal(file))
                with contextlib.suppress(OSError):
                    file.unlink()
                    file.parent.rmdir()

    def recover_orphans(self) -> int:
        """Turn each RUNNING row whose host is dead into a FAILURE that says so; how many. Called at start-up.

        The spool came first, when this was made: a host that died may have left the true ending there. Raises nothing;
        a log that cannot be read has no orphans today.
        """
        count = 0
        try:
            self._recover_journals()
            running = self._database.fetch(RUNNING)
            for row in self._log.running() if running else ():
                died = why_dead(row)
                if not died:
                    continue
                started = started_of(row)
                served = persona_served(self._database, started)
                collector = TraceCollector(self._tracer, started, served, steps_of(self._log, row.trace_id))
                finished = self._concluded(orphan_ending(row, died), collector)
                if self._writer.finish_running(finished, self._config.log_wait_s) is not None:
                    count += 1
                    self._tell(finished)
        except DatabaseError as error:
            self._backlog.note(error)
        return count

    def close(self) -> None:
        """Store or spool what waits, and give the connection back."""
        self._backlog.close()
        self._writer.close()

    def _write_or_keep(self, record: Record, write: Callable[[], int | None]) -> int | None:
        """Write it, or keep it for later; None for what was kept, and for calls."""
        if not self._backlog.holds(record.trace_id):
            try:
                row_id = write()
                self._tell(record)
                return row_id
            except Exception as error:  # noqa: BLE001 - no failure of the log may reach the tool's caller
                self._backlog.add(record, error)
        else:
            self._backlog.add(record, None)
        return None


class Recording:
    """Record of one execution; `started` is its beginning with all that is known so far, contents included.

    contents: False keeps the tool's arguments, results and outputs off the record; set it as soon as that is known.
    leaves_out: asked with the name of a vault tool that this one calls; True keeps that call's contents off the record.
    `log_id` is the row's id, None while there is none.
    """

    def __init__(
        self,
        recorder: Recorder,
        started: Started,
        step: StepListener = UNRECORDED,
        *,
        contents: bool = True,
        leaves_out: Callable[[str], bool] = lambda _tool: False,
    ) -> None:
        self.started = started
        self.step = step
        self.contents = contents
        self.log_id: int | None = None
        self._placed = False
        self._leaves_out = leaves_out
        self._recorder = recorder
        self._clock_s = time.perf_counter()
        self._journal = recorder.journal(started.trace_id)
        self._collector: TraceCollector | None = None
        self._sink: Callable[[Step], None] = self._journal.append

    @property
    def elapsed_ms(self) -> float:
        """Time since the execution was asked for, in milliseconds."""
        return (time.perf_counter() - self._clock_s) * 1000

    @property
    def decisions(self) -> list[DecisionRecord]:
        """Branch decisions on record, in order."""
        return self._traced().decisions

    def add(self, **known: Any) -> None:
        """Add what has become known of the beginning, by field of `Started`."""
        self.started = msgspec.structs.replace(self.started, **known)

    def observe(self, entry: VaultEntry) -> None:
        """Tell the run that the tool was found."""
        self.step.observed(self._kept(self.started), entry)

    def begin(self) -> None:
        """Commit the beginning as RUNNING; again, when more of it is known."""
        self._place()
        kept = self._kept(self.started)
        self.log_id = self._recorder.begin(kept) or self.log_id
        self._collector = self._recorder.collector(kept)
        self._sink = self._collector.through(self._journal.append)

    def begin_step(self, timeout_s: float, mode: str) -> None:
        """Tell the run what is about to be done, commit it as RUNNING, and tell the run so."""
        self.step.prepared(self._kept(self.started), timeout_s, mode)
        self.begin()
        self.step.started(self.log_id)

    def record(self, step: Step) -> None:
        """Put a call or a decision on record; when this returns, kill -9 cannot undo it. For any thread."""
        self._sink(self._kept_step(step))

    @property
    def has_steps(self) -> bool:
        """True once any call or decision was recorded, so that there is a journal to close."""
        return self._journal.used

    def close_journal(self) -> None:
        """Move the steps into their tables; before the execution's end is recorded. May wait."""
        self._journal.close()

    def refuse(self, finished: Finished) -> int | None:
        """Commit a call that was refused before its row was there, as one row; its id."""
        self._place()
        kept, end = self._kept(self.started), self._kept(finished)
        log_id = self._recorder.refuse(kept, end)
        self.step.refused(kept, end)
        return log_id

    def fail(self, finished: Finished) -> int | None:
        """Commit the end of an execution that had no worker or was interrupted; its row's id. May wait."""
        end = self._kept(finished)
        self.log_id = self._recorder.finish(end, self._traced()) or self.log_id
        self.step.refused(self._kept(self.started), end)
        return self.log_id

    def finish(
        self,
        finished: Finished,
        encoded: str | None = None,
        outputs: Sequence[dict[str, Any]] = (),
        calls: Sequence[CallRecord] = (),
    ) -> int | None:
        """Commit how it ended; its row's id. May wait for a locked database.

        encoded: the whole value as JSON, where there is one.
        """
        end, collector = self._kept(finished), self._traced()
        said = encoded if self.contents or encoded is None else NOT_KEPT_VALUE
        collector.result = None if finished.failure else said
        self.log_id = self._recorder.finish(end, collector) or self.log_id
        if self.step is not UNRECORDED:
            shown = list(outputs) if self.contents else []
            self.step.ended(end, said or "null", shown, [self._kept_step(call) for call in calls])
        return self.log_id

    def _place(self) -> None:
        """Put the beginning behind all rows of the log, before it is written for the first time."""
        if not self._placed:
            self.started, self._placed = self._recorder.in_order(self.started), True

    def _traced(self) -> TraceCollector:
        if self._collector is None:
            self._collector = self._recorder.collector(self._kept(self.started))
        return self._collector

    def _kept(self, record: AnyRecord) -> AnyRecord:
        return record if self.contents else without_contents(record)

    def _kept_step(self, step: AnyRecord) -> AnyRecord:
        called_off = isinstance(step, CallRecord) and step.server == "vault" and self._leaves_out(step.tool)
        return without_contents(step) if called_off else self._kept(step)
