"""Writer of the log, on its own connection.

Only this module writes executions to `executionlog`; archiving deletes rows, and an import adds another log's. The
writer shares no transaction with a caller. Each record is one statement in autocommit, or one transaction if a trace
belongs to it. Whatever the caller's session does, rolls back or leaves open, the row is committed, and nothing of the
caller's is. Each statement may be repeated for the same record. So a spool file can be replayed after a crash, even if
it is not known how far the first attempt got.
"""

from __future__ import annotations

import functools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from healkit.core.contracts.execution import AnyRecord, CallRecord, DecisionRecord, Finished, Started, Step
from healkit.core.store import changes, statements
from healkit.core.store.database import Database, translate
from healkit.core.store.statements import (
    Prepared,
    call_values,
    decision_values,
    finished_values,
    moved_to,
    moved_values,
    read_column,
    started_values,
    trace_values,
)
from healkit.core.store.write_turns import ASKS_MS
from healkit.core.wire.record_text import storable
from healkit.errors import DatabaseError, DatabaseFull, DatabaseLocked, DatabaseMissing

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor


Result = TypeVar("Result")


class RecordRefused(DatabaseError):
    """Raised for a record that this database will never accept, however often it is tried."""


class RowMissing(RecordRefused):
    """Raised for the end of an execution whose beginning is not in the database."""


class LogWriter:
    """One connection and a lock; safe to use from several threads and after a fork.

    `wait_s` limits the total wait of a record, for other threads here and for other writers of the database. The
    default is that of the database. All methods raise only `DatabaseError`s.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect_name
        self._start_in_order = self._prepared(statements.START_IN_ORDER)
        self._lock = threading.Lock()
        self._connection: DBAPIConnection | sqlite3.Connection | None = None
        self._owner = 0
        self._file: tuple[int, int] | None = None
        self._closed = False
        self._notified_s = 0.0

    def begin(self, started: Started, wait_s: float | None = None) -> int:
        """Commit the row as RUNNING, with its own time, and return its id; for records from the spool."""
        row_id = self._run(self._prepared(statements.START), started_values, started, wait_s)
        return self._id(row_id, started.trace_id)

    def begin_in_order(self, started: Started, wait_s: float | None = None) -> tuple[int, datetime]:
        """Commit a row that begins now, at a time that is not before any other row's; return its id and that time.

        The clock may be behind the newest row: it was set back, or belongs to another machine. Then its time is stored
        beside the row's time. So rows keep the order of their insertion, however far a clock was set back.
        """

        def work(cursor: DBAPICursor) -> tuple[int, datetime]:
            row_id, other_time = self._execute(cursor, self._start_in_order, started_values, started)
            if other_time is None:
                return row_id, started.timestamp
            moved = self._prepared(statements.MOVED)
            cursor.execute(moved.sql, moved.bind(moved_values(started)))
            return row_id, read_column(self._dialect, "timestamp", other_time)

        return self._hold(work, wait_s)

    def finish(self, finished: Finished, wait_s: float | None = None) -> int:
        """Fill in how the execution ended and return the row's id; raise `RowMissing` if there is no row."""
        statement = statements.SUCCEED if finished.failure is None else statements.FINISH
        row_id = self._end(statement, finished_values, finished, wait_s)
        return self._id(row_id, finished.trace_id)

    def finish_running(self, finished: Finished, wait_s: float | None = None) -> int | None:
        """Do the same, but only if the row is still RUNNING; return None if another process was first."""
        return self._end(statements.FINISH_RUNNING, finished_values, finished, wait_s)

    def insert_finished(self, started: Started, finished: Finished, wait_s: float | None = None) -> int:
        """Commit a complete row, for a call that was refused before a worker was touched."""

        def values(record: Finished) -> dict[str, Any]:
            return {**started_values(storable(started)), **finished_values(record)}

        row_id = self._end(statements.WHOLE, values, finished, wait_s)
        return self._id(row_id, started.trace_id)

    def call(self, record: CallRecord, wait_s: float | None = None) -> None:
        """Commit a bridged call: when it begins, and again when it ends."""
        self._run(self._prepared(statements.CALL), call_values, record, wait_s, answers=False)

    def decision(self, record: DecisionRecord, wait_s: float | None = None) -> None:
        """Commit a branch decision."""
        self._run(self._prepared(statements.DECISION), decision_values, record, wait_s, answers=False)

    def steps(self, records: list[Step], wait_s: float | None = None) -> None:
        """Commit many calls and decisions, all or none, in one transaction; it costs little more than a single one."""
        call, decision = self._prepared(statements.CALL), self._prepared(statements.DECISION)
        calls = [call.bind(call_values(r)) for r in records if isinstance(r, CallRecord)]
        decisions = [decision.bind(decision_values(r)) for r in records if isinstance(r, DecisionRecord)]

        def work(cursor: DBAPICursor) -> None:
            for statement, parameters in ((call, calls), (decision, decisions)):
                if parameters:
                    cursor.executemany(statement.sql, parameters)

        self.transaction(work, wait_s)

    def transaction(self, work: Callable[[DBAPICursor], Result], wait_s: float | None = None) -> Result:
        """Run `work` with a cursor, in one transaction that writes from its beginning; it may be called again."""
        return self._hold(lambda cursor: self._in_transaction(cursor, work), wait_s)

    def in_order(self, started: Started) -> Started:
        """Return the beginning with a time after every existing row, as `begin_in_order` commits it.

        For a row that has to wait for its database, or is inserted complete. Never raises.
        """

        def work(cursor: DBAPICursor) -> Started:
            cursor.execute(self._prepared(statements.NEWEST_TIME).sql)
            newest = statements.dicts_of(self._dialect, cursor)[0]["timestamp"]
            if newest is None or newest < started.timestamp:
                return started
            return moved_to(started, newest + timedelta(microseconds=1))

        try:
            return self._hold(work, 0.0)
        except DatabaseError:
            return started

    def close(self) -> None:
        """Release the connection; a later record, such as that of a call's late end, opens another."""
        with self._lock:
            self._closed = True
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
        """Run one statement for one record in autocommit; return its row's id if it returns one."""

        def work(cursor: DBAPICursor) -> int | None:
            row = self._execute(cursor, statement, values, record, answers=answers)
            return None if row is None else int(row[0])

        return self._hold(work, wait_s)

    def _execute(
        self,
        cursor: DBAPICursor,
        statement: Prepared,
        values: Callable[[AnyRecord], dict[str, Any]],
        record: AnyRecord,
        *,
        answers: bool = True,
    ) -> Any:
        """Run a statement for one record, in the driver's form; return its row if it returns one."""
        try:
            cursor.execute(statement.sql, statement.bind(values(record)))
        except self._data_errors:
            cursor.execute(statement.sql, statement.bind(values(storable(record))))
        return cursor.fetchone() if answers else None

    def _end(
        self,
        ending: str,
        values: Callable[[Finished], dict[str, Any]],
        finished: Finished,
        wait_s: float | None,
    ) -> int | None:
        """Commit an outcome and, in the same transaction, its trace: both or neither."""
        statement = self._prepared(ending)
        if finished.trace is None:
            return self._run(statement, values, finished, wait_s)
        if self._dialect == "postgresql":

            def both(record: Finished) -> dict[str, Any]:
                assert record.trace is not None
                return values(record) | trace_values(record.trace_id, record.trace, record.finished_at)

            return self._run(self._prepared(statements.with_trace(ending)), both, finished, wait_s)

        def write(cursor: DBAPICursor, record: Finished = finished) -> int | None:
            assert record.trace is not None
            cursor.execute(statement.sql, statement.bind(values(record)))
            row = cursor.fetchone()
            if row is not None:
                trace = self._prepared(statements.TRACE)
                traced = trace_values(record.trace_id, record.trace, record.finished_at)
                cursor.execute(trace.sql, trace.bind(traced))
            return None if row is None else int(row[0])

        def work(cursor: DBAPICursor) -> int | None:
            try:
                return self._in_transaction(cursor, write)
            except self._data_errors:
                return self._in_transaction(cursor, functools.partial(write, record=storable(finished)))

        return self._hold(work, wait_s)

    def _in_transaction(self, cursor: DBAPICursor, work: Callable[[DBAPICursor], Result]) -> Result:
        """Run `work` in one transaction: all of it or nothing."""
        cursor.execute("BEGIN IMMEDIATE" if self._dialect == "sqlite" else "BEGIN")
        try:
            result = work(cursor)
            cursor.execute("COMMIT")
        except BaseException:
            # SQLite has already rolled back if the disk is full; a second error must not hide the first.
            with suppress(*self._driver_errors):
                cursor.execute("ROLLBACK")
            raise
        return result

    def _hold(self, work: Callable[[DBAPICursor], Result], wait_s: float | None) -> Result:
        """Run `work` with a cursor of the connection, which only this thread uses meanwhile."""
        wait_s = self._database.wait_s if wait_s is None else wait_s
        with self._database.turn(wait_s), self._alone(wait_s):
            try:
                return self._translated(work, wait_s)
            except DatabaseFull:
                # SQLite's write-ahead file keeps its size; emptying it may free enough room.
                if not self._shrink(wait_s):
                    raise
                return self._translated(work, wait_s)
            except DatabaseMissing:
                # A server ends connections when it restarts, or after a while; the record may be repeated.
                if self._database.path is not None:
                    raise
                return self._translated(work, wait_s)

    @contextmanager
    def _alone(self, wait_s: float) -> Iterator[None]:
        # Even with wait_s=0, a record waits for another thread's, because the lock is held for microseconds.
        if not self._lock.acquire(blocking=False) and not self._lock.acquire(timeout=max(wait_s, 0.05)):
            raise DatabaseLocked(
                f"The log of {self._database.where} was busy for {wait_s:g} s.", hint="Try again in a moment."
            )
        try:
            yield
        finally:
            if self._closed:
                self._drop()
            self._lock.release()

    def _translated(self, work: Callable[[DBAPICursor], Result], wait_s: float) -> Result:
        """Run `work`, and raise the driver's errors as healkit's own."""
        try:
            result = self._done(work, wait_s)
            if self._database.file_id() != self._file:
                self._drop()  # writes to a removed file would be lost; another file may be in its place
                result = self._done(work, wait_s)
                self._database.check_still(self._file)
            return result
        except self._refusals as error:
            raise RecordRefused(
                f"The database {self._database.where} rejected a log record: {error}."
            ) from error
        except self._driver_errors as error:
            failure = translate(error, self._database.where, self._database.path)
            if not isinstance(failure, DatabaseLocked):
                self._drop()  # a new connection is more likely to work for the next record
            raise failure from error

    def _done(self, work: Callable[[DBAPICursor], Result], wait_s: float) -> Result:
        connection, turns = self._open(), self._database.turns
        cursor = connection.cursor()
        try:
            if turns is not None:
                return turns.write(connection, lambda: work(cursor), wait_s)
            result = work(cursor)
            if time.monotonic() > self._notified_s + changes.PAUSE_S:
                self._notified_s = time.monotonic()
                with suppress(*self._driver_errors):  # the record is written
                    cursor.execute(changes.NOTIFY)
            return result
        finally:
            cursor.close()  # always: an open cursor would keep the file of a dropped connection open

    def _shrink(self, wait_s: float) -> bool:
        """Move SQLite's write-ahead file into the database and empty it; return True if that worked."""
        if self._database.path is None:
            return False
        try:
            connection = self._open()
            connection.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            connection.execute(f"PRAGMA busy_timeout = {ASKS_MS}")
        except (sqlite3.Error, DatabaseError):
            self._drop()
            return False
        return not busy

    @property
    def _driver_errors(self) -> tuple[type[BaseException], ...]:
        return (self._database.driver.Error, OSError)

    @property
    def _refusals(self) -> tuple[type[BaseException], ...]:
        dbapi = self._database.driver
        return (dbapi.IntegrityError, dbapi.DataError, ValueError, TypeError)

    @property
    def _data_errors(self) -> tuple[type[BaseException], ...]:
        dbapi = self._database.driver
        return (UnicodeEncodeError, dbapi.DataError)

    def _open(self) -> Any:
        """Return the connection; open another after a fork."""
        if self._connection is None or self._owner != os.getpid():
            self._database.check_room()
            self._file = self._database.file_id()
            connection = self._connection = self._database.detached_connection()
            self._owner = os.getpid()
            if isinstance(connection, sqlite3.Connection):
                connection.execute(f"PRAGMA busy_timeout = {ASKS_MS}")
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._owner == os.getpid():
            connection.close()
