"""Database connections: opened, migrated, errors mapped.

A transaction is declared as reading or writing when it begins, not when it first writes. On SQLite, a DEFERRED
transaction that reads and then writes fails most of the time with eight writers, whatever its timeout. BEGIN IMMEDIATE
waits for the lock (`store.write_turns`). On PostgreSQL, `write()` takes one advisory lock instead, so that the vault's
read-then-write is equally safe.

The statements of an execution (`fetch`, and the log's writer) go directly to the driver. SQLAlchemy is imported by the
first session.

Only healkit's tables are touched. Opening never changes a file that this version cannot handle: a read-only connection
reads the version before any other connection is made.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from healkit import hooks
from healkit.core.store import migrate, trust
from healkit.core.store.changes import NOTIFY, Changes
from healkit.core.store.locations import (
    is_full,
    is_temporary,
    is_writable,
    resolve_url,
    server_engine,
    sqlite_path,
    sqlite_uri,
)
from healkit.core.store.statements import Prepared, dicts_of, prepared
from healkit.core.store.write_turns import ASKS_MS, WriteTurns
from healkit.errors import (
    DatabaseCorrupt,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseMissing,
    DatabaseNotTrusted,
    DatabaseReadOnly,
    HealkitError,
    UsageInvalid,
)
from healkit.plain_text import shown_url

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.orm import Session
    from sqlalchemy.pool import ConnectionPoolEntry


__all__ = ["Database", "resolve_url"]

#: Minimum time that opening waits for another process that migrates the same file, in seconds; a long log
#: takes longest (benchmarks/bench_log_scale.py).
MIGRATION_WAIT_S = 30.0

#: Page size of a new SQLite file, in bytes. A commit writes every page that it touched, and a log row touches
#: a dozen pages of the table and its indexes. SQLite's default of 4,096 bytes costs more
#: (benchmarks/bench_log.py).
PAGE_BYTES = 2048

#: Query whether a server's user may write rows, and may make and change tables.
_MAY_WRITE = """SELECT has_table_privilege('executionlog', 'INSERT') AND NOT pg_is_in_recovery()
    AND current_setting('transaction_read_only') = 'off'"""
_MAY_CHANGE = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"

#: Key of PostgreSQL's advisory lock that corresponds to SQLite's write lock ("heal" in ASCII).
_ADVISORY_KEY = 0x6865616C


class Database:
    """Open database with current tables.

    url: A URL or a plain path (see `resolve_url`).
    wait_s: How long a write waits for another writer, in seconds.
    synchronous: SQLite's setting for power cuts.
    create: Whether to create a missing file or missing tables (never a folder).
    only_read: Open it without changes, to see what it would grant.

    Raises `DatabaseMissing`, `DatabaseNewer`, `DatabaseCorrupt`, `DatabaseNotTrusted` (for a result of
    `trust.strange_parts`) and the other `DatabaseError`s on opening.
    """

    def __init__(
        self,
        url: str | Path,
        *,
        wait_s: float = 1.0,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        create: bool = True,
        only_read: bool = False,
    ) -> None:
        self.url = resolve_url(url)
        self.path = sqlite_path(self.url)
        self._file = None if self.path is None else str(self.path)
        self.wait_s = wait_s
        self.synchronous = synchronous
        self.read_only = False
        #: The URL for display, without a password; `where` is its name in messages.
        self.shown_url = shown_url(self.url)
        self.where = repr(shown_url(str(self.path)) if self.path else self.shown_url)
        #: Whether its triggers and tables may be foreign. healkit's own triggers write to an FTS5 table,
        #: which SQLite does not allow in an untrusted schema.
        self._is_unchecked = True
        #: The file that was found to be trusted (the URL, for a server); None if not trusted.
        self._trusted: Hashable = None
        #: Turns of the file's writers; None on a server.
        self.turns = None if self.path is None else WriteTurns.of(self.path)
        self._engine: Engine | None = None
        self._making = threading.Lock()
        self._kept = KeptConnection(
            lambda: self._connect_file(self.wait_s) if self.path else self.detached_connection(),
            lambda: (self.file_id(), self.without_room, self._is_unchecked),
        )
        #: Listener for changes; None for a file, which is just as cheap to query.
        self.changes = Changes(self.detached_connection) if self.path is None else None
        with mapped(self.where, self.path, also=(OSError, ImportError)):
            is_new = self.path is not None and not self.path.exists()
            version = self._look_before_opening(create)
            try:
                self.read_only |= only_read
                if only_read and version is not None:
                    return
                self._refuse_strange(version)
                self._is_unchecked = False
                self._bring_up_to_date(version, create)
            except BaseException:
                self.close()
                if is_new:
                    self._remove_empty()
                raise

    @property
    def dialect_name(self) -> str:
        """SQLAlchemy's name of the backend: `sqlite`, `postgresql`."""
        return "sqlite" if self.path else self.engine.dialect.name

    @property
    def driver(self) -> Any:
        """Module of the driver, with its exceptions."""
        return sqlite3 if self.path else self.engine.dialect.dbapi

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine, made on first use."""
        with self._making:
            if self._engine is None:
                self._engine = self._make_engine(self.wait_s)
            return self._engine

    @functools.cached_property
    def _writing(self) -> Engine:
        return self.engine.execution_options(healkit_write_wait_ms=int(self.wait_s * 1000))

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session for reading, on one snapshot; its objects remain readable afterwards."""
        from sqlalchemy.orm import Session

        with mapped(self.where, self.path), Session(self.engine, expire_on_commit=False) as session:
            yield session

    def fetch(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        """Return all rows for one of `store.statements`, without SQLAlchemy on SQLite."""
        question = prepared(self.dialect_name, statement)
        with mapped(self.where, self.path):
            was_kept = bool(self._kept.idle)
            try:
                return self._fetched(question, values)
            except self.driver.Error:
                if self.path is not None or not was_kept:
                    raise
                return self._fetched(question, values)  # a server ends connections, and its tables may change

    def _fetched(self, question: Prepared, values: dict[str, Any]) -> list[dict[str, Any]]:
        with self._kept.lent() as connection, closing(connection.cursor()) as cursor:
            cursor.execute(question.sql, question.bind(values))
            return dicts_of(self.dialect_name, cursor)

    # Trust: see `store.trust`.

    @property
    def trusted(self) -> bool:
        """True if its user trusts it; the grants of an untrusted database are ignored.

        New trust takes effect at once; withdrawn trust only when the database is opened again.
        """
        now = self.file_id() or self.url
        if self._trusted != now:
            self._trusted = now if self.why_trusted else None
        return self._trusted is not None

    @property
    def why_trusted(self) -> str:
        """Since when and why its user trusts it; "" if they do not."""
        return trust.why_trusted(self.place, self.identity())

    @property
    def place(self) -> str:
        """Its place in the record of trust: the file's real path, or the server's URL without its password."""
        return self.shown_url if self._file is None else os.path.realpath(self._file)

    def identity(self) -> str:
        """Return the random id that was made with its tables; "" if there is none, or more than one."""
        if self.path is None or not self.fetch(trust.HAS_IDENTITY):
            return ""
        rows = self.fetch(trust.READ_IDENTITY)
        return str(rows[0]["chain"]) if len(rows) == 1 else ""

    def require_trust(self, what: str) -> None:
        """Raise `DatabaseNotTrusted` unless its user trusts it. what: Sentence that says what is not possible."""
        if not self.trusted:
            raise DatabaseNotTrusted(
                f"{what}: the database {self.where} is not trusted.",
                hint=trust.hint(self.place),
            )

    def trust(self) -> None:
        """Trust it, in every process of this user; raise `DatabaseError` if that cannot be stored."""
        trust.trust(self.place, self.identity())

    def strange_parts(self) -> list[str]:
        """Name foreign parts of it that could run, or be read in place of healkit's own; nothing of it is run."""
        if self.path is None:
            return []
        with mapped(self.where, self.path), self._kept.lent() as connection:
            connection.execute("BEGIN")  # another process may be migrating it
            try:
                version = connection.execute(migrate.READ_VERSION).fetchone()
                return trust.strange_parts(connection, str(version[0]))
            finally:
                connection.execute("ROLLBACK")

    def _refuse_strange(self, version: str | None) -> None:
        """Raise `DatabaseNotTrusted` for an untrusted file with foreign parts, before anything is written to it."""
        if self.path is None or version is None:
            return
        strange = [] if self.trusted else self.strange_parts()
        if strange:
            raise DatabaseNotTrusted(
                f"The database {self.where} is not trusted, and has parts that healkit did not make: "
                f"{', '.join(strange[:5])}. It was not opened.",
                hint=trust.hint(self.place),
            )

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session in one write transaction: committed at the end, rolled back on any error."""
        if self.read_only:
            raise DatabaseReadOnly(
                f"The database {self.where} can only be read.", hint=_next_step(DatabaseReadOnly, self.path)
            )
        from sqlalchemy.orm import Session

        opened = Session(self._writing, expire_on_commit=False)
        with self.turn(self.wait_s), mapped(self.where, self.path), opened as session, session.begin():
            session.connection()  # takes the lock before anything is read
            file = self.file_id()
            yield session
            if self.path is None:
                session.connection().exec_driver_sql(NOTIFY)
        self.check_still(file)

    def turn(self, wait_s: float) -> AbstractContextManager[None]:
        """Return the turn to write; it raises `DatabaseLocked` if another thread keeps it too long."""
        return nullcontext() if self.turns is None else self.turns.turn(wait_s, self.where)

    def detached_connection(self) -> Any:
        """Open a driver's connection in autocommit that the caller owns; used by the log's writer."""
        with mapped(self.where, self.path):
            if self.path:
                return self._connect_file(self.wait_s)
            pooled = self.engine.raw_connection()
            connection: Any = pooled.driver_connection
            pooled.detach()
            with closed_on_error(connection):
                self.engine.dialect.set_isolation_level(connection, "AUTOCOMMIT")
            return connection

    def close(self) -> None:
        """Close every connection except detached ones; the next use opens new ones."""
        self._kept.close()
        if self._engine is not None:
            self._engine.dispose()
        if self.changes is not None:
            self.changes.close()

    def __repr__(self) -> str:
        return f"Database({self.shown_url!r})"

    def _look_before_opening(self, create: bool) -> str | None:
        """Read the version of an existing file on a read-only connection; return None for a new or foreign file."""
        if self.path is None:
            return None
        if not self.path.exists():
            self._make_file(self.path, create)
            return None
        if not self.path.is_file():
            hint = "Name a file for the database to be in."
            raise DatabaseMissing(f"{self.where} is not a file.", hint=hint)
        self.read_only = not (is_writable(self.path) and is_writable(self.path.parent))
        uri = sqlite_uri(self.path, "ro")
        with closing(sqlite3.connect(uri, uri=True, timeout=MIGRATION_WAIT_S)) as probe:
            probe.execute("PRAGMA trusted_schema = OFF")
            version_table = probe.execute(
                "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (migrate.VERSION_TABLE,)
            ).fetchone()
            row = probe.execute(migrate.READ_VERSION).fetchone() if version_table else None
        version = str(row[0]) if row else None
        migrate.refuse_unknown(version, self.where)
        return version

    @property
    def without_room(self) -> bool:
        """True if a full disk has no room to open the file for writing; it can still be read."""
        return self.path is not None and not Path(f"{self.path}-shm").exists() and is_full(self.path)

    def check_room(self) -> None:
        """Raise `DatabaseFull` if there is no room to open the file for writing."""
        if self.without_room:
            raise DatabaseFull(
                f"The database {self.where} is out of space: its disk is full.",
                hint="Free some space on that disk, then try again.",
            )

    def _remove_empty(self) -> None:
        """Remove the new file if no tables could be made in it, unless another process has made them."""
        assert self.path is not None
        with suppress(OSError):
            if not self.path.stat().st_size:
                for name in ("", "-wal", "-shm"):
                    Path(f"{self.path}{name}").unlink(missing_ok=True)

    def _make_file(self, path: Path, create: bool) -> None:
        if not path.parent.is_dir():
            raise DatabaseMissing(
                f"There is no folder {shown_url(str(path.parent))!r} for {self.where}.",
                hint="Check the path, make the folder, or choose another place with HEALKIT_DB.",
            )
        if not create:
            raise DatabaseMissing(
                f"There is no database at {self.where}.",
                hint="healkit demo shows what healkit does. healkit seed makes a database with samples, and "
                "healkit vault add NAME FILE makes one with your tool. Or check the path, or HEALKIT_DB.",
            )
        try:
            path.touch(mode=0o600)  # it will hold arguments and tracebacks, so only its owner may read it
        except OSError as error:
            raise DatabaseReadOnly(
                f"No database can be made at {self.where}: {error.strerror}.",
                hint="Make the folder writable, or choose another place with HEALKIT_DB.",
            ) from None

    def _make_engine(self, wait_s: float) -> Engine:
        from sqlalchemy import create_engine, event

        # All at once, because a table that another thread imports during the configuration would be mapped
        # too late.
        hooks.every("tables")
        if self.path is None:
            engine = server_engine(self.url, pool_pre_ping=True)
            event.listen(engine, "connect", lambda connection, _: wait_at_most(connection, wait_s))
        else:
            engine = create_engine(self.url, creator=lambda: self._connect_file(wait_s))
            event.listen(engine, "connect", self._note_file)
            event.listen(engine, "checkout", self._check_file)
        event.listen(engine, "begin", self._begin)
        return engine

    def _begin(self, connection: Connection) -> None:
        """Begin a reading or a writing transaction; called by SQLAlchemy instead of the driver's implicit begin."""
        wait_ms = connection.get_execution_options().get("healkit_write_wait_ms")
        if self.path is None:
            if wait_ms is not None and connection.dialect.name == "postgresql":
                # Many hosts may write there, and each waits for the server's disk.
                connection.exec_driver_sql(
                    f"SET LOCAL lock_timeout = {max(wait_ms, min(10 * wait_ms, 10_000))}"
                )
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_KEY})")
            return
        _, without_room = connection.info["file"]
        if wait_ms is not None and without_room:
            self.check_room()
        raw: Any = connection.connection.driver_connection
        asks_ms = int(self.wait_s * 1000) if wait_ms is None else ASKS_MS
        if connection.info.get("asks_ms") != asks_ms:
            raw.execute(f"PRAGMA busy_timeout = {asks_ms}")
            connection.info["asks_ms"] = asks_ms
        if wait_ms is None:
            connection.exec_driver_sql("BEGIN")
        else:
            assert self.turns is not None
            self.turns.write(raw, lambda: raw.execute("BEGIN IMMEDIATE"), wait_ms / 1000)

    def file_id(self) -> tuple[int, int] | None:
        """Return the identity of the current file, which another file of that name does not have; None without one."""
        if self._file is None:
            return None
        try:
            status = os.stat(self._file)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def check_still(self, file: tuple[int, int] | None) -> None:
        """Raise `DatabaseMissing` unless that file is still the database; data written to another file is lost."""
        if self.file_id() != file:
            raise DatabaseMissing(
                f"The file of the database {self.where} was removed or replaced while it was in use.",
                hint=_PUT_BACK,
            )

    def _note_file(self, _connection: object, record: ConnectionPoolEntry) -> None:
        record.info["file"] = self.file_id(), self.without_room

    def _check_file(self, _connection: object, record: ConnectionPoolEntry, _proxy: object) -> None:
        """Make the pool open another connection if this one belongs to a file that no longer exists."""
        from sqlalchemy.exc import DisconnectionError

        if record.info["file"] != (self.file_id(), self.without_room):
            raise DisconnectionError

    def _connect_file(self, wait_s: float) -> sqlite3.Connection:
        """Open a connection that never creates a file and never begins a transaction (`isolation_level=None`)."""
        assert self.path is not None
        connection = sqlite3.connect(
            sqlite_uri(self.path, "ro" if self.read_only or self.without_room else "rw"),
            uri=True,
            timeout=wait_s,
            isolation_level=None,
            check_same_thread=False,
        )
        with closed_on_error(connection):
            if self._is_unchecked:
                connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute(f"PRAGMA synchronous = {self.synchronous}")
            connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def _bring_up_to_date(self, version: str | None, create: bool) -> None:
        may_change = True
        if self.path is None:
            with self.engine.connect() as connection:
                version = migrate.current_version(connection)
                if version is not None:
                    self.read_only |= not connection.exec_driver_sql(_MAY_WRITE).scalar_one()
                may_change = bool(connection.exec_driver_sql(_MAY_CHANGE).scalar_one())
            migrate.refuse_unknown(version, self.where)
        if version == migrate.head() and (self.read_only or not may_change or not self._plugins_behind()):
            return
        if version is None and not create:
            raise DatabaseMissing(
                f"The database {self.where} has no tables of healkit's, and was left as it is.",
                hint="Check the path or URL; healkit seed, and healkit vault add NAME FILE, make the tables.",
            )
        if self.read_only and may_change:
            raise DatabaseReadOnly(
                f"The database {self.where} can only be read, and its tables are not those of this version.",
                hint="Make the file and its folder writable once, so that healkit can bring it up to date.",
            )
        if not may_change:
            raise DatabaseReadOnly(
                f"The tables of {self.where} are not those of this version, and the URL's user may not change them.",
                hint="Have their owner open the database once with this version; healkit db roles prints who may what.",
            )
        if self.path is not None:
            self.check_room()
            self._set_wal()
        # A migration by another process may take longer than an ordinary write waits.
        migration_wait_s = max(self.wait_s, MIGRATION_WAIT_S)
        engine = self._make_engine(migration_wait_s).execution_options(
            healkit_write_wait_ms=int(migration_wait_s * 1000)
        )
        try:
            more = True
            while more:
                with engine.begin() as migrating:
                    more = migrate.upgrade_step(migrating, self.where)
        finally:
            engine.dispose()
        if version is None:
            trust.trust_own(self.place, self.identity(), lasting=not is_temporary(self.path))

    def _plugins_behind(self) -> bool:
        if not any(hooks.every("migrations")):
            return False
        with self.engine.connect() as connection:
            return migrate.plugins_behind(connection)

    def _set_wal(self) -> None:
        """Set WAL mode; SQLite fails at once, whatever the timeout, if another process does the same."""
        give_up = time.monotonic() + max(self.wait_s, MIGRATION_WAIT_S)
        with closing(self._connect_file(self.wait_s)) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a new file; others keep theirs
            while True:
                try:
                    connection.execute("PRAGMA journal_mode = WAL")
                    return
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                        raise
                    time.sleep(0.01)


# SQLite parses a database's whole schema for each new connection, which takes longer than most reads. On a
# server, an autocommit connection needs one round trip for a read, whose plan is cached. So one connection is
# kept and lent to one thread at a time. Another thread opens its own in the meantime.


#: Connections of the parent process from before a fork: closing them here could damage its files.
_of_a_parent: list[Any] = []


class KeptConnection:
    """Lends a connection to one database.

    connect: Opens a connection.
    state: Returns the state of the file; a connection that was opened in another state is not lent again.

    Safe to use from several threads and after a fork. It is closed with this object at the latest.
    """

    def __init__(self, connect: Callable[[], Any], state: Callable[[], Hashable]) -> None:
        self._connect, self._state = connect, state
        self.idle: list[tuple[int, Hashable, Any]] = []
        weakref.finalize(self, _close, self.idle)

    @contextmanager
    def lent(self) -> Iterator[Any]:
        """Lend the connection for a read that ends with the block; it is closed if the block fails."""
        state = self._state()
        connection = self._take(state) or self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self.idle.append((os.getpid(), state, connection))
        with suppress(IndexError):
            while len(self.idle) > 1:  # other threads have returned theirs
                _close([self.idle.pop()])

    def close(self) -> None:
        """Close the kept connection; the next use opens a new one."""
        _close(self.idle)

    def _take(self, state: Hashable) -> Any | None:
        try:
            entry = self.idle.pop()
        except IndexError:
            return None
        if entry[:2] == (os.getpid(), state):
            return entry[2]
        _close([entry])
        return None


def _close(kept: list[tuple[int, Hashable, Any]]) -> None:
    """Close all connections that this process has opened, and empty the list."""
    with suppress(IndexError):  # another thread may take the last one
        while True:
            owner, _, connection = kept.pop()
            if owner == os.getpid():
                connection.close()
            else:
                _of_a_parent.append(connection)


@contextmanager
def closed_on_error(connection: DBAPIConnection | sqlite3.Connection) -> Iterator[None]:
    """Close a new connection if its set-up fails: a full disk or a lost file fails its first statement."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def wait_at_most(connection: DBAPIConnection, wait_s: float) -> None:
    """Limit the wait for a locked table, also for reads; called for each new connection to a server."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"SET lock_timeout = {max(1, int(wait_s * 1000))}")
    connection.commit()  # a rollback would undo the setting


# Exceptions of the backends, mapped to healkit's own.
#
# Every SQLite result code and every PostgreSQL SQLSTATE class that a user can meet is in one of the two tables below;
# all others become a plain `DatabaseError`. No exception of a driver or of SQLAlchemy leaves the store.


#: SQLite's primary result code → healkit's error.
SQLITE_CODES: dict[int, type[DatabaseError]] = {
    sqlite3.SQLITE_BUSY: DatabaseLocked,
    sqlite3.SQLITE_LOCKED: DatabaseLocked,
    sqlite3.SQLITE_PROTOCOL: DatabaseLocked,
    sqlite3.SQLITE_READONLY: DatabaseReadOnly,
    sqlite3.SQLITE_FULL: DatabaseFull,
    sqlite3.SQLITE_CORRUPT: DatabaseCorrupt,
    sqlite3.SQLITE_NOTADB: DatabaseCorrupt,
    sqlite3.SQLITE_CANTOPEN: DatabaseMissing,
}

#: Prefix of a PostgreSQL SQLSTATE → healkit's error; the longest match wins.
SQLSTATES: dict[str, type[DatabaseError]] = {
    "08": DatabaseMissing,  # connection_exception
    "3D": DatabaseMissing,  # invalid_catalog_name
    "25006": DatabaseReadOnly,  # read_only_sql_transaction
    "57P": DatabaseMissing,  # admin_shutdown, crash_shutdown, cannot_connect_now, database_dropped
    "42501": DatabaseReadOnly,  # insufficient_privilege
    "53100": DatabaseFull,
    "55P03": DatabaseLocked,  # lock_not_available
    "40": DatabaseLocked,  # serialization_failure, deadlock_detected
    "XX001": DatabaseCorrupt,
    "XX002": DatabaseCorrupt,
}

#: Messages of SQLite's driver and psycopg for a value without a column type.
_NO_COLUMN = re.compile(r"type '(\w+)' (?:is not supported|using placeholder)")

#: Next step if the file of a database is gone.
_PUT_BACK = "Put it back, or a copy of it, or restart the kernel to start with a new one."

_NEXT_STEP: dict[type[DatabaseError], str] = {
    DatabaseMissing: "Check the path or URL and that its folder exists.",
    DatabaseLocked: "Commit or close the other connection, then try again.",
    DatabaseReadOnly: "Make the file and its folder writable, or choose another database with HEALKIT_DB.",
    DatabaseFull: "Free some space on that disk, then try again.",
    DatabaseCorrupt: "Restore it from a copy, or move it away to start with a new one.",
}

#: Next step if the database is on a server.
_NEXT_STEP_ON_A_SERVER: dict[type[DatabaseError], str] = {
    DatabaseMissing: "Is the server running, and are user, password, host, port and name in the URL right?",
    DatabaseReadOnly: "Let the URL's user write there, or choose another database with HEALKIT_DB.",
    DatabaseFull: "Free some space on the server's disk, then try again.",
    DatabaseCorrupt: "Restore it from a copy, or name another database with HEALKIT_DB.",
}

_STATE_OF: dict[type[DatabaseError], str] = {
    DatabaseMissing: "cannot be opened",
    DatabaseLocked: "is locked by another connection",
    DatabaseReadOnly: "can only be read",
    DatabaseFull: "is out of space",
    DatabaseCorrupt: "is damaged or is not a database",
}


def translate(error: BaseException, where: str, path: Path | None = None) -> DatabaseError:
    """Return the healkit error for an exception of SQLAlchemy, a driver or the file system.

    where: Name of the database in the message.
    path: Its file, if any; it shows the cause of a failed open or of an input/output error.
    """
    if isinstance(error, DatabaseError):
        return error
    # SQLAlchemy keeps the driver's own error as `orig`.
    original: BaseException = getattr(error, "orig", None) or error
    kind = _kind_of(original, path)
    message = shown_url((str(original).strip().splitlines() or [type(original).__name__])[0])
    if kind is DatabaseError:
        return DatabaseError(
            f"The database {where} did not do what was asked: {message}.", hint=_driver_hint(original)
        )
    return kind(f"The database {where} {_STATE_OF[kind]} ({message}).", hint=_next_step(kind, path))


def _next_step(kind: type[DatabaseError], path: Path | None) -> str:
    if kind is DatabaseMissing and path is not None and path.parent.is_dir() and not path.exists():
        return _PUT_BACK
    if path is not None or kind not in _NEXT_STEP_ON_A_SERVER:
        return _NEXT_STEP[kind]
    return _NEXT_STEP_ON_A_SERVER[kind]


@contextmanager
def mapped(where: str, path: Path | None = None, also: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Raise backend exceptions of the block, and those of `also`, as `DatabaseError`s."""
    expected: tuple[type[Exception], ...] = (sqlite3.Error, *also)
    try:
        yield
    except HealkitError:
        raise
    except expected as error:
        _refuse_type(error)
        raise translate(error, where, path) from error
    except Exception as error:
        from sqlalchemy.exc import SQLAlchemyError  # late, because most blocks end without an error

        if not isinstance(error, SQLAlchemyError):
            raise
        _refuse_type(error)
        raise translate(error, where, path) from error


def _refuse_type(error: Exception) -> None:
    """Raise `UsageInvalid` if a driver received a value that fits no column, such as a list for a name."""
    if match := _NO_COLUMN.search(str(getattr(error, "orig", None) or error)):
        raise UsageInvalid(f"A {match[1]} cannot stand there.", hint="Give text or a number.") from error


def _kind_of(error: BaseException, path: Path | None) -> type[DatabaseError]:
    if isinstance(error, OSError):
        return _kind_of_os_error(error)
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return _kind_of_sqlite(code & 0xFF, path)
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if state:
        matches = [prefix for prefix in SQLSTATES if state.startswith(prefix)]
        return SQLSTATES[max(matches, key=len)] if matches else DatabaseError
    return DatabaseMissing if type(error).__name__ == "OperationalError" and path is None else DatabaseError


def _kind_of_sqlite(code: int, path: Path | None) -> type[DatabaseError]:
    if code == sqlite3.SQLITE_CANTOPEN and path is not None and path.exists():
        # The file exists, so the file or its WAL files in the same folder could not be opened.
        return DatabaseFull if is_full(path) else DatabaseReadOnly
    if code == sqlite3.SQLITE_IOERR and path is not None and is_full(path):
        return DatabaseFull
    return SQLITE_CODES.get(code, DatabaseError)


def _kind_of_os_error(error: OSError) -> type[DatabaseError]:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DatabaseFull
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return DatabaseReadOnly
    return DatabaseMissing if error.errno == errno.ENOENT else DatabaseError


def _driver_hint(error: BaseException) -> str:
    from sqlalchemy.exc import NoSuchModuleError

    if isinstance(error, ImportError | NoSuchModuleError):
        return "Install the driver that the URL names (for PostgreSQL: pip install 'psycopg[binary]')."
    return ""
