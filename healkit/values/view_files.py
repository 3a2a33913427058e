"""Files of data views: Parquet, or what crossed.

A frame or a table is Parquet, so that any program can read it. Parquet does not hold everything exactly: the file is
read back, and where that is not the same value, or where the value is no table, the file has the exact encoding of
`crossing` instead. Either way a value is known by the SHA-256 of that encoding.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from healkit.values import crossing, regions
from healkit.values.plain import BadValue

Format = Literal["parquet", "contents"]

#: Key of what Parquet's own metadata of a frame does not hold, in the file's metadata.
_METADATA_KEY = b"healkit"
_HEAD_BYTES = 8


class Encoded(NamedTuple):
    """Value as it crosses: its JSON, and the contents that this refers to."""

    data: bytes
    contents: list[Any]

    @property
    def size(self) -> int:
        """Bytes of it all."""
        return len(self.data) + sum(memoryview(one).nbytes for one in self.contents)


def encoded(value: object) -> Encoded:
    """Return the exact encoding of a frame, an array or a table. Raises `CannotCross`."""
    contents: list[Any] = []
    return Encoded(crossing.encode(_in_one_piece(value), contents)[0], contents)


def identity(value: Encoded) -> str:
    """Return the SHA-256 of an encoding, in hexadecimal."""
    digest = hashlib.sha256(value.data)
    for one in value.contents:
        data = memoryview(one).cast("B")
        digest.update(data.nbytes.to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def write(value: Any, whole: Encoded, digest: str, folder: Path) -> tuple[Path, Format]:
    """Write a value into the folder, under its digest, and return its file; raise `OSError`.

    The file is there whole or not at all, readable by its owner only.
    """
    table = _parquet_table(value)
    if table is not None:
        file = folder / f"{digest}.parquet"
        _put(file, lambda part: _write_parquet(table, part), lambda part: _holds(part, digest))
        if file.exists():
            return file, "parquet"
    file = folder / f"{digest}.contents"
    _put(file, lambda part: _write_contents(whole, part), lambda _part: True)
    return file, "contents"


def read(file: Path) -> Any:
    """Return the value of a file; raises `OSError`, and `BadValue` for one that was damaged."""
    if file.suffix == ".parquet":
        import pyarrow as pa

        try:
            return _read_parquet(file)
        except (pa.ArrowException, ValueError, KeyError) as error:
            raise BadValue(f"damaged Parquet: {str(error)[:200]}") from None
    return _read_contents(file)


def _put(file: Path, write_part: Callable[[Path], bool], is_right: Callable[[Path], bool]) -> None:
    part = file.with_suffix(f".{os.getpid()}.part")
    try:
        descriptor = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        os.close(descriptor)
        if not write_part(part) or not is_right(part):
            return
        descriptor = os.open(part, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _in_one_piece(value: Any) -> Any:
    """Return a table without the seams between its chunks, which are none of its contents."""
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    if package == "polars" and name == "DataFrame":
        return value.rechunk()
    if package == "pyarrow" and name == "Table":
        return value.combine_chunks()
    return value


def _parquet_table(value: Any) -> Any:
    """Return a frame or a table as Arrow's table with what it takes to restore it; None for anything else."""
    import pyarrow as pa

    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    if package == "pandas" and name == "DataFrame":
        return _of_pandas(value)
    try:
        if package == "polars" and name == "DataFrame":
            table = value.to_arrow()
        elif package == "pyarrow" and name == "Table":
            table = value
        else:
            return None
        metadata = {**(table.schema.metadata or {}), _METADATA_KEY: json.dumps({"type": package}).encode()}
        return table.replace_schema_metadata(metadata)
    except pa.ArrowException:
        return None


def _of_pandas(frame: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    if not frame.columns.is_unique or not frame.columns.map(str).is_unique:
        return None
    numpy = sys.modules["numpy"]
    named = frame
    if "mixed" in frame.columns.inferred_type and not isinstance(frame.columns, pd.MultiIndex):
        # Arrow would name them so too, and warn on the user's screen; the skeleton below has the labels themselves.
        named = frame.set_axis([str(label) for label in frame.columns], axis=1)
    try:
        table = pa.Table.from_pandas(named)
        # Arrow's way from pandas makes a null of each NaN, and so loses which one it was.
        columns = table.columns
        for i, (_, column) in enumerate(frame.items()):
            if isinstance(column.dtype, numpy.dtype) and column.dtype.kind == "f":
                columns[i] = pa.array(column.to_numpy(), from_pandas=False)
        table = pa.Table.from_arrays(columns, schema=table.schema)
        empty = pd.DataFrame(index=frame.index[:0], columns=frame.columns)
        empty.attrs = frame.attrs
        skeleton = crossing.encode(empty)[0].decode()
        more = {"type": "pandas", "skeleton": skeleton, "freq": getattr(frame.index, "freqstr", None)}
    except (pa.ArrowException, ValueError, TypeError, OverflowError):  # what a column of objects may raise
        return None
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _METADATA_KEY: json.dumps(more).encode()}
    )


def _write_parquet(table: Any, part: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A dictionary of floats would make one NaN of all.
    texts = [
        field.name
        for field in table.schema
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]
    try:
        pq.write_table(
            table,
            part,
            compression="zstd",
            compression_level=1,
            use_dictionary=texts or False,
            write_page_checksum=True,
        )
    except (pa.ArrowException, ValueError, TypeError):
        return False
    return True


def _read_parquet(file: Path, split: bool = False) -> Any:
    """Read a value; split: a frame's columns stay in Arrow's memory, read-only, so that none is there twice."""
    import pyarrow.parquet as pq

    table = pq.read_table(file, page_checksum_verification=True, pre_buffer=not split)
    metadata = dict(table.schema.metadata or {})
    more = json.loads(metadata.pop(_METADATA_KEY))
    if more["type"] != "pandas":
        table = table.replace_schema_metadata(metadata or None).combine_chunks()
        if more["type"] != "polars":
            return table
        import polars

        return polars.from_arrow(table).rechunk()
    frame = table.to_pandas(split_blocks=split, self_destruct=split)
    del table
    skeleton = crossing.decode(more["skeleton"].encode())
    frame.columns, frame.attrs = skeleton.columns, skeleton.attrs
    if more["freq"]:
        frame.index.freq = more["freq"]
    return frame


def _holds(part: Path, digest: str) -> bool:
    """Return whether a Parquet file gives the value back exactly; leave no memory behind."""
    import pyarrow as pa

    try:
        return identity(encoded(_read_parquet(part, split=True))) == digest
    except Exception:  # noqa: BLE001 - whatever does not read back is kept in the other form
        return False
    finally:
        pa.default_memory_pool().release_unused()


def _write_contents(whole: Encoded, part: Path) -> bool:
    places = regions.places_of(whole.contents)
    head = json.dumps([whole.data.decode(), places]).encode()
    with part.open("wb") as file:
        file.write(len(head).to_bytes(_HEAD_BYTES, "little") + head)
        begin = _contents_begin(len(head))
        for (place, _), one in zip(places, whole.contents, strict=True):
            file.seek(begin + place)
            file.write(memoryview(one).cast("B"))
        file.truncate(begin + regions.size_of(places))
    return True


def _read_contents(file: Path) -> Any:
    raw = memoryview(bytearray(file.stat().st_size))
    with file.open("rb", buffering=0) as source:
        done = 0
        while count := source.readinto(raw[done:]):
            done += count
    try:
        size = int.from_bytes(raw[:_HEAD_BYTES], "little")
        data, places = json.loads(bytes(raw[_HEAD_BYTES : _HEAD_BYTES + size]))
    except ValueError as error:
        raise BadValue(f"damaged file: {error}") from None
    begin = _contents_begin(size)
    if done != len(raw) or begin + regions.size_of(places) != done:
        raise BadValue("a file of another length than it says")
    contents = [raw[begin + place : begin + place + length] for place, length in places]
    whole = Encoded(data.encode(), contents)
    if file.suffix == ".contents" and identity(whole) != file.stem:
        raise BadValue("a file of other contents than it had")
    return crossing.decode(*whole)


def _contents_begin(head: int) -> int:
    """Return where the contents begin behind a head of that size: at a multiple of 64, as numpy and Arrow like it."""
    return -(-(_HEAD_BYTES + head) // 64) * 64
