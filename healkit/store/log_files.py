"""Files of executions, as JSON lines or Parquet.

Each JSON line is one record, strict JSON in UTF-8 wherever the stored values are. The columns of Parquet are the
log's, times as timestamps in UTC, JSON and the parts of an execution as JSON text. Both are written and read a few
hundred records at a time, and a file appears under its name only when it is whole and on disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from sqlalchemy import JSON, Boolean, Float, Integer

from healkit.contracts.execution import Filters
from healkit.errors import LogFileError
from healkit.store.columns import UtcDateTime
from healkit.store.database import Database
from healkit.store.serialization import (
    COLUMNS,
    PARTS,
    Record,
    RecordRows,
    checked,
    read_records,
    store_records,
)

_CHUNK = 500
#: Executions imported in one transaction, during which no other process can write.
_BATCH = 200
_SUFFIXES = (".jsonl", ".parquet")

#: Records, each with where it was read.
Numbered = Iterator[tuple[str, Record]]


class Imported(NamedTuple):
    """Number of executions in a file, and of those that were new here."""

    read: int
    added: int


def export_log(database: Database, path: Path, filters: Filters, *, overwrite: bool = False) -> int:
    """Write the finished executions that the filters hold for, oldest first; return how many."""
    return write_file(path, read_records(database, filters), overwrite=overwrite)


def import_log(database: Database, path: Path) -> Imported:
    """Import the executions of a file that are not here yet, by trace id.

    Raises `LogFileError` at the first record that cannot be read; those before it are imported by then, and importing
    the corrected file again doubles none of them.
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
    """Raise `LogFileError` unless the name ends in that of a format, whose package is installed."""
    if path.suffix not in _SUFFIXES:
        raise LogFileError(
            f"{str(path)!r} does not say which format is meant.",
            hint="Let its name end in .jsonl or .parquet.",
        )


def write_file(path: Path, records: Iterable[Record], *, overwrite: bool = False) -> int:
    """Write records to a file of that name, whole or not at all; return how many. Raises `LogFileError`."""
    check_suffix(path)
    if path.exists() and not overwrite:
        raise LogFileError(f"{str(path)!r} is there already.", hint="Name another file, or remove it first.")
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
    """Write records to disk in that suffix's format; return how many, and the digest that `digest_of` must find."""
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
            raise LogFileError(f"{where} is nested too deep.", hint=_MEND) from None
        except ValueError as error:
            what = "is cut off" if not line.endswith(b"\n") else f"is no JSON ({error})"
            raise LogFileError(f"{where} {what}.", hint=_MEND) from None
        if not isinstance(record, dict):
            raise LogFileError(f"{where} is no object.", hint=_MEND)
        yield where, record


_MEND = (
    "All before it was imported. Correct or remove it and import the file again; nothing is imported twice."
)


def _schema(pa: Any) -> Any:
    def kind(column: Any) -> Any:
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
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LogFileError(f"{str(path)!r} cannot be read after row {number}: {said}.", hint=_MEND) from None
