"""Files of executions, as JSON lines or Parquet.

Each JSON line is one record, as strict JSON in UTF-8 if the stored values are. Parquet has the columns of the log:
times are timestamps in UTC; JSON and the parts of an execution are JSON text. Both formats are written and read a few
hundred records at a time. A file appears under its final name only when it is complete and on disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Integer,
    Table,
    func,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from healkit.core.contracts.execution import Filters, escaped
from healkit.core.store.database import Database
from healkit.core.store.log_pages import oldest_first
from healkit.core.store.log_reader import Imported
from healkit.core.store.models import (
    CALLS,
    DECISIONS,
    LOG,
    TRACES,
    UtcDateTime,
)
from healkit.core.store.stats import lock_stats
from healkit.core.wire.record_text import finite
from healkit.errors import LogFileError

if TYPE_CHECKING:
    from types import ModuleType


_CHUNK = 500
#: Executions imported in one transaction, during which no other process can write.
_BATCH = 200
_SUFFIXES = (".jsonl", ".parquet")

Record = dict[str, Any]
#: Records, each with where it was read.
Numbered = Iterator[tuple[str, Record]]


def export_log(database: Database, path: Path, filters: Filters, *, overwrite: bool = False) -> int:
    """Write the finished executions that match the filters, oldest first; return how many."""
    return write_file(path, read_records(database, filters), overwrite=overwrite)


def import_log(database: Database, path: Path) -> Imported:
    """Import the executions of a file that do not exist here yet, by trace id.

    Raises `LogFileError` at the first record that cannot be read. The records before it are then imported; importing
    the corrected file again does not duplicate them.
    """
    read = added = 0
    batch: list[RecordRows] = []
    try:
        for where, record in read_file(path):
            batch.append(checked(database.dialect_name, where, record))
            read += 1
            if len(batch) == _BATCH:
                full, batch = batch, []
                added += store_records(database, full)
    except LogFileError:
        if batch:
            store_records(database, batch)
        raise
    return Imported(read, added + (store_records(database, batch) if batch else 0))


def check_suffix(path: Path) -> None:
    """Raise `LogFileError` unless the name has the extension of a format whose package is installed."""
    if path.suffix not in _SUFFIXES:
        raise LogFileError(
            f"{str(path)!r} has no known file format.",
            hint="Use a file name that ends in .jsonl or .parquet.",
        )


def write_file(path: Path, records: Iterable[Record], *, overwrite: bool = False) -> int:
    """Write records to a file, completely or not at all; return how many. Raises `LogFileError`."""
    check_suffix(path)
    if path.exists() and not overwrite:
        raise LogFileError(
            f"{str(path)!r} already exists.", hint="Choose another file, or remove this one first."
        )
    partial = path.with_name(f"{path.name}.partial")
    try:
        count, _ = write_unfinished(partial, path.suffix, records)
        partial.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise LogFileError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    return count


def write_unfinished(path: Path, suffix: str, records: Iterable[Record]) -> tuple[int, str]:
    """Write records to disk in that suffix's format; return how many, and the digest that `digest_of` must return."""
    count, digest = 0, hashlib.sha256()

    def counted() -> Iterator[Record]:
        nonlocal count
        for record in records:
            count += 1
            digest.update(_canonical(record))
            yield record

    # It holds arguments and tracebacks, as the database does, so only its owner may read it.
    # The name can be guessed, so nothing that is there already is written to: a link would lead anywhere.
    path.unlink(missing_ok=True)
    exclusive = os.O_EXCL | os.O_NOFOLLOW
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags | exclusive, 0o600)) as file:
        (_write_jsonl if suffix == ".jsonl" else _write_parquet)(file, counted())
        file.flush()
        os.fsync(file.fileno())
    return count, digest.hexdigest()


def digest_of(path: Path, suffix: str) -> tuple[int, str]:
    """Return how many records the file holds, and their digest; raise `LogFileError` where it cannot be read."""
    count, digest = 0, hashlib.sha256()
    for _, record in read_file(path, suffix):
        count += 1
        digest.update(_canonical(record))
    return count, digest.hexdigest()


def read_file(path: Path, suffix: str | None = None) -> Numbered:
    """Read each record with its place (`'f.jsonl', line 3`); raise `LogFileError` at the first bad one."""
    if suffix is None:
        check_suffix(path)
    try:
        with path.open("rb") as file:
            yield from (_read_jsonl if (suffix or path.suffix) == ".jsonl" else _read_parquet)(file, path)
    except OSError as error:
        raise LogFileError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None


def sync_folder(folder: Path) -> None:
    """Flush the folder's entries to disk, so that a file renamed in it stays renamed after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _canonical(record: Record) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _write_jsonl(file: IO[bytes], records: Iterable[Record]) -> None:
    for record in records:
        try:
            line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # a lone surrogate in stored JSON, which only an escape can write
            line = json.dumps(record, separators=(",", ":")).encode()
        file.write(line + b"\n")


def _read_jsonl(file: IO[bytes], path: Path) -> Numbered:
    for number, line in enumerate(file, 1):
        where = f"{str(path)!r}, line {number}"
        try:
            record = json.loads(line)
        except RecursionError:
            raise LogFileError(f"{where} is nested too deeply.", hint=_MEND) from None
        except ValueError as error:
            what = "is cut off" if not line.endswith(b"\n") else f"is not JSON ({error})"
            raise LogFileError(f"{where} {what}.", hint=_MEND) from None
        if not isinstance(record, dict):
            raise LogFileError(f"{where} is not an object.", hint=_MEND)
        yield where, record


_MEND = "Everything before it was imported. Correct or remove it and import the file again; nothing is imported twice."


def _schema(pa: ModuleType) -> Any:
    def kind(column: Column[Any]) -> Any:
        if isinstance(column.type, UtcDateTime):
            return pa.timestamp("us", tz="UTC")
        for base, arrow in ((Boolean, pa.bool_()), (Integer, pa.int64()), (Float, pa.float64())):
            if isinstance(column.type, base):
                return arrow
        return pa.string()

    fields = [pa.field(column.name, kind(column)) for column in COLUMNS]
    return pa.schema([*fields, *(pa.field(name, pa.string()) for name in PARTS)], metadata={"healkit": "1"})


def _convert(record: Record, time: Callable[[Any], Any], jsonish: Callable[[Any], Any]) -> Record:
    """Return the record with its times and its JSON converted; None stays None."""
    converted = dict(record)
    for column in COLUMNS:
        value = record.get(column.name)
        if value is not None and isinstance(column.type, UtcDateTime):
            converted[column.name] = time(value)
        elif value is not None and isinstance(column.type, JSON):
            converted[column.name] = jsonish(value)
    return {**converted, **{name: jsonish(record[name]) for name in PARTS if record.get(name) is not None}}


def _write_parquet(file: IO[bytes], records: Iterator[Record]) -> None:
    import pyarrow as pa  # late: it takes a tenth of a second to load
    from pyarrow import parquet

    schema = _schema(pa)
    with parquet.ParquetWriter(file, schema) as writer:
        while chunk := list(itertools.islice(records, _CHUNK * 10)):
            rows = [_convert(record, datetime.fromisoformat, json.dumps) for record in chunk]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _read_parquet(file: IO[bytes], path: Path) -> Numbered:
    import pyarrow as pa
    from pyarrow import parquet

    number = 0
    try:
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=_CHUNK):
            for row in batch.to_pylist():
                number += 1
                yield f"{str(path)!r}, row {number}", _convert(row, lambda time: time.isoformat(), json.loads)
    except (pa.ArrowException, ValueError, AttributeError, TypeError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LogFileError(
            f"{str(path)!r} cannot be read after row {number}: {reason}.", hint=_MEND
        ) from None


# Executions as records, read from the database and stored.
#
# One execution is one record: a dict with the log's columns by name, but without the id, which is this database's own.
# Under `calls`, `decisions` and `traces` it has the rows of the other tables that belong to it. Times are ISO 8601 with
# their offset, JSON is JSON, so that an exported record and its re-import are equal. An execution that still runs has
# no record yet.
#
# A trace is imported as it stood, but never as one that waits to be sent: the database that it came from sends it.


#: The name in a record → the table whose rows with the same trace id belong to it, and the key of those rows.
PARTS: dict[str, tuple[Table, list[str]]] = {
    "calls": (CALLS, ["trace_id", "task_id"]),
    "decisions": (DECISIONS, ["trace_id", "number"]),
    "traces": (TRACES, ["trace_id"]),
}
COLUMNS = [column for column in LOG.columns if column.name != "id"]
_REQUIRED = ("trace_id", "timestamp", "tool_name", "persona", "status")
_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}

_MAX_DEPTH = 400
_NUMBERS: dict[type, tuple[type, ...]] = {Boolean: (bool,), Integer: (int,), Float: (int, float)}


def read_records(database: Database, filters: Filters) -> Iterator[Record]:
    """Read the finished executions that match the filters, oldest first, a few hundred at a time."""
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
    counts = dict.fromkeys(trace_ids, 0)
    for table, _ in PARTS.values():
        counted = select(table.c.trace_id, func.count()).where(table.c.trace_id.in_(trace_ids))
        for trace_id, count in session.execute(counted.group_by(table.c.trace_id)):
            counts[trace_id] += count
    return counts


class RecordRows(NamedTuple):
    """Rows of one record: the log's, and those of each part."""

    row: dict[str, Any]
    parts: dict[str, list[dict[str, Any]]]


def checked(dialect_name: str, where: str, record: Record) -> RecordRows:
    """Check a record and return its rows; raise `LogFileError` that says `where` the record was read."""
    row = _inward(where, record, COLUMNS)
    if row["status"] not in {"SUCCESS", "FAILURE"}:
        raise LogFileError(f"{where}: {row['status']!r} is not a valid status of an execution.", hint=_HINT)
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
        {
            name: [_for_server(part, PARTS[name][0]) for part in part_rows]
            for name, part_rows in parts.items()
        },
    )


def _for_server(values: dict[str, Any], table: Table) -> dict[str, Any]:
    """Return values that PostgreSQL accepts: no NUL in a text, and no NaN in JSON."""
    return {
        name: finite(value) if isinstance(table.c[name].type, JSON) else escaped(value)
        for name, value in values.items()
    }


def store_records(database: Database, records: Sequence[RecordRows]) -> int:
    """Insert the rows in one transaction; return how many executions were new. Existing ones stay unchanged."""
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


def _outward(value: object) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _list_of(where: str, record: Record, name: str) -> list[Any]:
    value = record.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise LogFileError(f"{where}: {name!r} is not a list of objects.", hint=_HINT)
    return [{**item, "trace_id": record["trace_id"]} for item in value]


#: The next step for a record that cannot be read.
_HINT = "Everything before it was imported. Correct or remove it and import the file again; nothing is imported twice."


def _inward(where: str, record: Record, columns: Sequence[Column[Any]]) -> dict[str, Any]:
    """Return the record's values for the columns; raise `LogFileError` for a value that a column refuses."""
    names = {column.name for column in columns}
    if unknown := [name for name in record if name not in names and name not in PARTS]:
        raise LogFileError(
            f"{where}: this healkit does not know the column {unknown[0]!r}.",
            hint="A newer healkit wrote this file: upgrade healkit (pip install -U healkit), then import it again.",
        )
    if columns is COLUMNS and (
        missing := [name for name in _REQUIRED if not isinstance(record.get(name), str)]
    ):
        raise LogFileError(f"{where} is not an execution: it has no {missing[0]!r}.", hint=_HINT)
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
            raise LogFileError(f"{where}: {column.name!r} is nested too deeply.", hint=_HINT)
        return value
    if isinstance(kind, UtcDateTime):
        try:
            moment = datetime.fromisoformat(value)
            has_offset = moment.tzinfo is not None and moment.astimezone(UTC) is not None
        except (TypeError, ValueError, OverflowError):
            has_offset = False
        if not has_offset:
            raise LogFileError(
                f"{where}: {column.name!r} is not a time with an offset: {value!r}.", hint=_HINT
            )
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


def _is_too_deep(value: object) -> bool:
    """Return True for lists and objects that are nested too deeply for a JSON encoder."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        inner = [list(item.values()) if isinstance(item, dict) else item for item in level]
        level = [child for items in inner if isinstance(items, list) for child in items]
        if not level:
            return False
    return True
