"""The log's own connection: the only place that writes `executionlog`.

It shares no transaction with anybody: each record is one statement in autocommit, or one transaction of its
own where a trace goes with it, on a connection that the caller never sees. Whatever the caller's session
does, rolls back or leaves open, the row is committed, and nothing of the caller's is. Each statement may be
repeated for the same record, so that a spool can be replayed after a crash without knowing how far it had
come.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

from healkit.contracts.records import (
    AnyRecord,
    CallRecord,
    DecisionRecord,
    Finished,
    Started,
    Step,
    storable,
)
from healkit.errors import DatabaseError, DatabaseFull, DatabaseLocked
from healkit.store.backend import translate
from healkit.store.database import Database
from healkit.store.statements import (
    Statement,
    call_values,
    decision_values,
    finished_values,
    started_values,
    statements_for,
    trace_values,
)

Result = TypeVar("Result")


class RecordRefused(DatabaseError):
    """A record that this database will never take, whenever it is tried."""


class RowMissing(RecordRefused):
    """The ending of an execution whose beginning the database does not hold."""


class LogWriter:
    """One held connection, its statements, and a lock; safe to use from several threads and after a fork.

    `wait_s` bounds everything a record waits for together: other threads here, and other writers of the
    database. It is the database's own unless given. All methods raise `DatabaseError`s only.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._statements = statements_for(database.dialect_name)
        self._lock = threading.Lock()
        self._connection: Any = None
        self._owner = 0
        self._busy_ms = -1

    def begin(self, started: Started, wait_s: float | None = None) -> int:
        """Commit the row as RUNNING and return its id; called before a worker is touched."""
        return self._id(self._run(self._statements.begin, started_values, started, wait_s), started.trace_id)

    def finish(self, finished: Finished, wait_s: float | None = None) -> int:
        """Fill in how the execution ended and return the row's id; raises `RowMissing` when there is none."""
        return self._id(
            self._end(self._statements.finish, finished_values, finished, wait_s), finished.trace_id
        )

    def finish_running(self, finished: Finished, wait_s: float | None = None) -> int | None:
        """The same, only where the row is still RUNNING; None where another process was first."""
        return self._end(self._statements.finish_running, finished_values, finished, wait_s)

    def insert_finished(self, started: Started, finished: Finished, wait_s: float | None = None) -> int:
        """Commit a whole row at once: a call that was refused before a worker was touched."""

        def values(record: Finished) -> dict[str, Any]:
            return {**started_values(storable(started)), **finished_values(record)}

        return self._id(self._end(self._statements.whole, values, finished, wait_s), started.trace_id)

    def call(self, record: CallRecord, wait_s: float | None = None) -> None:
        """Commit a bridged call: once as it begins, once more as it ends."""
        self._run(self._statements.call, call_values, record, wait_s, answers=False)

    def decision(self, record: DecisionRecord, wait_s: float | None = None) -> None:
        """Commit a branch decision."""
        self._run(self._statements.decision, decision_values, record, wait_s, answers=False)

    def steps(self, records: list[Step], wait_s: float | None = None) -> None:
        """Commit many calls and decisions in one transaction, which costs little more than one of them alone.

        All or none: where the database refuses one of them, none is stored.
        """
        call, decision = self._statements.call, self._statements.decision
        calls = [call.bind(call_values(r)) for r in records if isinstance(r, CallRecord)]
        decisions = [decision.bind(decision_values(r)) for r in records if isinstance(r, DecisionRecord)]

        def work(cursor: Any) -> None:
            for statement, parameters in ((call, calls), (decision, decisions)):
                if parameters:
                    cursor.executemany(statement.sql, parameters)

        self._hold(lambda cursor: self._at_once(cursor, work), wait_s)

    def close(self) -> None:
        """Give the connection back; a later record opens another."""
        with self._lock:
            self._drop()

    def _id(self, row_id: int | None, trace_id: str) -> int:
        if row_id is None:
            raise RowMissing(
                f"The database {self._database.where} holds no execution with trace id {trace_id!r}.",
                hint="Its beginning was never recorded there.",
            )
        return row_id

    def _run(
        self,
        statement: Statement,
        values: Callable[[AnyRecord], dict[str, Any]],
        record: AnyRecord,
        wait_s: float | None,
        *,
        answers: bool = True,
    ) -> int | None:
        """One statement for one record, in autocommit; its row's id where it answers."""

        def work(cursor: Any) -> int | None:
            try:
                cursor.execute(statement.sql, statement.bind(values(record)))
            except self._data_errors:
                cursor.execute(statement.sql, statement.bind(values(storable(record))))
            row = cursor.fetchone() if answers else None
            return None if row is None else int(row[0])

        return self._hold(work, wait_s)

    def _end(
        self,
        statement: Statement,
        values: Callable[[Finished], dict[str, Any]],
        finished: Finished,
        wait_s: float | None,
    ) -> int | None:
        """An ending and, in the same transaction, the trace: whoever finds the one finds the other."""
        if finished.trace is None:
            return self._run(statement, values, finished, wait_s)

        def write(cursor: Any, record: Finished) -> int | None:
            assert record.trace is not None
            cursor.execute(statement.sql, statement.bind(values(record)))
            row = cursor.fetchone()
            if row is not None:
                trace = trace_values(record.trace_id, record.trace, record.finished_at)
                cursor.execute(self._statements.trace.sql, self._statements.trace.bind(trace))
            return None if row is None else int(row[0])

        def work(cursor: Any) -> int | None:
            try:
                return self._at_once(cursor, lambda cursor: write(cursor, finished))
            except self._data_errors:
                return self._at_once(cursor, lambda cursor: write(cursor, storable(finished)))

        return self._hold(work, wait_s)

    def _at_once(self, cursor: Any, work: Callable[[Any], Result]) -> Result:
        """Do the work in one transaction: all of it or nothing."""
        cursor.execute("BEGIN IMMEDIATE" if self._database.dialect_name == "sqlite" else "BEGIN")
        try:
            result = work(cursor)
            cursor.execute("COMMIT")
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        return result

    def _hold(self, work: Callable[[Any], Result], wait_s: float | None) -> Result:
        """Do the work with a cursor of the held connection, which is this thread's alone meanwhile."""
        wait_s = self._database.wait_s if wait_s is None else wait_s
        give_up = time.monotonic() + wait_s
        # A short record must not be turned away for want of a timeout: the lock is held for microseconds.
        if not self._lock.acquire(timeout=max(wait_s, 0.05)):
            raise DatabaseLocked(
                f"The log of {self._database.where} was busy for {wait_s:g} s.", hint="Try again in a moment."
            )
        try:
            try:
                return self._translated(work, give_up)
            except DatabaseFull:
                # SQLite's write-ahead file keeps its size; what it gives back may be all that is wanted.
                if not self._shrink(give_up):
                    raise
                return self._translated(work, give_up)
        finally:
            self._lock.release()

    def _translated(self, work: Callable[[Any], Result], give_up: float) -> Result:
        """Do the work, and translate what the driver says to it."""
        try:
            # Closed in any case: an open one would keep a connection's file open that has been dropped.
            with closing(self._open(give_up - time.monotonic()).cursor()) as cursor:
                return work(cursor)
        except self._refusals as error:
            raise RecordRefused(
                f"The database {self._database.where} refused a log record: {error}."
            ) from error
        except self._driver_errors as error:
            failure = translate(error, self._database.where, self._database.path)
            if not isinstance(failure, DatabaseLocked):
                self._drop()  # whatever it is, a fresh connection is the better bet for the next record
            raise failure from error

    def _shrink(self, give_up: float) -> bool:
        """Move SQLite's write-ahead file into the database and empty it; whether that was done."""
        if self._database.path is None:
            return False
        try:
            busy, _, _ = (
                self._open(give_up - time.monotonic()).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            )
        except (sqlite3.Error, DatabaseError):
            self._drop()
            return False
        return not busy

    @property
    def _driver_errors(self) -> tuple[type[BaseException], ...]:
        dbapi: Any = self._database.driver
        return (dbapi.Error, OSError)

    @property
    def _refusals(self) -> tuple[type[BaseException], ...]:
        dbapi: Any = self._database.driver
        return (dbapi.IntegrityError, dbapi.DataError, ValueError, TypeError)

    @property
    def _data_errors(self) -> tuple[type[BaseException], ...]:
        dbapi: Any = self._database.driver
        return (UnicodeEncodeError, dbapi.DataError)

    def _open(self, wait_s: float) -> Any:
        """The held connection, waiting at most so long for another writer; a new one after a fork."""
        if self._connection is None or self._owner != os.getpid():
            self._connection = self._database.detached_connection()
            self._owner, self._busy_ms = os.getpid(), -1
        busy_ms = max(0, int(wait_s * 1000))
        # Asking for a new timeout is a statement too; a few milliseconds' difference is not worth one.
        if isinstance(self._connection, sqlite3.Connection) and not 0 <= self._busy_ms - busy_ms <= 20:
            self._connection.execute(f"PRAGMA busy_timeout = {busy_ms}")
            self._busy_ms = busy_ms
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._owner == os.getpid():
            connection.close()
