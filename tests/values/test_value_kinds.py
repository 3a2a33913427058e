"""Values of every kind arrive equal and of the same type.

Or they are refused with their place. As an argument and as a result, through the codec that both take, and through a
real worker.
"""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from value_kinds import ARRIVES, CONVERTED, REFUSED, Make

from healkit import Healkit
from healkit.contracts import claims
from healkit.crossing import values
from healkit.errors import ArgumentsInvalid
from healkit.store.arguments import pack_arguments

pytestmark = pytest.mark.requirement("DATA-1", "DATA-2")
LIMIT = 2**30


def same(one: Any, other: Any) -> None:
    """Assert that two values are of one type and equal in all that the type holds; NaN is itself, −0.0 is not 0.0."""
    assert type(one) is type(other)
    if isinstance(one, float):
        assert struct.pack("<d", one) == struct.pack("<d", other)
    elif isinstance(one, complex):
        same([one.real, one.imag], [other.real, other.imag])
    elif isinstance(one, dict):
        same([*one.items()], [*other.items()])
        assert getattr(one, "default_factory", 0) is getattr(other, "default_factory", 0)
    elif isinstance(one, set | frozenset):
        if one != other:  # NaN is not itself
            assert sorted(map(repr, one)) == sorted(map(repr, other))
    elif hasattr(one, "maxlen") or isinstance(one, list | tuple):
        assert len(one) == len(other)
        assert getattr(one, "maxlen", 0) == getattr(other, "maxlen", 0)
        for pair in zip(one, other, strict=True):
            same(*pair)
    elif isinstance(one, np.ndarray | np.generic):
        same_array(one, other)
    elif isinstance(one, np.dtype):
        same_dtype(one, other)
    elif isinstance(one, pd.DataFrame | pd.Series):
        same_labelled(one, other)
    elif isinstance(one, pd.Index):
        same_index(one, other)
    elif isinstance(one, pd.api.extensions.ExtensionArray):
        same_extension(one, other)
    elif isinstance(one, pa.Table | pa.RecordBatch):
        assert one.shape == other.shape
        assert one.schema.equals(other.schema, check_metadata=True)
        assert one.equals(other, check_metadata=True) or repr(one.to_pylist()) == repr(other.to_pylist())
    elif isinstance(one, pl.DataFrame):
        assert repr(one.schema) == repr(other.schema)
        assert one.equals(other)
    elif isinstance(one, int):
        assert one == other
    else:
        assert repr(one) == repr(other)
        for name in ("fold", "tzinfo", "unit", "freq", "closed", "start", "stop", "step", "_value"):
            assert repr(getattr(one, name, None)) == repr(getattr(other, name, None))


def same_dtype(one: Any, other: Any) -> None:
    assert one == other
    assert one.type is other.type
    assert (one.metadata, one.isalignedstruct, repr(one)) == (
        other.metadata,
        other.isalignedstruct,
        repr(other),
    )


def same_array(one: Any, other: Any) -> None:
    same_dtype(one.dtype, other.dtype)
    assert one.shape == other.shape
    if one.dtype == object:
        same([*one.ravel()], [*other.ravel()])
    elif one.dtype.char in "gG":  # has bytes that are none of its value
        assert np.array_equal(one, other, equal_nan=True)
    else:
        assert one.tobytes() == other.tobytes()


def same_extension(one: Any, other: Any) -> None:
    assert one.dtype == other.dtype
    assert repr(one.dtype) == repr(other.dtype)
    assert getattr(one, "freq", None) == getattr(other, "freq", None)
    if hasattr(one, "_mask"):
        assert one._mask.tolist() == other._mask.tolist()
        same(one._data[~one._mask], other._data[~one._mask])
        return
    if isinstance(one, pd.Categorical):
        same_index(one.categories, other.categories)
        same(one.codes.copy(), other.codes.copy())
        assert one.ordered is other.ordered
        return
    pd.testing.assert_extension_array_equal(one, other, check_exact=True)


def same_index(one: Any, other: Any) -> None:
    pd.testing.assert_index_equal(one, other, exact=True, check_exact=True)
    same([*one.names], [*other.names])
    assert getattr(one, "freq", None) == getattr(other, "freq", None)
    if isinstance(one, pd.MultiIndex):
        for pair in zip([*one.levels, *one.codes], [*other.levels, *other.codes], strict=True):
            (same_index if isinstance(pair[0], pd.Index) else same)(*pair)
    elif isinstance(one, pd.RangeIndex):
        assert (one.start, one.stop, one.step) == (other.start, other.stop, other.step)
    else:
        same(one.array if one.dtype != object else [*one], other.array if other.dtype != object else [*other])


def same_labelled(one: Any, other: Any) -> None:
    same(one.attrs, other.attrs)
    assert one.flags == other.flags
    same_index(one.index, other.index)
    if one.ndim == 1:
        same(one.name, other.name)
        if isinstance(one.dtype, np.dtype):
            same_array(one.to_numpy(), other.to_numpy())
        else:
            same(one.array, other.array)
        return
    same_index(one.columns, other.columns)
    for place in range(one.shape[1]):
        same_labelled(one.iloc[:, place].rename(0), other.iloc[:, place].rename(0))


def as_argument(value: Any) -> Any:
    """Return a value as a tool gets it, and what is said of it."""
    packed = pack_arguments("tool", {"x": value})
    json.loads(packed.logged)
    return values.decode(packed.sent, [bytearray(one) for one in packed.contents])["x"], packed.notes


def as_result(value: Any) -> Any:
    """Return a value as the host gets it from a worker, and what is said of it."""
    contents: values.Buffers = []
    encoded, notes = values.encode(value, contents, limit_bytes=LIMIT)
    claims.check(encoded)
    return values.decode(encoded, [bytearray(one) for one in contents], limit_bytes=LIMIT), notes


def test_there_are_hundreds_of_kinds() -> None:
    assert len(ARRIVES) + len(CONVERTED) + len(REFUSED) >= 400


@pytest.mark.parametrize("make", ARRIVES.values(), ids=ARRIVES)
def test_a_value_arrives_equal_and_of_the_same_type(make: Make) -> None:
    for crossed in (as_argument, as_result):
        arrived, notes = crossed(make())
        assert notes == []
        same(make(), arrived)
        arrived, _ = crossed([{"k": (make(),)}])
        same([{"k": (make(),)}], arrived)


@pytest.mark.parametrize(("make", "arrives"), CONVERTED.values(), ids=CONVERTED)
def test_a_value_of_a_class_of_ones_own_arrives_as_what_it_holds_and_that_is_said(
    make: Make, arrives: Make
) -> None:
    for crossed in (as_argument, as_result):
        arrived, notes = crossed(make())
        assert notes
        same(arrives(), arrived)


@pytest.mark.parametrize(("make", "path"), REFUSED.values(), ids=REFUSED)
def test_a_value_that_cannot_arrive_so_is_refused_with_its_place(make: Make, path: str) -> None:
    with pytest.raises(values.CannotCross) as refused:
        values.encode(make(), [], limit_bytes=LIMIT)
    assert refused.value.path.startswith(f"${path}")
    with pytest.raises(ArgumentsInvalid) as invalid:
        pack_arguments("tool", {"x": make()})
    assert invalid.value.code == "ARGUMENTS_INVALID"
    assert f"x{path}" in str(invalid.value)


def test_all_of_them_go_through_a_worker_and_back(healkit: Healkit) -> None:
    healkit.vault.add(
        "echo", "def echo(x):\n    return [x, {name: type(value).__name__ for name, value in x.items()}]\n"
    )
    given = {name: make() for name, make in ARRIVES.items()}
    arrived, kinds = healkit.execute_tool("echo", arguments={"x": given})
    assert kinds == {name: type(value).__name__ for name, value in given.items()}
    assert arrived.keys() == given.keys()
    for name, make in ARRIVES.items():
        same(make(), arrived[name])


def test_a_refused_argument_is_on_record_and_no_worker_was_asked(healkit: Healkit) -> None:
    healkit.vault.add("echo", "def echo(x):\n    return x\n")
    for make, path in (REFUSED["ChunkedArray"], REFUSED["polars Int128"], REFUSED["polars Object"]):
        with pytest.raises(ArgumentsInvalid, match=re.escape(f"x{path} holds")) as refused:
            healkit.execute("echo", arguments={"x": make()})
        row = healkit.log.get(refused.value.log_id)
        assert row.status == "FAILURE"
        assert row.error_code == "ARGUMENTS_INVALID"


#: What a tool returns, as Python, and the path and words of the refusal.
RETURNED = {
    "pa.chunked_array([[1]])": ("$", "ChunkedArray"),
    "[pl.DataFrame({'i': pl.Series([1], dtype=pl.Int128)})]": ("$[0] column 'i'", "Int128"),
    "{'o': pl.DataFrame({'o': pl.Series([object()], dtype=pl.Object)})}": ("$.o column 'o'", "Object"),
    "pa.schema([('a', pa.list_view(pa.int64()))]).empty_table()": ("$", "list_view"),
    "np.zeros(1, np.dtype('f8', metadata={'unit': 'kg'}))": ("$", "metadata"),
    "np.zeros(3, [])": ("$", "no bytes"),
    "dataclasses.make_dataclass('D', ['x'], frozen=True)(1), {dataclasses.make_dataclass('D', ['x'], frozen=True)(1)}": ("$[1]{}", "dict"),
    "pd.Series([print])": ("$[0]", "builtin"),
}  # fmt: skip


@pytest.mark.parametrize("code", RETURNED)
def test_a_result_that_cannot_arrive_is_refused_with_its_place(healkit: Healkit, code: str) -> None:
    imports = "import dataclasses, numpy as np, pandas as pd, polars as pl, pyarrow as pa"
    healkit.vault.add("made", f"{imports}\ndef made():\n    return {code}\n")
    failure = healkit.execute("made").failure
    assert failure is not None
    path, word = RETURNED[code]
    assert failure.code == "TOOL_RESULT_UNSUPPORTED"
    whole = path == "$" and failure.evalue.startswith("the result is a")
    assert whole or f"at {path}, which" in failure.evalue
    assert word in failure.evalue


@pytest.mark.parametrize(
    "code",
    [
        "{str(i): i for i in range(200_000)}", "{i: i for i in range(200_000)}", "[0] * 400_000", "set(range(450_000))",
        "pd.RangeIndex(10**10)", "np.zeros((10**9, 0))",
    ],
)  # fmt: skip
def test_a_result_that_would_take_too_much_is_too_large(healkit: Healkit, code: str) -> None:
    healkit.vault.add("much", f"import numpy as np, pandas as pd\ndef much():\n    return {code}\n")
    failure = healkit.execute("much").failure
    assert failure is not None
    assert failure.code == "TOOL_RESULT_TOO_LARGE"
