"""Lists, dicts and tuples used as if they were another kind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.healing.rules.records import Example, Fix, Rule
from healkit.healing.rules.sites import Site
from healkit.pysource.inference import type_of


def _whole_index(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A number with a fraction where a whole one is needed: `/` gives one even for 4 / 2."""
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
                yield Fix("`/` always gives a float; `//` gives a whole number.", [Edit(at, at + 1, "//")])
    for whole in wholes[:3]:
        if type_of(whole, site.values) not in {"int", "str"}:
            yield Fix("The number must be a whole one.", source.wrap(whole, "int(", ")"), less=0.15)


def _text_index(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A list looked into by a text: the item itself is meant, or the number that the text holds."""
    source = site.source
    for node in site.nodes(ast.Subscript)[:2]:
        loop = source.enclosing(node, ast.For)
        key, base = source.segment(node.slice), source.segment(node.value)
        if loop is not None and source.segment(loop.target) == key and source.segment(loop.iter) == base:
            yield Fix(f"`{key}` is the item itself, not its place.", source.replace(node, key))
        elif isinstance(node.slice, ast.Constant):
            yield Fix(
                "The list has one item for each; the first is taken.",
                source.replace(node.value, f"{base}[0]"),
                0.2,
            )
        else:
            yield Fix("The place of an item is a number.", source.wrap(node.slice, "int(", ")"))


def _pair_index(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    for node in site.nodes(ast.Subscript):
        if isinstance(node.slice, ast.Tuple):
            places = "".join(f"[{site.source.segment(item)}]" for item in node.slice.elts)
            text = f"{site.source.segment(node.value)}{places}"
            yield Fix("A list of lists is looked into step by step.", site.source.replace(node, text))


def _no_length(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    if match["kind"] not in {"int", "float"}:
        return
    for call in site.nodes(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == "len" and len(call.args) == 1:
            given = site.source.segment(call.args[0])
            edits = site.source.replace(call.args[0], f"str({given})")
            yield Fix("A number has no length; its digits have.", edits)
            yield Fix(
                "A number has no length; it is the number itself.", site.source.replace(call, given), 0.1
            )


def _hashed(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A list as a key or in a set: a tuple of it can be one."""
    frozen = {"list": "tuple", "set": "frozenset"}.get(match["kind"])
    if frozen is None:
        return
    for node in site.nodes(ast.Subscript):
        yield Fix(
            f"A {match['kind']} can be no key; a {frozen} can.",
            site.source.wrap(node.slice, f"{frozen}(", ")"),
        )
    for call in site.nodes(ast.Call):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if len(call.args) >= 1 and name in {"add", "get", "setdefault"}:
            yield Fix(f"A {match['kind']} cannot be in there; a {frozen} can.",
                      site.source.wrap(call.args[0], f"{frozen}(", ")"))  # fmt: skip
        elif len(call.args) == 1 and name in {"set", "Counter", "frozenset", "fromkeys"}:
            yield Fix(f"A {match['kind']} cannot be in there; a {frozen} can.",
                      site.source.wrap(call.args[0], f"map({frozen}, ", ")"))  # fmt: skip
    for compare in site.nodes(ast.Compare):
        if isinstance(compare.ops[0], ast.In | ast.NotIn):
            yield Fix(f"A {match['kind']} cannot be in there; a {frozen} can.",
                      site.source.wrap(compare.left, f"{frozen}(", ")"))  # fmt: skip


def _assigned_into(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A tuple or a text never changes: the tuple is made a list, the text is put together anew."""
    source, statement = site.source, site.statement
    if not isinstance(statement, ast.Assign | ast.AugAssign):
        return
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return
    name = target.value.id
    if (
        match["kind"] == "str"
        and isinstance(statement, ast.Assign)
        and not isinstance(target.slice, ast.Slice)
    ):
        place, new = source.segment(target.slice), source.segment(statement.value)
        after = f"{place} + 1" if not place.isdigit() else str(int(place) + 1)
        text = f"{name} = {name}[:{place}] + {new} + {name}[{after}:]"
        yield Fix("A text never changes; it is put together anew.", source.replace(statement, text))
    elif match["kind"] == "tuple":
        for made in site.assignments(name)[:1]:
            yield Fix("A tuple never changes; a list does.", source.wrap(made.value, "list(", ")"))
        if not site.assignments(name) and site.function is not None:
            body = site.function.body
            yield Fix(
                "A tuple never changes; a list does.", source.insert_before(body[0], f"{name} = list({name})")
            )


RULES: tuple[Rule, ...] = (
    Rule(
        name="whole_index",
        mends="a float where a whole number is needed",
        enames=("TypeError",),
        message=r"indices must be integers(?: or slices)?,? (?:or None|not float)|'float' object cannot be interpreted as an integer|can't multiply sequence by non-int of type 'float'",
        priority=0.88,
        propose=_whole_index,
        example=Example(
            "def tool(a):\n    middle = len(a) / 2  # the later one\n    return a[middle]\n",
            "def tool(a):\n    middle = len(a) // 2  # the later one\n    return a[middle]\n",
            {"a": [1, 2]},
        ),
        lookalike=Example("def tool(a):\n    return [1][None]\n", arguments={"a": 1}),
    ),
    Rule(
        name="text_index",
        mends="a list is looked into by a text",
        enames=("TypeError",),
        message=r"(?:list|tuple) indices must be integers or slices, not str",
        priority=0.8,
        propose=_text_index,
        example=Example(
            "def tool(a):\n    found = ''\n    for word in a:\n        found += a[word]\n    return found\n",
            "def tool(a):\n    found = ''\n    for word in a:\n        found += word\n    return found\n",
            {"a": ["b"]},
        ),
        lookalike=Example("def tool(a):\n    return [1][(a, a)]\n", arguments={"a": 1}),
    ),
    Rule(
        name="pair_index",
        mends="a list of lists is looked into with two numbers at once",
        enames=("TypeError",),
        message=r"indices must be integers or slices, not tuple",
        priority=0.92,
        propose=_pair_index,
        example=Example(
            "def tool(a):\n    return a[0, 1]\n", "def tool(a):\n    return a[0][1]\n", {"a": [[1, 2]]}
        ),
        lookalike=Example("def tool(a):\n    return [1][tuple(a)]\n", arguments={"a": [1]}),
    ),
    Rule(
        name="no_length",
        mends="the length of a number is asked for",
        enames=("TypeError",),
        message=r"object of type '(?P<kind>\w+)' has no len\(\)",
        priority=0.8,
        propose=_no_length,
        example=Example(
            "def tool(a):\n    return len(a)\n", "def tool(a):\n    return len(str(a))\n", {"a": 12}
        ),
        lookalike=Example("def tool(a):\n    return len(object())\n", arguments={"a": 1}),
    ),
    Rule(
        name="hashed",
        mends="a list is used as a key or put into a set",
        enames=("TypeError",),
        message=r"unhashable type: '(?P<kind>\w+)'",
        priority=0.85,
        propose=_hashed,
        example=Example(
            "def tool(a):\n    seen = set()\n    for b in a:\n        seen.add(b)\n    return len(seen)\n",
            "def tool(a):\n    seen = set()\n    for b in a:\n        seen.add(tuple(b))\n    return len(seen)\n",
            {"a": [[1]]},
        ),
        lookalike=Example("def tool(a):\n    return {a: 1}\n", arguments={"a": {}}),
    ),
    Rule(
        name="assigned_into",
        mends="a place in a text or a tuple is assigned to",
        enames=("TypeError",),
        message=r"'(?P<kind>str|tuple)' object does not support item assignment",
        priority=0.85,
        propose=_assigned_into,
        example=Example(
            "def tool(a):\n    a[0] = 'X'\n    return a\n",
            "def tool(a):\n    a = a[:0] + 'X' + a[1:]\n    return a\n",
            {"a": "bc"},
        ),
        lookalike=Example("def tool(a):\n    a['b'][0] = 'X'\n    return a\n", arguments={"a": {"b": "c"}}),
    ),
)
