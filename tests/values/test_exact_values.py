"""Values arrive equal and of the same type, or are refused.

A refusal names the value's path.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import json
import math
import pathlib
import uuid
import zoneinfo
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healkit.crossing import values

pytestmark = pytest.mark.requirement("DATA-1")


def crossed(value: object) -> Any:
    """Return the value as it arrives on the other side."""
    return values.decode(values.encode(value)[0])


def same(one: Any, other: Any) -> bool:
    """Return whether both are of the same types and equal, with NaN equal to itself, and -0.0 not to 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return math.copysign(1, one) == math.copysign(1, other) and (
            one == other or (one != one and other != other)
        )
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            same(*keys) and same(one[keys[0]], other[keys[1]]) for keys in zip(one, other, strict=True)
        )
    if isinstance(one, list | tuple | collections.deque):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, decimal.Decimal):
        return str(one) == str(other)
    return bool(one == other)


FIXED = [
    None, True, 0, -1, 2**63, -(2**64), 2**70, 10**5000, -(3**9000), 0.1, -0.0, 1e22, math.nan, math.inf, -math.inf,
    complex(-0.0, math.nan), decimal.Decimal("1.10"), decimal.Decimal("-0"), decimal.Decimal("NaN"),
    decimal.Decimal("sNaN"), decimal.Decimal("1E+999999"), fractions.Fraction(-22, 7), fractions.Fraction(3**5000, 7),
    "", "Zürich \N{SNOWMAN}", "a\0b", "\ud800 alone", "@", b"", bytes(range(256)), bytearray(b"\0\xff"),
    [], [[]], (), ((),), (1, [2, (3,)]), set(), {1, "a", (2, 3)}, frozenset({frozenset({1})}),
    {}, {"a": 1}, {"@": 1}, {"@": ["int", "0x1"]}, {1: "one", "1": "text"}, {(1, 2): {None: True}}, {"\udcff": 1},
    {1.5: 1, b"x": 2, True: 3}, range(10), range(-5, 2**70, 3), slice(1, None, "x"), ...,
    dt.date(2024, 2, 29), dt.date.min, dt.time(23, 59, 59, 999999), dt.time(1, 2, tzinfo=dt.UTC), dt.time(1, fold=1),
    dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Zurich")),
    dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3, seconds=7), "odd")), dt.timedelta.min,
    dt.timedelta(days=-1, microseconds=5), dt.UTC, zoneinfo.ZoneInfo("Asia/Tokyo"),
    uuid.UUID(int=7), pathlib.Path("/tmp/ü"), pathlib.PurePosixPath("a/b"), pathlib.PureWindowsPath("C:\\x"),
    pathlib.Path("bad\udcff"), collections.OrderedDict([("b", 1), ("a", 2)]), collections.Counter("hello"),
    collections.Counter({"a": 0, "b": -2}), collections.defaultdict(list, {"a": [1]}),
    collections.defaultdict(None, {1: 2}), collections.deque([1, (2,)], 3),
]  # fmt: skip


@pytest.mark.parametrize("value", FIXED, ids=lambda value: type(value).__name__)
def test_a_value_arrives_as_it_is(value: object) -> None:
    for wrapped in (value, [value], {"key": (value,)}):
        assert same(wrapped, crossed(wrapped))


_hashable = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(max_size=20),
    st.decimals(allow_nan=False), st.fractions(), st.dates(), st.times(), st.datetimes(timezones=st.none() | st.timezones()),
    st.timedeltas(), st.uuids(), st.complex_numbers(allow_nan=False),
    st.text(st.characters(categories=["Cs", "L"]), max_size=5),
)  # fmt: skip
_values = st.recursive(
    _hashable | st.floats(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.lists(inner, max_size=5).map(tuple), st.dictionaries(_hashable, inner, max_size=5),
        st.dictionaries(st.text(max_size=3) | st.just("@"), inner, max_size=4), st.sets(_hashable, max_size=5),
        st.frozensets(_hashable, max_size=5), st.lists(inner, max_size=4).map(collections.deque),
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(_values)
def test_any_nesting_arrives_as_it_is(value: object) -> None:
    assert same(value, crossed(value))


def test_plain_json_is_encoded_as_json() -> None:
    plain = {"a": [1, 2.5, None, True, "text"], "b": {"c": []}}
    assert json.loads(values.encode(plain)[0]) == plain
    assert values.MARK not in values.encode(plain)[0]


class Colour(enum.Enum):
    RED = (1, 2)


@dataclasses.dataclass
class Point:
    x: float
    tags: set[str]


class Pair(NamedTuple):
    one: int
    two: int


def test_instances_of_classes_of_ones_own_arrive_as_what_they_hold_with_a_note() -> None:
    encoded, notes = values.encode([Colour.RED, Point(math.nan, {"a"}), Pair(1, 2)])
    red, point, pair = values.decode(encoded)
    assert same([red, point, pair], [(1, 2), {"x": math.nan, "tags": {"a"}}, (1, 2)])
    assert notes == [
        "$[0]: Colour arrives as its value",
        "$[1]: Point arrives as a dict of its fields",
        "$[2]: Pair arrives as a tuple",
    ]


class Text(str):
    """Class of the test's own, which the other side does not have."""


def cycle() -> list[Any]:
    made: list[Any] = [1]
    made.append({"again": made})
    return made


def deep(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        ({"a": [1, object()]}, "$.a[1]", "a value of type object"),
        ([Text("x")], "$[0]", "Text"),
        ({1: {2: print}}, "$[1][2]", "builtin_function_or_method"),
        ({object(): 1}, "$, key object", "object"),
        ((x for x in "ab"), "$", "generator"),
        (cycle(), "$[1].again", "refers back"),
        (deep(200), "$" + "[0]" * 91, "nested deeper than 90 levels"),
        (collections.defaultdict(lambda: 1), "$", "factory"),
        ([1, type], "$[1]", "type"),
    ],
)
def test_what_cannot_cross_is_refused_with_its_path(value: object, path: str, why: str) -> None:
    with pytest.raises(values.CannotCross) as caught:
        values.encode(value)
    assert caught.value.path == path
    assert why in caught.value.why


@pytest.mark.requirement("DATA-4")
@pytest.mark.parametrize(
    "tag",
    [
        [], ["int"], ["int", "zz"], ["int", 5], ["float", "1"], ["str", "####"], ["str", 5], ["dict", [[1]]], ["dict", 5],
        ["dict", [[1, 2], [1, 3]]], ["dict", [[[], 2]]], ["set", [1, 1]], ["set", [[]]], ["date", "never"], ["range", "1"],
        ["range", "0x1", "0x2", "0x0"], ["path", "Path", "x"], ["UUID", "12"], ["zone", "../../etc/passwd"],
        ["zone", "Mars/Base"], ["defaultdict", [], "eval"], ["deque", [1], "x"], ["nothing", 1], [["int"], 1],
        ["datetime", "2024-01-01", 7, []], ["timedelta", 10**12, 0, 0], ["Fraction", "0x1", "0x0"], ["tuple"],
        ["tuple", 7], ["ndarray", "<f8", [2], ""], ["ndarray", "|O", [1], "AAAAAAAAAAA="], ["ndarray", "<f8", [-1], ""],
        ["ndarray", "<f8", [1], 0], ["ndarray", "|b1", [1], "Ag=="], ["objects", [2], [1]], ["Table", "AAAA"],
        ["texts", [1], ""], ["Categorical", {"@": ["ndarray", "|i1", [1], "BQ=="]}, [], True], ["DataFrame", [], 1, 2, {}],
    ],
    ids=repr,
)  # fmt: skip
def test_a_tag_of_the_wrong_form_is_refused(tag: list[Any]) -> None:
    with pytest.raises(values.BadValue):
        values.decode(json.dumps([{"@": tag}]).encode())
