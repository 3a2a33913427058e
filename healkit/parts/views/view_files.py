"""Files of data views: Parquet, or what crossed.

A frame or a table is stored as Parquet, so that any program can read it. Parquet cannot store everything exactly. So
the file is read back. If the value is not the same, or is not a table, the file gets the exact encoding of `crossing`
instead. In both cases a value is identified by the SHA-256 of that encoding. A file is named by its content: `<SHA-256
of the value>.<SHA-256 of the file's bytes>.parquet`, `<SHA-256 of the value>.contents`.

Each reading checks the content: the file is read into memory once, and exactly the checked bytes are decoded. So
nothing can be swapped in between. Bytes are checked instead of the value. A new version of healkit or pandas may encode
a value differently, and an unchanged file must stay readable. A Parquet file of an older healkit has no hash of its
bytes in its name, so its value is checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sys
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from healkit.core import plain_files
from healkit.core.crossing import regions, values
from healkit.core.crossing.codec import BadValue, Foreign

#: Key of what Parquet's own metadata of a frame does not hold, in the file's metadata.
_METADATA_KEY = b"healkit"
_HEAD_BYTES = 8
_NAME = re.compile(r"(?P<value>[0-9a-f]{64})(?:(?:\.(?P<bytes>[0-9a-f]{64}))?\.parquet|\.contents)")
_PART = re.compile(r"[0-9a-f]{64}\.[0-9a-f]+\.part")


class Encoded(NamedTuple):
    """Value in its crossing form: its JSON, and the contents that the JSON refers to."""

    data: bytes
    contents: list[Any]

    @property
    def size(self) -> int:
        """Size of all of it in bytes."""
        return len(self.data) + sum(memoryview(content).nbytes for content in self.contents)


def encoded(value: object) -> Encoded:
    """Return the exact encoding of a frame, an array or a table. Raises `CannotCross`."""
    contents: list[Any] = []
    return Encoded(values.encode(_in_one_piece(value), contents)[0], contents)


def identity(value: Encoded) -> str:
    """Return the SHA-256 of an encoding, in hexadecimal."""
    digest = hashlib.sha256(value.data)
    for content in value.contents:
        data = memoryview(content).cast("B")
        digest.update(data.nbytes.to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def digest_in(name: str) -> str | None:
    """Return the digest of the value that a file of that name must contain; None for a name of another form."""
    match = _NAME.fullmatch(name)
    return None if match is None else match["value"]


def is_own(name: str) -> bool:
    """Return whether a file of that name is one of these, complete or partial."""
    return bool(_NAME.fullmatch(name) or _PART.fullmatch(name))


def write_view(value: object, whole: Encoded, digest: str, folder: Path) -> Path:
    """Write a value into the folder, and return its file, named by its content; raise `OSError`.

    The file appears completely or not at all, and only its owner can read it.
    """
    part = folder / f"{digest}.{secrets.token_hex(8)}.part"
    try:
        if (table := _parquet_table(value)) is not None:
            with _begun(part) as file:
                written = _Hashed(file)
                complete = _write_parquet(table, written)
            if complete and _holds(part, digest):
                return _finished(part, f"{digest}.{written.digest.hexdigest()}.parquet")
            part.unlink()
        with _begun(part) as file:
            _write_contents(whole, file)
        return _finished(part, f"{digest}.contents")
    finally:
        part.unlink(missing_ok=True)


def read_view(folder: Path, name: str) -> Any:
    """Return the value of a file.

    Raises `OSError`, and `BadValue` for a file whose content does not match its name.
    """
    digest = digest_in(name)
    if digest is None:
        raise BadValue(f"{name[:200]!r} is not the name of a view's file")
    raw = _bytes_of(folder, name)
    if name.endswith(".contents"):
        return values.decode(*_checked_contents(raw, digest))
    import pyarrow as pa

    _check_bytes(raw, name)
    try:
        value = _read_parquet(pa.BufferReader(pa.py_buffer(raw)))
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise BadValue(f"damaged Parquet: {str(error)[:200]}") from None
    if not _has_hash(name) and identity(encoded(value)) != digest:
        raise BadValue(_OTHER)
    return value


def check_view(folder: Path, name: str) -> None:
    """Check that a file's content matches its name; raise as `read` does."""
    if not _has_hash(name):
        read_view(folder, name)
    else:
        _check_bytes(_bytes_of(folder, name), name)


_OTHER = "it does not hold the data that was kept"


def _has_hash(name: str) -> bool:
    match = _NAME.fullmatch(name)
    return match is not None and match["bytes"] is not None


def _check_bytes(raw: memoryview, name: str) -> None:
    """Raise `BadValue` if the bytes do not have the hash in the name; a name without a hash is not checked."""
    if _has_hash(name) and hashlib.sha256(raw).hexdigest() != name.split(".")[1]:
        raise BadValue(_OTHER)


def _bytes_of(folder: Path, name: str) -> memoryview:
    with plain_files.open_regular(folder, name) as source:
        raw = memoryview(bytearray(os.fstat(source.fileno()).st_size))
        done = 0
        while count := source.readinto(raw[done:]):  # type: ignore[attr-defined]  # a file that is open for reading
            done += count
    return raw[:done]


def _begun(part: Path) -> BinaryIO:
    return open(part, "xb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o600))


def _finished(part: Path, name: str) -> Path:
    """Write a file to the disk, and give it its name."""
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return part.replace(part.with_name(name))


class _Hashed:
    """File that is written and hashed at the same time; Arrow writes to it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, data: Foreign) -> int:
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self.closed = True


def _in_one_piece(value: Foreign) -> Any:
    """Return a table as a single chunk; the chunks are not part of its content."""
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    if package == "polars" and name == "DataFrame":
        return value.rechunk()
    if package == "pyarrow" and name == "Table":
        return value.combine_chunks()
    return value


def _parquet_table(value: Foreign) -> Any:
    """Return a frame or a table as an Arrow table with the data to restore it; None for anything else."""
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


def _of_pandas(frame: Foreign) -> Any:
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
        skeleton = values.encode(empty)[0].decode()
        more = {"type": "pandas", "skeleton": skeleton, "freq": getattr(frame.index, "freqstr", None)}
    except (pa.ArrowException, ValueError, TypeError, OverflowError):  # what a column of objects may raise
        return None
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _METADATA_KEY: json.dumps(more).encode()}
    )


def _write_parquet(table: Foreign, file: _Hashed) -> bool:
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
            file,
            compression="zstd",
            compression_level=1,
            use_dictionary=texts or False,
            write_page_checksum=True,
        )
    except (pa.ArrowException, ValueError, TypeError):
        return False
    return True


def _read_parquet(file: object, split: bool = False) -> Any:
    """Read a value.

    split: A frame's columns stay in Arrow's memory, read-only, so that nothing is stored twice.
    """
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
    skeleton = values.decode(more["skeleton"].encode())
    frame.columns, frame.attrs = skeleton.columns, skeleton.attrs
    if more["freq"]:
        frame.index.freq = more["freq"]
    return frame


def _holds(part: Path, digest: str) -> bool:
    """Return whether a Parquet file restores the value exactly; leave no memory behind."""
    import pyarrow as pa

    try:
        return identity(encoded(_read_parquet(part, split=True))) == digest
    except Exception:  # noqa: BLE001 - whatever does not read back is kept in the other form
        return False
    finally:
        pa.default_memory_pool().release_unused()


def _write_contents(whole: Encoded, file: BinaryIO) -> None:
    places = regions.places_of(whole.contents)
    head = json.dumps([whole.data.decode(), places]).encode()
    file.write(len(head).to_bytes(_HEAD_BYTES, "little") + head)
    begin = _contents_begin(len(head))
    for (place, _), content in zip(places, whole.contents, strict=True):
        file.seek(begin + place)
        file.write(memoryview(content).cast("B"))
    file.truncate(begin + regions.size_of(places))


def _checked_contents(raw: memoryview, digest: str) -> Encoded:
    """Return the encoding in a file; raise `BadValue` if it does not match the digest."""
    try:
        size = int.from_bytes(raw[:_HEAD_BYTES], "little")
        data, places = json.loads(bytes(raw[_HEAD_BYTES : _HEAD_BYTES + size]))
        begin = _contents_begin(size)
        if begin + regions.size_of(places) != len(raw):
            raise BadValue("a file whose length does not match its header")
        contents = [raw[begin + place : begin + place + length] for place, length in places]
        whole = Encoded(data.encode(), contents)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise error if isinstance(error, BadValue) else BadValue(f"damaged file: {error}") from None
    if identity(whole) != digest:
        raise BadValue(_OTHER)
    return whole


def _contents_begin(head: int) -> int:
    """Return where the contents begin after a head of that size: at a multiple of 64, as numpy and Arrow prefer."""
    return -(-(_HEAD_BYTES + head) // 64) * 64
