"""Arrays, frames and tables arrive equal and of the same type.

What cannot do so is refused with its path.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
import zoneinfo
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from healkit.crossing import values

pytestmark = pytest.mark.requirement("DATA-1", "DATA-2")
ZURICH = zoneinfo.ZoneInfo("Europe/Zurich")


def crossed(value: object, *, inline: bool = False) -> Any:
    """Return the value as it arrives on the other side."""
    buffers: values.Buffers | None = None if inline else []
    encoded, notes = values.encode(value, buffers)
    assert notes == []
    return values.decode(encoded, [bytearray(one) for one in buffers or ()])


def assert_same(one: Any, other: Any) -> None:
    """Compare two values of numpy, pandas or Arrow, and the types of what is in them."""
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(
            one, other, check_exact=True, check_freq=True, check_column_type="exact"
        )
        assert repr(one.attrs) == repr(other.attrs)
        for i in range(one.shape[1]):
            assert_same(one.iloc[:, i], other.iloc[:, i])
    elif isinstance(one, pd.Series):
        pd.testing.assert_series_equal(one, other, check_exact=True)
        if one.dtype == object:
            assert list(map(type, one)) == list(map(type, other))
    elif isinstance(one, pd.Index):
        pd.testing.assert_index_equal(one, other, exact=True)
        assert one.names == other.names
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        if one.dtype == object:
            assert list(map(type, one.flat)) == list(map(type, other.flat))
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes() or one.dtype == object
        assert other.flags.writeable or not other.size
    elif isinstance(one, pd.api.extensions.ExtensionArray):
        pd.testing.assert_extension_array_equal(one, other)
    elif isinstance(one, pa.Table | pa.RecordBatch):
        assert one.equals(other, check_metadata=True)
    elif isinstance(one, np.generic):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    else:
        assert repr(one) == repr(other)
        assert one is other or one == other


ARRAYS = [
    np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.arange(10)[::-2], np.array(5),
    np.zeros((0, 3)), np.zeros((2, 0), "f4"), np.array([True, False]), np.array([1 + 2j]), np.array([np.nan, -0.0, np.inf]),
    np.array(["a", "bcd", ""]), np.array([b"x", b"yz"]), np.array(["2024-01-01", "NaT"], "M8[D]"), np.array([5], "m8[ns]"),
    np.array([(1, "a", [1.0, 2.0])], [("n", ">i4"), ("t", "U3"), ("v", "f8", (2,))]), np.array([1, 2], ">u2"),
    np.array([1, 2], np.float16), np.array([1], np.longdouble), np.array(["x", None, 3, (1, 2), [4]], object),
    np.array([["a", None], ["b", "c"]], object), np.array(["\ud800"], object), np.array([], object), np.array([b"ab"], "V2"),
    np.zeros(2, [("inner", [("a", "i1"), ("b", "U2")])]), np.zeros(3, "U0"),
]  # fmt: skip
SCALARS = [
    np.float32(1.5), np.int8(-3), np.bool_(True), np.str_("snow"), np.bytes_(b"ab"), np.datetime64("2024-01-01T00", "h"),
    np.timedelta64(3, "D"), np.complex64(1j), np.float64("nan"), np.void((1, 2.0), dtype=[("a", "i4"), ("b", "f8")]),
    pd.Timestamp("2024-05-05 01:02:03.123456789"), pd.Timestamp("2024-10-27 01:30", tz=dt.UTC).tz_convert(ZURICH),
    pd.Timestamp("1900-01-01", tz=dt.UTC), pd.Timestamp("2024-01-01").as_unit("s"), pd.Timedelta("1 days 3 ns"),
    pd.Timedelta(3, unit="s"), pd.NaT, pd.NA, pd.Period("2024-03", "M"), pd.Period("2024Q1", "Q-NOV"),
    pd.Interval(1, 2.5, "both"), pd.Interval(pd.Timestamp("2024-01-01"), pd.Timestamp("2024-02-01")), np.dtype("f4"),
]  # fmt: skip
INDEXES = [
    pd.RangeIndex(3, 30, 4, name="r"), pd.Index([1, 2, 3]), pd.Index(["a", "b"], name=("x", 1)), pd.Index(["a", None], dtype=object),
    pd.Index([]), pd.Index([1.5, np.nan]), pd.Index([True, False]), pd.date_range("2024-01-01", periods=5, freq="ME"),
    pd.date_range("2024-03-30", periods=3, freq="D", tz=ZURICH, name="when"), pd.DatetimeIndex(["2024-01-01", None]),
    pd.timedelta_range("1h", periods=3, freq="h"), pd.period_range("2024-01", periods=3, freq="M"),
    pd.CategoricalIndex(["b", "a", None], categories=["b", "a", "c"], ordered=True), pd.interval_range(0, 3),
    pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["x", None]), pd.Index([(1, 2), (3,)], tupleize_cols=False),
    pd.MultiIndex.from_tuples([("a", np.nan), ("b", 1.0)]), pd.Index([1, 2], dtype="Int8"), pd.Index([1, 2], dtype="u1"),
]  # fmt: skip
COLUMNS: dict[str, Any] = {
    "whole": [1, 2, 3], "small": np.array([1, 2, 3], "i1"), "number": [0.5, np.nan, -0.0], "text": ["a", None, "c"],
    "plain text": pd.Series(["a", "b", "c"], dtype=object), "gaps": pd.Series(["a", None, np.nan], dtype=object),
    "mixed": pd.Series([1, "a", (2,)], dtype=object), "exact": [decimal.Decimal("1.10"), None, decimal.Decimal(2)],
    "days": [dt.date(2024, 1, 1), None, dt.date(2024, 1, 3)], "truth": [True, False, True],
    "string": pd.array(["x", pd.NA, "z"], dtype="string"), "string python": pd.array(["x", pd.NA, "z"], dtype="string[python]"),
    "Int64": pd.array([1, pd.NA, 3], dtype="Int64"), "Float32": pd.array([1.5, pd.NA, 3], dtype="Float32"),
    "boolean": pd.array([True, pd.NA, False], dtype="boolean"),
    "moment": pd.to_datetime(["2024-01-01", None, "2024-01-03 00:00:00.000000001"], format="ISO8601"),
    "zoned": pd.to_datetime(["2024-01-01", None, "2024-07-03"]).tz_localize(ZURICH), "span": pd.to_timedelta([1, None, 3], unit="s"),
    "category": pd.Categorical(["lo", None, "hi"], categories=["lo", "mid", "hi"], ordered=True),
    "numbers as categories": pd.Categorical([3, 1, 3]), "period": pd.period_range("2024-01", periods=3, freq="D"),
    "interval": pd.arrays.IntervalArray.from_tuples([(0, 1), None, (1, 2)]),
    "arrow": pd.array([{"a": 1}, None, {"a": 3}], dtype=pd.ArrowDtype(pa.struct([("a", pa.int64())]))),
    "lists": pd.Series([[1], [], [2, {"k": {3}}]], dtype=object), "complex": [1j, 2, 3],
}  # fmt: skip


def frames() -> dict[str, pd.DataFrame]:
    """Return frames of all kinds, by what is special about them."""
    whole = pd.DataFrame(COLUMNS)
    whole.attrs = {"source": "survey", "limits": (1, 2)}
    two = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=["a", "a", 7], index=list("wxyz"))
    levels = two.set_axis(pd.MultiIndex.from_tuples([("p", 1), ("p", 2), ("q", 1)], names=["g", "k"]), axis=1)
    return {
        "all columns": whole, "two columns of one name": two, "levels": levels, "no rows": whole.iloc[:0],
        "no columns": pd.DataFrame(index=[1, 2]), "empty": pd.DataFrame(), "a part": two.iloc[::2, 1:],
        "moments as index": two.set_axis(pd.date_range("2024-01-01", periods=4, freq="h", tz="UTC")),
        "one dtype": pd.DataFrame(np.ones((5, 2), "f4")), "sorted": whole.sort_values("whole", ascending=False),
    }  # fmt: skip


@pytest.mark.parametrize("inline", [False, True], ids=["in buffers", "inline"])
@pytest.mark.parametrize("frame", frames().values(), ids=frames())
def test_a_frame_arrives_as_it_is(frame: pd.DataFrame, inline: bool) -> None:
    assert_same(frame, crossed(frame, inline=inline))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_arrives_as_it_is(name: str) -> None:
    series = pd.Series(COLUMNS[name], name=name)
    assert_same(series, crossed(series))
    if not isinstance(series.dtype, np.dtype):
        assert_same(series.array, crossed(series.array))


@pytest.mark.parametrize(
    "value", [*ARRAYS, *SCALARS, *INDEXES], ids=lambda value: f"{type(value).__name__} {value!s:.25}"
)
def test_an_array_a_scalar_or_an_index_arrives_as_it_is(value: Any) -> None:
    assert_same(value, crossed(value))
    assert_same(value, crossed(value, inline=True))


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"n": [1, None], "t": ["a", "b"]}), pa.table({"d": pa.array(["x", "y", "x"]).dictionary_encode()}),
        pa.table({"l": [[1], None], "s": [{"a": 1.5}, {"a": None}]}).replace_schema_metadata({"who": "me"}), pa.table({}),
        pa.concat_tables([pa.table({"n": [1]}), pa.table({"n": [2, 3]})]), pa.table({"nothing": pa.nulls(5)}),
        pa.record_batch({"n": [1, 2]}),
    ],
    ids=repr,
)  # fmt: skip
def test_an_arrow_table_arrives_as_it_is(table: Any) -> None:
    assert_same(table, crossed(table))


_dtypes = hnp.scalar_dtypes() | hnp.array_dtypes(hnp.scalar_dtypes(), max_size=3)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(_dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_dims=4)))
def test_any_array_arrives_as_it_is(array: Any) -> None:
    assert_same(array, crossed(array))


class Stream:
    """Table that offers itself by Arrow's PyCapsule interface only."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_what_offers_itself_as_an_arrow_stream_arrives_as_a_table() -> None:
    table = pa.table({"n": [1, None], "t": ["a", "b"]})
    buffers: values.Buffers = []
    encoded, notes = values.encode([Stream(table)], buffers)
    assert notes == ["$[0]: Stream arrives as a pyarrow Table"]
    assert values.decode(encoded, [bytes(one) for one in buffers])[0].equals(table)


def test_a_polars_frame_arrives_as_it_is() -> None:
    import polars as pl

    frame = pl.DataFrame(
        {"n": [1, None], "t": ["a", "b"], "d": [[1.5], []], "when": [None, dt.date(2026, 1, 2)]}
    )
    arrived = crossed(frame)
    assert type(arrived) is pl.DataFrame
    assert arrived.equals(frame)
    assert arrived.schema == frame.schema


class Frame(pd.DataFrame):
    """Frame of a class that the other side does not have."""


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        (pd.DataFrame({"a": [1], "model": [object()]}), "$.df column 'model'[0]", "a value of type object"),
        (Frame({"a": [1]}), "$.df", "Frame"),
        (pd.Series([1, 0], dtype="Sparse[int]"), "$.df", "Sparse"),
        (np.ma.masked_array([1], [True]), "$.df", "MaskedArray"),
        (pd.DataFrame({"a": [1]}).groupby("a"), "$.df", "DataFrameGroupBy"),
        (pa.table({"u": pa.array([b"0" * 16], pa.uuid())}), "$.df", "extension type"),
    ],
)
def test_what_cannot_cross_is_refused_with_its_column(value: object, path: str, why: str) -> None:
    with pytest.raises(values.CannotCross) as caught:
        values.encode({"df": value}, [])
    assert caught.value.path == path
    assert why in caught.value.why


def test_contents_are_not_copied_for_a_numeric_frame() -> None:
    matrix = np.arange(3_000.0).reshape(1000, 3, order="F")
    buffers: values.Buffers = []
    values.encode(pd.DataFrame(matrix, columns=list("abc"), copy=False), buffers)
    assert all(np.shares_memory(np.frombuffer(one), matrix) for one in buffers[:3])


def stream(table: pa.Table, **options: Any) -> bytes:
    """Return an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of(data: bytes) -> Any:
    """Return what a worker's stream decodes to."""
    return values.restore({"@": ["Table", 0]}, [data])


@pytest.mark.requirement("DATA-4")
def test_a_compressed_stream_is_refused_before_it_is_read() -> None:
    bomb = stream(pa.table({"n": np.zeros(10_000_000)}), compression="zstd")
    assert len(bomb) < 100_000
    with pytest.raises(values.BadValue, match="compressed"):
        table_of(bomb)


@pytest.mark.requirement("DATA-4")
def test_a_stream_of_rows_without_bytes_is_refused() -> None:
    with pytest.raises(values.BadValue, match="rows in"):
        table_of(stream(pa.table({"n": pa.nulls(2_000_000)})))


_samples = [
    stream(pa.table({"n": [1, None, 3], "t": ["a", "bc", None], "f": [1.0, 2.0, 3.0]})),
    stream(pa.table({"d": pa.array(["x", "y", "x"]).dictionary_encode(), "l": [[1], [], [2, 3]]})),
]


@pytest.mark.requirement("DATA-4")
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(_samples),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_a_damaged_stream_is_whole_or_refused(sample: bytes, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(sample)
    for place, byte in changes:
        damaged[place % len(damaged)] = byte
    try:
        table_of(bytes(damaged)).to_pydict()
    except values.BadValue:
        pass


@pytest.mark.requirement("DATA-4")
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(_samples),
    st.integers(0, 2000),
    st.sampled_from(["<i", "<q", "<h"]),
    st.integers(-(2**15), 2**15 - 1),
)
def test_wrong_lengths_and_offsets_are_whole_or_refused(
    sample: bytes, place: int, kind: str, number: int
) -> None:
    damaged = bytearray(sample)
    place %= len(damaged) - 8
    struct.pack_into(kind, damaged, place, number)
    try:
        table_of(bytes(damaged)).to_pydict()
    except values.BadValue:
        pass
