"""Edits of numbers, booleans and empty containers."""

from __future__ import annotations

import ast

from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Program


@operator("another whole number", 0.75, ast.Constant, before="x = 1", after="x = 0")
def change_int(program: Program, node: ast.Constant) -> Changes:
    value = node.value
    if type(value) is not int:
        return
    near = [value + 1, value - 1]
    for number in near:
        yield from program.put(node, str(number), _near(program, node, number))
    for number in (0, 1, 2, -1, -value, value * 10, value // 10, value * 100, value * 2, value // 2):
        if number != value and number not in near:
            yield from program.put(node, str(number), 0.55 if abs(number) < 3 else 0.35)
    if isinstance(program.parent(node), ast.Return | ast.Assign | ast.keyword):
        for other, weight in (("None", 0.5), ("True", 0.4), ("False", 0.4), ("0.0", 0.3)):
            yield from program.put(node, other, weight)


def _near(program: Program, node: ast.Constant, number: int) -> float:
    """Return the weight of an adjacent number: bounds are often off by one, divisors seldom."""
    parent, field = program.parents[node]
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.FloorDiv | ast.Mod | ast.Div | ast.Pow):
        return 1.0 if field == "left" else 0.6
    if isinstance(parent, ast.Subscript):
        return 0.6 if number == -1 else 0.9
    return 1.0


@operator("`True` and `False` swapped", 0.9, ast.Constant, before="x = True", after="x = False")
def change_bool(program: Program, node: ast.Constant) -> Changes:
    if isinstance(node.value, bool):
        yield from program.put(node, str(not node.value))
        if isinstance(program.parent(node), ast.Return | ast.Assign):
            yield from program.put(node, "None", 0.3)
    elif node.value is None and not isinstance(program.parent(node), ast.Compare):
        for other in ("0", "''", "[]", "False", "True", "{}", "1", "-1"):
            yield from program.put(node, other, 0.5)


@operator("another decimal number", 0.7, ast.Constant, before="x = 0.5", after="x = 1.5")
def change_float(program: Program, node: ast.Constant) -> Changes:
    value = node.value
    if type(value) is not float:
        return
    for number in (
        value + 1,
        value - 1,
        value * 10,
        value / 10,
        value * 100,
        value / 100,
        -value,
        1 - value,
        value * 2,
        value / 2,
        0.0,
        1.0,
    ):
        text = repr(round(number, 12))
        if number != value and "e" not in text and "n" not in text:
            yield from program.put(node, text)


@operator(
    "a constant from the expected values or the program",
    0.5,
    ast.Constant,
    before="x = 7\ny = 12",
    after="x = 12\ny = 12",
)
def use_known_number(program: Program, node: ast.Constant) -> Changes:
    """Replace a number by one from elsewhere; never right on the sets, but it ends searches sooner."""
    kind = type(node.value)
    if kind not in (int, float) or isinstance(program.parent(node), ast.FormattedValue | ast.JoinedStr):
        return
    found = dict.fromkeys(program.hints.constants)
    for other in program.nodes:
        if isinstance(other, ast.Constant) and type(other.value) in (int, float):
            found[repr(other.value)] = None
    for text in list(found)[:30]:
        if text.lstrip("-").replace(".", "", 1).isdigit():
            yield from program.put(node, text, 0.9 if len(found) < 12 else 0.6)


@operator(
    "an element added to an empty list",
    0.6,
    ast.List,
    ast.Tuple,
    before="def f(n):\n    return []",
    after="def f(n):\n    return [n]",
)
def fill_empty_list(program: Program, node: ast.List | ast.Tuple) -> Changes:
    if not program.is_value(node) or node.elts:
        return
    if isinstance(node, ast.List):
        yield from program.put(node, "[[]]", 1.0)
        for text in ("None", "''", "0", "{}", "set()", "[0]", "[1]", "['']", "[None]"):
            yield from program.put(node, text, 0.4)
    for name in program.names(node)[:14]:
        yield from program.put(node, f"[{name}]", 1.0)
        if isinstance(program.parent(node), ast.Return):
            yield from program.put(node, name, 0.6)
