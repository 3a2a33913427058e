"""Edits that put a call around an expression."""

from __future__ import annotations

import ast

from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Program
from healkit.healing.advisors.search.type_guesses import COLLECTIONS, NUMBERS, guess_types, may_have_type
from healkit.pysource.precedence import ATOM

#: Function, types that it may wrap, weight.
_FUNCTIONS: tuple[tuple[str, frozenset[str], float], ...] = (
    ("len", COLLECTIONS, 1.0), ("abs", NUMBERS, 1.0), ("int", NUMBERS | {"str"}, 1.0), ("str", NUMBERS | {"NoneType", "list"}, 1.0),
    ("float", frozenset({"int", "str"}), 0.7), ("list", COLLECTIONS, 0.9), ("sorted", COLLECTIONS, 0.9), ("set", COLLECTIONS, 0.8),
    ("sum", COLLECTIONS - {"str"}, 0.7), ("tuple", COLLECTIONS, 0.6), ("max", COLLECTIONS, 0.5), ("min", COLLECTIONS, 0.5),
    ("round", frozenset({"float", "int"}), 0.8), ("range", frozenset({"int"}), 0.7), ("reversed", COLLECTIONS, 0.5), ("bool", frozenset(), 0.4),
    ("enumerate", COLLECTIONS, 0.5), ("dict", frozenset({"list", "dict", "defaultdict", "Counter", "generator"}), 0.5), ("not ", frozenset(), 0.5),
)  # fmt: skip
_TEXTS = frozenset({"str"})
_METHODS: tuple[tuple[str, frozenset[str], float], ...] = (
    ("lower()", _TEXTS, 1.0), ("strip()", _TEXTS, 1.0), ("split()", _TEXTS, 0.8), ("upper()", _TEXTS, 0.8), ("title()", _TEXTS, 0.4),
    ("capitalize()", _TEXTS, 0.4), ("copy()", COLLECTIONS - _TEXTS, 0.8), ("items()", frozenset({"dict", "Counter", "defaultdict"}), 0.8),
    ("values()", frozenset({"dict", "Counter", "defaultdict"}), 0.8), ("keys()", frozenset({"dict"}), 0.3), ("rstrip()", _TEXTS, 0.5),
    ("isdigit()", _TEXTS, 0.5), ("isalpha()", _TEXTS, 0.5), ("isalnum()", _TEXTS, 0.5), ("casefold()", _TEXTS, 0.3), ("lstrip()", _TEXTS, 0.3),
    ("date()", frozenset({"datetime"}), 0.7), ("total_seconds()", frozenset({"timedelta"}), 0.8), ("isoformat()", frozenset({"datetime", "date"}), 0.6),
    ("group()", frozenset({"Match"}), 0.8),
)  # fmt: skip


def _place(program: Program, node: ast.expr) -> float:
    """Return how likely an expression in that place lacks a call; 0 if no call can be there."""
    parent, field = program.parents[node]
    if (
        not program.is_value(node)
        or field == "func"
        or isinstance(parent, ast.Expr | ast.Attribute | ast.JoinedStr)
    ):
        return 0.0
    if isinstance(node, ast.Constant | ast.Lambda | ast.JoinedStr | ast.BoolOp):
        return 0.0
    if isinstance(parent, ast.Subscript) and field == "value":
        return 0.5
    return 1.0


@operator(
    "a function call added around a value", 0.3, ast.expr, most=1.3, before="x = f(a)", after="x = f(len(a))"
)
def wrap_in_function(program: Program, node: ast.expr) -> Changes:
    if not (share := _place(program, node)):
        return
    kinds = guess_types(program, node)
    around = program.parent(node)
    own = program.segment(around.func) if isinstance(around, ast.Call) else ""
    for name, wanted, weight in _FUNCTIONS:
        if name == own or (wanted and not may_have_type(kinds, wanted)):
            continue
        likely = 1.3 if kinds and kinds <= wanted else 1.0
        text = program.segment(node)
        if name == "not ":
            if isinstance(around, ast.Return | ast.Assign | ast.If | ast.While):
                yield from program.put(node, f"not {program.piece(node, 6)}", weight * share)
        else:
            yield from program.put(node, f"{name}({text})", weight * share * likely)
    if may_have_type(kinds, frozenset({"float", "int"})) and isinstance(
        around, ast.Return | ast.Assign | ast.Dict
    ):
        for digits in ("2", "1", "3"):
            yield from program.put(node, f"round({program.segment(node)}, {digits})", 0.9)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from program.put(
            node, f"-(-{program.piece(node.left, 13)} // {program.piece(node.right, 14)})", 0.8
        )


@operator(
    "a method call added to a value",
    0.3,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    most=1.3,
    before="x = f(a)",
    after="x = f(a.lower())",
)
def call_text_method(program: Program, node: ast.expr) -> Changes:
    if not (share := _place(program, node)):
        return
    kinds = guess_types(program, node)
    text = program.piece(node, ATOM)
    for call, wanted, weight in _METHODS:
        if may_have_type(kinds, wanted):
            yield from program.put(node, f"{text}.{call}", weight * share * (1.3 if kinds else 0.6))


@operator(
    "a value limited with `min` or `max`",
    0.35,
    ast.Name,
    ast.BinOp,
    ast.Call,
    ast.Subscript,
    ast.IfExp,
    ast.Attribute,
    most=2.0,
    before="def f(a, b):\n    return a",
    after="def f(a, b):\n    return max(a, b)",
)
def clamp(program: Program, node: ast.expr) -> Changes:
    parent, _ = program.parents[node]
    if (
        not _place(program, node)
        or not may_have_type(guess_types(program, node), NUMBERS)
        or isinstance(parent, ast.BinOp | ast.Subscript)
    ):
        return
    text = program.segment(node)
    likely = 1.0 if isinstance(parent, ast.Assign | ast.Return | ast.keyword) else 0.7
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    best = program.segment(target) if target is not None and _kept_up(program, target) else ""
    if best and may_have_type(program.types(best, node), NUMBERS):
        for function in ("max", "min"):  # the best value so far
            yield from program.put(node, f"{function}({best}, {text})", 2.0)
    for name in ["0", *program.names(node)[:10], "1", "100"]:
        if name not in (text, best) and may_have_type(program.types(name, node), NUMBERS):
            for function in ("max", "min"):
                first, second = (name, text) if name.isdigit() else (text, name)
                yield from program.put(node, f"{function}({first}, {second})", likely)
    for name in program.names(node)[:10]:
        seen = program.types(name, node)
        last = f"len({name}) - 1" if seen & (COLLECTIONS - {"generator"}) else f"{name} - 1"
        if last.startswith("len") or seen & frozenset({"int"}):
            yield from program.put(node, f"min({text}, {last})", likely)
    if isinstance(target, ast.Subscript | ast.Attribute):
        for function in ("max", "min"):
            yield from program.put(node, f"{function}({program.segment(target)}, {text})", likely)


def _kept_up(program: Program, target: ast.expr) -> bool:
    """Return whether a name gets its first value before the loop that assigns it again."""
    loops = [outer for outer in program.around(target) if isinstance(outer, ast.For | ast.While)]
    if not loops or not isinstance(target, ast.Name):
        return False
    first = loops[-1].lineno
    stores = (node for node in program.nodes if isinstance(node, ast.Name) and node.id == target.id)
    return any(
        isinstance(node.ctx, ast.Store) and node.lineno < first and program.home(node) is program.home(target)
        for node in stores
    )


@operator(
    "a default for `min` or `max` of an empty sequence",
    0.5,
    ast.Call,
    before="x = 1 + max(a)",
    after="x = 1 + max(a, default=0)",
)
def add_default(program: Program, node: ast.Call) -> Changes:
    name = program.segment(node.func)
    if (
        name not in ("max", "min")
        or len(node.args) != 1
        or any(one.arg == "default" for one in node.keywords)
    ):
        return
    given = program.segment(node.args[0])
    if isinstance(node.args[0], ast.GeneratorExp) and not node.keywords:
        given = f"({given})"
    more = "".join(f", {program.segment(one)}" for one in node.keywords)
    for default in ("0", "None", "''", "[]", "0.0", "1", *program.hints.constants[:6]):
        yield from program.put(node, f"{name}({given}{more}, default={default})", guard=True)
