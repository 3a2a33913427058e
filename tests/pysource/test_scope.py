"""Names that code binds, reads and can see."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from healkit.pysource.nodes import bound_names, free_names, type_of, unknown_names

CODE = """
import os.path as paths, sys
LIMIT = 3

def outer(a, /, b, *rest, c=1, **more):
    total = [x for x in rest if (seen := x)]
    for item in total:
        try:
            item += 1
        except ValueError as error:
            print(error)
    match a:
        case {"k": found, **left}:
            pass
    def inner(n):
        hidden = n
    return total
"""


def function(name: str) -> ast.AST:
    """Return the function of that name in the code."""
    return next(n for n in ast.walk(ast.parse(CODE)) if isinstance(n, ast.FunctionDef) and n.name == name)


def test_bound_names_come_in_text_order_with_parameters_first():
    names = ["a", "b", "c", "rest", "more", "total", "x", "seen", "item", "error", "left", "found", "inner"]
    assert list(bound_names(function("outer"))) == names


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("a + len(b)", {"a", "b"}),
        ("[x + a for x in b]", {"a", "b"}),
        ("lambda x, *y: x + y + z", {"z"}),
        ("total = total + 1", set()),  # what a statement binds counts as its own
    ],
)
def test_free_names_leave_out_built_in_and_own_ones(code: str, names: set[str]):
    assert free_names(ast.parse(code)) == names


def test_unknown_names_are_bound_nowhere_in_the_module():
    code = "def f(a):\n    return lost(a) + arguments['n'] + later\nlater = [x for x in ()]\n"
    assert unknown_names(ast.parse(code)) == ["lost"]


@pytest.mark.parametrize(
    ("code", "values", "kind"),
    [
        ("1.5", {}, "float"),
        ("n", {"n": [1]}, "list"),
        ("n", {}, ""),
        ("[x for x in n]", {}, "list"),
        ("str(n)", {}, "str"),
        ("n.split(',')", {}, "list"),
        ("'a' + n", {}, "str"),
        ("n / 2", {"n": 4}, "float"),
        ("n + 1", {"n": 4}, "int"),
        ("n + m", {"n": 4, "m": "x"}, "str"),
    ],
)
def test_the_type_of_an_expression_is_read_off_the_code(code: str, values: dict[str, Any], kind: str):
    assert type_of(ast.parse(code, mode="eval").body, values) == kind
