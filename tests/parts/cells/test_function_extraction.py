"""Extraction of a tool's function from a cell."""

from __future__ import annotations

import ast
import dataclasses
import datetime
import enum
import functools
import json
import math
import threading
import types
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from healkit.core.contracts.vault import VaultEntry
from healkit.core.pysource.shapes import input_schema, read_shape
from healkit.core.store.arguments import pack_arguments, validate_arguments
from healkit.errors import UsageInvalid
from healkit.parts.cells.cell_program import extract_function


@dataclasses.dataclass
class Point:
    """Data class of a notebook."""

    x: int
    y: int


class Colour(enum.Enum):
    """Enumeration of a notebook."""

    RED = 1


def schema_of(code: str) -> dict[str, Any]:
    """Return the input schema that is read off a tool's code."""
    tree = ast.parse(code)
    return input_schema(tree, read_shape(tree, "kept"))


def called(code: str, **arguments: Any) -> Any:
    """Return what the tool's function returns."""
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    return namespace["kept"](**arguments)


@pytest.mark.parametrize(
    ("cell", "arguments", "value"),
    [
        ("a + b", ("a", "b"), 3),
        ("total = a + b", ("a", "b"), 3),
        ("total = 0\nfor x in items:\n    total += x\ntotal", ("items",), 6),
        ("a += 1\na", ("a",), 2),
        ("[x * a for x in items]", ("items", "a"), [1, 2, 3]),
        ("def f(x):\n    return x + a\nf(1)", ("a",), 2),
        ("def f(x):\n    y = x + a\n    return y\ny = 5\nf(y)", ("a",), 6),
        ("g = lambda n: n * b\ng(a)", ("a", "b"), 2),
        (
            "class Box:\n    size = a\n    def area(self):\n        return self.size * b\nBox().area()",
            ("a", "b"),
            2,
        ),
        ("import os\nos.path.join(name, 'x')", ("name",), "Ada/x"),
        (
            "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    found = str(e)\nfound",
            (),
            "division by zero",
        ),
        ("text = '''one\n  two'''\ntext", (), "one\n  two"),
        ("text = f'''{name}\n  two'''\ntext", ("name",), "Ada\n  two"),
        ("# a comment\nmax(items);", ("items",), 3),
        ("sorted(\n    items,\n    reverse=True,\n)", ("items",), [3, 2, 1]),
        ("with open('/dev/null') as f:\n    text = f.read()\nlen(text)", (), 0),
        ("(n := a) + n", ("a",), 2),
        ("math.floor(1.5) + a", ("a",), 2),
        ("try:\n    a\nexcept NameError:\n    a = 5\na", ("a",), 1),
        ("def f(x: type(name) = b):\n    return x\nf()", ("b", "name"), 2),
        ("m.floor(1.5)", (), 1),
        ("loads('[1]')", (), [1]),
    ],
)
@pytest.mark.requirement("FACE-7")
def test_names_that_a_cell_reads_but_does_not_bind_become_arguments(cell, arguments, value):
    namespace = {
        "a": 1,
        "b": 2,
        "items": [1, 2, 3],
        "name": "Ada",
        "math": math,
        "m": math,
        "loads": json.loads,
    }
    kept = extract_function("kept", cell, namespace)
    assert kept.arguments == arguments
    assert called(kept.code, **{name: namespace[name] for name in arguments}) == value


def test_the_schema_can_be_read_off_the_signature():
    assert (
        "def kept(a: int, items: list, x):"
        in extract_function("kept", "a, items, x", {"a": 1, "items": [], "x": None}).code
    )


def test_a_cell_that_awaits_is_an_async_tool():
    assert extract_function("kept", "import asyncio\nawait asyncio.sleep(0)", {}).code.startswith(
        "async def kept():"
    )


def test_an_undefined_name_is_left_in_the_tool():
    assert extract_function("kept", "longets", {}).arguments == ()


@pytest.mark.requirement("FACE-7")
@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame({"a": [1, 2]}),
        pl.DataFrame({"a": [1, 2]}),
        pd.Series([1.5], name="a"),
        np.arange(3),
        datetime.date(2026, 1, 2),
        (1, 2),
        {1, 2},
        b"x",
        "y" * 2_000_000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_tool_may_be_given_is_an_argument(value):
    kept = extract_function("kept", "x", {"x": value})
    entry = VaultEntry("kept", "default", 1, kept.code, "", input_schema=schema_of(kept.code))
    assert kept.arguments == ("x",)
    validate_arguments(entry, pack_arguments("kept", {"x": value}).plain)


def test_a_frame_is_annotated_so_that_the_schema_says_it():
    kept = extract_function("kept", "len(x)", {"x": pd.DataFrame({"a": [1]})})
    assert kept.code == 'def kept(x: "pandas.DataFrame"):\n    return len(x)\n'
    assert schema_of(kept.code)["properties"]["x"]["format"] == "dataframe"


@pytest.mark.parametrize(
    ("cell", "value", "said"),
    [
        (
            "x",
            {"deep": [object()]},
            r"x.deep\[0\] holds a value of type object, which cannot reach the worker",
        ),
        ("x", threading.Lock(), "x holds a value of type _thread.lock"),
        ("x", types.SimpleNamespace(), "x holds a value of type types.SimpleNamespace"),
        ("x", Point(1, 2), "In a worker, x: Point arrives as a dict of its fields"),
        ("x", Colour.RED, "In a worker, x: Colour arrives as its value"),
        ("x", functools.partial(print), "x holds a value of type functools.partial"),
        ("x", "y" * 40_000_000, "8,388,608 are allowed"),
        ("%run_tool x", 1, "it holds a magic or a shell command"),
        ("x = = 1", 1, "invalid syntax"),
        ("from math import *", 1, "'from math import \\*' does not work in a function"),
        ("", 1, "empty"),
    ],
)
def test_a_cell_that_cannot_be_a_tool_is_refused_with_the_reason(cell, value, said):
    with pytest.raises(UsageInvalid, match=said):
        extract_function("kept", cell, {"x": value})
