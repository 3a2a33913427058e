"""Plain values: what JSON holds exactly, without a tag."""

from __future__ import annotations

import ast
import math
from typing import Any

import pytest

from healkit.cells.function_extraction import extract_function
from healkit.contracts.encoding import TAGGED_DEPTH, is_plain
from healkit.crossing import values
from healkit.errors import UsageInvalid
from healkit.pysource.shapes import examples_in, read_shape


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


DIFFERED = {
    "nan": math.nan, "inf": [math.inf], "a large int": {"n": 2**5000}, "a dict like a tag": {"@": ["tuple", [1, 2]]},
    "too deep": nested(TAGGED_DEPTH + 1),
}  # fmt: skip


@pytest.mark.parametrize("value", DIFFERED.values(), ids=DIFFERED)
def test_what_json_cannot_return_unchanged_is_not_plain(value: Any) -> None:
    """There were two functions of that name; the one in `contracts.encoding` took all of these for plain."""
    assert not is_plain(value)
    assert values.is_plain is is_plain


@pytest.mark.requirement("DATA-1")
def test_an_argument_that_looks_like_a_tag_stays_a_dict_in_a_doctest() -> None:
    """It was kept as the example's arguments, and the tool was then checked with the tuple (1, 2)."""
    code = (
        'def size(x):\n    """\n    >>> size({"@": ["tuple", [1, 2]]})\n    1\n    """\n    return len(x)\n'
    )
    tree = ast.parse(code)
    (example,) = examples_in(tree, read_shape(tree, "size"))
    assert "arguments" not in example
    assert "size({'@': ['tuple', [1, 2]]})" in example["call"]


@pytest.mark.parametrize("value", [math.nan, 2**5000, {"@": ["tuple", [1, 2]]}], ids=["nan", "large", "tag"])
def test_a_cell_whose_value_json_cannot_hold_is_no_tool(value: Any) -> None:
    """Values such as an int of 5,000 bits were taken, and made a tool whose example no reader of JSON can read."""
    with pytest.raises(UsageInvalid, match="x"):
        extract_function("kept", "print(x)", {"x": value})
