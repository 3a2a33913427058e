"""Edits of which variable, attribute or target is meant."""

from __future__ import annotations

import ast
import builtins
import functools

from healkit.healing.search.kinds import agree, guess
from healkit.healing.search.operators.table import Changes, operator
from healkit.healing.search.program import Program

_BUILTIN = frozenset(dir(builtins))


@operator(
    "another variable", 0.9, ast.Name, before="def f(a, b):\n    return a", after="def f(a, b):\n    return b"
)
def variable(program: Program, node: ast.Name) -> Changes:
    if not isinstance(node.ctx, ast.Load) or program.field(node) == "func" or node.id in program.defined:
        return
    known = program.names(node)
    own = program.types(node.id, node)
    for name in known[:24]:
        if name != node.id and (weight := agree(own, program.types(name, node))):
            yield from program.put(node, name, weight if node.id in known else 0.9)


@operator(
    "a name in an expression's place",
    0.4,
    ast.Call,
    ast.Subscript,
    ast.BinOp,
    ast.Attribute,
    ast.Constant,
    before="def f(a, b):\n    return g(a) + b",
    after="def f(a, b):\n    return a + b",
)
def for_expression(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    if (
        not program.is_value(node)
        or field == "func"
        or isinstance(parent, ast.Attribute | ast.Expr | ast.JoinedStr)
    ):
        return
    kinds = guess(program, node)
    literal = isinstance(node, ast.Constant)
    for name in program.names(node)[:20]:
        weight = agree(kinds, program.types(name, node))
        if weight and not (literal and weight < 1):
            yield from program.put(node, name, weight)


@operator(
    "another of the program's functions",
    0.5,
    ast.Name,
    before="def f(x):\n    return g(x)\ndef g(x):\n    return 1\ndef h(x):\n    return 2",
    after="def f(x):\n    return h(x)\ndef g(x):\n    return 1\ndef h(x):\n    return 2",
)
def function(program: Program, node: ast.Name) -> Changes:
    if not isinstance(node.ctx, ast.Load) or (
        program.field(node) != "func" and node.id not in program.defined
    ):
        return
    for name in program.defined:
        if name != node.id and not name.startswith("__"):
            yield from program.put(node, name)


@operator(
    "another assignment target",
    0.4,
    ast.Assign,
    ast.AugAssign,
    before="def f(a, b):\n    a = 1\n    return b",
    after="def f(a, b):\n    b = 1\n    return b",
)
def target(program: Program, node: ast.Assign | ast.AugAssign) -> Changes:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for one in targets:
        for part in one.elts if isinstance(one, ast.Tuple) else [one]:
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
def attribute(program: Program, node: ast.Attribute) -> Changes:
    if program.field(node) == "func":
        return
    own = program.segment(node.value)
    for base, name in _attributes(program):
        if name != node.attr:
            yield from program.put(
                node, f"{program.piece(node.value, 16)}.{name}", 1.0 if base == own else 0.8
            )


@functools.lru_cache(maxsize=64)
def _attributes(program: Program) -> list[tuple[str, str]]:
    """Attributes that the program reads or sets, each with what it is read off."""
    called = {id(node.func) for node in program.nodes if isinstance(node, ast.Call)}
    found: dict[tuple[str, str], None] = {}
    for node in program.nodes:
        if isinstance(node, ast.Attribute) and id(node) not in called:
            found[program.segment(node.value), node.attr] = None
    return list(found)[:20]


@operator(
    "an attribute of the object itself",
    0.7,
    ast.Name,
    before="class A:\n    def f(self):\n        self.n = 1\n        return n",
    after="class A:\n    def f(self):\n        self.n = 1\n        return self.n",
)
def of_self(program: Program, node: ast.Name) -> Changes:
    if not isinstance(node.ctx, ast.Load) or node.id in program.names(node) or node.id in _BUILTIN:
        return
    if "self" in program.names(node):
        yield from program.put(node, f"self.{node.id}")


@operator(
    "an attribute dropped or followed", 0.5, ast.Attribute, ast.Name, before="x = n.next", after="x = n"
)
def followed(program: Program, node: ast.Attribute | ast.Name) -> Changes:
    if not program.is_value(node) or program.field(node) == "func":
        return
    if isinstance(node, ast.Attribute):
        yield from program.put(node, program.segment(node.value))
    if isinstance(program.parent(node), ast.Attribute) or guess(program, node) & {
        "int",
        "str",
        "list",
        "dict",
        "bool",
    }:
        return
    for base, name in _attributes(program):
        if base == program.segment(node) or isinstance(node, ast.Attribute):
            yield from program.put(node, f"{program.segment(node)}.{name}", 0.8)


@operator(
    "another variable counted over",
    0.5,
    ast.For,
    ast.comprehension,
    before="for a, b in c:\n    x = 1",
    after="for b, a in c:\n    x = 1",
)
def loop_target(program: Program, node: ast.For | ast.comprehension) -> Changes:
    if isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2:
        first, second = (program.segment(one) for one in node.target.elts)
        own = program.segment(node.target)
        yield from program.put(node.target, own.replace(f"{first}, {second}", f"{second}, {first}"))
    iterated = program.segment(node.iter)
    if (
        isinstance(node.target, ast.Tuple)
        and len(node.target.elts) == 2
        and isinstance(node.iter, ast.Name | ast.Attribute | ast.Call)
    ):
        yield from program.put(node.iter, f"{iterated}.items()", 1.0)
        yield from program.put(node.iter, f"enumerate({iterated})", 1.0)
    elif isinstance(node.iter, ast.Name | ast.Attribute | ast.Subscript):
        for text in (
            f"{iterated}.values()",
            f"{iterated}.items()",
            f"range({iterated})",
            f"range(len({iterated}))",
            f"reversed({iterated})",
            f"{iterated}.copy()",
            f"list({iterated})",
            f"sorted({iterated})",
        ):
            yield from program.put(node.iter, text, 0.7 if text.startswith("reversed") else 0.9)
