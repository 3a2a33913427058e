"""Record of a map: its rows of the log, and its values.

A map has no table. Each of its executions is a step of the run `MAP_ID#NUMBER`, so its rows are together in the log's
index of runs, in the order of the inputs. The values are in a file beside the database, exactly as they were returned.
The log shortens long values and shows others as text. A file that ends in the middle of a line was being written when
its host was killed; that line is ignored.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec

from healkit.core.crossing import values
from healkit.core.store.database import Database
from healkit.core.store.locations import views_folder

#: Rows that are read at a time.
_PAGE = 1000
_DIGITS = 9
#: Inputs that a map can have.
INPUTS_MAX = 10**_DIGITS
_ABSENT = 2**64 - 1

_ROWS = """SELECT id, run_id, tool_name, persona, status, arguments, error_code, ename, evalue, fingerprint, code_hash
    FROM executionlog WHERE run_id >= :first AND run_id <= :last AND run_id IS NOT NULL
    ORDER BY run_id, timestamp, id LIMIT :limit OFFSET :seen"""
_ANY = "SELECT id FROM executionlog WHERE run_id >= :first AND run_id <= :last AND run_id IS NOT NULL LIMIT 1"


def step_id(map_id: str, number: int) -> str:
    """Return the `run_id` of an input's rows."""
    return f"{map_id}#{number:0{_DIGITS}}"


def newest_rows(database: Database, map_id: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each input that has a row, in order, with its newest row."""
    first, last = step_id(map_id, 0), step_id(map_id, INPUTS_MAX - 1)
    waiting: tuple[int, dict[str, Any]] | None = None
    seen = 0
    while True:
        page = database.fetch(_ROWS, first=first, last=last, limit=_PAGE, seen=seen)
        for row in page:
            number = int(row["run_id"].rpartition("#")[2])
            if waiting is not None and waiting[0] != number:
                yield waiting
                seen = 0
            waiting, seen = (number, row), seen + 1
        if len(page) < _PAGE or waiting is None:
            break
        first = step_id(map_id, waiting[0])  # the next page may begin with a newer row of that input
    if waiting is not None:
        yield waiting


def folder_of(database: Database) -> Path:
    """Return the folder with the values of a database's maps."""
    return views_folder(database.path, database.url).with_suffix(".maps")


def remove_unused(database: Database) -> None:
    """Remove the values of maps that have no rows any more."""
    for path in folder_of(database).glob("*.jsonl"):
        if not database.fetch(_ANY, first=step_id(path.stem, 0), last=step_id(path.stem, INPUTS_MAX - 1)):
            path.unlink(missing_ok=True)


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """Line of the file: an input's number, and the value of its execution, encoded."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=INPUTS_MAX)]
    value: msgspec.Raw


def _file_of(database: Database, map_id: str) -> IO[bytes]:
    """Open the file of a map's values, which must not be a link; a temporary file if it cannot be written."""
    path = folder_of(database) / f"{map_id}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return tempfile.TemporaryFile()
    return os.fdopen(descriptor, "r+b")


class Values:
    """Values of one map by the numbers of its inputs; for any thread.

    kept: False for a tool whose contents are kept off the record, and for an untrusted database. The values then last
        as long as this object, as they do if no file can be written.
    """

    def __init__(self, database: Database, map_id: str, *, kept: bool) -> None:
        self._offsets, self._lock = array("Q"), threading.Lock()
        self._decode = msgspec.json.Decoder(_Kept).decode
        self._file: IO[bytes] = _file_of(database, map_id) if kept else tempfile.TemporaryFile()  # noqa: SIM115 - open as long as this
        weakref.finalize(self, self._file.close)
        end = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            with suppress(msgspec.DecodeError):  # a line that another program wrote counts for nothing
                self._note(self._decode(line).number, end)
            end += len(line)
        self._file.truncate(end)

    def add(self, number: int, encoded: bytes) -> None:
        """Keep an encoded value; from then on, a kill of this process does not lose it."""
        if b"\n" in encoded:  # as a worker may have sent it
            encoded = msgspec.json.format(encoded, indent=-1)
        with self._lock:
            self._note(number, self._file.seek(0, 2))
            self._file.write(msgspec.json.encode(_Kept(number, msgspec.Raw(encoded))) + b"\n")
            self._file.flush()

    def get(self, number: int) -> Any:
        """Return the value of that input; raise `KeyError` if it is missing, `BadValue` if it is invalid."""
        with self._lock:
            if number >= len(self._offsets) or self._offsets[number] == _ABSENT:
                raise KeyError(number)
            self._file.seek(self._offsets[number])
            line = self._file.readline()
        return values.decode(self._decode(line).value)

    def _note(self, number: int, offset: int) -> None:
        missing = number + 1 - len(self._offsets)
        if missing > 0:
            self._offsets.extend([_ABSENT] * missing)
        self._offsets[number] = offset
