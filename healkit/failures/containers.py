"""Lists, dicts and text used as another kind of value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.failures.iteration import LISTED
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
                    "`/` always gives a float; `//` gives a whole number.", [Edit(at, at + 1, "//")]
                )
    for whole in wholes[:3]:
        if type_of(whole, site.values) not in {"int", "str"}:
            yield Proposal("The number must be a whole one.", source.wrap(whole, "int(", ")"), less=0.15)


def _text_index(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the item itself, or the number that the text holds, where a list is indexed by text."""
    source = site.source
    for node in site.nodes(ast.Subscript)[:2]:
        loop = source.enclosing(node, ast.For)
        key, base = source.segment(node.slice), source.segment(node.value)
        if loop is not None and source.segment(loop.target) == key and source.segment(loop.iter) == base:
            yield Proposal(f"`{key}` is the item itself, not its place.", source.replace(node, key))
        elif isinstance(node.slice, ast.Constant):
            yield Proposal(
                "The list has one item for each; the first is taken.",
                source.replace(node.value, f"{base}[0]"),
                0.2,
            )
        else:
            yield Proposal("The place of an item is a number.", source.wrap(node.slice, "int(", ")"))


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
                yield Proposal("A loop over a dict gives its keys; `.values()` gives what belongs to them.",
                          source.wrap(iterated, "", ".values()"))  # fmt: skip
        if isinstance(site.values.get(name), str):
            edits = source.replace(node.value, f"json.loads({name})")
            edits += [] if "import json" in source.text else source.add_import("import json")
            yield Proposal("The text is JSON and must be read first.", edits, less=0.1)


def _pair_index(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for node in site.nodes(ast.Subscript):
        if isinstance(node.slice, ast.Tuple):
            places = "".join(f"[{site.source.segment(item)}]" for item in node.slice.elts)
            text = f"{site.source.segment(node.value)}{places}"
            yield Proposal("A list of lists is looked into step by step.", site.source.replace(node, text))


def _no_length(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    if match["kind"] not in {"int", "float"}:
        return
    for call in site.nodes(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == "len" and len(call.args) == 1:
            given = site.source.segment(call.args[0])
            edits = site.source.replace(call.args[0], f"str({given})")
            yield Proposal("A number has no length; its digits have.", edits)
            yield Proposal(
                "A number has no length; it is the number itself.", site.source.replace(call, given), 0.1
            )


def _hashed(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Freeze a list or a set that is a key or an item of a set."""
    kind = match["kind"] or match["other"]
    frozen = {"list": "tuple", "set": "frozenset"}.get(kind)
    if frozen is None:
        return
    for node in site.nodes(ast.Subscript):
        yield Proposal(
            f"A {kind} can be no key; a {frozen} can.",
            site.source.wrap(node.slice, f"{frozen}(", ")"),
        )
    for call in site.nodes(ast.Call):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if len(call.args) >= 1 and name in {"add", "get", "setdefault"}:
            yield Proposal(f"A {kind} cannot be in there; a {frozen} can.",
                      site.source.wrap(call.args[0], f"{frozen}(", ")"))  # fmt: skip
        elif len(call.args) == 1 and name in {"set", "Counter", "frozenset", "fromkeys"}:
            yield Proposal(f"A {kind} cannot be in there; a {frozen} can.",
                      site.source.wrap(call.args[0], f"map({frozen}, ", ")"))  # fmt: skip
    for compare in site.nodes(ast.Compare):
        if isinstance(compare.ops[0], ast.In | ast.NotIn):
            yield Proposal(f"A {kind} cannot be in there; a {frozen} can.",
                      site.source.wrap(compare.left, f"{frozen}(", ")"))  # fmt: skip


def _assigned_into(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make the tuple a list, or build the text anew, where one of its items is assigned."""
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
        yield Proposal("A text never changes; it is put together anew.", source.replace(statement, text))
    elif match["kind"] == "tuple":
        for made in site.assignments(name)[:1]:
            yield Proposal("A tuple never changes; a list does.", source.wrap(made.value, "list(", ")"))
        if not site.assignments(name) and site.function is not None:
            body = site.function.body
            yield Proposal(
                "A tuple never changes; a list does.", source.insert_before(body[0], f"{name} = list({name})")
            )


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"indices must be integers(?: or slices)?,? (?:or None|not float)|'float' object cannot be interpreted as an integer|can't multiply sequence by non-int of type 'float'",
        fixes=(
            Fix(
                name="whole_index",
                mends="a float where a whole number is needed",
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
        r"'(?P<kind>[\w.]+)' object is not subscriptable",
        explanations=(
            ExplanationText(
                "not_subscriptable",
                what="A `{kind}` has no items that brackets could pick.",
                why="Lists, text, dicts and tables have items; numbers and most other values do not.",
                hint="Is the value what you think it is? What does `type(…)` say?",
                fix="Find where the value is made: there may be one index too many.",
                example="(3)[0]",
            ),
        ),
        fixes=(LISTED,),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>\w+)' object is not reversible",
        fixes=(LISTED,),
    ),
    FailurePattern(
        ("TypeError",),
        r"unhashable type: '(?P<kind>[\w.]+)'|cannot use '(?P<other>[\w.]+)' as a",
        explanations=(
            ExplanationText(
                "unhashable",
                what="A `{kind}{other}` cannot be a key of a dict or an item of a set.",
                why="Keys must never change, and lists, dicts and sets can.",
                hint="Does the key have to be the whole `{kind}{other}`?",
                fix="Use `tuple(…)` of a list, or one value out of it, as the key.",
                example="{[1, 2]: 'x'}",
            ),
        ),
        fixes=(
            Fix(
                name="hashed",
                mends="a list is used as a key or put into a set",
                priority=0.85,
                propose=_hashed,
                example=FixExample(
                    "def tool(a):\n    seen = set()\n    for b in a:\n        seen.add(b)\n    return len(seen)\n",
                    "def tool(a):\n    seen = set()\n    for b in a:\n        seen.add(tuple(b))\n    return len(seen)\n",
                    {"a": [[1]]},
                ),
                lookalike=FixExample("def tool(a):\n    return {a: 1}\n", arguments={"a": {}}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"(?P<kind>list|string|tuple|str|byte|range object) ?ind(?:ices|ex) must be integers?(?: or slices)?,? not '?(?P<other>[\w.]+)'?",
        explanations=(
            ExplanationText(
                "index_kind",
                what="A `{kind}` was asked for an item by a `{other}`.",
                why=(
                    "Items of a `{kind}` are counted: 0, 1, 2 … A division with `/` gives a float even when it comes out even, and "
                    "a name in brackets is for dicts."
                ),
                hint="Where does the value in the brackets come from?",
                fix="Use `//` for whole division; if the data should be a dict, look at how it is made.",
                example="[1, 2, 3][3 / 2]",
            ),
        ),
        fixes=(
            Fix(
                name="text_index",
                mends="a list is looked into by a text",
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
                mends="a text is looked into by a key",
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
                mends="a list of lists is looked into with two numbers at once",
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
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>[\w.]+)' object does not support item (?P<what>assignment|deletion)",
        explanations=(
            ExplanationText(
                "no_assignment",
                what="An item of a `{kind}` cannot be changed.",
                why="Tuples and text never change; what looks like a change makes a new one.",
                hint="Does it have to be a `{kind}`?",
                fix="Use a list, or build a new value: `text[:2] + 'x' + text[3:]`.",
                example="(1, 2)[0] = 3",
            ),
        ),
        fixes=(
            Fix(
                name="assigned_into",
                mends="a place in a text or a tuple is assigned to",
                only=r"'(?:str|tuple)' object does not support item assignment",
                priority=0.85,
                propose=_assigned_into,
                example=FixExample(
                    "def tool(a):\n    a[0] = 'X'\n    return a\n",
                    "def tool(a):\n    a = a[:0] + 'X' + a[1:]\n    return a\n",
                    {"a": "bc"},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    a['b'][0] = 'X'\n    return a\n", arguments={"a": {"b": "c"}}
                ),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"object of type '(?P<kind>[\w.]+)' has no len\(\)",
        explanations=(
            ExplanationText(
                "no_len",
                what="A `{kind}` has no length.",
                why="Only what has items has a length. A generator does not know how many it will give.",
                hint="Is the value what you think it is?",
                fix="Wrap a generator in `list(…)`; for the digits of a number, take `len(str(…))`.",
                example="len(3)",
            ),
        ),
        fixes=(
            Fix(
                name="no_length",
                mends="the length of a number is asked for",
                priority=0.8,
                propose=_no_length,
                example=FixExample(
                    "def tool(a):\n    return len(a)\n", "def tool(a):\n    return len(str(a))\n", {"a": 12}
                ),
                lookalike=FixExample("def tool(a):\n    return len(object())\n", arguments={"a": 1}),
            ),
            LISTED,
        ),
    ),
)
