"""Export to a file and import from one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from healkit.contracts.filters import Filters
from healkit.errors import LogFileError
from healkit.store.database import Database
from healkit.store.logfiles import read_file, write_file
from healkit.store.portable import Arrival, read_in, read_records, store

#: How many executions are taken in by one transaction, which nobody else can write during.
_BATCH = 200


class Imported(NamedTuple):
    """How many executions a file held, and how many of them were new here."""

    read: int
    added: int


def export_log(database: Database, path: Path, filters: Filters, *, overwrite: bool = False) -> int:
    """Write the finished executions that the filters hold for, oldest first; returns how many."""
    return write_file(path, read_records(database, filters), overwrite=overwrite)


def import_log(database: Database, path: Path) -> Imported:
    """Take in what the file holds and is not here yet, by trace id.

    Raises `LogFileError` at the first record that cannot be read; those before it are taken in by then, and importing
    the mended file again doubles none of them.
    """
    read = added = 0
    batch: list[Arrival] = []
    try:
        for where, record in read_file(path):
            batch.append(read_in(database.dialect_name, where, record))
            read += 1
            if len(batch) == _BATCH:
                full, batch = batch, []
                added += store(database, full)
    except LogFileError:
        if batch:
            store(database, batch)
        raise
    return Imported(read, added + (store(database, batch) if batch else 0))
