"""Values of every kind, and what becomes of each.

`ARRIVES` holds those that arrive equal and of the same type, `CONVERTED` those that arrive as what they hold, with a note,
`REFUSED` those that are refused, with the path below the argument. Each is made when it is asked for.
"""

from __future__ import annotations

import array
import ast
import collections
import contextvars
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import ipaddress
import itertools
import math
import os
import pathlib
import re
import struct
import sys
import types
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

ZURICH = zoneinfo.ZoneInfo("Europe/Zurich")
ODD = dt.timezone(dt.timedelta(hours=-3, seconds=7), "odd")
Make = Callable[[], Any]


def nan(payload: int) -> float:
    """Return a NaN with bits of its own."""
    return float(struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 | payload))[0])


class Colour(enum.Enum):
    RED = (1, 2)
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Word(enum.StrEnum):
    YES = "yes"


@dataclasses.dataclass
class Point:
    x: float
    tags: set[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    row: int


@dataclasses.dataclass
class Half:
    whole: int
    missing: int = dataclasses.field(init=False)


@dataclasses.dataclass
class Named(dict[str, Any]):
    name: str


class Pair(NamedTuple):
    one: int
    two: Any


#: Subclasses that the other side does not have.
Text, Whole, Real, Items, Fields, Row, Bag, Raw, Count, Money, Day, Moment, Table, Column, Floats, Number = (
    type(f"My{base.__name__}", (base,), {})
    for base in (
        str, int, float, list, dict, tuple, set, bytes, collections.Counter, decimal.Decimal, dt.date, dt.datetime,
        pd.DataFrame, pd.Series, np.ndarray, np.float64,
    )
)  # fmt: skip


class Zone(dt.tzinfo):
    def utcoffset(self, moment: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta(0)


class Stream:
    """Table that offers itself by Arrow's PyCapsule interface only."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class BrokenStream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError("not now")


def cycle() -> list[Any]:
    made: list[Any] = [1]
    made.append({"again": made})
    return made


def deep(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


def zone_of_a_file() -> zoneinfo.ZoneInfo:
    for folder in zoneinfo.TZPATH:
        file = pathlib.Path(folder, "Asia/Tokyo")
        if file.exists():
            with file.open("rb") as source:
                return zoneinfo.ZoneInfo.from_file(source, key="Europe/Zurich")
    from importlib import resources

    with (resources.files("tzdata.zoneinfo") / "Asia" / "Tokyo").open("rb") as source:
        return zoneinfo.ZoneInfo.from_file(source, key="Europe/Zurich")


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


def with_attrs(labelled: Any, **attrs: Any) -> Any:
    labelled.attrs = attrs
    return labelled


PYTHON: dict[str, Make] = {
    "None": lambda: None, "True": lambda: True, "False": lambda: False, "0": lambda: 0, "-1": lambda: -1,
    "2**53+1": lambda: 2**53 + 1, "2**63": lambda: 2**63, "-2**64": lambda: -(2**64), "2**70": lambda: 2**70,
    "4,096 bits": lambda: 2**4096 - 1, "4,097 bits": lambda: -(2**4096), "5,000 digits": lambda: 10**5000,
    "0.1": lambda: 0.1, "-0.0": lambda: -0.0, "1e22": lambda: 1e22, "5e-324": lambda: 5e-324, "largest float": lambda: sys.float_info.max,
    "nan": lambda: math.nan, "nan with a payload": lambda: nan(7), "-nan": lambda: -nan(9), "inf": lambda: math.inf, "-inf": lambda: -math.inf,
    "complex": lambda: complex(-0.0, math.nan), "complex inf": lambda: complex(math.inf, -0.0),
    "Decimal": lambda: decimal.Decimal("1.10"), "Decimal -0": lambda: decimal.Decimal("-0"), "Decimal NaN": lambda: decimal.Decimal("-NaN12"),
    "Decimal sNaN": lambda: decimal.Decimal("sNaN"), "Decimal Infinity": lambda: decimal.Decimal("-Infinity"),
    "Decimal 0E+5": lambda: decimal.Decimal("0E+5"), "Decimal 1E+999999": lambda: decimal.Decimal("1E+999999"),
    "Decimal of 5,000 digits": lambda: decimal.Decimal("1" * 5000), "Fraction": lambda: fractions.Fraction(-22, 7),
    "large Fraction": lambda: fractions.Fraction(3**5000, 7),
    "empty text": lambda: "", "text": lambda: "Zürich \N{SNOWMAN}", "NUL": lambda: "a\0b", "emoji": lambda: "\U0001f600",
    "lone surrogate": lambda: "\ud800 alone", "pair of surrogates": lambda: "\ud83d\ude00", "control characters": lambda: "\x1b[31m\r\n\x85\u2028",
    "@": lambda: "@", "bytes": lambda: bytes(range(256)), "empty bytes": lambda: b"", "bytearray": lambda: bytearray(b"\0\xff"),
    "list": lambda: [1, [2]], "empty list": list, "tuple": lambda: (1, [2, (3,)]), "empty tuple": lambda: (), "set": lambda: {1, "a", (2, 3)},
    "empty set": set, "frozenset": lambda: frozenset({frozenset({1})}), "set of NaN": lambda: {math.nan, nan(7)},
    "set of mixed keys": lambda: {None, 0, "", b"", (), 1.5, dt.date(2026, 1, 1)}, "dict": lambda: {"a": {"b": []}}, "empty dict": dict,
    "dict of @": lambda: {"@": 1}, "dict like a tag": lambda: {"@": ["int", "0x1"]}, "dict of ints": lambda: {1: "one", "1": "text"},
    "dict of tuples": lambda: {(1, 2): {None: True}}, "dict of a surrogate": lambda: {"\udcff": 1}, "dict of floats": lambda: {1.5: 1, b"x": 2, math.inf: 3},
    "dict of NaN": lambda: {nan(3): 1}, "dict in order": lambda: {"b": 1, "a": 2}, "empty key": lambda: {"": 1}, "frozenset as key": lambda: {frozenset({1}): 2},
    "90 levels": lambda: deep(60), "the same list twice": lambda: [[1]] * 2,
    "OrderedDict": lambda: collections.OrderedDict([("b", 1), ("a", 2)]), "Counter": lambda: collections.Counter({"a": 0, "b": -2, 3: 5}),
    "defaultdict": lambda: collections.defaultdict(list, {"a": [1]}), "defaultdict of none": lambda: collections.defaultdict(None, {1: 2}),
    "deque": lambda: collections.deque([1, (2,)], 3), "deque without end": lambda: collections.deque(), "range": lambda: range(-5, 2**70, 3),
    "empty range": lambda: range(0), "slice": lambda: slice(1, None, "x"), "Ellipsis": lambda: ...,
    "date": lambda: dt.date(2024, 2, 29), "date.min": lambda: dt.date.min, "time": lambda: dt.time(23, 59, 59, 999999), "time UTC": lambda: dt.time(1, 2, tzinfo=dt.UTC),
    "time fold": lambda: dt.time(1, fold=1), "datetime": lambda: dt.datetime.fromisoformat("2026-01-02T03:04:05.000006"), "datetime.max": lambda: dt.datetime.fromisoformat("9999-12-31T23:59:59.999999"),
    "datetime fold": lambda: dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZURICH), "datetime odd": lambda: dt.datetime(2024, 1, 1, tzinfo=ODD),
    "timedelta": lambda: dt.timedelta(days=-1, microseconds=5), "timedelta.min": lambda: dt.timedelta.min, "UTC": lambda: dt.UTC, "ZoneInfo": lambda: zoneinfo.ZoneInfo("Asia/Tokyo"),
    "timezone": lambda: ODD, "UUID": lambda: uuid.UUID(int=7), "Path": lambda: pathlib.Path("/tmp/ü"), "Path of bytes": lambda: pathlib.Path(os.fsdecode(b"bad\xff")),
    "PurePosixPath": lambda: pathlib.PurePosixPath("//a/b"), "PureWindowsPath": lambda: pathlib.PureWindowsPath("C:\\x"), "empty Path": pathlib.Path,
}  # fmt: skip

DTYPES = [
    "b",
    "i1",
    "u1",
    "i2",
    ">i2",
    "u2",
    "i4",
    ">u4",
    "i8",
    ">i8",
    "u8",
    "f2",
    ">f2",
    "f4",
    "f8",
    ">f8",
    "g",
    "c8",
    "c16",
    ">c16",
    "G",
]
NUMPY: dict[str, Make] = {
    **{f"array of {code}": functools.partial(lambda code: np.array([0, 1, 100]).astype(code if code != "b" else "?"), code) for code in DTYPES},
    **{f"scalar of {code}": functools.partial(lambda code: np.array([1]).astype(code if code != "b" else "?")[0], code) for code in DTYPES if ">" not in code},
    "subnormal": lambda: np.array([5e-324, -5e-324, 2.2e-308]), "NaN payloads": lambda: np.array([nan(1), -nan(2), math.nan, -0.0]),
    "0-d": lambda: np.array(5), "0-d text": lambda: np.array("x"), "0-d object": lambda: np.array(None), "no rows": lambda: np.zeros((0, 3)), "no columns": lambda: np.zeros((2, 0), "f4"),
    "three dimensions": lambda: np.arange(24).reshape(2, 3, 4), "Fortran order": lambda: np.asfortranarray(np.arange(6).reshape(2, 3)),
    "reversed": lambda: np.arange(10)[::-2], "broadcast": lambda: np.broadcast_to(np.arange(3), (2, 3)), "read-only": lambda: np.frombuffer(b"12345678", "f8"),
    "texts": lambda: np.array(["a", "bcd", "\U0001f600"]), "texts >U": lambda: np.array(["a", "b"], ">U3"), "surrogates": lambda: np.array(["\ud800"]), "bytes array": lambda: np.array([b"x", b"yz"]),
    "void": lambda: np.array([b"ab"], "V2"), "empty text scalar": lambda: np.str_(""), "text scalar": lambda: np.str_("snow"), "bytes scalar": lambda: np.bytes_(b"ab"),
    **{f"M8[{unit}]": functools.partial(lambda unit: np.array(["2024-01-01", "NaT"], f"M8[{unit}]"), unit) for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "25s"]},
    "m8[ns]": lambda: np.array([5, "NaT"], "m8[ns]"), "m8[M]": lambda: np.array([5], "m8[M]"), "datetime64": lambda: np.datetime64("2024-01-01T00", "h"),
    "datetime64 NaT": lambda: np.datetime64("NaT", "s"), "timedelta64": lambda: np.timedelta64(3, "D"), "far datetime64": lambda: np.datetime64(2**62, "Y"),
    "structured": lambda: np.array([(1, "a", [1.0, 2.0])], [("n", ">i4"), ("t", "U3"), ("v", "f8", (2,))]), "nested structured": lambda: np.zeros(2, [("inner", [("a", "i1"), ("b", "U2")])]),
    "titles": lambda: np.zeros(1, [(("the title", "n"), "i4")]), "padding": lambda: np.zeros(1, {"names": ["a", "b"], "formats": ["i1", "i4"], "itemsize": 16}),
    "void scalar": lambda: np.void((1, 2.0), dtype=[("a", "i4"), ("b", "f8")]), "objects": lambda: np.array(["x", None, 3, (1, 2), [4]], object),
    "texts as objects": lambda: np.array([["a", None], ["b", "c"]], object), "surrogate object": lambda: np.array(["\ud800"], object), "no objects": lambda: np.array([], object),
    "arrays in an array": lambda: np.array([np.zeros(2), None], object), "dtype": lambda: np.dtype("f4"), "structured dtype": lambda: np.dtype([("a", ">i4"), ("b", "S3")]),
    "dtype of times": lambda: np.dtype("M8[25s]"), "numpy in a dict": lambda: {"a": [np.int8(1), {"b": np.arange(2)}]}, "numpy as keys": lambda: {np.int64(1): 1, np.str_("a"): 2},
}  # fmt: skip

COLUMNS: dict[str, Make] = {
    **{f"{name} column": functools.partial(lambda name: pd.array([1, None, 3], dtype=name), name) for name in ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64"]},
    "NaN beside NA": lambda: pd.arrays.FloatingArray(np.array([1.0, math.nan, 5.0]), np.array([False, False, True])), "boolean": lambda: pd.array([True, None, False], dtype="boolean"),
    "no NA": lambda: pd.array([1, 2, 3], dtype="Int64"), "all NA": lambda: pd.array([None, None, None], dtype="Int64"), "str": lambda: pd.array(["a", None, "c"], dtype="str"),
    "string": lambda: pd.array(["a", None, "c"], dtype="string"), "string python": lambda: pd.array(["a", None, "c"], dtype="string[python]"),
    "category": lambda: pd.Categorical(["lo", None, "hi"], categories=["lo", "mid", "hi"]), "ordered": lambda: pd.Categorical(["lo", "hi", "lo"], ordered=True),
    "category of ints": lambda: pd.Categorical([3, 1, 3]), "category of a range": lambda: pd.Categorical([0, 1, 2], categories=pd.RangeIndex(3)), "category of intervals": lambda: pd.cut([1, 5, 9], 3),
    "category of times": lambda: pd.Categorical(pd.date_range("2026-01-01", periods=3)), "category of mixed": lambda: pd.Categorical([1, "a", None]), "unsorted category": lambda: pd.Categorical([1, 2, 1], categories=[2, 1]),
    "named categories": lambda: pd.Categorical(["a", "b", "a"], categories=pd.Index(["a", "b"], name="kinds")), "many categories": lambda: pd.Categorical([1, 2, 3], categories=[*range(3000, 0, -1)]),
    "interval": lambda: pd.arrays.IntervalArray.from_tuples([(0, 1), None, (1, 2)], closed="both"), "interval of ints": lambda: pd.arrays.IntervalArray.from_tuples([(0, 1), (5, 7), (1, 2)]),
    "interval of times": lambda: pd.interval_range(pd.Timestamp("2026-01-01", tz="UTC"), periods=3).array, "period": lambda: pd.period_range("2024-01", periods=3, freq="D").array,
    "period with NaT": lambda: pd.PeriodIndex(["2024Q1", None, "2024Q3"], freq="Q-NOV").array, "datetime64": lambda: pd.to_datetime(["2024-01-01", None, "2024-01-03"]).array,
    **{f"datetime64[{unit}]": functools.partial(lambda unit: pd.to_datetime(["2024-01-01", None, "2024-01-03"]).as_unit(unit).array, unit) for unit in ("s", "ms", "us", "ns")},
    "zoned": lambda: pd.to_datetime(["2024-01-01", None, "2024-10-27"]).tz_localize("UTC").tz_convert(ZURICH).array, "fixed offset": lambda: pd.to_datetime(["2024-01-01"] * 3).tz_localize(ODD).array,
    "timedelta64": lambda: pd.to_timedelta([1, None, 3], unit="s").array, "timedelta64[s]": lambda: pd.to_timedelta([1, None, 3], unit="s").as_unit("s").array,
    **{f"arrow {kind}": functools.partial(lambda kind, items: pd.array(items, dtype=pd.ArrowDtype(kind)), kind, items) for kind, items in (
        (pa.int8(), [1, None, 3]), (pa.float64(), [1.5, None, math.nan]), (pa.string(), ["a", None, ""]), (pa.large_string(), ["a", None, ""]), (pa.bool_(), [True, None, False]), (pa.binary(), [b"a", None, b""]),
        (pa.date32(), [dt.date(2026, 1, 1), None, None]), (pa.timestamp("us", "Europe/Zurich"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, None]), (pa.decimal128(9, 2), [decimal.Decimal("1.10"), None, None]),
        (pa.list_(pa.int64()), [[1], None, []]), (pa.struct([("a", pa.int64())]), [{"a": 1}, None, {"a": None}]), (pa.map_(pa.string(), pa.int8()), [[("a", 1)], None, []]), (pa.duration("s"), [1, None, 3]), (pa.time64("us"), [dt.time(1), None, None]),
    )},
    "arrow dictionary": lambda: pd.array(["x", "y", "x"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))), "arrow null": lambda: pd.array([None] * 3, dtype=pd.ArrowDtype(pa.null())),
    "plain objects": lambda: pd.Series(["a", "b", "c"], dtype=object), "gaps": lambda: pd.Series(["a", None, math.nan], dtype=object), "mixed": lambda: pd.Series([1, "a", (2,)], dtype=object),
    "decimals": lambda: [decimal.Decimal("1.10"), None, decimal.Decimal(2)], "days": lambda: [dt.date(2024, 1, 1), None, dt.date(2024, 1, 3)], "lists": lambda: pd.Series([[1], [], [2, {"k": {3}}]], dtype=object),
    "arrays": lambda: pd.Series([np.zeros(2), None, np.arange(3)], dtype=object), "complex": lambda: [1j, 2, 3], "float16": lambda: np.array([1, 2, 3], "f2"), "NA and NaT": lambda: pd.Series([pd.NA, pd.NaT, None], dtype=object),
}  # fmt: skip
PANDAS: dict[str, Make] = {
    **{f"Series, {name}": functools.partial(lambda make: pd.Series(make()), make) for name, make in COLUMNS.items()},
    **{f"array, {name}": make for name, make in COLUMNS.items() if isinstance(make(), pd.api.extensions.ExtensionArray)},
    "frame of all": lambda: pd.DataFrame({name: make() for name, make in COLUMNS.items()}), "no rows of all": lambda: pd.DataFrame({name: make() for name, make in COLUMNS.items()}).iloc[:0],
    "empty frame": pd.DataFrame, "no columns": lambda: pd.DataFrame(index=range(5)), "no columns, labels": lambda: pd.DataFrame(index=["a", "b"]), "one name twice": lambda: pd.DataFrame([[1, 2.5]], columns=["a", "a"]),
    "odd names": lambda: pd.DataFrame([[1, 2, 3, 4, 5]], columns=["", None, math.nan, (1, "x"), 7]), "surrogate name": lambda: pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object)), "names with a name": lambda: pd.DataFrame([[1]], columns=pd.Index(["a"], name="what")),
    "two levels of names": lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("p", 1), ("q", 2)], names=["g", None])), "times as names": lambda: pd.DataFrame([[1, 2]], columns=pd.date_range("2026-01-01", periods=2, freq="D")),
    "range as names": lambda: pd.DataFrame(np.zeros((2, 3))), "a slice": lambda: pd.DataFrame(np.arange(12.0).reshape(4, 3)).iloc[::2, 1:], "a permutation": lambda: frame(a=[3, 1, 2]).sort_values("a"),
    "attrs": lambda: with_attrs(frame(a=[1]), source="survey", limits=(1, 2), deep={"k": {3}}), "attrs of a series": lambda: with_attrs(pd.Series([1]), unit="kg"), "frame in attrs": lambda: with_attrs(frame(a=[1]), codes=frame(b=[2])),
    "no duplicate labels": lambda: frame(a=[1, 2]).set_flags(allows_duplicate_labels=False), "no duplicate labels, series": lambda: pd.Series([1], index=["a"]).set_flags(allows_duplicate_labels=False),
    "two levels of rows": lambda: pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["k", "n"])), "times as rows": lambda: pd.DataFrame({"a": [1, 2]}, index=pd.date_range("2026-01-01", periods=2, freq="h", tz=ZURICH)),
    "named series": lambda: pd.Series([1], name=("a", 1)), "duplicate rows": lambda: pd.Series([1, 2], index=["a", "a"]), "null rows": lambda: pd.Series([1, 2], index=[None, math.nan]),
    "RangeIndex": lambda: pd.RangeIndex(3, 30, 4, name="r"), "RangeIndex down": lambda: pd.RangeIndex(10, -1, -3), "Index": lambda: pd.Index([1, 2]), "Index u1": lambda: pd.Index([1, 2], dtype="u1"), "Index f4": lambda: pd.Index([1.5, math.nan], dtype="f4"),
    "Index of texts": lambda: pd.Index(["a", None], name=("x", 1)), "Index of objects": lambda: pd.Index(["a", 1, None], dtype=object), "Index of tuples": lambda: pd.Index([(1, 2), (3,)], tupleize_cols=False), "empty Index": lambda: pd.Index([]),
    "Index of bools": lambda: pd.Index([True, False]), "Index Int8": lambda: pd.Index([1, None], dtype="Int8"), "Index arrow": lambda: pd.Index([1, None], dtype="int64[pyarrow]"), "DatetimeIndex": lambda: pd.date_range("2024-01-01", periods=5, freq="ME"),
    "DatetimeIndex B": lambda: pd.date_range("2024-01-01", periods=5, freq="B"), "DatetimeIndex zoned": lambda: pd.date_range("2024-03-30", periods=3, freq="D", tz=ZURICH, name="when"), "DatetimeIndex NaT": lambda: pd.DatetimeIndex(["2024-01-01", None]),
    "TimedeltaIndex": lambda: pd.timedelta_range("1h", periods=3, freq="90min"), "PeriodIndex": lambda: pd.period_range("2024-01", periods=3, freq="3M"), "CategoricalIndex": lambda: pd.CategoricalIndex(["b", "a", None], categories=["b", "a", "c"], ordered=True),
    "IntervalIndex": lambda: pd.interval_range(0, 3, closed="left"), "MultiIndex": lambda: pd.MultiIndex.from_product([range(3), ["a", "b"]], names=["x", None]), "MultiIndex NaN": lambda: pd.MultiIndex.from_tuples([("a", math.nan), ("b", 1.0)]),
    "MultiIndex unused": lambda: pd.MultiIndex.from_product([["a", "b"], [1, 2]])[:1], "empty MultiIndex": lambda: pd.MultiIndex.from_arrays([[], []]), "array with a frequency": lambda: pd.date_range("2024-01-01", periods=3, freq="D").array,
    "spans with a frequency": lambda: pd.timedelta_range("1h", periods=3, freq="h").array,
    "Timestamp": lambda: pd.Timestamp("2024-05-05 01:02:03.123456789"), "Timestamp zoned": lambda: pd.Timestamp("2024-10-27 01:30", tz=dt.UTC).tz_convert(ZURICH), "Timestamp s": lambda: pd.Timestamp("1000-01-01").as_unit("s"),
    "Timestamp.min": lambda: pd.Timestamp.min, "Timedelta": lambda: pd.Timedelta("1 days 3 ns"), "Timedelta s": lambda: pd.Timedelta(3, unit="s").as_unit("s"), "NaT": lambda: pd.NaT, "NA": lambda: pd.NA, "Period": lambda: pd.Period("2024Q1", "Q-NOV"),
    "Interval": lambda: pd.Interval(1, 2.5, "both"), "Interval of times": lambda: pd.Interval(pd.Timestamp("2024-01-01"), pd.Timestamp("2024-02-01")), "pandas in a dict": lambda: {"a": [pd.NA, {"b": frame(a=[1])}], pd.Timestamp("2026-01-01"): 1},
}  # fmt: skip


def table(kind: Any, items: list[Any]) -> pa.Table:
    return pa.table({"a": pa.array(items, kind)})


ARROW_TYPES: list[tuple[Any, list[Any]]] = [
    *((kind, [1, None, 3]) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(), pa.duration("ns"), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.time32("s"))),
    (pa.float16(), [np.float16(1), None]), (pa.bool_(), [True, None]), (pa.null(), [None, None]), (pa.string(), ["a", None, ""]), (pa.large_string(), ["a", None]), (pa.binary(), [b"a", None]), (pa.large_binary(), [b"a", None]), (pa.binary(2), [b"ab", None]),
    (pa.date32(), [dt.date(2026, 1, 1), None]), (pa.date64(), [dt.date(2026, 1, 1), None]), (pa.time64("us"), [dt.time(1), None]), (pa.month_day_nano_interval(), [pa.MonthDayNano([1, -2, 3]), None]),
    (pa.decimal32(5, 2), [decimal.Decimal("1.10"), None]), (pa.decimal64(9, 2), [decimal.Decimal("1.10")]), (pa.decimal128(38, 2), [decimal.Decimal("1.10"), None]), (pa.decimal256(50, -2), [decimal.Decimal(1100), None]),
    (pa.list_(pa.int8()), [[1, None], None, []]), (pa.large_list(pa.string()), [["a"], None]), (pa.list_(pa.int8(), 2), [[1, 2], None]), (pa.list_(pa.null()), [[None], []]), (pa.struct([("a", pa.int8()), ("b", pa.string())]), [{"a": 1, "b": None}, None]),
    (pa.map_(pa.string(), pa.list_(pa.int8())), [[("a", [1])], None]), (pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"]), (pa.dictionary(pa.int32(), pa.int64(), ordered=True), [5, 7, 5]), (pa.list_(pa.dictionary(pa.int8(), pa.string())), [["a"], ["a", "b"]]),
    (pa.list_(pa.list_(pa.struct([("x", pa.float64())]))), [[[{"x": 1.5}]], None]),
]  # fmt: skip
ARROW: dict[str, Make] = {
    **{f"table of {kind}": functools.partial(table, kind, items) for kind, items in ARROW_TYPES},
    "empty table": lambda: pa.table({}), "no rows": lambda: pa.table({"a": pa.array([], pa.int8())}), "rows without columns": lambda: pa.table({"a": [1, 2]}).select([]), "metadata": lambda: pa.table({"a": [1]}).replace_schema_metadata({"who": "me"}),
    "field metadata": lambda: pa.table([[1]], pa.schema([pa.field("a", pa.int64(), nullable=False, metadata={"unit": "kg"})])), "chunks": lambda: pa.concat_tables([pa.table({"n": [1]}), pa.table({"n": [2, 3]})]), "a slice": lambda: pa.table({"a": ["x", "y", "z"]}).slice(1, 1),
    "one name twice": lambda: pa.table([[1], [2]], names=["a", "a"]), "of pandas": lambda: pa.Table.from_pandas(frame(a=[1], b=["x"])), "record batch": lambda: pa.record_batch({"n": [1, 2]}), "empty record batch": lambda: pa.record_batch({"n": pa.array([], pa.string())}),
    "dictionaries of chunks": lambda: pa.concat_tables([table(pa.dictionary(pa.int8(), pa.string()), ["a"]), table(pa.dictionary(pa.int8(), pa.string()), ["b"])]), "NaN payload": lambda: pa.table({"a": np.array([nan(5), -0.0])}),
}  # fmt: skip
POLARS: dict[str, Make] = {
    **{f"polars {dtype}": functools.partial(lambda dtype: pl.DataFrame({"a": pl.Series([1, None, 3], dtype=dtype)}), dtype) for dtype in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64)},
    "polars String": lambda: pl.DataFrame({"a": ["x", None]}), "polars Binary": lambda: pl.DataFrame({"a": [b"x", None]}), "polars Boolean": lambda: pl.DataFrame({"a": [True, None]}), "polars Null": lambda: pl.DataFrame({"a": [None, None]}), "polars Date": lambda: pl.DataFrame({"a": [dt.date(2026, 1, 1), None]}),
    "polars Datetime": lambda: pl.DataFrame({"a": [dt.datetime.fromisoformat("2026-01-01"), None]}), "polars Datetime ms": lambda: pl.DataFrame({"a": pl.Series([dt.datetime.fromisoformat("2026-01-01")]).cast(pl.Datetime("ms", "Europe/Zurich"))}), "polars Duration": lambda: pl.DataFrame({"a": [dt.timedelta(1), None]}),
    "polars Time": lambda: pl.DataFrame({"a": [dt.time(1), None]}), "polars Decimal": lambda: pl.DataFrame({"a": pl.Series(["1.20", None]).cast(pl.Decimal(10, 2))}), "polars Enum": lambda: pl.DataFrame({"a": pl.Series(["a", None], dtype=pl.Enum(["a", "b"]))}),
    "polars Categorical": lambda: pl.DataFrame({"a": pl.Series(["x", "y", "x"], dtype=pl.Categorical)}), "polars Struct": lambda: pl.DataFrame({"a": [{"x": 1, "y": ["z"]}, None]}), "polars List": lambda: pl.DataFrame({"a": [[1], None, []]}), "polars Array": lambda: pl.DataFrame({"a": pl.Series([[1, 2]], dtype=pl.Array(pl.Int8, 2))}),
    "polars List of Null": lambda: pl.DataFrame({"a": [[], [None]]}), "polars without rows": lambda: pl.DataFrame(schema={"a": pl.Int8, "b": pl.String}), "polars without columns": pl.DataFrame, "polars in pieces": lambda: pl.concat([pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [2]})], rechunk=False),
}  # fmt: skip

ARRIVES: dict[str, Make] = {**PYTHON, **{f"numpy, {name}": make for name, make in NUMPY.items()}, **PANDAS, **{f"Arrow, {name}": make for name, make in ARROW.items()}, **POLARS}  # fmt: skip

#: Name → a value, and what arrives.
CONVERTED: dict[str, tuple[Make, Make]] = {
    "Enum": (lambda: Colour.RED, lambda: (1, 2)), "IntEnum": (lambda: Level.LOW, lambda: 1), "Flag": (lambda: Access.READ | Access.WRITE, lambda: 3), "StrEnum": (lambda: Word.YES, lambda: "yes"), "Enum as a key": (lambda: {Colour.BLUE: 1}, lambda: {"blue": 1}),
    "data class": (lambda: Point(math.nan, {"a"}), lambda: {"x": math.nan, "tags": {"a"}}), "frozen data class": (lambda: [Cell(1)], lambda: [{"row": 1}]), "named tuple": (lambda: Pair(1, [2]), lambda: (1, [2])), "named tuple as a key": (lambda: {Pair(1, 2): 3}, lambda: {(1, 2): 3}),
    "Enum in a set": (lambda: {Colour.BLUE, 1}, lambda: {"blue", 1}), "Enum in an array": (lambda: np.array([Colour.BLUE], object), lambda: np.array(["blue"], object)), "named tuple as a name": (lambda: pd.Series([1], name=Pair(1, 2)), lambda: pd.Series([1], name=(1, 2))),
    "Arrow stream": (lambda: Stream(pa.table({"a": [1]})), lambda: pa.table({"a": [1]})),
}  # fmt: skip

#: Name → a value, and where in it stands what is refused.
REFUSED: dict[str, tuple[Make, str]] = {
    "object": (lambda: {"a": [1, object()]}, ".a[1]"), "str subclass": (lambda: [Text("x")], "[0]"), "int subclass": (lambda: Whole(1), ""), "float subclass": (lambda: Real(1), ""), "list subclass": (lambda: Items(), ""), "dict subclass": (lambda: {"d": Fields()}, ".d"),
    "tuple subclass": (lambda: Row(), ""), "set subclass": (lambda: Bag(), ""), "bytes subclass": (lambda: Raw(b"x"), ""), "Counter subclass": (lambda: Count(), ""), "Decimal subclass": (lambda: Money(1), ""), "date subclass": (lambda: Day(2026, 1, 1), ""),
    "datetime subclass": (lambda: Moment(2026, 1, 1), ""), "data class that is a dict": (lambda: Named("x"), ""), "data class without a field": (lambda: [Half(1)], "[0]"), "data class as a key": (lambda: {Cell(1): 2}, ", its keys"), "data class in a set": (lambda: {Cell(1)}, "{}"),
    "two keys that become one": (lambda: {Colour.BLUE: 1, "blue": 2}, ", its keys"), "two items that become one": (lambda: [{Level.LOW, Access.READ}], "[0]{}"), "function": (lambda: {1: {2: print}}, "[1][2]"), "lambda": (lambda: lambda: 1, ""), "class": (lambda: [1, type], "[1]"), "module": (lambda: math, ""),
    "object as a key": (lambda: {object: 1}, ", key type"), "generator": (lambda: (x for x in "ab"), ""), "map": (lambda: map(str, [1]), ""), "dict keys": (lambda: {}.keys(), ""), "dict items": (lambda: {}.items(), ""), "zip": (lambda: zip([1], [2], strict=True), ""), "iterator": (lambda: iter([1]), ""),
    "memoryview": (lambda: memoryview(b"x"), ""), "array.array": (lambda: array.array("i", [1]), ""), "ChainMap": (lambda: collections.ChainMap({}), ""), "mapping proxy": (lambda: types.MappingProxyType({}), ""), "namespace": (lambda: types.SimpleNamespace(), ""), "pattern": (lambda: re.compile("x"), ""),
    "exception": (lambda: ValueError("x"), ""), "NotImplemented": (lambda: NotImplemented, ""), "IP address": (lambda: ipaddress.ip_address("::1"), ""), "ast": (lambda: ast.parse("1"), ""), "partial": (lambda: functools.partial(print), ""), "count": (lambda: itertools.count(), ""), "context": (lambda: contextvars.copy_context(), ""),
    "file": (lambda: sys.__stdout__, ""), "defaultdict of a lambda": (lambda: collections.defaultdict(lambda: 1), ""), "cycle": (cycle, "[1].again"), "200 levels": (lambda: deep(200), "[0]" * 90), "time zone of one's own": (lambda: dt.datetime(2026, 1, 1, tzinfo=Zone()), ""), "zone of a file": (zone_of_a_file, ""),
    "zone named by a surrogate": (lambda: dt.timezone(dt.timedelta(hours=1), "\ud800"), ""), "huge Fraction": (lambda: fractions.Fraction(3**50_000, 7), ""), "masked array": (lambda: np.ma.masked_array([1], [True]), ""), "array subclass": (lambda: np.zeros(2).view(Floats), ""), "recarray": (lambda: np.zeros(2, [("a", "i4")]).view(np.recarray), ""),
    "matrix": (lambda: np.zeros((2, 2)).view(np.matrix), ""), "memmap": (lambda: np.zeros(2).view(np.memmap), ""), "scalar subclass": (lambda: {"n": Number(1)}, ".n"), "record": (lambda: np.zeros(2, [("a", "i4")]).view(np.recarray)[0], ""), "dtype metadata": (lambda: [np.zeros(1, np.dtype("f8", metadata={"unit": "kg"}))], "[0]"),
    "nested dtype metadata": (lambda: np.zeros(1, [("a", np.dtype("f8", metadata={"unit": "kg"}))]), ""), "metadata of objects": (lambda: np.array(["a"], np.dtype("O", metadata={"h5": 1})), ""), "aligned": (lambda: np.zeros(1, np.dtype([("a", "i1"), ("b", "i4")], align=True)), ""),
    "nested aligned": (lambda: np.zeros(1, [("in", np.dtype([("a", "i1"), ("b", "i4")], align=True))]), ""), "overlapping fields": (lambda: np.zeros(1, {"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]}), ""), "no width": (lambda: np.zeros(3, []), ""), "fields of no width": (lambda: np.zeros(3, [("a", "i1"), ("b", "V0")]), ""),
    "objects in fields": (lambda: np.zeros(1, [("a", object)]), ""), "StringDType": (lambda: np.array(["a"], np.dtypes.StringDType()), ""), "object in an array": (lambda: np.array([[1, object()]], object), "[0, 1]"), "numpy generator": (lambda: np.random.default_rng(1), ""), "dtype of objects": (lambda: np.dtype(object), ""),
    "object in a column": (lambda: pd.DataFrame({"a": [1], "model": [object()]}), " column 'model'[0]"), "frame subclass": (lambda: Table({"a": [1]}), ""), "series subclass": (lambda: Column([1]), ""), "sparse": (lambda: frame(a=[1], b=pd.arrays.SparseArray([1])), " column 'b'"), "groupby": (lambda: frame(a=[1]).groupby("a"), ""),
    "dtype metadata of a column": (lambda: frame(a=pd.Series(np.zeros(1, np.dtype("f8", metadata={"unit": "kg"})))), " column 'a'"), "custom frequency": (lambda: pd.date_range("2026-01-01", periods=3, freq=pd.offsets.CustomBusinessDay(holidays=["2026-01-02"])), ""),
    "normalizing frequency": (lambda: frame(a=[1, 2]).set_axis(pd.date_range("2026-01-01", periods=2, freq=pd.offsets.BDay(normalize=True))), " index"), "offset": (lambda: pd.DateOffset(months=1), ""), "pandas dtype": (lambda: pd.Int64Dtype(), ""), "object in attrs": (lambda: with_attrs(frame(a=[1]), by=object()), " attrs.by"),
    "object as a name": (lambda: pd.Series([1], name=print), " name"), "lone surrogate as string": (lambda: frame(a=pd.array(["\ud800"], dtype="string[python]")), " column 'a'"), "object among categories": (lambda: pd.Series(pd.Categorical([print])), ""), "numpy array of pandas": (lambda: pd.arrays.NumpyExtensionArray(np.zeros(2)), ""),
    "Arrow views as a column": (lambda: frame(a=pd.array(["x"], dtype=pd.ArrowDtype(pa.string_view()))), " column 'a'"), "Timestamp fold": (lambda: pd.Timestamp(2024, 10, 27, 1, fold=1), ""), "Arrow array": (lambda: pa.array([1]), ""), "ChunkedArray": (lambda: {"c": [pa.chunked_array([[1]])]}, ".c[0]"), "Arrow scalar": (lambda: pa.scalar(1), ""),
    "Arrow schema": (lambda: pa.schema([("a", pa.int64())]), ""), "Arrow type": (lambda: pa.int64(), ""), "Arrow buffer": (lambda: pa.py_buffer(b"x"), ""), "extension type": (lambda: table(pa.uuid(), [b"0" * 16]), ""), "bool8": (lambda: pa.table({"a": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))}), ""),
    **{f"table of {kind}": (functools.partial(lambda kind: pa.Table.from_batches([], pa.schema([("a", kind)])), kind), "") for kind in (
        pa.list_view(pa.int64()), pa.large_list_view(pa.int64()), pa.string_view(), pa.binary_view(), pa.run_end_encoded(pa.int32(), pa.string()), pa.dense_union([pa.field("a", pa.int8())]), pa.sparse_union([pa.field("a", pa.int8())]), pa.struct([]),
        pa.list_(pa.null(), 3), pa.list_(pa.int8(), 0), pa.binary(0), pa.list_(pa.list_view(pa.int8())), pa.dictionary(pa.int8(), pa.list_(pa.int8())), pa.struct([("x", pa.string_view())]), pa.opaque(pa.int8(), "a", "b"), pa.json_())},
    "half a day": (lambda: table(pa.date64(), [1]), ""), "Arrow reader": (lambda: pa.table({"a": [1]}).to_reader(), ""), "two million nulls": (lambda: pa.table({"a": pa.nulls(2_000_000)}), ""), "broken stream": (lambda: [BrokenStream()], "[0]"), "stream of numbers": (lambda: Stream(pa.chunked_array([[1]])), ""), "polars Object": (lambda: pl.DataFrame({"n": [1], "o": pl.Series([object()], dtype=pl.Object)}), " column 'o'"), "polars Int128": (lambda: [pl.DataFrame({"n": [1], "i": pl.Series([1], dtype=pl.Int128)})], "[0] column 'i'"),
    "polars Series": (lambda: pl.Series([1]), ""), "polars LazyFrame": (lambda: pl.LazyFrame({"a": [1]}), ""), "polars expression": (lambda: pl.col("a"), ""), "polars type": (lambda: pl.Int8(), ""), "polars subclass": (lambda: type("Mine", (pl.DataFrame,), {})({"a": [1]}), ""),
}  # fmt: skip
