"""Files of executions: JSON lines, and Parquet.

JSON lines need nothing; each line is one record, strict JSON in UTF-8 wherever the stored values are. Parquet needs
the extra `healkit[parquet]`; its columns are the log's, times as timestamps in UTC, JSON and what belongs to an
execution as JSON text. Both are written and read a few hundred records at a time, and a file appears under its name
only when it is whole and on disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from sqlalchemy import JSON, Boolean, Float, Integer

from healkit.errors import LogFileError
from healkit.store.columns import UtcDateTime
from healkit.store.portable import COLUMNS, PARTS, Record

_CHUNK = 500
_SUFFIXES = (".jsonl", ".parquet")

Numbered = Iterator[tuple[str, Record]]


def check_suffix(path: Path) -> None:
    """Raise `LogFileError` unless the name says which of the two formats is meant."""
    if path.suffix not in _SUFFIXES:
        raise LogFileError(
            f"{str(path)!r} does not say which format is meant.",
            hint="Let its name end in .jsonl or .parquet.",
        )
    if path.suffix == ".parquet":
        _pyarrow()


def write_file(path: Path, records: Iterable[Record], *, overwrite: bool = False) -> int:
    """Write them to a file of that name, whole or not at all; returns how many. Raises `LogFileError`."""
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
    """Write them in that suffix's format, to disk; how many, and the digest that `digest_of` must find again."""
    count, digest = 0, hashlib.sha256()

    def counted() -> Iterator[Record]:
        nonlocal count
        for record in records:
            count += 1
            digest.update(_canonical(record))
            yield record

    # It holds arguments and tracebacks, as the database does: its owner's business only.
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        (_write_jsonl if suffix == ".jsonl" else _write_parquet)(file, counted())
        file.flush()
        os.fsync(file.fileno())
    return count, digest.hexdigest()


def digest_of(path: Path, suffix: str) -> tuple[int, str]:
    """How many records the file holds, and their digest; raises `LogFileError` where it cannot be read."""
    count, digest = 0, hashlib.sha256()
    for _, record in read_file(path, suffix):
        count += 1
        digest.update(_canonical(record))
    return count, digest.hexdigest()


def read_file(path: Path, suffix: str | None = None) -> Numbered:
    """Each record of the file with where it is (`'f.jsonl', line 3`); raises `LogFileError` at the first bad one."""
    if suffix is None:
        check_suffix(path)
    try:
        with path.open("rb") as file:
            yield from (_read_jsonl if (suffix or path.suffix) == ".jsonl" else _read_parquet)(file, path)
    except OSError as error:
        raise LogFileError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None


def sync_folder(folder: Path) -> None:
    """Have the folder's entries on disk, so that a file renamed in it stays renamed after a power cut."""
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
        except ValueError as error:
            what = "is cut off" if not line.endswith(b"\n") else f"is no JSON ({error})"
            raise LogFileError(f"{where} {what}.", hint=_MEND) from None
        if not isinstance(record, dict):
            raise LogFileError(f"{where} is no object.", hint=_MEND)
        yield where, record


_MEND = (
    "What came before it was taken in; mend or remove it and import the file again, nothing will be doubled."
)


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise LogFileError(
            "Parquet needs pyarrow, which is not installed.",
            hint="Install it (pip install 'healkit[parquet]'), or let the file's name end in .jsonl.",
        ) from None


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
    """The record with its times and what is JSON converted; None stays None."""
    converted = dict(record)
    for column in COLUMNS:
        value = record.get(column.name)
        if value is not None and isinstance(column.type, UtcDateTime):
            converted[column.name] = time(value)
        elif value is not None and isinstance(column.type, JSON):
            converted[column.name] = jsonish(value)
    return {**converted, **{name: jsonish(record[name]) for name in PARTS if record.get(name) is not None}}


def _write_parquet(file: IO[bytes], records: Iterator[Record]) -> None:
    pa, parquet = _pyarrow()
    schema = _schema(pa)
    with parquet.ParquetWriter(file, schema) as writer:
        while chunk := list(itertools.islice(records, _CHUNK * 10)):
            rows = [_convert(record, datetime.fromisoformat, json.dumps) for record in chunk]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _read_parquet(file: IO[bytes], path: Path) -> Numbered:
    pa, parquet = _pyarrow()
    number = 0
    try:
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=_CHUNK):
            for row in batch.to_pylist():
                number += 1
                yield f"{str(path)!r}, row {number}", _convert(row, lambda time: time.isoformat(), json.loads)
    except (pa.ArrowException, ValueError, AttributeError, TypeError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LogFileError(f"{str(path)!r} cannot be read after row {number}: {said}.", hint=_MEND) from None
