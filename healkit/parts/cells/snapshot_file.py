"""Snapshot files: a notebook's values, as files.

Cells are tried in workers with these values. A snapshot is a folder of two files: one with the encoded values, one with
the contents of their frames and arrays. Each trial maps the second file as its own copy, which is made page by page
when it is written to. So a frame of any size is available at once, and no trial sees what another trial changes.
Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from healkit.core import plain_files
from healkit.core.crossing import regions, values
from healkit.core.wire import claims
from healkit.plain_text import count

_VALUES, _CONTENTS = "values.json", "contents"
#: Size of a file that is copied for each trial.
_COPIED_MAX_BYTES = 1024 * 1024
#: A longer text of a value is only described.
_SHOWN_CHARS = 60
#: So many names of columns tell two tables apart.
_NAMES_MAX = 500


class Header(msgspec.Struct, frozen=True):
    """Encoded values, and the positions of their contents in the other file."""

    values: msgspec.Raw
    places: list[tuple[int, int]]


def write_snapshot(folder: Path, named: Mapping[str, Any], limit_bytes: int | None = None) -> int:
    """Write the values by name to an existing folder, and return the size of their contents in bytes.

    limit_bytes: The size that they may have where they arrive.

    Raises `values.CannotCross` for the first value that cannot cross, with its path, and `OSError`.
    """
    descriptor = os.open(folder / _CONTENTS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        contents = _Written(descriptor, str(folder / _CONTENTS))
        encoded, notes = values.encode(dict(named), contents, limit_bytes=limit_bytes)
        if notes:  # of another type, it would fail in another way
            path, _, why = notes[0].partition(": ")
            raise values.CannotCross(path, why)
        os.ftruncate(descriptor, regions.size_of(contents.places))
    finally:
        os.close(descriptor)
    (folder / _VALUES).write_bytes(msgspec.json.encode(Header(msgspec.Raw(encoded), contents.places)))
    return regions.size_of(contents.places)


class _Written(list[Any]):
    """Buffers of an encoder that are written to a file one by one: at most one of them is in memory."""

    def __init__(self, descriptor: int, file: str) -> None:
        super().__init__()
        self._descriptor, self._file = descriptor, file
        self.places: regions.Places = []

    def append(self, content: Any) -> None:
        """Write the next contents, and keep only their position."""
        place = regions.next_place(self.places, content)
        self.places.append(place)
        regions.write(self._descriptor, [content], [place])
        super().append(None)

    @contextlib.contextmanager
    def appended(self) -> Iterator[str]:
        """Align the end of the file for the next contents, and record what the block appends."""
        begin, _ = regions.next_place(self.places, b"")
        os.ftruncate(self._descriptor, begin)
        yield self._file
        self.places.append((begin, os.fstat(self._descriptor).st_size - begin))
        super().append(None)


def load_snapshot(folder: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the values by name; called in the worker.

    files: Paths. Relative ones are made available from the working directory, which may become a deeper folder. A small
        file is copied, so that it can be changed; a larger one and a folder are linked.
    """
    relative = {written: real for written, real in files.items() if not os.path.isabs(written)}
    higher = max((os.path.normpath(written).split(os.sep).count("..") for written in relative), default=0)
    if higher:  # a folder so deep that these are in the worker's own folder, too
        os.makedirs(deep := os.path.join(*["within"] * higher), exist_ok=True)
        os.chdir(deep)
    for written, real in relative.items():
        os.makedirs(os.path.dirname(written) or ".", exist_ok=True)
        if not os.path.lexists(written):
            small = os.path.isfile(real) and os.path.getsize(real) <= _COPIED_MAX_BYTES
            (shutil.copyfile if small else os.symlink)(real, written)
    header = msgspec.json.decode(Path(folder, _VALUES).read_bytes(), type=Header)
    descriptor = os.open(os.path.join(folder, _CONTENTS), os.O_RDONLY)
    try:
        contents = regions.mapped(descriptor, header.places)
    finally:
        os.close(descriptor)
    loaded: dict[str, Any] = values.decode(header.values, contents)
    return loaded


def load_claimed(folder: Path, snapshot: str, name: str, limit_bytes: int) -> tuple[Any, int]:
    """Return one value, and its size, from a snapshot that a restricted, ended process wrote.

    snapshot: Its name in the folder.
    name: The name of the value.

    Raises `OSError`, and `ValueError` for an invalid or too large snapshot.
    """
    with plain_files.open_regular(folder, f"{snapshot}/{_VALUES}") as file:
        written = file.read(limit_bytes + 1)
    header = claims.decode(written, msgspec.json.Decoder(Header).decode, max_bytes=limit_bytes)
    with plain_files.open_regular(folder, f"{snapshot}/{_CONTENTS}") as file:
        contents = regions.mapped(file.fileno(), header.places)
    loaded = values.decode(header.values, contents, limit_bytes)
    if not isinstance(loaded, dict) or name not in loaded:
        raise values.BadValue(f"the snapshot has no value {name!r}")
    return loaded[name], len(written) + regions.size_of(header.places)


def described(value: Any) -> str:
    """Describe the result of a cell in a few words; empty for None. Never raises.

    An example is `a table of 4 rows × 2 columns`.
    """
    try:
        return _described(value)
    except Exception:  # noqa: BLE001 - a stranger's attributes
        return _named(type(value).__name__)


def form_of(value: Any) -> str:
    """Return a value's type, with the names of its columns if it is a table."""
    kind = type(value).__name__
    return f"{kind} {[*map(str, value.columns)][:_NAMES_MAX]}" if kind == "DataFrame" else kind


def _described(value: Any) -> str:
    kind, package = type(value).__name__, type(value).__module__.partition(".")[0]
    if value is None:
        return ""
    if kind in ("DataFrame", "LazyFrame", "Table") and isinstance(
        shape := getattr(value, "shape", None), tuple
    ):
        rows, columns = shape
        return f"a table of {count(rows, 'row')} × {count(columns, 'column')}"
    if kind == "Series" and package in ("pandas", "polars"):
        return f"a column of {count(len(value), 'value')}"
    if package == "numpy" and kind == "ndarray":
        return f"an array of shape {value.shape}"
    if package == "numpy" and hasattr(value, "item"):
        return f"{value.item()!r} ({kind})"[: 2 * _SHOWN_CHARS]
    if package == "matplotlib":
        return f"a plot ({kind})"
    if isinstance(value, bool | int | float | complex | str | bytes):
        text = repr(value)
        return (
            text
            if len(text) <= _SHOWN_CHARS
            else f"{_named(kind)} of {count(len(value) if isinstance(value, str | bytes) else len(text), 'character')}"
        )
    if isinstance(value, list | tuple | set | frozenset | dict):
        text = repr(value) if len(value) <= _SHOWN_CHARS // 3 else ""
        return (
            text
            if 0 < len(text) <= _SHOWN_CHARS and " at 0x" not in text
            else f"{_named(kind)} of {count(len(value), 'item')}"
        )
    return _named(kind)


def _named(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
