"""Writer of the log, on a connection of its own.

Executions are written to `executionlog` here only; archiving deletes rows, and an import adds another log's. The writer
shares no transaction with a caller: each record is one statement in autocommit, or one transaction of its own where a
trace goes with it. Whatever the caller's session does, rolls back or leaves open, the row is committed, and nothing of
the caller's is. Each statement may be repeated for the same record, so that a spool file can be replayed after a crash
without knowing how far the first attempt came.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

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
from healkit.store import statements
from healkit.store.database import Database
from healkit.store.database_errors import translate
from healkit.store.statements import (
    Prepared,
    call_values,
    decision_values,
    finished_values,
    started_values,
    trace_values,
)

#: A clock that was further ahead is not followed.
SET_BACK_MAX = timedelta(days=1)

Result = TypeVar("Result")


class RecordRefused(DatabaseError):
    """Raised for a record that this database will never take, however often it is tried."""


class RowMissing(RecordRefused):
    """Raised for the end of an execution whose beginning the database does not hold."""


class LogWriter:
    """Held connection and a lock; safe to use from several threads and after a fork.

    `wait_s` bounds all that a record waits for together: other threads here, and other writers of the database. It is
    the database's own unless given. All methods raise `DatabaseError`s only.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect_name
        self._start = self._prepared(statements.START)
        self._lock = threading.Lock()
        self._connection: Any = None
        self._owner = 0
        self._busy_ms = -1
        self._file: tuple[int, int] | None = None

    def begin(self, started: Started, wait_s: float | None = None) -> int:
        """Commit the row as RUNNING and return its id; called before a worker is touched."""
        return self._id(self._run(self._start, started_values, started, wait_s), started.trace_id)

    def finish(self, finished: Finished, wait_s: float | None = None) -> int:
        """Fill in how the execution ended and return the row's id; raise `RowMissing` when there is no row."""
        row_id = self._end(self._prepared(statements.FINISH), finished_values, finished, wait_s)
        return self._id(row_id, finished.trace_id)

    def finish_running(self, finished: Finished, wait_s: float | None = None) -> int | None:
        """Do the same, only where the row is still RUNNING; return None where another process was first."""
        return self._end(self._prepared(statements.FINISH_RUNNING), finished_values, finished, wait_s)

    def insert_finished(self, started: Started, finished: Finished, wait_s: float | None = None) -> int:
        """Commit a whole row at once, for a call that was refused before a worker was touched."""

        def values(record: Finished) -> dict[str, Any]:
            return {**started_values(storable(started)), **finished_values(record)}

        row_id = self._end(self._prepared(statements.WHOLE), values, finished, wait_s)
        return self._id(row_id, started.trace_id)

    def call(self, record: CallRecord, wait_s: float | None = None) -> None:
        """Commit a bridged call: once as it begins, once more as it ends."""
        self._run(self._prepared(statements.CALL), call_values, record, wait_s, answers=False)

    def decision(self, record: DecisionRecord, wait_s: float | None = None) -> None:
        """Commit a branch decision."""
        self._run(self._prepared(statements.DECISION), decision_values, record, wait_s, answers=False)

    def steps(self, records: list[Step], wait_s: float | None = None) -> None:
        """Commit many calls and decisions in one transaction, which costs little more than one of them alone.

        All or none: where the database refuses one of them, none is stored.
        """
        call, decision = self._prepared(statements.CALL), self._prepared(statements.DECISION)
        calls = [call.bind(call_values(r)) for r in records if isinstance(r, CallRecord)]
        decisions = [decision.bind(decision_values(r)) for r in records if isinstance(r, DecisionRecord)]

        def work(cursor: Any) -> None:
            for statement, parameters in ((call, calls), (decision, decisions)):
                if parameters:
                    cursor.executemany(statement.sql, parameters)

        self._hold(lambda cursor: self._in_transaction(cursor, work), wait_s)

    def in_order(self, started: Started) -> Started:
        """Return the beginning with a time after that of every row, so that the log's order is that of insertion.

        The clock may have been set back since the newest row was written. One that was a day or more ahead is not
        followed: all rows after it would have wrong times for as long. Raises nothing.
        """

        def work(cursor: Any) -> Started:
            cursor.execute(self._prepared(statements.NEWEST_TIME).sql)
            newest = statements.rows_of(self._dialect, cursor)[0]["timestamp"]
            if newest is None or not started.timestamp <= newest < started.timestamp + SET_BACK_MAX:
                return started
            return msgspec.structs.replace(started, timestamp=newest + timedelta(microseconds=1))

        try:
            return self._hold(work, 0.0)
        except DatabaseError:
            return started

    def close(self) -> None:
        """Give the connection back; a later record opens another."""
        with self._lock:
            self._drop()

    def _prepared(self, statement: str) -> Prepared:
        return statements.prepared(self._dialect, statement)

    def _id(self, row_id: int | None, trace_id: str) -> int:
        if row_id is None:
            raise RowMissing(
                f"The database {self._database.where} holds no execution with trace id {trace_id!r}.",
                hint="Its beginning was never recorded there.",
            )
        return row_id

    def _run(
        self,
        statement: Prepared,
        values: Callable[[AnyRecord], dict[str, Any]],
        record: AnyRecord,
        wait_s: float | None,
        *,
        answers: bool = True,
    ) -> int | None:
        """Run one statement for one record in autocommit; return its row's id where it answers."""

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
        statement: Prepared,
        values: Callable[[Finished], dict[str, Any]],
        finished: Finished,
        wait_s: float | None,
    ) -> int | None:
        """Commit an outcome and, in the same transaction, its trace: both are there or neither."""
        if finished.trace is None:
            return self._run(statement, values, finished, wait_s)

        def write(cursor: Any, record: Finished) -> int | None:
            assert record.trace is not None
            cursor.execute(statement.sql, statement.bind(values(record)))
            row = cursor.fetchone()
            if row is not None:
                trace = self._prepared(statements.TRACE)
                traced = trace_values(record.trace_id, record.trace, record.finished_at)
                cursor.execute(trace.sql, trace.bind(traced))
            return None if row is None else int(row[0])

        def work(cursor: Any) -> int | None:
            try:
                return self._in_transaction(cursor, lambda cursor: write(cursor, finished))
            except self._data_errors:
                return self._in_transaction(cursor, lambda cursor: write(cursor, storable(finished)))

        return self._hold(work, wait_s)

    def _in_transaction(self, cursor: Any, work: Callable[[Any], Result]) -> Result:
        """Do the work in one transaction: all of it or nothing."""
        cursor.execute("BEGIN IMMEDIATE" if self._dialect == "sqlite" else "BEGIN")
        try:
            result = work(cursor)
            cursor.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back by itself where a disk is full; the error of a second time must not hide the first.
            with suppress(*self._driver_errors):
                cursor.execute("ROLLBACK")
            raise
        return result

    def _hold(self, work: Callable[[Any], Result], wait_s: float | None) -> Result:
        """Do the work with a cursor of the held connection, which is this thread's alone meanwhile."""
        wait_s = self._database.wait_s if wait_s is None else wait_s
        give_up = time.monotonic() + wait_s
        # Even with wait_s=0 a record waits for another thread's: the lock is held for microseconds.
        if not self._lock.acquire(timeout=max(wait_s, 0.05)):
            raise DatabaseLocked(
                f"The log of {self._database.where} was busy for {wait_s:g} s.", hint="Try again in a moment."
            )
        try:
            try:
                return self._translated(work, give_up)
            except DatabaseFull:
                # SQLite's write-ahead file keeps its size; emptying it may free the room that is missing.
                if not self._shrink(give_up):
                    raise
                return self._translated(work, give_up)
        finally:
            self._lock.release()

    def _translated(self, work: Callable[[Any], Result], give_up: float) -> Result:
        """Do the work, and raise the driver's errors as healkit's own."""
        try:
            # Close the cursor in any case: an open one keeps the file of a dropped connection open.
            with closing(self._open(give_up - time.monotonic()).cursor()) as cursor:
                result = work(cursor)
            self._database.check_still(self._file)
            return result
        except self._refusals as error:
            raise RecordRefused(
                f"The database {self._database.where} refused a log record: {error}."
            ) from error
        except self._driver_errors as error:
            failure = translate(error, self._database.where, self._database.path)
            if not isinstance(failure, DatabaseLocked):
                self._drop()  # a fresh connection has the better chance with the next record
            raise failure from error

    def _shrink(self, give_up: float) -> bool:
        """Move SQLite's write-ahead file into the database and empty it; return True when that was done."""
        if self._database.path is None:
            return False
        try:
            connection = self._open(give_up - time.monotonic())
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
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
        """Return the held connection, set to wait at most so long for another writer; open one after a fork."""
        file = self._database.file_id()
        if file != self._file:
            self._drop()  # what is written to a file that was removed is lost
        if self._connection is None or self._owner != os.getpid():
            self._database.check_room()
            self._file = file
            self._connection = self._database.detached_connection()
            self._owner, self._busy_ms = os.getpid(), -1
        busy_ms = max(0, int(wait_s * 1000))
        # Setting a timeout is a statement too; a difference of a few milliseconds is not worth one.
        if isinstance(self._connection, sqlite3.Connection) and not 0 <= self._busy_ms - busy_ms <= 20:
            self._connection.execute(f"PRAGMA busy_timeout = {busy_ms}")
            self._busy_ms = busy_ms
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._owner == os.getpid():
            connection.close()
