"""Values seen in passing, whatever they are."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import json
import time
from collections.abc import Callable

import numpy
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from healkit.core.rendering.execution_card import history_line
from healkit.parts.post_mortem.previews import TEXT_MAX_CHARS, preview


class Hostile:
    """Every way into it raises."""

    def __init__(self):
        object.__setattr__(self, "size", 3)

    def __getattribute__(self, name):
        raise SystemExit

    def __repr__(self):
        raise SystemExit

    __len__ = __iter__ = __str__ = __bool__ = __repr__


class HostileDict(dict):
    """Dict whose own methods raise."""

    def __iter__(self):
        raise SystemExit

    items = keys = __len__ = __repr__ = __iter__


@dataclasses.dataclass
class Made:
    """Value that pytest must not see: it would ask it for a name."""

    make: Callable[[], object]


def strange() -> object:
    """Make an object whose class answers nothing; it is made here, because pytest asks all that a module holds."""

    class Meta(type):
        def __getattribute__(cls, name):
            raise SystemExit

    return Meta("Strange", (), {})()


@dataclasses.dataclass
class Order:
    """Plain object of the user's."""

    number: int
    lines: list


@pytest.mark.parametrize(
    ("value", "kind", "text", "shape"),
    [
        (3, "int", "3", None),
        (Made(lambda: 10**50_000), "int", "<int of 50,001 digits>", None),
        (Made(lambda: "x" * 10**6), "str", None, None),
        ([1, [2, [3, [4]]]], "list", "[1, [2, [3, […]]]]", None),
        (list(range(100)), "list", "[0, 1, 2, 3, 4, 5, …]", None),
        ((1,), "tuple", "(1,)", None),
        (set(), "set", "set()", None),
        (frozenset({1}), "frozenset", "frozenset({1})", None),
        ({"a": {"b": 1}}, "dict", "{'a': {'b': 1}}", None),
        (collections.Counter("aab"), "collections.Counter", "Counter {'a': 2, 'b': 1}", None),
        (Made(lambda: HostileDict(a=1)), "test_preview.HostileDict", "HostileDict {'a': 1}", None),
        (Made(Hostile), "test_preview.Hostile", "<test_preview.Hostile object: size=3>", None),
        (Made(strange), "Strange", "<test_preview.Strange object>", None),
        (Order(7, [1]), "test_preview.Order", "<test_preview.Order object: number=7, lines=[1]>", None),
        (Order, "type", "<class Order>", None),
        (time, "module", "<module time>", None),
        (time.sleep, "builtin_function_or_method", "<function sleep>", None),
        (dt.date(2024, 5, 3), "datetime.date", "datetime.date(2024, 5, 3)", None),
        (numpy.arange(6).reshape(2, 3), "numpy.ndarray", "int64 [0, 1, 2, 3, 4, 5]", [2, 3]),
        (numpy.float64(0.5), "numpy.float64", "0.5", None),
        (pandas.DataFrame({"a": [1, 2]}), "pandas.DataFrame", "columns ['a']", [2, 1]),
        (pandas.Series([1.5, 2.5]), "pandas.Series", "float64 [1.5, 2.5]", [2]),
    ],
)
@pytest.mark.requirement("FACE-4")
def test_a_preview_has_type_shape_and_first_items(value, kind, text, shape):
    seen = preview("name", value.make() if type(value) is Made else value)
    assert seen.type.endswith(kind.rpartition(".")[2])
    assert seen.shape == shape
    assert text is None or seen.repr == text
    assert len(seen.repr) <= TEXT_MAX_CHARS


def test_a_class_is_named_as_it_is_imported():
    """DATA-6: pandas 2 says `pandas.core.frame.DataFrame`, and cards said so too."""
    assert preview("decoder", json.JSONDecoder()).type == "json.JSONDecoder"
    assert preview("frame", pandas.DataFrame()).type == "pandas.DataFrame"


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary() | st.floats(),
        lambda s: st.lists(s) | st.dictionaries(st.text(), s),
    )
)
def test_any_value_has_a_preview(value):
    seen = preview("x", value)
    assert len(seen.repr) <= TEXT_MAX_CHARS
    seen.repr.encode()


@pytest.mark.parametrize(
    ("count", "resolved_by", "said"),
    [
        (1, "", ""),
        (2, "", "2nd time since Fri 3 May 2024; not fixed yet"),
        (7, "f v2", "7th time since Fri 3 May 2024; last resolved by f v2"),
        (11, "", "11th time"),
        (23, "", "23rd time"),
        (1012, "", "1,012th time"),
    ],
)
@pytest.mark.requirement("LOG-11")
def test_the_history_of_a_failure_is_one_sentence(count, resolved_by, said):
    line = history_line(count, dt.datetime(2024, 5, 3, tzinfo=dt.UTC), resolved_by)
    assert line.startswith(said)
    assert bool(line) == bool(said)
