"""Values that are shared where each place should have its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.healing.rules.records import Fix, Rule, wrong_value
from healkit.healing.rules.sites import Site
from healkit.pysource.nodes import Function


def _shared_default(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A list as a default is made once, and every call shares it."""
    edits: list[Edit] = []
    for function in ast.walk(site.source.tree):
        if not isinstance(function, Function):
            continue
        named = [*function.args.posonlyargs, *function.args.args]
        pairs = list(
            zip(named[len(named) - len(function.args.defaults) :], function.args.defaults, strict=True)
        )
        pairs += [
            (a, d) for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d
        ]
        for arg, default in pairs:
            if not isinstance(default, ast.List | ast.Dict | ast.Set) and site.source.segment(
                default
            ) not in {
                "list()",
                "dict()",
                "set()",
            }:
                continue
            first = function.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and len(function.body) > 1
            ):
                first = function.body[1]
            unit = site.source.indent_unit
            above = site.source.insert_before(
                first, f"if {arg.arg} is None:", f"{unit}{arg.arg} = {site.source.segment(default)}"
            )
            edits += [*site.source.replace(default, "None"), *above] if above else []
    if edits:
        yield Fix("A default that can change is made anew for every call.", edits)


def _skipping(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A list that is changed while a loop goes through it: the loop steps over items."""
    for loop in site.all(ast.For):
        if not isinstance(loop.iter, ast.Name):
            continue
        name = loop.iter.id
        for node in ast.walk(loop):
            match node:
                case (
                    ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr="remove" | "pop" | "insert"))
                    | ast.Delete(targets=[ast.Subscript(value=ast.Name(id=found))])
                ) if found == name:
                    yield Fix(
                        "The loop goes over a copy of the list that it changes.",
                        site.source.wrap(loop.iter, "list(", ")"),
                    )
                    return


def _late(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A lambda in a loop looks its names up when it is called, and by then the loop is over."""
    for node in site.all(ast.Lambda):
        own = {arg.arg for arg in node.args.args}
        read = {n.id for n in ast.walk(node.body) if isinstance(n, ast.Name)} - own
        names: list[str] = []
        loop = _loop(site, node)
        while loop is not None:
            targets = [loop.target] if isinstance(loop, ast.For) else [g.target for g in loop.generators]
            names += [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and n.id in read]
            loop = _loop(site, loop)
        if not names or node.args.vararg or node.args.kwarg or node.args.kwonlyargs:
            continue
        at = site.source.text.rindex(":", site.source.span(node)[0], site.source.span(node.body)[0])
        bound = ", ".join(f"{name}={name}" for name in dict.fromkeys(names))
        text = f", {bound}" if own else f" {bound}"
        yield Fix("The function keeps the value that the name has now.", [Edit(at, at, text)])


def _loop(site: Site, node: ast.AST) -> ast.For | ast.ListComp | ast.GeneratorExp | None:
    found = site.source.parents.get(node)
    while found is not None and not isinstance(found, ast.For | ast.ListComp | ast.GeneratorExp):
        found = site.source.parents.get(found)
    return found


def _same_rows(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`[[0] * n] * m` holds one list m times; `dict.fromkeys(keys, [])` one list for every key."""
    for node in ast.walk(site.source.tree):
        match node:
            case ast.BinOp(
                left=ast.List(elts=[ast.BinOp(op=ast.Mult()) | ast.List() | ast.Dict() as row]),
                op=ast.Mult(),
                right=times,
            ):
                text = f"[{site.source.segment(row)} for _ in range({site.source.segment(times)})]"
                yield Fix("Each row is a list of its own.", site.source.replace(node, text))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="dict"), attr="fromkeys"),
                args=[keys, ast.List() | ast.Dict() as value],
            ):
                text = f"{{key: {site.source.segment(value)} for key in {site.source.segment(keys)}}}"
                yield Fix("Each key has a list of its own.", site.source.replace(node, text))


RULES: tuple[Rule, ...] = (
    wrong_value("shared_default", "a default that every call shares", 0.9, _shared_default,
         "def tool(a, seen=[]):\n    seen.append(a)\n    return seen\n",
         "def tool(a, seen=None):\n    if seen is None:\n        seen = []\n    seen.append(a)\n    return seen\n",
         arguments={"a": 1}, lookalike="def tool(a, seen=()):\n    return [*seen, a]\n"),
    wrong_value("skipping", "a list is changed while a loop goes through it", 0.9, _skipping,
         "def tool(a):\n    for n in a:\n        if n < 0:\n            a.remove(n)\n    return a\n",
         "def tool(a):\n    for n in list(a):\n        if n < 0:\n            a.remove(n)\n    return a\n",
         arguments={"a": [-1, -2]}, lookalike="def tool(a):\n    b = list(a)\n    for n in a:\n        b.remove(n)\n    return b\n"),
    wrong_value("late_binding", "functions made in a loop all use its last value", 0.9, _late,
         "def tool(a):\n    return [f(1) for f in [lambda x: x * n for n in a]]\n",
         "def tool(a):\n    return [f(1) for f in [lambda x, n=n: x * n for n in a]]\n",
         arguments={"a": [1, 2]}, lookalike="def tool(a):\n    return [f(1) for f in [lambda x: x for n in a]]\n"),
    wrong_value("same_rows", "one list stands in several places", 0.9, _same_rows,
         "def tool(a):\n    b = [[0] * 2] * a\n    b[0][0] = 1\n    return b\n",
         "def tool(a):\n    b = [[0] * 2 for _ in range(a)]\n    b[0][0] = 1\n    return b\n",
         arguments={"a": 2}, lookalike="def tool(a):\n    return [0] * a\n"),
)  # fmt: skip
