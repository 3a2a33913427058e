"""Sole door to the log; each execution has a `Recording`.

A failure of the log never alters a tool's outcome: nothing here raises for one. What the database does not take waits
(`runtime.backlog`). A record waits `log_wait_s` seconds in all, for other threads and for other writers together.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from healkit.config import Config
from healkit.contracts.execution import (
    CallRecord,
    Finished,
    Record,
    Started,
    Step,
    host_identity,
)
from healkit.contracts.failure import Failure
from healkit.errors import DatabaseError
from healkit.runtime.backlog import Backlog
from healkit.runtime.journal import Journal, left_behind, read_journal
from healkit.runtime.log_rows import calls_cut_short, orphans, persona_served, why_dead
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
        host_identity()  # read once, and not on the event loop by the first execution
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

    def begin(self, started: Started) -> tuple[int | None, datetime]:
        """Commit the execution as RUNNING, behind all rows that the log has by now; return its row's id and its time.

        The id is None when the record went to the spool.
        """
        if self._backlog.waiting:
            self._backlog.store()
        kept = self._tracer.for_log(started)
        error: Exception | None = None
        if not self._backlog.holds(started.trace_id):
            try:
                return self._writer.begin_in_order(kept, self._config.log_wait_s)
            except Exception as raised:  # noqa: BLE001 - no failure of the log may reach the tool's caller
                error = raised
        kept = self._writer.in_order(kept)
        self._backlog.add(kept, error)
        return None, kept.timestamp

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

    def without_secret_facts(self, failure: Failure | None) -> Failure | None:
        """Return the failure as everything outside the worker sees it: no secret among the facts about its values."""
        return self._tracer.without_secret_facts(failure)

    def secret_columns(self, columns: Mapping[str, Sequence[Any]]) -> set[str]:
        """Return the names of the columns, of these with their first values, of which nothing may be shown."""
        return self._tracer.secret_columns(columns)

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
        """Commit a call that was refused before a worker was touched, as one row at the time that it has."""
        if self._backlog.waiting:
            self._backlog.store()
        finished = self._concluded(finished, self.collector(started))
        started = self._tracer.for_log(started)
        try:
            row_id = self._writer.insert_finished(started, finished, self._config.log_wait_s)
            self._tell(finished)
            return row_id
        except Exception as error:  # noqa: BLE001 - no failure of the log may reach the tool's caller
            self._backlog.add(started, error)
            self._backlog.add(finished, error)
            return None

    def fault(self, started: Started, finished: Finished) -> int | None:
        """Commit the end of an execution whose record healkit itself could not make, whether it has a row or not.

        Nothing is done with the two but writing them, and they must hold no contents. Raises nothing.
        """
        try:
            return self._writer.insert_finished(started, finished, self._config.log_wait_s)
        except Exception as error:  # noqa: BLE001 - the last resort
            with contextlib.suppress(Exception):
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
                steps = read_journal(file)
                self.steps([*steps, *(calls_cut_short(steps) if row.status != "RUNNING" else ())])
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
            for started, steps, ending in orphans(self._log) if running else ():
                ended = calls_cut_short(steps)
                self.steps(ended)
                served = persona_served(self._database, started)
                collector = TraceCollector(self._tracer, started, served, [*steps, *ended])
                finished = self._concluded(ending, collector)
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
