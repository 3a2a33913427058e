"""Adoption of a log that another program wrote.

A SQLite file may hold a table `executionlog` with exactly the log's first eight columns and nothing of healkit's. Its
rows are moved into the real table within the migration's own transaction: ids and texts stay, times without an offset
are UTC, and each row gets a trace id. Rows that cannot be adopted cleanly are refused, and the table is left as it was.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, inspect

from healkit.contracts.failure import Failure
from healkit.contracts.fingerprint import fingerprint
from healkit.contracts.records import new_trace_id
from healkit.errors import DatabaseError

COLUMNS = (
    "id", "timestamp", "tool_name", "persona", "arguments", "status", "result_summary", "error_traceback",
)  # fmt: skip
ORIGIN = "adopted"

_TABLE, _ASIDE = "executionlog", "executionlog_before_healkit"
_MORE = ("trace_id", "origin", "last_output", "error_code", "ename", "evalue", "fingerprint")
_CHUNK = 1000
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM {_ASIDE} ORDER BY id"  # noqa: S608 - constants of ours
_INSERT = (
    f"INSERT INTO {_TABLE} ({', '.join(COLUMNS + _MORE)}) "  # noqa: S608 - constants of ours
    f"VALUES ({', '.join('?' * len(COLUMNS + _MORE))})"
)


def set_aside(connection: Connection, where: str) -> bool:
    """Rename the foreign table to make room for healkit's; return False where there is none. Raises `DatabaseError`."""
    if not inspect(connection).has_table(_TABLE):
        return False
    found = [column["name"] for column in inspect(connection).get_columns(_TABLE)]
    if connection.dialect.name != "sqlite" or set(found) != set(COLUMNS):
        raise _refused(where, f"its columns are {', '.join(found)}")
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


def bring_back(connection: Connection, where: str) -> None:
    """Move the rows that were set aside into healkit's table, and drop the other; raise `DatabaseError`."""
    rows = iter(connection.exec_driver_sql(_SELECT).all())
    while chunk := list(itertools.islice(_adopted(rows, where), _CHUNK)):
        connection.exec_driver_sql(_INSERT, chunk)
    connection.exec_driver_sql(f"DROP TABLE {_ASIDE}")


def _adopted(rows: Iterator[Any], where: str) -> Iterator[tuple[Any, ...]]:
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
            ORIGIN,
            "",
            *(_failure(row.error_traceback or "") if status == "FAILURE" else (None, None, None, None)),
        )


def _time(row: Any, where: str) -> str:
    """Return the row's time in UTC, as SQLAlchemy writes one on SQLite."""
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
    """Read the failure's code, exception, message and fingerprint off the last line of a traceback."""
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
