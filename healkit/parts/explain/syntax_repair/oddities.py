"""Oddities: code that Python can read, but is hardly meant.

Of two texts that are equally near to a draft, the less odd one is likelier. A weight is added to the cost of the
changes that made the text: 0.4 is an added colon, 1 a rare change. `benchmarks/bench_syntax.py` measures the order.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from healkit.core.pysource.nodes import Function, Jump, bound_names, own_nodes, unknown_names
from healkit.errors import near_misses
from healkit.parts.explain.syntax_repair.draft import KEYWORDS, code_tokens

#: Oddity → its weight, and code that has it.
ODDITIES: dict[str, tuple[float, str]] = {
    "unknown name": (0.6, "a"),
    "unknown name of the draft like a keyword": (0.4, "retrun"),
    "unknown name of the draft": (0.1, "quantity"),
    "name of functions read outside": (0.4, "def f():\n    a = 1\nprint(a)"),
    "value called": (1.0, "[1](2)"),
    "condition for a function of numbers": (0.4, "len(1 > 2)"),
    "condition as an argument": (0.05, "print(1 > 2)"),
    "item of a constant": (0.6, "'a'[0]"),
    "several items of a list": (0.8, "[1][1, 2]"),
    "container in a set": (0.6, "print({[1]})"),
    "chained equality": (0.25, "print(1 == 2 == 3)"),
    "lambda compared": (0.8, "print((lambda: 1) == 2)"),
    "compared with a lambda": (0.6, "print(1 == (lambda: 2))"),
    "condition in a tuple": (0.15, "print((1 > 2, 3))"),
    "annotation that is not a type": (0.8, "a: len(()) = 1"),
    "annotation alone": (0.4, "a: int"),
    "name assigned to itself": (0.5, "a = a"),
    "loop that returns in its first round": (
        0.3,
        "def f(a):\n    for b in a:\n        print(b)\n        return b",
    ),
    "loop over its own name": (0.6, "for a in a:\n    pass"),
    "lambda as a condition": (0.8, "if lambda: 1:\n    pass"),
    "declared result that is not returned": (0.5, "def f() -> int:\n    a = 1\n    print(a)"),
    "line that is never reached": (0.7, "while 1:\n    break\n    print()"),
    "line without effect": (0.6, "print"),
    "loose constant": (0.5, "a = 1\n'a'"),
    "self outside of a class": (0.5, "def f(self):\n    pass"),
    "function below a return": (0.2, "def f():\n    return 1\n    def g():\n        pass"),
}
#: Expressions that have no effect as a statement.
_IDLE = (ast.Name, ast.Compare, ast.BinOp, ast.Tuple, ast.Subscript, ast.UnaryOp, ast.List, ast.Attribute, ast.BoolOp,
         ast.IfExp, ast.Set, ast.Dict, ast.Lambda, ast.GeneratorExp)  # fmt: skip
_NO_FUNCTION = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Compare, ast.BinOp, ast.JoinedStr, ast.Set,
                ast.ListComp)  # fmt: skip
#: Functions that rarely get a condition as an argument.
_PLAIN_ARGUMENTS = frozenset(("len", "range", "int", "float", "abs", "open", "isinstance", "min", "max"))


def oddness(text: str, draft: str = "") -> tuple[float, ast.Module]:
    """Add up the oddities of a text, and return the sum with the tree; the text must parse.

    An unknown name counts little if the draft has it too, because the code around the draft is not known.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    return sum(ODDITIES[name][0] for name in oddities(tree, draft)), tree


def oddities(tree: ast.Module, draft: str = "") -> Iterator[str]:
    """Yield the oddities of a text, one for each occurrence."""
    there = {token.text for token in code_tokens(draft)}
    for name in unknown_names(tree):
        if name not in there:
            yield "unknown name"
        else:
            like = " like a keyword" if near_misses(name, KEYWORDS, 1) else ""
            yield f"unknown name of the draft{like}"
    inside = {name for node in ast.walk(tree) if isinstance(node, Function) for name in bound_names(node)}
    read = {n.id for n in own_nodes(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for _ in (read & inside) - bound_names(tree).keys():
        yield "name of functions read outside"
    for node in ast.walk(tree):
        yield from _of_expression(node) if isinstance(node, ast.expr) else _of_statement(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield from _of_block(block, isinstance(node, ast.Module))


def _of_expression(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Call(func=func, args=args):
            if isinstance(func, _NO_FUNCTION):
                yield "value called"
            is_plain = isinstance(func, ast.Name) and func.id in _PLAIN_ARGUMENTS
            for _ in (a for a in args if isinstance(a, ast.BoolOp | ast.Compare)):
                yield "condition for a function of numbers" if is_plain else "condition as an argument"
        case ast.Subscript(value=ast.Constant() | ast.Set() | ast.Compare()):
            yield "item of a constant"
        case ast.Subscript(value=ast.List(), slice=ast.Tuple()):
            yield "several items of a list"
        case ast.Set(elts=elts) if any(isinstance(e, ast.Dict | ast.List | ast.Set) for e in elts):
            yield "container in a set"
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.In(), _, *_]):
            yield "chained equality"
        case ast.Compare(left=ast.Lambda()):
            yield "lambda compared"
        case ast.Compare(comparators=[*rest]) if any(isinstance(c, ast.Lambda) for c in rest):
            yield "compared with a lambda"
        case ast.Tuple(elts=elts) if any(isinstance(e, ast.Compare | ast.BoolOp) for e in elts):
            yield "condition in a tuple"


def _of_statement(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.AnnAssign(annotation=annotation, value=value):
            types = ast.Name | ast.Subscript | ast.Attribute | ast.Constant | ast.BinOp
            if not isinstance(annotation, types):
                yield "annotation that is not a type"
            if value is None:
                yield "annotation alone"
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=name)) if target == name:
            yield "name assigned to itself"
        case ast.For(body=[_, *_, ast.Return()]) | ast.While(body=[_, *_, ast.Return()]):
            yield "loop that returns in its first round"
        case ast.For(target=ast.Name(id=target), iter=ast.Name(id=name)) if target == name:
            yield "loop over its own name"
        case ast.If(test=ast.Lambda()) | ast.While(test=ast.Lambda()):
            yield "lambda as a condition"
        case ast.FunctionDef(returns=returns, body=body) if returns is not None:
            nothing = isinstance(returns, ast.Constant) and returns.value is None
            idle = len(body) == 1 and isinstance(body[0], ast.Expr | ast.Pass)
            if not (nothing or idle or any(map(_gives, own_nodes(node)))):
                yield "declared result that is not returned"


def _gives(node: ast.AST) -> bool:
    """Return whether a node gives a function a value, or raises."""
    return isinstance(node, ast.Yield | ast.YieldFrom | ast.Raise) or (
        isinstance(node, ast.Return) and node.value is not None
    )


def _of_block(block: list[ast.stmt], module: bool) -> Iterator[str]:
    for place, stmt in enumerate(block):
        above = block[place - 1] if place else None
        if isinstance(above, Jump):
            yield "line that is never reached"
        match stmt:
            case ast.Expr(value=ast.Constant(value=value)):
                if value is not ... and (place or not isinstance(value, str)):
                    yield "loose constant"
            case ast.Expr(value=value) if isinstance(value, _IDLE):
                yield "line without effect"
        if module and isinstance(stmt, Function) and stmt.args.args and stmt.args.args[0].arg == "self":
            yield "self outside of a class"
        if isinstance(stmt, ast.FunctionDef) and isinstance(above, ast.Return):
            yield "function below a return"
