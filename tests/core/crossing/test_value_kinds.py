"""Values of every kind arrive equal and of the same type."""

from __future__ import annotations

import ast
import json
import re
import struct
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tables import each
from value_kinds import ARRIVES, CONVERTED, REFUSED, Make

from healkit import Healkit
from healkit.core.crossing import values
from healkit.core.pysource.shapes import examples_in, read_shape
from healkit.core.store.arguments import pack_arguments
from healkit.core.wire import claims
from healkit.errors import ArgumentsInvalid

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
    elif one.dtype.char in "gG":  # long doubles have padding bytes
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


def inline(value: Any) -> Any:
    """Return a value whose contents stand in its JSON, and what is said of it."""
    encoded, notes = values.encode(value, limit_bytes=LIMIT)
    return values.decode(encoded, limit_bytes=LIMIT), notes


def as_result(value: Any) -> Any:
    """Return a value as the host gets it from a worker, and what is said of it."""
    contents: values.Buffers = []
    encoded, notes = values.encode(value, contents, limit_bytes=LIMIT)
    claims.check_claim(encoded)
    return values.decode(encoded, [bytearray(one) for one in contents], limit_bytes=LIMIT), notes


def arrives_as_it_is(make: Make) -> None:
    for crossed in (as_argument, as_result, inline):
        arrived, notes = crossed(make())
        assert notes == []
        same(make(), arrived)
        arrived, _ = crossed([{"k": (make(),)}])
        same([{"k": (make(),)}], arrived)


def arrives_as(make: Make, arrives: Make) -> None:
    for crossed in (as_argument, as_result):
        arrived, notes = crossed(make())
        assert " arrives as " in notes[0]
        same(arrives(), arrived)


def is_refused(make: Make, path: str) -> None:
    with pytest.raises(values.CannotCross) as refused:
        values.encode(make(), [], limit_bytes=LIMIT)
    assert refused.value.path.startswith(f"${path}")
    with pytest.raises(ArgumentsInvalid) as invalid:
        pack_arguments("tool", {"x": make()})
    assert invalid.value.code == "ARGUMENTS_INVALID"
    assert f"x{path}" in str(invalid.value)


def test_a_value_arrives_equal_and_of_the_same_type() -> None:
    each(arrives_as_it_is, {name: (make,) for name, make in ARRIVES.items()})


def test_a_value_of_ones_own_class_arrives_as_what_it_holds() -> None:
    each(arrives_as, CONVERTED)


def test_a_value_that_cannot_arrive_so_is_refused_with_its_place() -> None:
    each(is_refused, REFUSED)


@pytest.mark.slow
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


#: What a tool returns, as Python; the code of the failure, and what it says.
RETURNED = {
    "pa.chunked_array([[1]])": ("TOOL_RESULT_UNSUPPORTED", "the result is a .*ChunkedArray"),
    "pd.Series([print])": ("TOOL_RESULT_UNSUPPORTED", r"builtin.* at \$\[0\], which"),
    "{str(i): i for i in range(200_000)}": ("TOOL_RESULT_TOO_LARGE", ""), "{i: i for i in range(200_000)}": ("TOOL_RESULT_TOO_LARGE", ""),
    "[0] * 400_000": ("TOOL_RESULT_TOO_LARGE", ""), "set(range(450_000))": ("TOOL_RESULT_TOO_LARGE", ""),
    "pd.RangeIndex(10**10)": ("TOOL_RESULT_TOO_LARGE", ""), "np.zeros((10**9, 0))": ("TOOL_RESULT_TOO_LARGE", ""),
}  # fmt: skip


def result_is_refused(healkit: Healkit, code: str, error_code: str, words: str) -> None:
    aliases = {"np": "numpy", "pa": "pyarrow", "pd": "pandas"}
    imports = "".join(f"import {name} as {alias}\n" for alias, name in aliases.items() if f"{alias}." in code)
    entry = healkit.vault.add("made", f"{imports}def made():\n    return {code}\n")
    failure = healkit.execute("made").failure
    healkit.vault.remove(entry.tool_name, reason="the next")
    assert failure is not None, code
    assert failure.code == error_code, code
    assert re.search(words, failure.evalue, re.DOTALL), failure.evalue


def test_a_result_that_cannot_arrive_or_is_too_large_is_refused_with_its_place(healkit: Healkit) -> None:
    for code in ("pd.Series([print])", "[0] * 400_000"):
        result_is_refused(healkit, code, *RETURNED[code])


@pytest.mark.slow
def test_so_is_every_other_one(healkit: Healkit) -> None:
    each(result_is_refused, {code: (healkit, code, *ending) for code, ending in RETURNED.items()})


_keys = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(max_size=20),
    st.decimals(allow_nan=False), st.fractions(), st.dates(), st.times(), st.datetimes(timezones=st.none() | st.timezones()),
    st.timedeltas(), st.uuids(), st.text(st.characters(categories=["Cs", "L"]), max_size=5),
)  # fmt: skip
_values = st.recursive(
    _keys | st.floats(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.lists(inner, max_size=5).map(tuple), st.dictionaries(_keys, inner, max_size=5),
        st.dictionaries(st.text(max_size=3) | st.just("@"), inner, max_size=4), st.sets(_keys, max_size=5),
    ),
    max_leaves=20,
)  # fmt: skip
_dtypes = hnp.scalar_dtypes() | hnp.array_dtypes(hnp.scalar_dtypes(), max_size=3)


@settings(max_examples=40)
@given(_values | hnp.arrays(_dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_dims=4)))
def test_any_nesting_and_any_array_arrives_as_it_is(value: object) -> None:
    same(value, as_result(value)[0])


def test_plain_json_is_encoded_as_json() -> None:
    plain = {"a": [1, 2.5, None, True, "text"], "b": {"c": []}}
    assert json.loads(values.encode(plain)[0]) == plain
    assert values.MARK not in values.encode(plain)[0]


def test_contents_are_not_copied_for_a_numeric_frame() -> None:
    matrix = np.arange(3_000.0).reshape(1000, 3, order="F")
    buffers: values.Buffers = []
    values.encode(pd.DataFrame(matrix, columns=list("abc"), copy=False), buffers)
    assert all(np.shares_memory(np.frombuffer(one), matrix) for one in buffers[:3])


#: Tags that no encoder writes.
WRONG_TAGS: list[list[Any]] = [
    [], ["int"], ["int", "zz"], ["int", 5], ["float", "1"], ["str", "####"], ["str", 5], ["dict", [[1]]], ["dict", 5],
    ["dict", [[1, 2], [1, 3]]], ["dict", [[[], 2]]], ["set", [1, 1]], ["set", [[]]], ["date", "never"], ["range", "1"],
    ["range", "0x1", "0x2", "0x0"], ["path", "Path", "x"], ["UUID", "12"], ["zone", "../../etc/passwd"],
    ["zone", "Mars/Base"], ["defaultdict", [], "eval"], ["deque", [1], "x"], ["nothing", 1], [["int"], 1],
    ["datetime", "2024-01-01", 7, []], ["timedelta", 10**12, 0, 0], ["Fraction", "0x1", "0x0"], ["tuple"],
    ["tuple", 7], ["ndarray", "<f8", [2], ""], ["ndarray", "|O", [1], "AAAAAAAAAAA="], ["ndarray", "<f8", [-1], ""],
    ["ndarray", "<f8", [1], 0], ["ndarray", "|b1", [1], "Ag=="], ["objects", [2], [1]], ["Table", "AAAA"],
    ["texts", [1], ""], ["Categorical", {"@": ["ndarray", "|i1", [1], "BQ=="]}, [], True], ["DataFrame", [], 1, 2, {}],
]  # fmt: skip


def wrong_tag(*tag: Any) -> None:
    with pytest.raises(values.BadValue):
        values.decode(json.dumps([{"@": tag}]).encode())


@pytest.mark.requirement("DATA-4")
def test_a_tag_of_the_wrong_form_is_refused() -> None:
    each(wrong_tag, {repr(tag): tag for tag in WRONG_TAGS})


def test_an_argument_that_looks_like_a_tag_stays_a_dict_in_a_doctest() -> None:
    """It was kept as the example's arguments, and the tool was then checked with the tuple (1, 2)."""
    code = (
        'def size(x):\n    """\n    >>> size({"@": ["tuple", [1, 2]]})\n    1\n    """\n    return len(x)\n'
    )
    tree = ast.parse(code)
    (example,) = examples_in(tree, read_shape(tree, "size"))
    assert "arguments" not in example
    assert "size({'@': ['tuple', [1, 2]]})" in example["call"]
