"""Edits of conditional expressions, yields and returns."""

from __future__ import annotations

import ast

from healkit.contracts.healing import Edit
from healkit.healing.search.ingredients import conditions, names_in
from healkit.healing.search.operators.table import Changes, operator
from healkit.healing.search.program import Change, Program, parameters
from healkit.healing.search.splices import OR, TEST


@operator(
    "branches of a choice swapped", 0.7, ast.IfExp, before="x = a if c else b", after="x = b if c else a"
)
def branches(program: Program, node: ast.IfExp) -> Changes:
    yield Change(
        (
            Edit(*program.source.span(node.body), program.piece(node.orelse, OR)),
            Edit(*program.source.span(node.orelse), program.piece(node.body, TEST)),
        )
    )
    yield from program.put(node, program.segment(node.body), 0.5)
    yield from program.put(node, program.segment(node.orelse), 0.5)


@operator(
    "yield and yield from",
    0.7,
    ast.Yield,
    ast.YieldFrom,
    before="def f(x):\n    yield f(x)",
    after="def f(x):\n    yield from f(x)",
)
def yields(program: Program, node: ast.Yield | ast.YieldFrom) -> Changes:
    if node.value is None:
        return
    word = "yield" if isinstance(node, ast.YieldFrom) else "yield from"
    yield from program.put(node, f"{word} {program.segment(node.value)}")


@operator(
    "return and a plain statement",
    0.3,
    ast.Return,
    ast.Expr,
    most=2.0,
    before="def f(x):\n    g(x)",
    after="def f(x):\n    return g(x)",
)
def returned(program: Program, node: ast.Return | ast.Expr) -> Changes:
    if node.value is None or program.function(node) is None:
        return
    text = program.segment(node.value)
    start, end = program.source.span(node)
    if isinstance(node, ast.Return):
        if isinstance(node.value, ast.Call):
            yield Change((Edit(start, end, text),), 0.5)
        for name in program.locals(program.function(node) or program.tree)[:10]:
            yield Change((Edit(start, end, f"return {text}, {name}"),), 0.35)
    elif isinstance(
        node.value, ast.Call | ast.Name | ast.BinOp | ast.Compare | ast.BoolOp | ast.Attribute | ast.Subscript
    ):
        yield Change((Edit(start, end, f"return {text}"),), 2.0 if not _mutates(node.value) else 1.0)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield Change((Edit(start, end, f"yield {text}"),), 0.3)


def _mutates(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


@operator(
    "a result kept",
    0.6,
    ast.Expr,
    before="def f(s):\n    s.strip()\n    return s",
    after="def f(s):\n    s = s.strip()\n    return s",
)
def kept(program: Program, node: ast.Expr) -> Changes:
    value = node.value
    if not isinstance(value, ast.Call):
        return
    names = []
    if isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Name):
        names.append(value.func.value.id)
    names += [arg.id for arg in value.args if isinstance(arg, ast.Name)]
    start, _ = program.source.span(node)
    for position, name in enumerate(dict.fromkeys([*names, *program.names(node)[:8]])):
        yield Change((Edit(start, start, f"{name} = "),), 1.0 if position == 0 else 0.5)


@operator(
    "a returned value replaced by a name",
    0.4,
    ast.Return,
    before="def f(a, b):\n    c = a\n    return None",
    after="def f(a, b):\n    c = a\n    return c",
)
def named(program: Program, node: ast.Return) -> Changes:
    start, end = program.source.span(node)
    for name in [*program.names(node)[:14], "True", "False", "None"]:
        if node.value is None or program.segment(node.value) != name:
            yield Change((Edit(start, end, f"return {name}"),))


@operator(
    "a condition returned",
    0.45,
    ast.Return,
    before="def f(n):\n    while n > 1:\n        n -= 2\n    return True",
    after="def f(n):\n    while n > 1:\n        n -= 2\n    return n == 0",
)
def answered(program: Program, node: ast.Return) -> Changes:
    """What is said to be always so, or never, may depend on something, most likely on what was found out until then."""
    if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, bool):
        return
    given = set(parameters(program.function(node) or program.tree))
    for text in conditions(program, node):
        found_out = not names_in(ast.parse(text, mode="eval")) <= given
        yield from program.put(node.value, text, 1.0 if found_out else 0.7)
