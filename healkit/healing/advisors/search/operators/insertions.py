"""Edits that insert or replace a statement."""

from __future__ import annotations

import ast

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.ingredients import statements
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.healing.advisors.search.type_guesses import NUMBERS, may_have_type
from healkit.pysource.nodes import Function, Jump

_METHODS = {
    "list": ("append", "extend", "remove"), "set": ("add", "update", "discard"), "deque": ("append", "appendleft"),
    "dict": ("update",),
}  # fmt: skip


def _at(program: Program, node: ast.stmt, line: str, weight: float) -> Changes:
    """Insert a line before a statement, and after it if it is the last of its block."""
    block, position = program.places[node]
    edit = program.insert(node, [line])
    if edit is not None and not program.text.startswith("elif", program.source.span(node)[0]):
        yield Change((edit,), weight)
    if position + 1 < len(block) or isinstance(node, Jump):
        return
    if (edit := program.insert(node, [line], after=True)) is not None:
        yield Change((edit,), weight)


@operator(
    "a statement added, copied from the program",
    0.3,
    ast.stmt,
    before="def f(a, b):\n    a.append(b)\n    return a",
    after="def f(a, b):\n    a.append(b)\n    a.append(b)\n    return a",
)
def copy_statement(program: Program, node: ast.stmt) -> Changes:
    if program.home(node) is None or isinstance(node, Function | ast.ClassDef):
        return
    for text, weight in statements(program, node):
        yield from _at(program, node, text, weight)


@operator(
    "a method called on a name",
    0.22,
    ast.stmt,
    before="def f(items, a):\n    b = items\n    return items",
    after="def f(items, a):\n    b = items\n    items.append(a)\n    return items",
)
def call_method(program: Program, node: ast.stmt) -> Changes:
    if program.home(node) is None or isinstance(node, Function | ast.ClassDef):
        return
    names = program.names(node)[:12]
    used = {part.attr for part in ast.walk(program.tree) if isinstance(part, ast.Attribute)}
    for owner in names:
        kinds = program.types(owner, node)
        for kind, methods in _METHODS.items():
            if not may_have_type(kinds, frozenset({kind})) or (not kinds and kind != "list"):
                continue
            for method in methods:
                for argument in names:
                    if argument != owner:
                        likely = 1.0 if kinds and (method in used or method in ("append", "add")) else 0.6
                        yield from _at(program, node, f"{owner}.{method}({argument})", likely)


@operator(
    "an assignment added",
    0.22,
    ast.stmt,
    before="def f(a, b):\n    c = a\n    return b",
    after="def f(a, b):\n    c = a\n    b = a\n    return b",
)
def assign_name(program: Program, node: ast.stmt) -> Changes:
    if program.home(node) is None or isinstance(node, Function | ast.ClassDef):
        return
    names = program.names(node)[:10]
    for name in names:
        kinds = program.types(name, node)
        if may_have_type(kinds, NUMBERS):
            for text in (f"{name} += 1", f"{name} -= 1", f"{name} = 0"):
                yield from _at(program, node, text, 1.0)
            for number in _numbers(program):
                for text in (f"{name} -= {number}", f"{name} += {number}"):
                    yield from _at(program, node, text, 0.6)
        for other in names:
            if other != name:
                seen = program.types(other, node)
                if not kinds or not seen or kinds & seen or "NoneType" in kinds | seen:
                    yield from _at(program, node, f"{name} = {other}", 0.9)
                if may_have_type(kinds, NUMBERS) and may_have_type(seen, NUMBERS):
                    yield from _at(program, node, f"{name} += {other}", 0.7)


def _numbers(program: Program) -> list[int]:
    """Return some whole numbers of the program above one."""
    found = dict.fromkeys(
        n.value for n in program.nodes if isinstance(n, ast.Constant) and type(n.value) is int
    )
    return [number for number in found if number > 1][:3]


@operator(
    "an exit from the loop added",
    0.4,
    ast.If,
    ast.For,
    before="def f(a):\n    for x in a:\n        if x:\n            b = x\n    return b",
    after="def f(a):\n    for x in a:\n        if x:\n            b = x\n            break\n    return b",
)
def leave_loop(program: Program, node: ast.If | ast.For) -> Changes:
    """Add `break` or `continue` at the end of a branch in a loop."""
    inside = isinstance(node, ast.If) and any(
        isinstance(a, ast.For | ast.While) for a in program.around(node)
    )
    for block in (node.body, node.orelse) if inside else (node.body,):
        if not block or isinstance(block[-1], Jump):
            continue
        for word in ("break", "continue") if inside else ("break",):
            edit = program.insert(block[-1], [word], after=True)
            if edit is not None and not isinstance(
                block[-1], ast.If | ast.For | ast.While | ast.Try | ast.With
            ):
                yield Change((edit,), 1.0 if inside else 0.4, line=block[-1].lineno)


@operator(
    "a statement replaced by another one from the program",
    0.2,
    ast.Assign,
    ast.AugAssign,
    ast.Expr,
    ast.Return,
    before="def f(a, b):\n    a = b\n    a += 1\n    return a",
    after="def f(a, b):\n    a += 1\n    a += 1\n    return a",
)
def replace_statement(program: Program, node: ast.stmt) -> Changes:
    if program.home(node) is None:
        return
    for text, weight in statements(program, node):
        yield Change((Edit(*program.source.span(node), text),), weight)
