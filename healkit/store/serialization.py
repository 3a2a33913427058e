"""Executions as records, read from the database and stored.

One execution is one record: a dict with the log's columns by name (but the id, which is this database's own), and under
`calls`, `decisions` and `traces` the rows of the other tables that belong to it. Times are ISO 8601 with their offset,
JSON is JSON, so that an exported record and its re-import are equal. An execution that still runs has no record yet.

A trace is imported as it stood, but never as one that waits to be sent: the database that it came from sends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, Integer, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from healkit.contracts.execution import Filters, escaped, finite
from healkit.errors import LogFileError
from healkit.store.columns import UtcDateTime
from healkit.store.database import Database
from healkit.store.log_pages import oldest_first
from healkit.store.models import CALLS, DECISIONS, LOG, TRACES
from healkit.store.stats import lock_stats

Record = dict[str, Any]

#: The name in a record → the table whose rows with the same trace id belong to it, and the key of those rows.
PARTS: dict[str, tuple[Table, list[str]]] = {
    "calls": (CALLS, ["trace_id", "task_id"]),
    "decisions": (DECISIONS, ["trace_id", "number"]),
    "traces": (TRACES, ["trace_id"]),
}
COLUMNS = [column for column in LOG.columns if column.name != "id"]
_REQUIRED = ("trace_id", "timestamp", "tool_name", "persona", "status")
_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
_CHUNK = 500
_MAX_DEPTH = 400
_NUMBERS: dict[type, tuple[type, ...]] = {Boolean: (bool,), Integer: (int,), Float: (int, float)}


def read_records(database: Database, filters: Filters) -> Iterator[Record]:
    """Read the finished executions that the filters hold for, oldest first, a few hundred at a time."""
    last: tuple[datetime, int] | None = None
    while True:
        with database.read() as session:
            statement = oldest_first(session, filters, last).where(LOG.c.status != "RUNNING")
            rows = session.execute(statement.with_only_columns(*LOG.c).limit(_CHUNK)).all()
            records = records_of(session, rows)
        yield from records
        if len(rows) < _CHUNK:
            return
        last = (rows[-1].timestamp, rows[-1].id)


def records_of(session: Session, rows: Sequence[Any]) -> list[Record]:
    """Return the records of those rows of the log, with all that belongs to them."""
    records = [{column.name: _outward(getattr(row, column.name)) for column in COLUMNS} for row in rows]
    by_trace: dict[str, Record] = {record["trace_id"]: record for record in records}
    for name, (table, _) in PARTS.items():
        for record in records:
            record[name] = []
        belonging = select(table).where(table.c.trace_id.in_(list(by_trace))).order_by(table.c.id)
        for part in session.execute(belonging):
            values = {c.name: _outward(getattr(part, c.name)) for c in _own_columns(table)}
            by_trace[part.trace_id][name].append(values)
    return records


def count_parts(session: Session, trace_ids: Sequence[str]) -> dict[str, int]:
    """Count the rows of other tables that belong to each of those executions, 0 included."""
    found = dict.fromkeys(trace_ids, 0)
    for table, _ in PARTS.values():
        counted = select(table.c.trace_id, func.count()).where(table.c.trace_id.in_(trace_ids))
        for trace_id, count in session.execute(counted.group_by(table.c.trace_id)):
            found[trace_id] += count
    return found


class RecordRows(NamedTuple):
    """Rows of one record: the log's, and those of each part."""

    row: dict[str, Any]
    parts: dict[str, list[dict[str, Any]]]


def checked(dialect_name: str, where: str, record: Record) -> RecordRows:
    """Check a record and return its rows; raise `LogFileError` that says `where` the record was read."""
    row = _inward(where, record, COLUMNS)
    if row["status"] not in {"SUCCESS", "FAILURE"}:
        raise LogFileError(f"{where}: {row['status']!r} is no way for an execution to end.", hint=_HINT)
    parts = {
        name: [_inward(where, part, _own_columns(table)) for part in _list_of(where, record, name)]
        for name, (table, _) in PARTS.items()
    }
    for trace in parts["traces"]:
        trace["state"] = "local" if trace["state"] == "pending" else trace["state"]
    if dialect_name == "sqlite":
        return RecordRows(row, parts)
    return RecordRows(
        _for_server(row, LOG),
        {name: [_for_server(part, PARTS[name][0]) for part in found] for name, found in parts.items()},
    )


def _for_server(values: dict[str, Any], table: Table) -> dict[str, Any]:
    """Return the values as PostgreSQL takes them: no NUL in a text, and no NaN in JSON, where any character may be."""
    return {
        name: finite(value) if isinstance(table.c[name].type, JSON) else escaped(value)
        for name, value in values.items()
    }


def store_records(database: Database, records: Sequence[RecordRows]) -> int:
    """Insert the rows in one transaction; return how many executions were new. Existing ones stay as they are."""
    rows = [record.row for record in records]
    there = select(func.count()).where(LOG.c.trace_id.in_([row["trace_id"] for row in rows]))
    with database.write() as session:
        lock_stats(session)
        before = session.scalar(there) or 0
        for table, key, values in [
            (LOG, ["trace_id"], rows),
            *(
                (table, key, [v for record in records for v in record.parts[name]])
                for name, (table, key) in PARTS.items()
            ),
        ]:
            if values:
                insert = _INSERTS[database.dialect_name](table)
                session.execute(insert.on_conflict_do_nothing(index_elements=key), values)
        return (session.scalar(there) or 0) - before


def _own_columns(table: Table) -> list[Column[Any]]:
    """Return all columns but the id and the lease of a sending process."""
    return [c for c in table.columns if c.name != "id" and not c.name.startswith("lease_")]


def _outward(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _list_of(where: str, record: Record, name: str) -> list[Any]:
    value = record.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise LogFileError(f"{where}: {name!r} is no list of objects.", hint=_HINT)
    return [{**item, "trace_id": record["trace_id"]} for item in value]


#: The next step for a record that cannot be read.
_HINT = (
    "All before it was imported. Correct or remove it and import the file again; nothing is imported twice."
)


def _inward(where: str, record: Record, columns: Sequence[Column[Any]]) -> dict[str, Any]:
    """Return the record's values as the columns take them; raise `LogFileError` for one that they refuse."""
    names = {column.name for column in columns}
    if unknown := [name for name in record if name not in names and name not in PARTS]:
        raise LogFileError(
            f"{where}: the column {unknown[0]!r} is unknown here.",
            hint="A newer healkit wrote this file: upgrade healkit (pip install -U healkit), then import it again.",
        )
    if columns is COLUMNS and (
        missing := [name for name in _REQUIRED if not isinstance(record.get(name), str)]
    ):
        raise LogFileError(f"{where} is no execution: it has no {missing[0]!r}.", hint=_HINT)
    return {column.name: _value(where, column, record.get(column.name)) for column in columns}


def _value(where: str, column: Column[Any], value: Any) -> Any:
    """Check one value against its column's type and return it."""
    kind = column.type
    if value is None:
        if not column.nullable and isinstance(kind, UtcDateTime):
            raise LogFileError(f"{where}: {column.name!r} has no value.", hint=_HINT)
        return None if column.nullable else 0 if isinstance(kind, Integer) else ""
    if isinstance(kind, JSON):
        if _is_too_deep(value):
            raise LogFileError(f"{where}: {column.name!r} is nested too deep.", hint=_HINT)
        return value
    if isinstance(kind, UtcDateTime):
        try:
            moment = datetime.fromisoformat(value)
            known = moment.tzinfo is not None and moment.astimezone(UTC) is not None
        except (TypeError, ValueError, OverflowError):
            known = False
        if not known:
            raise LogFileError(f"{where}: {column.name!r} is no time with an offset: {value!r}.", hint=_HINT)
        return moment
    wanted = next((types for base, types in _NUMBERS.items() if isinstance(kind, base)), (str,))
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted != (bool,)):
        raise LogFileError(f"{where}: {column.name!r} cannot be {value!r}.", hint=_HINT)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(where, column, value)
    # A lone surrogate, which JSON can write, has no UTF-8 form.
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _number(where: str, column: Column[Any], value: float) -> float:
    """Return a number as its column takes it; raise `LogFileError` for one that is out of its range."""
    bits = 63 if isinstance(column.type, BigInteger) else 31
    try:
        fits = isinstance(column.type, Float) or -(2**bits) <= value < 2**bits
        if fits:
            return float(value) if isinstance(column.type, Float) else value
    except OverflowError:
        pass
    raise LogFileError(f"{where}: {column.name!r} is out of range.", hint=_HINT)


def _is_too_deep(value: Any) -> bool:
    """Return True for lists and objects in one another that no JSON encoder writes for sure."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        inner = [list(item.values()) if isinstance(item, dict) else item for item in level]
        level = [each for items in inner if isinstance(items, list) for each in items]
        if not level:
            return False
    return True
