"""Forged frames, arrays and tables of a worker.

Each is the JSON of a value and the contents it refers to, as bytes; all are made without this package's checks.
Run as a program, it decodes them all, gives what arrives to everything that the host reads values with, and prints how
much memory each has cost.
"""

from __future__ import annotations

import base64
import ctypes
import decimal
import itertools
import json
import resource
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

Claim = tuple[Any, list[bytes]]
LIMIT = 2**30

FLAT = [
    pa.null(), pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.decimal32(5, 2), pa.decimal64(9, 2),
    pa.decimal128(38, 2), pa.decimal256(70, 2), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.timestamp("s"),
    pa.timestamp("ns", "Mars/Base"), pa.timestamp("us", "+25:99"), pa.duration("ns"), pa.month_day_nano_interval(), pa.string(),
    pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(0), pa.binary(3), pa.uuid(), pa.json_(),
    pa.bool8(), pa.opaque(pa.int8(), "a", "b"),
]  # fmt: skip


def nested(kind: Any) -> Iterator[Any]:
    """Yield types that are made of another."""
    field = [pa.field("a", kind)]
    yield from (
        pa.list_(kind),
        pa.large_list(kind),
        pa.list_view(kind),
        pa.large_list_view(kind),
        pa.list_(kind, 3),
    )
    yield from (
        pa.list_(kind, 0),
        pa.struct(field),
        pa.map_(pa.string(), kind),
        pa.dense_union(field),
        pa.sparse_union(field),
    )
    try:
        yield pa.map_(kind, pa.int8())
        yield pa.dictionary(pa.int8(), kind)
        yield pa.run_end_encoded(pa.int32(), kind)
    except (pa.ArrowException, TypeError, ValueError):
        pass


def stream(table: Any, **options: Any) -> bytes:
    """Return a stream of Arrow's, unchecked."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


def of(*arrays: Any) -> bytes:
    return stream(pa.table(list(arrays), names=[f"c{i}" for i in range(len(arrays))]))


def patched(data: bytes, was: bytes, becomes: bytes) -> bytes:
    """Return a stream in which something valid, which stands there once, has become something else."""
    assert data.count(was) == 1
    assert len(was) == len(becomes)
    return data.replace(was, becomes)


def raw(kind: Any, length: int, buffers: list[bytes | None], children: list[Any] | None = None) -> Any:
    """Return an array of these buffers."""
    parts = [None if one is None else pa.py_buffer(one) for one in buffers]
    return pa.Array.from_buffers(kind, length, parts, children=children)


def types() -> Iterator[tuple[str, bytes]]:
    """Yield a stream of each type, without rows and with nulls."""
    kinds = [
        *FLAT,
        *(two for one in FLAT for two in nested(one)),
        *(three for two in nested(pa.int8()) for three in nested(two)),
    ]
    for kind in (*kinds, pa.struct([])):
        schema = pa.schema([("a", kind)])
        for name, batches in (("nothing", []), ("no rows", None), ("nulls", 3)):
            try:
                if batches == []:
                    yield f"{kind}, {name}", stream(pa.Table.from_batches([], schema))
                else:
                    yield f"{kind}, {name}", stream(pa.table([pa.nulls(batches or 0, kind)], schema))
            except (pa.ArrowException, TypeError):
                pass


def wrong() -> Iterator[tuple[str, bytes]]:
    """Yield streams of allowed types that hold what they must not."""
    far, i4, i8 = 2**62, struct.Struct("<4i").pack, struct.Struct("<4q").pack
    words, three = pa.array(["a", "b", "c"]), i4(0, 1, 2, 3)
    texts, larger = of(words), of(words.cast(pa.large_string()))
    codes = of(pa.DictionaryArray.from_arrays(pa.array([2, 1, 0, 1], pa.int32()), words))
    yield "codes out of range", patched(codes, i4(2, 1, 0, 1), i4(2, 3, -7, 2**30))
    yield "offsets out of range", patched(texts, three, i4(0, 5, 2**30, 2**31 - 1))
    yield "offsets backwards", patched(texts, three, i4(0, 3, 1, 2))
    yield "negative offsets", patched(larger, i8(0, 1, 2, 3), i8(-5, 0, 1, far))
    yield "no UTF-8", patched(texts, b"abc\0", b"\xff\xfe\xed\0")
    yield "no UTF-8 among codes", patched(codes, b"abc\0", b"\xff\xfe\xed\0")
    lists = of(pa.array([[1], [2], [3]], pa.list_(pa.int8())))
    yield "list out of range", patched(lists, three, i4(0, 1, 2, 99))
    keys = of(pa.array([[("a", 77)], [("b", 77)], [("c", 77)]], pa.map_(pa.string(), pa.int8())))
    yield "maps out of range", keys.replace(three, i4(0, 1, 9, 2))
    node, nulls = struct.pack("<qq", 3, 0), struct.pack("<qq", 3, 2)
    same = of(pa.array([[("a", 1), ("b", 2), ("c", 3)]], pa.map_(pa.string(), pa.int8())))
    yield "null entries", patched(same, node * 3, nulls + node * 2)
    yield "null keys", patched(same, node * 3, node + nulls + node)
    yield "null values", patched(same, node * 3, node * 2 + nulls)
    exact = of(pa.array([decimal.Decimal(777)], pa.decimal128(3, 0)))
    yield "decimals too large", patched(exact, (777).to_bytes(16, "little"), b"\xff" * 15 + b"\x7f")
    for kind in (
        pa.date64(),
        pa.time64("us"),
        pa.time64("ns"),
        pa.timestamp("s", "UTC"),
        pa.timestamp("ns"),
        pa.duration("s"),
    ):
        valid = 864 * 10**5 if kind == pa.date64() else 77777
        for number in (1, far, -far, -(2**63)):
            data = of(pa.array([valid], kind))
            yield f"{number} as {kind}", patched(data, struct.pack("<q", valid), struct.pack("<q", number))
    for kind in (pa.date32(), pa.time32("s")):
        for number in (2**31 - 1, -(2**31)):
            data = of(pa.array([77777], kind))
            yield (
                f"{number} as {kind}",
                patched(data, struct.pack("<q", 77777), struct.pack("<iI", number, 0)),
            )
    months = struct.pack("<iiq", 2**31 - 1, -(2**31), far)
    yield "months beyond", of(raw(pa.month_day_nano_interval(), 1, [None, months]))
    few, child = 7777, 7777 * 1000
    grows = {
        "nulls": pa.nulls(few), "structs of nothing": raw(pa.struct([]), few, [None]), "texts of no width": raw(pa.binary(0), few, [None, b""]),
        "lists of nulls": raw(pa.list_(pa.null(), 1000), few, [None], [pa.nulls(child)]),
        "structs of nulls": pa.StructArray.from_arrays([pa.nulls(few)], names=["a"]),
        "long list of nulls": pa.array([[None] * few], pa.list_(pa.null())), "longer list of nulls": pa.array([[None] * few], pa.large_list(pa.null())),
    }  # fmt: skip
    for rows in (10**6, 2**31 - 1, 2**50):
        for name, array in grows.items():
            data = of(array).replace(struct.pack("<q", few), struct.pack("<q", rows))
            data = data.replace(struct.pack("<q", child), struct.pack("<q", rows * 1000))
            if rows < 2**31:
                data = data.replace(struct.pack("<ii", 0, few), struct.pack("<ii", 0, rows))
            yield f"{rows:,} {name}", data
    wide = pa.table([pa.nulls(10**6)] * 1000, names=[str(i) for i in range(1000)])
    yield "a thousand columns of nulls", stream(wide)
    long = pa.array(["x" * 1_000_000])
    shared = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**6, "i1")), long)
    lists_of_codes = pa.list_(pa.dictionary(pa.int8(), pa.string()))
    yield (
        "run ends of a long text",
        of(pa.RunEndEncodedArray.from_arrays(pa.array([10**6], pa.int32()), long)),
    )
    yield "codes of a long text", of(shared)
    yield "lists of codes of a long text", of(raw(lists_of_codes, 1, [None, i4(0, 10**6, 0, 0)], [shared]))
    yield "views of a long text", of(pa.array(["x" * 100_000] * 10).cast(pa.string_view()))
    yield "compressed", stream(pa.table({"a": np.zeros(10_000_000)}), compression="zstd")
    yield "dictionary in parts", in_parts()
    yield "columns of the same bytes", one_over_the_other()
    for name, data in shared_schemas():
        yield name, data


def in_parts() -> bytes:
    """Return a stream whose dictionary comes in two parts."""
    sink, words = pa.BufferOutputStream(), [str(i) for i in range(500)]
    schema = pa.schema([("a", pa.dictionary(pa.int32(), pa.string()))])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for n in (100, 500):
            codes = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(words[:n]))
            writer.write(pa.record_batch([codes], names=["a"]))
    return bytes(sink.getvalue())


def one_over_the_other() -> bytes:
    """Return a stream of a hundred columns, all of whose buffers are the same million bytes."""
    size, columns = 1_000_000, 100
    data = bytearray(of(*(np.zeros(size, "i1") for _ in range(columns))))
    for i in range(1, columns):  # where the bitmap and the bytes of a column are: begin and length of each
        place = data.find(struct.pack("<qqqq", i * size, 0, i * size, size))
        assert place > 0
        data[place : place + 24] = bytes(24)
    end = data[-8:]
    data = patched(
        bytes(data[: -8 - (columns - 1) * size]), struct.pack("<q", columns * size), struct.pack("<q", size)
    )
    return data + bytes(end)


def shared_schemas() -> Iterator[tuple[str, bytes]]:
    """Yield streams whose schema refers to one of its parts again and again."""
    count, text = 2000, "n" * 1_000_000
    names = pa.schema([(text, pa.int8()), *((f"n{i:06}", pa.int8()) for i in range(count))])
    keys = pa.schema([("a", pa.int8())]).with_metadata({"k": text, **{f"k{i:06}": "v" for i in range(count)}})
    for what, schema, far in (("names", names, 4000), ("keys", keys, 400)):
        data = bytearray(stream(pa.Table.from_batches([], schema)))
        at, done = data.find(struct.pack("<I", len(text)) + text.encode()), 0
        for i in range(count):
            short = data.find(struct.pack("<I", 7) + f"{what[0]}{i:06}".encode())
            for place in range(max(short - far, 0), short, 4):  # the offsets that lead to that text
                if place + struct.unpack_from("<I", data, place)[0] == short and 0 < at - place < 2**32:
                    struct.pack_into("<I", data, place, at - place)
                    done += 1
        yield f"{done} {what} that are one long text", bytes(data)


def tag(name: str, *rest: Any) -> dict[str, Any]:
    return {"@": [name, *rest]}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def mutated(count: int, seed: int) -> Iterator[tuple[str, Claim]]:
    """Yield streams of types that cross, with a few of their bytes changed at random."""
    random = np.random.default_rng(seed)
    items = [
        [1, 2, 3],
        [[1], [], None, [2, 3]],
        ["a", None, "bcd"],
        [{"a": 1, "b": "x"}, None],
        [1.5, None],
        [b"x", b""],
    ]
    maps = pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8())).take([0, 1, 0])
    exact = pa.array([decimal.Decimal("1.5"), None])
    times = pa.array([1, 2], pa.timestamp("ns", "UTC")), pa.array([1, None], pa.date32())
    samples = [
        *(stream(pa.table({"a": pa.array(one)})) for one in items),
        of(pa.array(["x", "y", "x"]).dictionary_encode(), maps),
        of(exact, *times, pa.array([True, None])),
        of(pa.array([[["a"]], [None]], pa.list_(pa.list_(pa.dictionary(pa.int8(), pa.string())), 1))),
    ]
    numbers = [
        0,
        1,
        2,
        255,
        *(2**bits - less for bits in (16, 32, 64) for less in (1, 2)),
        2**15,
        2**31,
        2**40,
        2**62,
    ]
    for i in range(count):
        data = bytearray(samples[random.integers(len(samples))])
        for _ in range(random.integers(1, 4)):
            if random.integers(2):
                data[random.integers(len(data))] = random.integers(256)
            else:
                width = int(random.choice([2, 4, 8]))
                place = int(random.integers(0, len(data) - 8)) // width * width
                number = numbers[random.integers(len(numbers))] % 2 ** (8 * width)
                data[place : place + width] = number.to_bytes(width, "little")
        name = ("Table", "RecordBatch", "polars")[random.integers(3)]
        yield f"{name}, changed, {i} of {seed}", (tag(name, 0), [bytes(data)])


def claims(short: bool = False) -> Iterator[tuple[str, Claim]]:
    """Yield each claim with its name; short: without those of each type, as tables only, and with changed ones."""
    for name, data in itertools.chain(() if short else types(), wrong()):
        yield f"Table: {name}", (tag("Table", 0), [data])
    for name, data in () if short else wrong():
        yield f"RecordBatch: {name}", (tag("RecordBatch", 0), [data])
        yield f"polars: {name}", (tag("polars", 0), [data])
        yield f"arrow column: {name}", (tag("extension", ["arrow"], 0), [data])
        yield f"string column: {name}", (tag("extension", ["string", "python", "NA"], 0), [data])
        yield f"Float64 column: {name}", (tag("extension", ["Float64"], 0), [data])
        yield f"texts: {name}", (tag("texts", [10**6], 0), [data])
    yield from arrays()
    if short:
        yield from mutated(500, 7)


def arrays() -> Iterator[tuple[str, Claim]]:
    """Yield claims about numpy's and pandas' values."""
    endless, rows = tag("RangeIndex", 0, 10**12, 1, None), tag("RangeIndex", 0, 300, 1, None)
    one, none = tag("ndarray", "<i8", [1], b64(bytes(8))), tag("ndarray", "<i8", [0], "")
    code, codes, few = (tag("ndarray", "|i1", [n], at) for n, at in ((1, "AA=="), (1_000_000, 0), (300, 0)))
    long = tag("Index", tag("objects", [1], ["x" * 1_000_000]), None, None)
    far, beyond = struct.pack("<q", 2**62) * 300, b"\xff\xff\xff\x7f"
    same = [tag("int", hex(i * (2**61 - 1))) for i in range(1, 25_000)]
    alike = np.array(murmured(50_000), "<i8").tobytes()
    colliding = tag("Index", tag("ndarray", "<i8", [50_000], 0), None, None)
    yield from {
        "RangeIndex": (endless, []), "RangeIndex beyond": (tag("RangeIndex", 0, 10**40, 1, None), []),
        "Series of a range": (tag("Series", endless, endless, None, {}), []),
        "Series of Python's range": (tag("Series", tag("range", "0x0", hex(10**12), "0x1"), endless, None, {}), []),
        "Index of a range": (tag("Index", endless, None, None), []),
        "frame of a range": (tag("DataFrame", [endless], endless, tag("Index", one, None, None), {}), []),
        "frame of rows only": (tag("DataFrame", [], endless, tag("Index", none, None, None), {}), []),
        "intervals of a range": (tag("IntervalArray", endless, endless, "left"), []),
        "IntervalIndex of a range": (tag("IntervalIndex", tag("IntervalArray", endless, endless, "left"), None, None), []),
        "categories of a range": (tag("Categorical", code, endless, False), []),
        "levels of a range": (tag("MultiIndex", [endless], [code], [None]), []),
        "timedeltas of a range": (tag("TimedeltaArray", endless), []),
        "a subarray of nothing": (tag("ndarray", ["<f8", [10**9]], [0], ""), []),
        "code points beyond": (tag("ndarray", "<U1", [300], 0), [beyond * 300]),
        "code points beyond, the other way round": (tag("ndarray", ">U1", [300], 0), [beyond[::-1] * 300]),
        "code points beyond, in a field": (tag("ndarray", [["a", "<U1"], ["b", "|b1"]], [1], 0), [beyond + b"\x01"]),
        "a scalar beyond": (tag("numpy", "<U1", b64(beyond)), []),
        "surrogates": (tag("ndarray", "<U1", [300], 0), [b"\x00\xd8\x00\x00" * 300]),
        "truth of 2, in a field": (tag("ndarray", [["b", "|b1"]], [1], 0), [b"\x02"]),
        "StringDType": (tag("ndarray", "T", [1], b64(bytes(16))), []),
        "bytes twice": ([tag("ndarray", "|u1", [8], 0)] * 2, [bytes(8)]),
        "times out of range": (tag("ndarray", "<M8[Y]", [300], 0), [far]),
        "moments out of range": (tag("Series", tag("DatetimeArray", 0, "s", []), rows, None, {}), [far]),
        "zoned moments out of range": (tag("DatetimeArray", 0, "s", ["Europe/Zurich"]), [far]),
        "periods out of range": (tag("PeriodArray", 0, "D"), [far]), "period out of range": (tag("Period", 2**62, "D"), []),
        "a strange frequency": (tag("PeriodArray", 0, "99999999999999D"), [bytes(2400)]),
        "Timestamp out of range": (tag("Timestamp", 2**62, "s", []), []),
        "codes of a long category": (tag("Categorical", codes, long, False), [bytes(1_000_000)]),
        "codes of a long label": (tag("MultiIndex", [long], [codes], [None]), [bytes(1_000_000)]),
        "few codes of a long category": (tag("Categorical", few, long, False), [bytes(300)]),
        "a series of a long category": (tag("Series", tag("Categorical", few, long, False), rows, None, {}), [bytes(300)]),
        "few codes of a long label": (tag("MultiIndex", [long], [few], [None]), [bytes(300)]),
        "colliding ints in a set": (tag("set", same), []), "colliding ints in a frozenset": (tag("frozenset", same), []),
        "colliding keys": (tag("dict", [[key, 0] for key in same]), []),
        "a Fraction of large numbers": (tag("Fraction", "0x" + "7" * 2_000_000, "0x" + "3" * 2_000_000), []),
        "categories that collide in pandas": (tag("Categorical", code, colliding, False), [alike]),
        "labels that collide in pandas": (tag("MultiIndex", [colliding], [code], [None]), [alike]),
    }.items()  # fmt: skip
    for descr in (
        "|S0",
        "<U0",
        "|V0",
        [["a", "|S0"]],
        [["a", "|i1"], ["b", "|V0", [2**31 - 1]]],
        ["|S0", [10**9]],
        [],
    ):
        yield f"array of {descr}", (tag("ndarray", descr, [10**9], ""), [])
        yield f"scalar of {descr}", (tag("numpy", descr, ""), [])
    for shape in ([10**9, 0], [2**61, 0], [0, 2**61], [1, 10**9, 0, 1], [0] * 32, [0] * 33):
        yield f"array of shape {shape}", (tag("ndarray", "<f8", shape, ""), [])
        yield f"objects of shape {shape}", (tag("objects", shape, []), [])
    wrong_types = (
        {"type": 1, "shape": []},
        {"type": "x", "shape": ["a"]},
        {"type": "x", "shape": [1], "first": 1},
    )
    for shown in (1, None, [], {}, {"shape": 1}, *wrong_types):
        yield f"preview of {shown!r}", (tag("preview", shown, 0), [])


def murmured(count: int) -> list[int]:
    """Return numbers with one hash in pandas' tables (its murmur2 of 64 bits to 32, undone for the second half)."""
    mask, factor = 2**32 - 1, 0x5BD1E995
    back = pow(factor, -1, 2**32)

    def mixed(half: int) -> int:
        half = half * factor & mask
        return (half ^ half >> 24) * factor & mask

    def unmixed(half: int) -> int:
        half = half * back & mask
        return (half ^ half >> 24) * back & mask

    found = []
    for low in range(1, count + 1):
        first = (0xC70F6907 ^ 8) * factor & mask ^ mixed(low)
        found.append(unmixed(first * factor & mask) << 32 | low)
    return [number - 2**64 if number >= 2**63 else number for number in found]


def readers(folder: Path) -> dict[str, Callable[[Any], object]]:
    """Return everything that the host reads a worker's value with."""
    import pandas as pd
    import polars as pl

    from healkit.core.crossing import values
    from healkit.core.secrets.cleaner import Verbatim
    from healkit.parts.decide.frame_summaries import frame_summary
    from healkit.parts.decide.telling import as_frame, counts_of
    from healkit.parts.views import view_files
    from healkit.parts.views.views import _converted

    def kept(value: Any) -> None:
        whole = view_files.encoded(value)
        file, _ = view_files.write_view(value, whole, view_files.identity(whole), folder)
        view_files.read_view(file)

    def converted(value: Any) -> None:
        if isinstance(value, pa.Table | pa.RecordBatch | pl.DataFrame):
            _converted(value)

    def counted(value: Any) -> None:
        frame = as_frame(value)
        if isinstance(frame, pd.DataFrame):
            counts_of(frame)

    return {
        "record": lambda value: values.readable_json(value, lambda columns: list(columns)[:1]),
        "log": values.encode_for_log, "kept": values.kept, "text": lambda value: values.value_text(values.kept(value)), "table": values.table_of,
        "schema": values.for_schema, "equal": lambda value: values.meets(values.kept(value), value), "facts": counted, "view": kept,
        "to_pandas": converted, "summary": lambda value: frame_summary(value, Verbatim(), 5) if values.is_tabular(value) else None,
    }  # fmt: skip


#: Readers that must not raise, whatever has arrived: cards, records and checks.
NEVER_RAISE = {"record", "log", "kept", "text", "table", "schema", "equal", "facts", "to_pandas"}


def memory_mb(field: str) -> float:
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) / 1000


def main() -> None:
    """Decode each claim and read what arrives; print a line of JSON for each, before and after.

    Arguments: `short`, `all`, or how many changed streams, and the seed of the changes.
    """
    from healkit.core.crossing import values

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (5 * 2**30, 5 * 2**30))
    what = sys.argv[1]
    made = mutated(int(what), int(sys.argv[2])) if what.isdigit() else claims(short=what == "short")
    with tempfile.TemporaryDirectory() as folder:
        reading = readers(Path(folder))
        for name, (plain, contents) in made:
            encoded = json.dumps(plain).encode()
            sent = len(encoded) + sum(map(len, contents))
            print(json.dumps({"begins": name, "bytes": sent}), flush=True)
            ctypes.CDLL(None).malloc_trim(0)
            pa.default_memory_pool().release_unused()
            Path("/proc/self/clear_refs").write_text("5")
            before, began = memory_mb("VmRSS"), time.process_time()
            raised: dict[str, str] = {}
            try:
                value = values.decode(encoded, [bytearray(one) for one in contents], limit_bytes=LIMIT)
                ended = "arrived"
            except values.BadValue as error:
                ended = str(error)
            decoded_mb, decoded_s = memory_mb("VmHWM") - before, time.process_time() - began
            if ended == "arrived":
                for reader, read in reading.items():
                    try:
                        read(value)
                    except Exception as error:
                        raised[reader] = f"{type(error).__name__}: {error}"[:200]
                del value
            cost = {"decoded_mb": round(decoded_mb, 1), "decoded_s": round(decoded_s, 2)}
            cost |= {"mb": round(memory_mb("VmHWM") - before, 1), "s": round(time.process_time() - began, 2)}
            print(
                json.dumps({"name": name, "bytes": sent, "ended": ended, "raised": raised, **cost}),
                flush=True,
            )


if __name__ == "__main__":
    main()
