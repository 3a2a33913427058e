"""Journal of an execution's steps, safe from kill -9.

A step is a call through the bridge, or a branch decision that the tool tells of.

A commit costs more than a bridged call itself. So each record is first appended to a file, and many of them go into
the table together: when the execution ends, or with the next call after a while. Once a record is appended, a kill -9
does not lose it; a power failure may, since the file is not synced. The next host that opens the database brings in
what a killed one left behind.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from healkit.contracts.execution import CallRecord, Step, storable

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Step).decode

_PREFIX, _SUFFIX = "calls-", ".jsonl"
#: Records younger than this wait for more of their kind.
_FLUSH_AFTER_S = 0.2


class Journal:
    """Steps of one execution on their way to their tables; safe to use from several threads.

    `store` writes records to the tables, or keeps them elsewhere; it must not raise. Where no folder takes the file,
    every record goes to it at once; so does one that comes after the end, since a call may outlive its worker.
    """

    def __init__(self, folders: list[Path], trace_id: str, store: Callable[[list[Step]], None]) -> None:
        self._folders = folders
        self._name = f"{_PREFIX}{trace_id}{_SUFFIX}"
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str | int, Step] = {}
        self._since = 0.0
        self._file: Path | None = None
        self._descriptor = -1
        self._closed = False

    def append(self, record: Step) -> None:
        """Put a decision, or a call's beginning or end, on record; when this returns, kill -9 cannot undo it."""
        with self._lock:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting[_key(record)] = record
            if self._closed or not self._write(record) or time.monotonic() - self._since > _FLUSH_AFTER_S:
                self._flush()

    @property
    def used(self) -> bool:
        """True once anything was put into it."""
        return self._file is not None or bool(self._waiting)

    def close(self) -> None:
        """Move what waits to the table and remove the file; before the execution's own end is recorded."""
        with self._lock:
            self._closed = True
            self._flush()
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            if self._file is not None:
                with suppress(OSError):
                    self._file.unlink()
                    self._file.parent.rmdir()  # only if nothing else waits there

    def _write(self, record: Step) -> bool:
        if self._descriptor < 0 and not self._open():
            return False
        try:
            line = _encode(record) + b"\n"
        except UnicodeEncodeError:
            line = _encode(storable(record)) + b"\n"
        try:
            return os.write(self._descriptor, line) == len(line)
        except OSError:
            return False

    def _open(self) -> bool:
        for folder in self._folders:
            with suppress(OSError):
                folder.mkdir(mode=0o700, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL
                self._descriptor = os.open(folder / self._name, flags, 0o600)
                self._file = folder / self._name
                return True
        return False

    def _flush(self) -> None:
        if self._waiting:
            self._store(list(self._waiting.values()))
            self._waiting.clear()
            if self._descriptor >= 0:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, 0)


def left_behind(folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """Trace id and file of every journal that lies there, its execution over or not."""
    for folder in folders:
        with suppress(OSError):
            for file in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}")):
                yield file.name.removeprefix(_PREFIX).removesuffix(_SUFFIX), file


def read_journal(file: Path) -> list[Step]:
    """Return the steps in a journal, each as it was last seen; a line that a crash tore is left out."""
    found: dict[str | int, Step] = {}
    with suppress(OSError):
        for line in file.read_bytes().splitlines():
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                record = _decode(line)
                found[_key(record)] = record
    return list(found.values())


def _key(step: Step) -> str | int:
    """Return what tells it from the other steps of its execution."""
    return step.task_id if isinstance(step, CallRecord) else step.number
