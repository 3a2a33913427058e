"""Lists, dicts and text used as another kind of value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site


def _no_length(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    if match["kind"] not in {"int", "float"}:
        return
    for call in site.nodes(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == "len" and len(call.args) == 1:
            given = site.source.segment(call.args[0])
            edits = site.source.replace(call.args[0], f"str({given})")
            yield Proposal("A number has no length; count its digits instead.", edits)
            yield Proposal(
                "A number has no length; use the number itself.", site.source.replace(call, given), 0.1
            )


def _hashed(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Freeze a list or a set that is a key or an item of a set."""
    kind = match["kind"] or match["other"]
    frozen = {"list": "tuple", "set": "frozenset"}.get(kind)
    if frozen is None:
        return
    for node in site.nodes(ast.Subscript):
        yield Proposal(
            f"A {kind} cannot be a key; a {frozen} can.",
            site.source.wrap(node.slice, f"{frozen}(", ")"),
        )
    for call in site.nodes(ast.Call):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if len(call.args) >= 1 and name in {"add", "get", "setdefault"}:
            yield Proposal(f"A {kind} cannot be an item here; a {frozen} can.",
                      site.source.wrap(call.args[0], f"{frozen}(", ")"))  # fmt: skip
        elif len(call.args) == 1 and name in {"set", "Counter", "frozenset", "fromkeys"}:
            yield Proposal(f"A {kind} cannot be an item here; a {frozen} can.",
                      site.source.wrap(call.args[0], f"map({frozen}, ", ")"))  # fmt: skip
    for compare in site.nodes(ast.Compare):
        if isinstance(compare.ops[0], ast.In | ast.NotIn):
            yield Proposal(f"A {kind} cannot be an item here; a {frozen} can.",
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
        yield Proposal("Strings are immutable; build a new one.", source.replace(statement, text))
    elif match["kind"] == "tuple":
        for made in site.assignments(name)[:1]:
            yield Proposal("Tuples are immutable; use a list.", source.wrap(made.value, "list(", ")"))
        if not site.assignments(name) and site.function is not None:
            body = site.function.body
            yield Proposal(
                "Tuples are immutable; use a list.", source.insert_before(body[0], f"{name} = list({name})")
            )


_LAZY = {"map", "filter", "zip", "generator", "dict_keys", "dict_values", "dict_items", "set", "reversed", "enumerate",
         "range_iterator", "list_reverseiterator", "frozenset", "dict_keyiterator"}  # fmt: skip


def _listed(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make a list of what can be gone through only once, or has no order."""
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
            yield Proposal(f"A {kind} does not support indexing; a list does.", edits)
            if function == "sorted":
                yield Proposal(
                    f"A {kind} does not support indexing; a list does.",
                    site.source.wrap(made, "list(", ")"),
                    0.1,
                )


_OBJECT = FixExample("def tool(a):\n    return object()[a]\n", arguments={"a": 1})


_LISTED = Fix(
    name="listed",
    mistake="a generator, a set or a view that is used like a list",
    priority=0.88,
    propose=_listed,
    example=FixExample(
        "def tool(a):\n    found = map(str, a)\n    return len(found)\n",
        "def tool(a):\n    found = list(map(str, a))\n    return len(found)\n",
        {"a": [1]},
    ),
    lookalike=_OBJECT,
)

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>[\w.]+)' object is not subscriptable",
        explanations=(
            ExplanationText(
                "not_subscriptable",
                what="A `{kind}` does not support indexing with square brackets.",
                why="Lists, strings, tuples and dicts support it; numbers and most other values do not.",
                hint="Is the value what you expect? What does `type(…)` say?",
                fix="Find where the value comes from: there may be one index too many.",
                example="(3)[0]",
            ),
        ),
        fixes=(_LISTED,),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>\w+)' object is not reversible",
        fixes=(_LISTED,),
    ),
    FailurePattern(
        ("TypeError",),
        r"unhashable type: '(?P<kind>[\w.]+)'|cannot use '(?P<other>[\w.]+)' as a",
        explanations=(
            ExplanationText(
                "unhashable",
                what="A `{kind}{other}` cannot be a key of a dict or an item of a set.",
                why="Keys must be hashable. Lists, dicts and sets can change, so they are not.",
                hint="Does the key have to be the whole `{kind}{other}`?",
                fix="Use `tuple(…)` of a list, or a single value from it, as the key.",
                example="{[1, 2]: 'x'}",
            ),
        ),
        fixes=(
            Fix(
                name="hashed",
                mistake="a list that is used as a key or put into a set",
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
        r"'(?P<kind>[\w.]+)' object does not support item (?P<what>assignment|deletion)",
        explanations=(
            ExplanationText(
                "no_assignment",
                what="The items of a `{kind}` cannot be changed.",
                why="Strings and tuples are immutable: every change creates a new value.",
                hint="Does it have to be a `{kind}`?",
                fix="Use a list, or build a new value from parts of the old one.",
                example="(1, 2)[0] = 3",
            ),
        ),
        fixes=(
            Fix(
                name="assigned_into",
                mistake="an assignment to an item of a string or a tuple",
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
                why=(
                    "Only containers such as lists, strings and dicts have a length. A generator does not "
                    "know how many values it will yield."
                ),
                hint="Is the value what you expect?",
                fix="Convert a generator with `list(…)`; for the digits of a number, use `len(str(…))`.",
                example="len(3)",
            ),
        ),
        fixes=(
            Fix(
                name="no_length",
                mistake="the length of a number",
                priority=0.8,
                propose=_no_length,
                example=FixExample(
                    "def tool(a):\n    return len(a)\n", "def tool(a):\n    return len(str(a))\n", {"a": 12}
                ),
                lookalike=FixExample("def tool(a):\n    return len(object())\n", arguments={"a": 1}),
            ),
            _LISTED,
        ),
    ),
)
