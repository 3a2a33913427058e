"""Edits of names, expressions, attributes and targets."""

from __future__ import annotations

import ast
import functools

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import Function, free_names
from healkit.parts.explain.edit_kinds import is_misspelling
from healkit.parts.heal.advisors.search.operators.definition import Changes, operator
from healkit.parts.heal.advisors.search.program import (
    Change,
    Program,
    expressions,
    guess_types,
    type_agreement,
)


@operator(
    "another variable", 0.9, ast.Name, before="def f(a, b):\n    return a", after="def f(a, b):\n    return b"
)
def change_variable(program: Program, node: ast.Name) -> Changes:
    if not isinstance(node.ctx, ast.Load) or program.field(node) == "func" or node.id in program.defined:
        return
    names = program.names(node)
    kinds = program.types(node.id, node)
    for name in names[:24]:
        # `mark` for `marks`: that one is a number and the other a list is the mistake itself.
        weight = type_agreement(kinds, program.types(name, node)) or 0.65 * is_misspelling(node.id, name)
        if name != node.id and weight:
            yield from program.put(node, name, weight if node.id in names else 0.9)


@operator(
    "a variable instead of an expression",
    0.4,
    ast.Call,
    ast.Subscript,
    ast.BinOp,
    ast.Attribute,
    ast.Constant,
    before="def f(a, b):\n    return g(a) + b",
    after="def f(a, b):\n    return a + b",
)
def replace_by_name(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    if (
        not program.is_value(node)
        or field == "func"
        or isinstance(parent, ast.Attribute | ast.Expr | ast.JoinedStr)
    ):
        return
    kinds = guess_types(program, node)
    literal = isinstance(node, ast.Constant)
    for name in program.names(node)[:20]:
        weight = type_agreement(kinds, program.types(name, node))
        if weight and not (literal and weight < 1):
            yield from program.put(node, name, weight)


@operator(
    "another expression from the program",
    0.28,
    ast.expr,
    before="def f(a, b):\n    c = a[b]\n    return len(a) + len(c)",
    after="def f(a, b):\n    c = a[b]\n    return len(a) + a[b]",
)
def replace_by_expression(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    if (
        not program.is_value(node)
        or field == "func"
        or isinstance(parent, ast.Attribute | ast.Expr | ast.FormattedValue)
    ):
        return
    key = isinstance(node, ast.Constant) and isinstance(parent, ast.Subscript) and isinstance(node.value, str)
    kinds = guess_types(program, node)
    for expression, text in expressions(program, node):
        if key and not isinstance(expression, ast.Attribute):  # a fixed key may have been meant to vary
            continue
        weight = type_agreement(kinds, guess_types(program, expression)) if expression is not None else 0.6
        if weight:
            yield from program.put(node, text, weight if not isinstance(node, ast.Constant) else weight * 0.7)


@operator(
    "a variable returned instead",
    0.4,
    ast.Return,
    before="def f(a, b):\n    c = a\n    return None",
    after="def f(a, b):\n    c = a\n    return c",
)
def return_name(program: Program, node: ast.Return) -> Changes:
    start, end = program.source.span(node)
    for name in [*program.names(node)[:14], "True", "False", "None"]:
        if node.value is None or program.segment(node.value) != name:
            yield Change((Edit(start, end, f"return {name}"),))


@operator(
    "another assignment target",
    0.4,
    ast.Assign,
    ast.AugAssign,
    before="def f(a, b):\n    a = 1\n    return b",
    after="def f(a, b):\n    b = 1\n    return b",
)
def change_target(program: Program, node: ast.Assign | ast.AugAssign) -> Changes:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(part, ast.Name | ast.Subscript):
                text = program.segment(part)
                for name in program.names(node)[:16]:
                    if name != text:
                        yield from program.put(part, name, 1.0 if isinstance(part, ast.Name) else 0.6)
            if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
                index = program.segment(part.slice)
                for name in program.names(node)[:12]:
                    if name != part.value.id:
                        yield from program.put(part, f"{name}[{index}]", 0.9)
                if isinstance(part.slice, ast.Tuple) and len(part.slice.elts) == 2:
                    for name in program.names(node)[:12]:
                        for element in part.slice.elts:
                            yield from program.put(part, f"{name}[{program.segment(element)}]", 0.9)
            elif isinstance(part, ast.Name) and len(targets) == 1:
                for name in program.names(node)[:8]:
                    if {"dict", "list", "defaultdict"} & program.types(part.id, node) and name != part.id:
                        yield from program.put(part, f"{part.id}[{name}]", 0.6)


@operator(
    "another attribute",
    0.7,
    ast.Attribute,
    before="x = n.left\ny = n.right",
    after="x = n.right\ny = n.right",
)
def change_attribute(program: Program, node: ast.Attribute) -> Changes:
    if program.field(node) == "func":
        return
    owner = program.segment(node.value)
    for base, name in _attributes(program):
        if name != node.attr:
            yield from program.put(
                node, f"{program.piece(node.value, 16)}.{name}", 1.0 if base == owner else 0.8
            )


@functools.lru_cache(maxsize=64)
def _attributes(program: Program) -> list[tuple[str, str]]:
    """Return attributes that the program reads or sets, each with its owner."""
    called = {id(node.func) for node in program.nodes if isinstance(node, ast.Call)}
    attributes: dict[tuple[str, str], None] = {}
    for node in program.nodes:
        if isinstance(node, ast.Attribute) and id(node) not in called:
            attributes[program.segment(node.value), node.attr] = None
    return list(attributes)[:20]


# Slips: names swapped, left behind, quoted, unbound.


_TEXTS = ("' '", "', '", "'-'", "'\\n'")
#: The most code in quotes.
_QUOTED_MAX_CHARS = 60


@operator(
    "a name left over from a renaming",
    0.8,
    ast.FunctionDef,
    before="def f(values):\n    s = 0\n    for v in items:\n        s += v\n    return s / len(items)",
    after="def f(values):\n    s = 0\n    for v in values:\n        s += v\n    return s / len(values)",
)
def rename_whole(program: Program, node: ast.FunctionDef) -> Changes:
    """Replace an unknown name at all its places by a parameter that nothing reads."""
    read = [part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    names = {part.id for part in read}
    unread = [arg.arg for arg in node.args.args if arg.arg not in names and arg.arg != "self"]
    for unknown in sorted(free_names(node) & names - set(program.defined)):
        places = [part for part in read if part.id == unknown]
        for parameter in unread if len(places) > 1 else ():
            yield Change(tuple(Edit(*program.source.span(part), parameter) for part in places))


@operator(
    "`self.` added or removed",
    0.8,
    ast.Call,
    before="class T:\n    def g(self):\n        return 1\n    def run(self):\n        return g()",
    after="class T:\n    def g(self):\n        return 1\n    def run(self):\n        return self.g()",
)
def call_on_self(program: Program, node: ast.Call) -> Changes:
    around = next((part for part in program.around(node) if isinstance(part, ast.ClassDef)), None)
    if around is None:
        return
    methods = {part.name for part in around.body if isinstance(part, Function)}
    functions = {part.name for part in program.tree.body if isinstance(part, Function)}
    match node.func:
        case ast.Name(id=name) if name in methods:
            yield from program.put(node.func, f"self.{name}")
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in functions - methods:
            yield from program.put(node.func, name)


@operator(
    "quotes around code removed",
    0.5,
    ast.Constant,
    before="def f(a, b):\n    return 'a + b'",
    after="def f(a, b):\n    return a + b",
)
def unquote(program: Program, node: ast.Constant) -> Changes:
    text = node.value
    if not isinstance(text, str) or not 0 < len(text) <= _QUOTED_MAX_CHARS or not program.is_value(node):
        return
    if isinstance(program.parent(node), ast.Expr | ast.JoinedStr):
        return
    try:
        free = free_names(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        return
    if (
        free
        and free & set(program.names(node))
        and free <= {*program.names(node), *program.defined, "len", "str"}
    ):
        yield from program.put(node, text.strip())


@operator(
    "a string inserted between two others",
    0.35,
    ast.BinOp,
    ast.AugAssign,
    before="x = 'a' + b",
    after="x = 'a' + ' ' + b",
)
def put_text_between(program: Program, node: ast.BinOp | ast.AugAssign) -> Changes:
    if not isinstance(node.op, ast.Add):
        return
    first, second = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    if not any(_is_text(program, part) for part in (first, second)):
        return
    wanted = (text for text in program.hints.constants if text[:1] in "'\"" and len(text) <= 5)
    for text in dict.fromkeys([*_TEXTS, *wanted]):
        start, end = program.source.span(second)
        quoted = program.quoted(text)
        between = isinstance(node, ast.BinOp)
        yield Change((Edit(start, start, f"{quoted} + ") if between else Edit(end, end, f" + {quoted}"),))


def _is_text(program: Program, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, ast.Name) and program.types(node.id, node) == {"str"}
