"""Edits of a call's argument by what is expected of the result."""

from __future__ import annotations

import ast

from healkit.healing.search.ingredients import expressions
from healkit.healing.search.kinds import agree, guess
from healkit.healing.search.operators.table import Changes, operator
from healkit.healing.search.program import Program


@operator(
    "another expression of the program",
    0.28,
    ast.expr,
    before="def f(a, b):\n    c = a[b]\n    return len(a) + len(c)",
    after="def f(a, b):\n    c = a[b]\n    return len(a) + a[b]",
)
def replaced(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    if (
        not program.is_value(node)
        or field == "func"
        or isinstance(parent, ast.Attribute | ast.Expr | ast.FormattedValue)
    ):
        return
    key = isinstance(node, ast.Constant) and isinstance(parent, ast.Subscript) and isinstance(node.value, str)
    own = guess(program, node)
    for other, text in expressions(program, node):
        if key and not isinstance(other, ast.Attribute):  # a key that is written down may be one that changes
            continue
        weight = agree(own, guess(program, other)) if other is not None else 0.6
        if weight:
            yield from program.put(node, text, weight if not isinstance(node, ast.Constant) else weight * 0.7)


@operator(
    "a default value",
    0.4,
    ast.FunctionDef,
    before="def f(a, b=1):\n    return a",
    after="def f(a, b=None):\n    return a",
)
def default(program: Program, node: ast.FunctionDef) -> Changes:
    for value in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
        for text in ("None", "0", "1", "''", "True", "False", *program.hints.constants[:8]):
            yield from program.put(value, text)
