"""Edits of calls and their arguments."""

from __future__ import annotations

import ast

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.healing.advisors.search.type_guesses import guess_types
from healkit.pysource.precedence import TEST


@operator("two arguments swapped", 0.9, ast.Call, before="x = f(a, b)", after="x = f(b, a)")
def swap_arguments(program: Program, node: ast.Call) -> Changes:
    args = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    commutes = isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
    for first in range(len(args)):
        for second in range(first + 1, len(args)):
            one, other = args[first], args[second]
            if commutes or program.segment(one) == program.segment(other):
                continue
            yield Change(
                (
                    Edit(*program.source.span(one), program.piece(other, TEST)),
                    Edit(*program.source.span(other), program.piece(one, TEST)),
                ),
                1.0 if second == first + 1 else 0.8,
            )


def _without(program: Program, parts: list[ast.expr] | list[ast.AST], leave: int) -> Edit:
    """Return the edit that removes one part of a comma-separated list, with its comma."""
    start, stop = program.source.span(parts[leave])
    if leave + 1 < len(parts):
        return Edit(start, program.source.span(parts[leave + 1])[0], "")
    if leave:
        return Edit(program.source.span(parts[leave - 1])[1], stop, "")
    return Edit(start, stop, "")


@operator("an argument removed", 0.5, ast.Call, before="x = f(a, b)", after="x = f(a)")
def drop_argument(program: Program, node: ast.Call) -> Changes:
    parts: list[ast.AST] = [*node.args, *node.keywords]
    if any(program.source.in_parentheses(part) and len(parts) > 1 for part in node.args):
        return
    for leave in range(len(parts)):
        yield Change((_without(program, parts, leave),), 1.0)


@operator("a call replaced by its argument", 0.7, ast.Call, before="x = len(a)", after="x = a")
def unwrap_call(program: Program, node: ast.Call) -> Changes:
    if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
        yield from program.put(node, program.segment(node.args[0]))
    elif node.args and not isinstance(node.args[0], ast.Starred):
        for arg in node.args:
            if not isinstance(arg, ast.Starred):
                yield from program.put(node, program.segment(arg), 0.6)


@operator(
    "another key function", 0.6, ast.Lambda, before="k = lambda p: p[1]", after="k = lambda p: (p[1], p)"
)
def change_key_function(program: Program, node: ast.Lambda) -> Changes:
    if len(node.args.args) != 1:
        return
    name, body = node.args.args[0].arg, program.segment(node.body)
    if isinstance(node.body, ast.Tuple):
        return
    for text in (
        f"({body}, {name})",
        f"(-{body}, {name})",
        f"({name}, {body})",
        f"({body}, {name}[0])",
        f"(-{body}, {name}[0])",
        f"{name}[0]",
        f"{name}[1]",
        f"{body}[0]",
        f"{body}[1]",
        f"{body}.lower()",
        f"len({body})",
        f"({body}, {name}[1])",
        f"(-{body}, {name}[1])",
        f"int({body})",
    ):
        yield from program.put(node.body, text, 0.8 if "[1])" not in text else 0.6)


@operator(
    "call parentheses added or removed",
    0.5,
    ast.Call,
    ast.Name,
    ast.Attribute,
    before="x = a.lower\n",
    after="x = a.lower()\n",
)
def call_or_name(program: Program, node: ast.expr) -> Changes:
    if isinstance(node, ast.Call):
        if not node.args and not node.keywords:
            yield from program.put(node, program.segment(node.func), 0.6)
        return
    if (
        not program.is_value(node)
        or program.field(node) == "func"
        or isinstance(program.parent(node), ast.Attribute)
    ):
        return
    own = isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id in program.defined)
    if own and not guess_types(program, node):
        yield from program.put(node, f"{program.segment(node)}()", 1.0)
