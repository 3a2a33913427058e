"""What is gone through, and what only looks like a list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.healing.rules.records import Example, Fix, Rule
from healkit.healing.rules.sites import Site
from healkit.pysource.inference import type_of

_LAZY = {"map", "filter", "zip", "generator", "dict_keys", "dict_values", "dict_items", "set", "reversed", "enumerate",
         "range_iterator", "list_reverseiterator", "frozenset", "dict_keyiterator"}  # fmt: skip


def _listed(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """What is gone through only once, or has no order, becomes a list first."""
    kind = match["kind"]
    if kind not in _LAZY and not kind.endswith("iterator"):
        return
    used: list[ast.expr] = [node.value for node in site.nodes(ast.Subscript)]
    used += [
        c.args[0]
        for c in site.nodes(ast.Call)
        if isinstance(c.func, ast.Name) and c.func.id == "len" and c.args
    ]
    for node in used:
        for made in site.made(node):
            function = "sorted" if kind in {"set", "frozenset"} else "list"
            left = "[" if isinstance(made, ast.GeneratorExp) and kind == "generator" else f"{function}("
            edits = site.source.wrap(made, left, ")")
            if left == "[":
                edits = site.source.replace(made, f"[{site.source.segment(made)[1:-1]}]")
            yield Fix(f"A {kind} has no places; a list of it has.", edits)
            if function == "sorted":
                yield Fix(
                    f"A {kind} has no places; a list of it has.", site.source.wrap(made, "list(", ")"), 0.1
                )


def _counted_to(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`for i in 10`, `for i in len(x)`, `for digit in number`."""
    targets: list[tuple[ast.expr, bool]] = []
    if isinstance(site.statement, ast.For):
        targets.append((site.statement.iter, True))
    targets += [(node.iter, True) for node in site.nodes(ast.comprehension)]
    targets += [
        (call.args[0], False)
        for call in site.nodes(ast.Call)
        if isinstance(call.func, ast.Name)
        and call.func.id in {"list", "sum", "sorted", "set", "max", "min", "enumerate", "tuple", "map"}
        and len(call.args) == 1
    ]
    for node, loops in targets:
        if type_of(node, site.values) not in {"", "int"}:
            continue
        if loops or isinstance(node, ast.Call):
            yield Fix("A number is counted to by `range`.", site.source.wrap(node, "range(", ")"))
        if not loops:
            yield Fix("One number is put into a list of one.", site.source.wrap(node, "[", "]"), less=0.05)
        if not isinstance(node, ast.Call):
            yield Fix(
                "The digits of a number are those of its text.", site.source.wrap(node, "str(", ")"), less=0.1
            )


def _pairs(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`for k, v in d`: a dict gives its keys only; with a number first, the places are meant."""
    loops: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(site.statement, ast.For):
        loops.append((site.statement.target, site.statement.iter))
    loops += [(node.target, node.iter) for node in site.nodes(ast.comprehension, near=False)]
    for target, source in loops:
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            continue
        if isinstance(source, ast.Call) and getattr(source.func, "attr", "") in {"items", "most_common"}:
            continue
        kind = type_of(source, site.values)
        if kind in {"", "dict"}:
            yield Fix("A dict's keys and values come from `.items()`.", site.source.wrap(source, "", ".items()"),
                      less=0.0 if kind else 0.05)  # fmt: skip
        if kind != "dict":
            yield Fix(
                "The place and the item come from `enumerate`.", site.source.wrap(source, "enumerate(", ")")
            )


def _rows(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A text is looked into by a key: the loop goes over a dict's keys, or the text is JSON."""
    source = site.source
    for node in site.nodes(ast.Subscript)[:2]:
        if not isinstance(node.value, ast.Name):
            continue
        name = node.value.id
        for target, iterated in site.loops():
            if (
                isinstance(target, ast.Name)
                and target.id == name
                and type_of(iterated, site.values) in {"", "dict"}
            ):
                yield Fix("A loop over a dict gives its keys; `.values()` gives what belongs to them.",
                          source.wrap(iterated, "", ".values()"))  # fmt: skip
        if isinstance(site.values.get(name), str):
            edits = source.replace(node.value, f"json.loads({name})")
            edits += [] if "import json" in source.text else source.add_import("import json")
            yield Fix("The text is JSON and must be read first.", edits, less=0.1)


def _changed(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A loop over what it changes: it goes over a copy."""
    loops = [node for node in site.body_nodes(ast.For) if node is site.statement] or list(
        site.body_nodes(ast.For)
    )
    for loop in loops:
        yield Fix(
            "The loop changes what it goes over, so it goes over a copy.",
            site.source.wrap(loop.iter, "list(", ")"),
        )


_OBJECT = Example("def tool(a):\n    return object()[a]\n", arguments={"a": 1})


RULES: tuple[Rule, ...] = (
    Rule(
        name="listed",
        mends="a generator, a set or a view is used like a list",
        enames=("TypeError",),
        message=r"'(?P<kind>\w+)' object is not (?:subscriptable|reversible)|object of type '(?P<_>\w+)' has no len\(\)",
        priority=0.88,
        propose=lambda site, match: _listed(
            site, re.match(r"(?P<kind>.*)", match["kind"] or match["_"]) or match
        ),
        example=Example(
            "def tool(a):\n    found = map(str, a)\n    return len(found)\n",
            "def tool(a):\n    found = list(map(str, a))\n    return len(found)\n",
            {"a": [1]},
        ),
        lookalike=_OBJECT,
    ),
    Rule(
        name="counted_to",
        mends="a number is gone through one by one",
        enames=("TypeError",),
        message=r"'(?:int|float)' object is not iterable",
        priority=0.88,
        propose=_counted_to,
        example=Example(
            "def tool(a):\n    return [i for i in len(a)]\n",
            "def tool(a):\n    return [i for i in range(len(a))]\n",
            {"a": "bc"},
        ),
        lookalike=Example("def tool(a):\n    b, c = a\n    return b\n", arguments={"a": 1}),
    ),
    Rule(
        name="pairs",
        mends="a loop takes two values at a time where there is one",
        enames=("TypeError", "ValueError"),
        message=r"cannot unpack non-iterable|values to unpack \(expected 2",
        priority=0.85,
        propose=_pairs,
        example=Example(
            "def tool(a):\n    return [k for k, v in a if v]\n",
            "def tool(a):\n    return [k for k, v in a.items() if v]\n",
            {"a": {"bcd": 1}},
        ),
        lookalike=Example("def tool(a):\n    b, c = a\n    return b\n", arguments={"a": [1, 2, 3]}),
    ),
    Rule(
        name="rows",
        mends="a text is looked into by a key",
        enames=("TypeError",),
        message=r"string indices must be integers",
        priority=0.85,
        propose=_rows,
        example=Example(
            "def tool(a):\n    return [row['n'] for row in a]\n",
            "def tool(a):\n    return [row['n'] for row in a.values()]\n",
            {"a": {"b": {"n": 1}}},
        ),
        lookalike=Example("def tool(a):\n    return a[0]['n']\n", arguments={"a": ["b"]}),
    ),
    Rule(
        name="changed_while_read",
        mends="a dict or a set is changed while a loop goes through it",
        enames=("RuntimeError",),
        message=r"changed size during iteration|dictionary keys changed during iteration|mutated during iteration",
        priority=0.95,
        propose=_changed,
        example=Example(
            "def tool(a):\n    for k in a:\n        if not a[k]:\n            del a[k]\n    return a\n",
            "def tool(a):\n    for k in list(a):\n        if not a[k]:\n            del a[k]\n    return a\n",
            {"a": {"b": 0, "c": 1}},
        ),
        lookalike=Example("def tool(a):\n    raise RuntimeError('changed')\n", arguments={"a": 1}),
    ),
)
