"""Migrations: a database's tables brought up to this version.

The number of the last migration is in healkit's own table `healkit_version`, not in `alembic_version`, because the
database's owner may also use Alembic in it. Reading that number takes one query and does not need Alembic. Alembic
takes a third of a second to import, so it is imported only if there is a migration to run.

**Adoption.** A SQLite file may contain a table `executionlog` of another program, with exactly the log's first eight
columns and nothing of healkit's. Its rows are moved into healkit's table in the migration's transaction. Ids and texts
are kept, times without an offset are UTC, and each row gets a trace id. If a row cannot be adopted, the migration is
refused, and the table remains unchanged.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit import hooks
from healkit.core.contracts.execution import new_trace_id
from healkit.core.contracts.failure import Failure
from healkit.core.pysource.tracebacks import fingerprint
from healkit.errors import ConfigError, DatabaseError, DatabaseNewer

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

_log = logging.getLogger(__name__)

VERSION_TABLE = "healkit_version"
FOLDER = Path(__file__).parent / "migrations"

READ_VERSION = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608 - our constant

_FOREIGN_COLUMNS = (
    "id", "timestamp", "tool_name", "persona", "arguments", "status", "result_summary", "error_traceback",
)  # fmt: skip
_ORIGIN = "adopted"

_TABLE, _ASIDE = "executionlog", "executionlog_before_healkit"
_MORE = ("trace_id", "origin", "last_output", "error_code", "ename", "evalue", "fingerprint")
_CHUNK = 1000
#: How often a long migration reports that it is running, in seconds; and after how many of SQLite's
#: operations it checks the clock.
_SAID_EVERY_S, _OPERATIONS = 10.0, 1_000_000
_SELECT_FOREIGN = (
    f"SELECT {', '.join(_FOREIGN_COLUMNS)} FROM {_ASIDE} WHERE id > ? ORDER BY id LIMIT {_CHUNK}"  # noqa: S608 - ours
)
_INSERT_ADOPTED = (
    f"INSERT INTO {_TABLE} ({', '.join(_FOREIGN_COLUMNS + _MORE)}) "  # noqa: S608 - our constants
    f"VALUES ({', '.join('?' * len(_FOREIGN_COLUMNS + _MORE))})"
)


@cache
def versions(folder: Path | None = None) -> tuple[str, ...]:
    """Return the numbers of all migrations in a folder, in order: `("r0001", …)`; by default healkit's own."""
    matches = (
        re.match(r"(r\d{4})_\w+\.py$", file.name) for file in (folder or FOLDER / "versions").iterdir()
    )
    return tuple(sorted(match[1] for match in matches if match))


def head() -> str:
    """Return the number of the newest migration."""
    return versions()[-1]


def refuse_unknown(version: str | None, where: str) -> None:
    """Raise `DatabaseNewer` for a version that this healkit does not know, `DatabaseError` for one before the first."""
    if version is not None and version.isdecimal():
        raise DatabaseError(
            f"The database {where} was written before healkit's first release (its tables are at {version!r}), "
            "and no release reads it. It was left untouched.",
            hint="Name another database with HEALKIT_DB. An export of its log, by the version that wrote it, can be "
            "imported: `healkit log import FILE`.",
        )
    if version is not None and version not in versions():
        raise DatabaseNewer(
            f"The database {where} was written by a newer healkit (its tables are at {version!r}, "
            f"this version knows up to {head()!r}). It was left untouched.",
            hint="Upgrade healkit (pip install -U healkit), or name another database with HEALKIT_DB.",
        )


def current_version(connection: Connection, table: str = VERSION_TABLE) -> str | None:
    """Return the number of the last migration there, or None before the first. table: Table with the number."""
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError

    try:
        with connection.begin_nested():
            return connection.execute(text(READ_VERSION.replace(VERSION_TABLE, table))).scalar_one_or_none()
    except DBAPIError as error:
        if "no such table" in str(error.orig) or getattr(error.orig, "sqlstate", "") == "42P01":
            return None
        raise


def upgrade(connection: Connection, where: str) -> None:
    """Run the missing migrations in the connection's open write transaction; raise `DatabaseNewer`."""
    while upgrade_step(connection, where):
        pass


def upgrade_step(connection: Connection, where: str) -> bool:
    """Run the next missing migration in the connection's open write transaction; return False if there is none.

    A new database gets its tables in one step. Another is migrated one version at a time, each in its own transaction,
    so that an interrupted migration continues later. The version is read again here, under the lock: if two processes
    open a database at once, the second finds the work done. Raises `DatabaseNewer`.
    """
    version = current_version(connection)
    refuse_unknown(version, where)
    if version == head():
        _upgrade_plugins(connection)
        return False
    adopting = version is None and _set_aside(connection, where)
    number = 0 if version is None else versions().index(version) + 1
    step = "head" if version is None else versions()[number]
    with _progress(connection, where, f"migration {step}, {number + 1} of {len(versions())}"):
        _migrate(connection, step)
    if adopting:
        _bring_back(connection, where)
    return True


@contextmanager
def _progress(connection: Connection, where: str, what: str) -> Iterator[None]:
    """Report regularly that a migration is still running; on SQLite, which calls back during a statement."""
    begun = said = time.monotonic()

    def tick() -> int:
        nonlocal said
        if time.monotonic() - said > _SAID_EVERY_S:
            said = time.monotonic()
            _log.warning(
                "The database %s is being brought up to date: %s, for %.0f s. If it is stopped, the next opening "
                "begins with this one.", where, what, said - begun,
            )  # fmt: skip
        return 0

    driver: Any = connection.connection.dbapi_connection
    watched = connection.dialect.name == "sqlite"
    if watched:
        driver.set_progress_handler(tick, _OPERATIONS)
    try:
        yield
    finally:
        if watched:
            driver.set_progress_handler(None, 0)


def plugins_behind(connection: Connection) -> bool:
    """Return whether a plug-in's tables need a migration."""
    return any(
        current_version(connection, table) != versions(folder)[-1] for table, folder in _of_plugins().items()
    )


def _of_plugins() -> dict[str, Path]:
    """Return the plug-ins' folders of migrations, by the table that holds the number of the last one."""
    folders = {name: Path(folder) for given in hooks.every("migrations") for name, folder in given.items()}
    for name in folders:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name):
            raise ConfigError(f"A plug-in's migrations are named {name!r}: a lower-case name is needed.")
    return {f"healkit_{name}_version": folder for name, folder in folders.items()}


def _upgrade_plugins(connection: Connection) -> None:
    """Run the missing migrations of plug-ins.

    If a plug-in's migration fails, it is undone and affects that plug-in only: the database still opens.
    """
    for table, folder in _of_plugins().items():
        if current_version(connection, table) == versions(folder)[-1]:
            continue
        try:
            with connection.begin_nested():
                _migrate(connection, "head", folder, table)
        except Exception as error:  # noqa: BLE001 - another package's fault must not keep the database closed
            _log.warning("The tables of %s were left as they are: %s: %s", table, type(error).__name__, error)


@cache
def schema_of(version: str) -> dict[str, tuple[str, str | None]]:
    """Return the definitions of healkit's own tables, indexes and triggers on SQLite: kind and SQL by name."""
    from sqlalchemy import create_engine

    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            _migrate(connection, version)
            rows = connection.exec_driver_sql("SELECT name, type, sql FROM sqlite_master").all()
    finally:
        engine.dispose()
    return {name: (kind, sql) for name, kind, sql in rows}


def _migrate(
    connection: Connection, version: str, folder: Path | None = None, version_table: str = VERSION_TABLE
) -> None:
    """Run migrations up to a version. folder: A plug-in's, instead of healkit's own."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    if folder is not None:
        config.set_main_option("version_locations", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = version_table
    command.upgrade(config, version)


def _set_aside(connection: Connection, where: str) -> bool:
    """Rename the foreign table to make room for healkit's; return False if there is none. Raises `DatabaseError`."""
    from sqlalchemy import inspect

    if not inspect(connection).has_table(_TABLE):
        return False
    columns = [column["name"] for column in inspect(connection).get_columns(_TABLE)]
    if connection.dialect.name != "sqlite" or set(columns) != set(_FOREIGN_COLUMNS):
        raise _refused(where, f"its columns are {', '.join(columns)}")
    execute = connection.exec_driver_sql
    attached = execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') AND (tbl_name = ? OR sql LIKE ?)",
        (_TABLE, f"%{_TABLE}%"),
    ).first()
    if attached is not None:
        raise _refused(where, f"the {attached.type} {attached.name!r} is built on it")
    for (table,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'").all():
        quoted = table.replace('"', '""')
        if any(row[2] == _TABLE for row in execute(f'PRAGMA foreign_key_list("{quoted}")')):
            raise _refused(where, f"the table {table!r} refers to it")
    named = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
    for (index,) in execute(named, (_TABLE,)).all():
        quoted = index.replace('"', '""')
        execute(f'DROP INDEX "{quoted}"')
    execute(f"ALTER TABLE {_TABLE} RENAME TO {_ASIDE}")
    return True


def _bring_back(connection: Connection, where: str) -> None:
    """Move the rows of the renamed table into healkit's table, and drop the other; raise `DatabaseError`."""
    last, execute = -(2**63), connection.exec_driver_sql
    number = execute(f"SELECT count(*) FROM {_ASIDE}").scalar()  # noqa: S608 - our constant
    with _progress(connection, where, f"the {number:,} rows of its log are taken over"):
        while rows := execute(_SELECT_FOREIGN, (last,)).all():
            execute(_INSERT_ADOPTED, list(_adopted(iter(rows), where)))
            last = rows[-1].id
        execute(f"DROP TABLE {_ASIDE}")


def _adopted(rows: Iterator[Row[*tuple[Any, ...]]], where: str) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        status = str(row.status).upper()
        if status not in {"SUCCESS", "FAILURE"}:
            raise _refused(where, f"the status of its row {row.id} is {row.status!r}")
        yield (
            row.id,
            _time(row, where),
            row.tool_name or "",
            row.persona or "default",
            _json(row.arguments),
            status,
            row.result_summary,
            row.error_traceback,
            new_trace_id(),
            _ORIGIN,
            "",
            *(_failure(row.error_traceback or "") if status == "FAILURE" else (None, None, None, None)),
        )


def _time(row: Row[*tuple[Any, ...]], where: str) -> str:
    """Return the row's time in UTC, in SQLAlchemy's format for SQLite."""
    try:
        moment = datetime.fromisoformat(str(row.timestamp))
    except ValueError:
        raise _refused(where, f"the time of its row {row.id} is {row.timestamp!r}") from None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}"


def _json(text: Any) -> str | None:
    """Return the arguments if they are JSON, and any other text as a JSON string."""
    if text is None:
        return None
    try:
        json.loads(text)
    except (TypeError, ValueError):
        return json.dumps(str(text))
    return str(text)


def _failure(traceback: str) -> tuple[str, str, str, str]:
    """Read the failure's code, exception, message and fingerprint from the last line of a traceback."""
    last = next((line for line in reversed(traceback.splitlines()) if line.strip()), "")
    ename, _, evalue = last.strip().partition(": ")
    ename = ename if ename.replace(".", "").isidentifier() else "Error"
    failure = Failure("TOOL_EXCEPTION", ename, evalue, traceback)
    return failure.code, failure.ename, failure.evalue, fingerprint(failure)


def _refused(where: str, why: str) -> DatabaseError:
    return DatabaseError(
        f"The database {where} has a table {_TABLE!r} that is not healkit's and cannot be taken over: {why}.",
        hint="Nothing was changed. Rename that table, or name another database with HEALKIT_DB.",
    )
