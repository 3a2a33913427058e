"""Edits of sums, products and constants."""

from __future__ import annotations

import ast
import re

from healkit.core.contracts.patches import Edit
from healkit.parts.explain.source import SUM, TERM, parenthesized, precedence, required_precedence
from healkit.parts.heal.advisors.search.operators.definition import Changes, operator
from healkit.parts.heal.advisors.search.program import (
    NUMBERS,
    SEQUENCES,
    Change,
    Program,
    TypeNames,
    guess_types,
    may_have_type,
)

_TOKEN = re.compile(r"\*\*|//|<<|>>|[-+*/%@&|^]")
_SETS = ("|", "&", "-", "^")
#: Replacements of each operator with their weights: its inverse, its neighbours, then unlikely ones.
_OTHERS: dict[str, dict[str, float]] = {
    "+": {"-": 1.0, "*": 0.8, "//": 0.5, "/": 0.5, "%": 0.5, "|": 0.3, "^": 0.3},
    "-": {"+": 1.0, "*": 0.6, "//": 0.6, "%": 0.6, "/": 0.5, "&": 0.3},
    "*": {"+": 0.9, "/": 0.9, "**": 0.8, "//": 0.8, "-": 0.7, "%": 0.5},
    "/": {"//": 1.0, "*": 0.9, "%": 0.6, "-": 0.5, "+": 0.5},
    "//": {"/": 1.0, "%": 0.9, "*": 0.7, "-": 0.6, "+": 0.5},
    "%": {"//": 1.0, "/": 0.6, "-": 0.6, "*": 0.5, "&": 0.5},
    "**": {"*": 1.0, "//": 0.5, "+": 0.5, "^": 0.3},
    "&": {"|": 1.0, "^": 0.9, "-": 0.5, "%": 0.5, "+": 0.4},
    "|": {"&": 1.0, "^": 0.9, "+": 0.6, "-": 0.4},
    "^": {"&": 1.0, "|": 0.9, "**": 0.8, "-": 0.4, "+": 0.4},
    "<<": {">>": 1.0, "*": 0.6}, ">>": {"<<": 1.0, "//": 0.6}, "@": {"*": 1.0},
}  # fmt: skip


def _token(program: Program, node: ast.BinOp) -> tuple[int, int, str] | None:
    start, end = program.source.span(node.left)[1], program.source.span(node.right)[0]
    between = program.text[start:end]
    if "#" in between or (match := _TOKEN.search(between)) is None:
        return None
    return start + match.start(), start + match.end(), match.group()


@operator("another arithmetic operator", 0.8, ast.BinOp, before="x = a + b", after="x = a - b")
def change_operator(program: Program, node: ast.BinOp) -> Changes:
    token_span = _token(program, node)
    if token_span is None:
        return
    start, end, token = token_span
    kinds = guess_types(program, node.left) | guess_types(program, node.right)
    if "str" in kinds:
        return
    for replacement, weight in _OTHERS[token].items():
        if not _possible(replacement, kinds):
            continue
        whole = f"{program.piece(node.left, 0)} {replacement} {program.piece(node.right, 0)}"
        tree = ast.parse(f"a {replacement} b", mode="eval").body
        regrouped = precedence(tree) != precedence(node) and isinstance(node.left, ast.BinOp) | isinstance(
            node.right, ast.BinOp
        )
        if regrouped or parenthesized(whole, required_precedence(*program.parents[node])) != whole:
            yield from program.put(node, _joined(program, node.left, replacement, node.right), weight)
        else:
            yield Change((Edit(start, end, replacement),), weight)


def _possible(sign: str, kinds: TypeNames) -> bool:
    if kinds and kinds <= {"set", "frozenset"}:
        return sign in _SETS
    if kinds and kinds <= {"list", "tuple"}:
        return sign == "*"
    return not ("float" in kinds and sign in ("|", "&", "^", "<<", ">>"))


def _joined(program: Program, left: ast.expr, token: str, right: ast.expr) -> str:
    """Return two operands with an operator between them, in parentheses where needed."""
    operation = ast.BinOp(left, _node(token), right)
    return f"{program.piece(left, required_precedence(operation, 'left'))} {token} {program.piece(right, required_precedence(operation, 'right'))}"


def _node(token: str) -> ast.operator:
    tree = ast.parse(f"a {token} b", mode="eval").body
    assert isinstance(tree, ast.BinOp)
    return tree.op


@operator("another augmented operator", 0.9, ast.AugAssign, before="x += 1", after="x -= 1")
def change_augmented_operator(program: Program, node: ast.AugAssign) -> Changes:
    start, end = program.source.span(node.target)[1], program.source.span(node.value)[0]
    match = _TOKEN.search(program.text[start:end])
    if match is None:
        return
    kinds = (
        guess_types(program, node.target)
        if isinstance(node.target, ast.Name)
        else guess_types(program, node.value)
    )
    for replacement, weight in _OTHERS[match.group()].items():
        if _possible(replacement, kinds) and kinds != {"str"}:
            yield Change((Edit(start + match.start(), start + match.end(), replacement),), weight)


@operator("operands swapped", 0.7, ast.BinOp, before="x = a - b", after="x = b - a")
def swap_operands(program: Program, node: ast.BinOp) -> Changes:
    token_span = _token(program, node)
    kinds = guess_types(program, node.left) | guess_types(program, node.right)
    if token_span is None or (kinds and kinds <= NUMBERS and token_span[2] in "+*&|^"):
        return
    yield from program.put(node, _joined(program, node.right, token_span[2], node.left))


@operator("an operand removed", 0.6, ast.BinOp, before="x = a + b", after="x = a")
def drop_operand(program: Program, node: ast.BinOp) -> Changes:
    yield from program.put(node, program.segment(node.left))
    yield from program.put(node, program.segment(node.right), 0.9)


@operator("another order of operations", 0.4, ast.BinOp, before="x = (a + 1) % 12", after="x = a % 12 + 1")
def exchange_operations(program: Program, node: ast.BinOp) -> Changes:
    """Exchange the order of two operations, as in arithmetic that wraps around."""
    outer, inner = _token(program, node), None
    if isinstance(node.left, ast.BinOp):
        inner = _token(program, node.left)
    if outer is None or inner is None or outer[2] == inner[2]:
        return
    assert isinstance(node.left, ast.BinOp)
    first = parenthesized(_joined(program, node.left.left, outer[2], node.right), _needed(inner[2]))
    yield from program.put(
        node, f"{first} {inner[2]} {program.piece(node.left.right, _needed(inner[2]) + 1)}"
    )


def _needed(sign: str) -> int:
    """Return the precedence that an operator needs from its left operand."""
    return precedence(ast.parse(f"a {sign} b", mode="eval").body)


@operator("off by one", 0.8, ast.expr, most=1.2, before="x = items[n]", after="x = items[n - 1]")
def shift_by_one(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    if (
        isinstance(node, ast.Constant)
        or not program.is_value(node)
        or not may_have_type(guess_types(program, node), NUMBERS)
    ):
        return
    weight = _bound(program, node, parent, field)
    if not weight:
        return
    text = program.piece(node, SUM)
    for sign in ("+", "-"):
        yield from program.put(node, f"{text} {sign} 1", weight)


def _bound(program: Program, node: ast.expr, parent: ast.AST, field: str) -> float:
    """Return how likely an expression is a bound, an index or a count; over 1 lifts it above the prior."""
    if isinstance(parent, ast.Slice) or _is_range(parent):
        return 1.2
    if isinstance(parent, ast.Tuple):  # of an index of several parts
        parent, field = program.parents[parent]
    if isinstance(parent, ast.Subscript) and field == "slice":
        return 1.0
    if isinstance(parent, ast.Compare):
        if any(isinstance(side, ast.Constant) for side in (parent.left, *parent.comparators)):
            return 0.0  # the number beside it is changed instead
        if isinstance(node, ast.Call) and guess_types(program, node) != {"int"}:
            return 0.5
        lengths = any("len(" in program.segment(side) for side in (parent.left, *parent.comparators))
        return 1.0 if lengths or isinstance(node, ast.Name) else 0.7
    if isinstance(parent, ast.Call) and field == "args":
        return 0.9 if not isinstance(node, ast.List | ast.Tuple | ast.GeneratorExp | ast.ListComp) else 0.0
    if isinstance(parent, ast.Return | ast.Assign | ast.BinOp | ast.keyword | ast.IfExp) and not isinstance(
        node, ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda
    ):
        return 0.7
    return 0.0


def _is_range(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _asked(program: Program, statement: ast.stmt) -> set[str]:
    """Return the names in the nearest condition around a statement."""
    for outer in program.around(statement):
        if isinstance(outer, ast.If | ast.While):
            return {node.id for node in ast.walk(outer.test) if isinstance(node, ast.Name)}
    return set()


@operator(
    "an operation with a variable added",
    0.4,
    ast.expr,
    before="def f(a, b):\n    return a",
    after="def f(a, b):\n    return a + b",
)
def combine_with_name(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    kinds = guess_types(program, node)
    if not program.is_value(node) or isinstance(
        node, ast.Constant | ast.Lambda | ast.GeneratorExp | ast.BoolOp | ast.Compare
    ):
        return
    if field == "func" or isinstance(
        parent, ast.Attribute | ast.For | ast.comprehension | ast.Expr | ast.BinOp
    ):
        return
    if isinstance(parent, ast.Subscript) and field == "value":
        return
    statement = program.statement(node)
    condition_names = _asked(program, statement)
    for name in program.names(node)[:12]:
        if name == program.segment(node):
            continue
        name_kinds = program.types(name, node)
        if may_have_type(kinds, NUMBERS) and may_have_type(name_kinds, NUMBERS):
            for sign, need, likely in (
                ("-", SUM, 1.0), ("+", SUM, 1.0), ("*", TERM, 0.8), ("//", TERM, 0.6), ("%", TERM, 0.6), ("/", TERM, 0.7),
            ):  # fmt: skip
                share = 1.0 if name in condition_names else 0.8
                yield from program.put(node, f"{program.piece(node, need)} {sign} {name}", likely * share)
        elif kinds & name_kinds & SEQUENCES:
            yield from program.put(node, f"{program.piece(node, SUM)} + {name}", 0.9)
            yield from program.put(node, f"{name} + {program.piece(node, SUM)}", 0.9)
        elif "list" in kinds and not name_kinds <= SEQUENCES:
            yield from program.put(node, f"{program.piece(node, SUM)} + [{name}]", 0.7)
    if (
        isinstance(statement, ast.Return)
        and may_have_type(kinds, frozenset({"list"}))
        and isinstance(node, ast.ListComp | ast.List)
    ):
        for name in program.names(node)[:12]:
            if may_have_type(program.types(name, node), frozenset({"list"})):
                yield from program.put(node, f"{name} + {program.segment(node)}", 1.0)
                yield from program.put(node, f"{program.segment(node)} + {name}", 1.0)


@operator(
    "an operation with a number added",
    0.3,
    ast.expr,
    before="x = len(a) // 60\ny = 'abc'",
    after="x = len(a) // 60 % 60\ny = 'abc'",
)
def combine_with_number(program: Program, node: ast.expr) -> Changes:
    """Add an operation with a number of the program, or with the length of one of its short texts."""
    parent, field = program.parents[node]
    if (
        isinstance(node, ast.Constant)
        or not program.is_value(node)
        or not guess_types(program, node) & NUMBERS
    ):
        return
    if not _bound(program, node, parent, field) or isinstance(parent, ast.Compare):
        return
    values = [constant.value for constant in program.nodes if isinstance(constant, ast.Constant)]
    numbers = dict.fromkeys(value for value in values if type(value) is int and value > 1)
    lengths = dict.fromkeys(len(value) for value in values if isinstance(value, str) and 1 < len(value) < 6)
    for number in [*numbers, *(length for length in lengths if length not in numbers)][:8]:
        for sign, need in (("-", SUM), ("+", SUM), ("%", TERM), ("*", TERM), ("//", TERM)):
            likely = 1.0 if number in numbers or sign in "+-" else 0.3
            yield from program.put(node, f"{program.piece(node, need)} {sign} {number}", likely)


@operator("squared, doubled or halved", 0.3, ast.expr, before="x = y - a", after="x = y - a ** 2")
def square_or_scale(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    kinds = guess_types(program, node)
    if not program.is_value(node) or not isinstance(
        node, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.BinOp
    ):
        return
    if (
        field == "func"
        or isinstance(parent, ast.Attribute | ast.For | ast.comprehension | ast.Expr)
        or not may_have_type(kinds, NUMBERS)
    ):
        return
    if isinstance(parent, ast.Subscript) and field == "value":
        return
    power, term = program.piece(node, 16), program.piece(node, TERM)
    for text, weight in (
        (f"{power} ** 2", 1.0),
        (f"2 * {term}", 0.8),
        (f"{term} // 2", 0.8),
        (f"{power} ** 0.5", 0.5),
        (f"{term} / 2", 0.5),
        (f"{term} * 100", 0.5),
        (f"{term} / 100", 0.5),
        (f"1 - {program.piece(node, TERM)}", 0.4),
    ):
        yield from program.put(node, text, weight)


@operator(
    "a minus sign added",
    0.35,
    ast.Name,
    ast.Subscript,
    ast.Call,
    ast.Attribute,
    most=1.7,
    before="return_value = key",
    after="return_value = -key",
)
def negate(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    if (
        not program.is_value(node)
        or field == "func"
        or not may_have_type(guess_types(program, node), NUMBERS)
    ):
        return
    if isinstance(parent, ast.Return | ast.Assign | ast.Tuple | ast.Lambda | ast.Call | ast.IfExp):
        lifted = 1.7 if any(isinstance(around, ast.Lambda) for around in program.around(node)) else 0.6
        yield from program.put(node, f"-{program.segment(node)}", lifted)


# Numbers, booleans and empty containers.


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
        for literal, weight in (("None", 0.5), ("True", 0.4), ("False", 0.4), ("0.0", 0.3)):
            yield from program.put(node, literal, weight)


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
        for literal in ("0", "''", "[]", "False", "True", "{}", "1", "-1"):
            yield from program.put(node, literal, 0.5)


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
