"""Mutable values that are shared by mistake."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.failures.pattern import NO_EXCEPTION, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.pysource.nodes import Function


def _shared_default(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make the default anew for each call: a list as a default is made once."""
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
            ) not in {"list()", "dict()", "set()"}:
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
        yield Proposal("Create the mutable default value in every call.", edits)


def _skipping(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Loop over a copy of the list that the loop changes, which would skip items."""
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
                    yield Proposal(
                        "The loop iterates over a copy of the list that it changes.",
                        site.source.wrap(loop.iter, "list(", ")"),
                    )
                    return


def _late_binding(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Bind the loop's names in the lambda now: it looks them up when it is called, after the loop."""
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
        yield Proposal("The function keeps the current value of the name.", [Edit(at, at, text)])


def _loop(site: Site, node: ast.AST) -> ast.For | ast.ListComp | ast.GeneratorExp | None:
    found = site.source.parents.get(node)
    while found is not None and not isinstance(found, ast.For | ast.ListComp | ast.GeneratorExp):
        found = site.source.parents.get(found)
    return found


def _same_rows(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make a list for each place: `[[0] * n] * m` holds one list m times."""
    for node in ast.walk(site.source.tree):
        match node:
            case ast.BinOp(
                left=ast.List(elts=[ast.BinOp(op=ast.Mult()) | ast.List() | ast.Dict() as row]),
                op=ast.Mult(),
                right=times,
            ):
                text = f"[{site.source.segment(row)} for _ in range({site.source.segment(times)})]"
                yield Proposal("Create a separate list for each row.", site.source.replace(node, text))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="dict"), attr="fromkeys"),
                args=[keys, ast.List() | ast.Dict() as value],
            ):
                text = f"{{key: {site.source.segment(value)} for key in {site.source.segment(keys)}}}"
                yield Proposal("Create a separate list for each key.", site.source.replace(node, text))


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        (NO_EXCEPTION,),
        fixes=(
            Fix(
                name="shared_default",
                mistake="a mutable default value that all calls share",
                priority=0.9,
                propose=_shared_default,
                example=FixExample(
                    "def tool(a, seen=[]):\n    seen.append(a)\n    return seen\n",
                    "def tool(a, seen=None):\n    if seen is None:\n        seen = []\n    seen.append(a)\n    return seen\n",
                    {"a": 1},
                ),
                lookalike=FixExample("def tool(a, seen=()):\n    return [*seen, a]\n", "", {"a": 1}),
            ),
            Fix(
                name="skipping",
                mistake="a list that changes during iteration",
                priority=0.9,
                propose=_skipping,
                example=FixExample(
                    "def tool(a):\n    for n in a:\n        if n < 0:\n            a.remove(n)\n    return a\n",
                    "def tool(a):\n    for n in list(a):\n        if n < 0:\n            a.remove(n)\n    return a\n",
                    {"a": [-1, -2]},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    b = list(a)\n    for n in a:\n        b.remove(n)\n    return b\n",
                    "",
                    {"a": [-1, -2]},
                ),
            ),
            Fix(
                name="late_binding",
                mistake="functions from a loop that all use its last value",
                priority=0.9,
                propose=_late_binding,
                example=FixExample(
                    "def tool(a):\n    return [f(1) for f in [lambda x: x * n for n in a]]\n",
                    "def tool(a):\n    return [f(1) for f in [lambda x, n=n: x * n for n in a]]\n",
                    {"a": [1, 2]},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    return [f(1) for f in [lambda x: x for n in a]]\n", "", {"a": [1, 2]}
                ),
            ),
            Fix(
                name="same_rows",
                mistake="one list that is used in several places",
                priority=0.9,
                propose=_same_rows,
                example=FixExample(
                    "def tool(a):\n    b = [[0] * 2] * a\n    b[0][0] = 1\n    return b\n",
                    "def tool(a):\n    b = [[0] * 2 for _ in range(a)]\n    b[0][0] = 1\n    return b\n",
                    {"a": 2},
                ),
                lookalike=FixExample("def tool(a):\n    return [0] * a\n", "", {"a": 2}),
            ),
        ),
    ),
)
