"""Indexes of a wrong type: floats, text, pairs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.pysource.inference import type_of


def _whole_index(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make a whole number where a float is not allowed: `/` gives a float even for 4 / 2."""
    source = site.source
    wholes: list[ast.expr] = [
        part
        for node in site.nodes(ast.Subscript)
        for part in (
            [node.slice] if not isinstance(node.slice, ast.Slice) else [node.slice.lower, node.slice.upper]
        )
        if part is not None
    ]
    wholes += [
        argument
        for call in site.nodes(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id in {"range", "chr", "islice", "bin", "hex"}
        for argument in call.args
    ]
    wholes += [
        side
        for node in site.nodes(ast.BinOp)
        if isinstance(node.op, ast.Mult)
        for side in (node.left, node.right)
    ]
    seen: set[int] = set()
    for whole in wholes:
        for made in [m for part in ast.walk(whole) if isinstance(part, ast.expr) for m in site.made(part)]:
            for division in ast.walk(made):
                if (
                    not isinstance(division, ast.BinOp)
                    or not isinstance(division.op, ast.Div)
                    or id(division) in seen
                ):
                    continue
                seen.add(id(division))
                start, end = source.span(division.left)[1], source.span(division.right)[0]
                at = source.text.index("/", start, end)
                yield Proposal(
                    "`/` always returns a float; `//` returns an integer.", [Edit(at, at + 1, "//")]
                )
    for whole in wholes[:3]:
        if type_of(whole, site.values) not in {"int", "str"}:
            yield Proposal("The number must be an integer.", source.wrap(whole, "int(", ")"), less=0.15)


def _text_index(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the item itself, or the number that the text holds, where a list is indexed by text."""
    source = site.source
    for node in site.nodes(ast.Subscript)[:2]:
        loop = source.enclosing(node, ast.For)
        key, base = source.segment(node.slice), source.segment(node.value)
        if loop is not None and source.segment(loop.target) == key and source.segment(loop.iter) == base:
            yield Proposal(f"`{key}` is the item itself, not its index.", source.replace(node, key))
        elif isinstance(node.slice, ast.Constant):
            yield Proposal(
                "A list has no keys; use its first item.",
                source.replace(node.value, f"{base}[0]"),
                0.2,
            )
        else:
            yield Proposal("The index must be a number.", source.wrap(node.slice, "int(", ")"))


def _rows(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Loop over a dict's values, or read the JSON, where text is indexed by a key."""
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
                yield Proposal("Iterating over a dict yields its keys; use `.values()` for the values.",
                          source.wrap(iterated, "", ".values()"))  # fmt: skip
        if isinstance(site.values.get(name), str):
            edits = source.replace(node.value, f"json.loads({name})")
            edits += [] if "import json" in source.text else source.add_import("import json")
            yield Proposal("The string is JSON and must be parsed first.", edits, less=0.1)


def _pair_index(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for node in site.nodes(ast.Subscript):
        if isinstance(node.slice, ast.Tuple):
            places = "".join(f"[{site.source.segment(item)}]" for item in node.slice.elts)
            text = f"{site.source.segment(node.value)}{places}"
            yield Proposal("Index a list of lists one level at a time.", site.source.replace(node, text))


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"indices must be integers(?: or slices)?,? (?:or None|not float)|'float' object cannot be interpreted as an integer|can't multiply sequence by non-int of type 'float'",
        fixes=(
            Fix(
                name="whole_index",
                mistake="a float where an integer is required",
                priority=0.88,
                propose=_whole_index,
                example=FixExample(
                    "def tool(a):\n    middle = len(a) / 2  # the later one\n    return a[middle]\n",
                    "def tool(a):\n    middle = len(a) // 2  # the later one\n    return a[middle]\n",
                    {"a": [1, 2]},
                ),
                lookalike=FixExample("def tool(a):\n    return [1][None]\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"(?P<kind>list|string|tuple|str|byte|range object) ?ind(?:ices|ex) must be integers?(?: or slices)?,? not '?(?P<other>[\w.]+)'?",
        explanations=(
            ExplanationText(
                "index_kind",
                what="A `{kind}` was indexed with a `{other}`.",
                why=(
                    "The indexes of a `{kind}` are integers: 0, 1, 2 … Division with `/` always "
                    "returns a float. A string in square brackets is for dicts."
                ),
                hint="Where does the value in the brackets come from?",
                fix="Use `//` for integer division; if the data should be a dict, check how it is created.",
                example="[1, 2, 3][3 / 2]",
            ),
        ),
        fixes=(
            Fix(
                name="text_index",
                mistake="a list that is indexed with a string",
                only=r"(?:list|tuple) indices must be integers or slices, not str",
                priority=0.8,
                propose=_text_index,
                example=FixExample(
                    "def tool(a):\n    found = ''\n    for word in a:\n        found += a[word]\n    return found\n",
                    "def tool(a):\n    found = ''\n    for word in a:\n        found += word\n    return found\n",
                    {"a": ["b"]},
                ),
                lookalike=FixExample("def tool(a):\n    return [1][(a, a)]\n", arguments={"a": 1}),
            ),
            Fix(
                name="rows",
                mistake="a string that is indexed with a key",
                only=r"string indices must be integers",
                priority=0.85,
                propose=_rows,
                example=FixExample(
                    "def tool(a):\n    return [row['n'] for row in a]\n",
                    "def tool(a):\n    return [row['n'] for row in a.values()]\n",
                    {"a": {"b": {"n": 1}}},
                ),
                lookalike=FixExample("def tool(a):\n    return a[0]['n']\n", arguments={"a": ["b"]}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"indices must be integers or slices, not tuple",
        fixes=(
            Fix(
                name="pair_index",
                mistake="a list of lists that is indexed with two numbers at once",
                priority=0.92,
                propose=_pair_index,
                example=FixExample(
                    "def tool(a):\n    return a[0, 1]\n",
                    "def tool(a):\n    return a[0][1]\n",
                    {"a": [[1, 2]]},
                ),
                lookalike=FixExample("def tool(a):\n    return [1][tuple(a)]\n", arguments={"a": [1]}),
            ),
        ),
    ),
)
