"""Mapping of backend exceptions to healkit's own.

Every SQLite result code and every PostgreSQL SQLSTATE class that a user can meet is in one of the two tables below; all
others become a plain `DatabaseError`. No exception of a driver or of SQLAlchemy leaves the store.
"""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from healkit.errors import (
    DatabaseCorrupt,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseMissing,
    DatabaseReadOnly,
    HealkitError,
    UsageInvalid,
)
from healkit.plain_text import shown_url
from healkit.store.locations import is_full

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

#: The beginning of a PostgreSQL SQLSTATE → healkit's error; the longest match wins.
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

#: What SQLite's driver and psycopg say of such a value.
_NO_COLUMN = re.compile(r"type '(\w+)' (?:is not supported|using placeholder)")

_NEXT_STEP: dict[type[DatabaseError], str] = {
    DatabaseMissing: "Check the path or URL and that its folder exists.",
    DatabaseLocked: "Commit or close the other connection, then try again.",
    DatabaseReadOnly: "Make the file and its folder writable, or choose another database with HEALKIT_DB.",
    DatabaseFull: "Free some space on that disk, then try again.",
    DatabaseCorrupt: "Restore it from a copy, or move it away to start with a new one.",
}

#: The same, where the database is on a server.
_ON_A_SERVER: dict[type[DatabaseError], str] = {
    DatabaseMissing: "Is the server running, and are user, password, host, port and name in the URL right?",
    DatabaseReadOnly: "Let the URL's user write there, or choose another database with HEALKIT_DB.",
    DatabaseFull: "Free some space on the server's disk, then try again.",
    DatabaseCorrupt: "Restore it from a copy, or name another database with HEALKIT_DB.",
}

_WHAT: dict[type[DatabaseError], str] = {
    DatabaseMissing: "cannot be opened",
    DatabaseLocked: "is locked by another connection",
    DatabaseReadOnly: "can only be read",
    DatabaseFull: "is out of space",
    DatabaseCorrupt: "is damaged or is no database",
}


def translate(error: BaseException, where: str, path: Path | None = None) -> DatabaseError:
    """Return the healkit error for an exception of SQLAlchemy, a driver or the file system.

    where: names the database in the message. path: its file, where it has one; the cause of a failed open or of an
    input/output error is read off it.
    """
    if isinstance(error, DatabaseError):
        return error
    # SQLAlchemy keeps the driver's own error as `orig`.
    original: BaseException = getattr(error, "orig", None) or error
    kind = _kind(original, path)
    said = shown_url((str(original).strip().splitlines() or [type(original).__name__])[0])
    if kind is DatabaseError:
        return DatabaseError(
            f"The database {where} did not do what was asked: {said}.", hint=_driver_hint(original)
        )
    return kind(f"The database {where} {_WHAT[kind]} ({said}).", hint=_next_step(kind, path))


def _next_step(kind: type[DatabaseError], path: Path | None) -> str:
    if path is not None or kind not in _ON_A_SERVER:
        return _NEXT_STEP[kind]
    return _ON_A_SERVER[kind]


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
        from sqlalchemy.exc import SQLAlchemyError  # here, not above: most blocks end without an error

        if not isinstance(error, SQLAlchemyError):
            raise
        _refuse_type(error)
        raise translate(error, where, path) from error


def _refuse_type(error: Exception) -> None:
    """Raise `UsageInvalid` where a driver was given what no column holds, such as a list for a name."""
    if found := _NO_COLUMN.search(str(getattr(error, "orig", None) or error)):
        raise UsageInvalid(f"A {found[1]} cannot stand there.", hint="Give text or a number.") from error


def _kind(error: BaseException, path: Path | None) -> type[DatabaseError]:
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
        # The file exists, so it or its WAL files in the same folder could not be opened.
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
