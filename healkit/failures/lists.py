"""Lists and loops: indexes, wrong kinds, iteration."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.pysource.nodes import type_of


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


INDEX_TYPES: tuple[FailurePattern, ...] = (
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


# Indexes that a list does not have


def _loop_of(site: Site, name: str) -> list[tuple[ast.expr, ast.Call]]:
    """Return the loops over a `range` that assign that name."""
    return [
        (target, call)
        for target, call in site.loops()
        if isinstance(target, ast.Name)
        and target.id == name
        and isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "range"
        and call.args
    ]


def _shift(index: ast.expr) -> tuple[str, int] | None:
    """Return `i + 2` as `("i", 2)`; None for anything but a name with or without a number added."""
    match index:
        case ast.Name(id=name):
            return name, 0
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=int(step))):
            return name, step
        case ast.BinOp(left=ast.Name(id=name), op=ast.Sub(), right=ast.Constant(value=int(step))):
            return name, -step
    return None


def _ends_early(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """End the loop earlier: `for i in range(len(x))` with `x[i + 1]`."""
    source = site.source
    shifts = [shift for node in site.nodes(ast.Subscript) if (shift := _shift(node.slice)) is not None]
    for name, step in sorted(set(shifts), key=lambda shift: -shift[1])[:2]:
        for _, call in _loop_of(site, name):
            stop = call.args[1] if len(call.args) > 1 else call.args[0]
            for text in _shorter(source.segment(stop), step):
                yield Proposal(f"Stop the loop at `{text}`, where the list ends.", source.replace(stop, text))
            if len(call.args) > 1 and step == 0 and re.fullmatch(r"1", source.segment(call.args[0])):
                start, end = source.span(call.args[0])[0], source.span(call.args[-1])[1]
                text = re.sub(r"\s*\+\s*1$", "", source.segment(stop))
                yield Proposal("The first index of a list is 0.", [Edit(start, end, text)], less=0.05)
        yield from _while_loops(site, name)


def _comes_round(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Go on with the first item after the last: `for i in range(len(x))` with `x[i + 1]`."""
    for node in site.nodes(ast.Subscript):
        shift, owner = _shift(node.slice), site.source.segment(node.value)
        if shift is None or shift[1] < 1:
            continue
        for _, call in _loop_of(site, shift[0]):
            stop = site.source.segment(call.args[1] if len(call.args) > 1 else call.args[0])
            if stop == f"len({owner})":
                text = f"({site.source.segment(node.slice)}) % len({owner})"
                yield Proposal(
                    "After the last item, start again at the first.", site.source.replace(node.slice, text)
                )


def _shorter(stop: str, step: int) -> Iterator[str]:
    if step > 0:
        yield f"{stop} - {step}"
    elif match := re.fullmatch(r"(.+?)\s*\+\s*1", stop):
        yield match[1]
    elif step == 0 and re.fullmatch(r"len\(.+\)", stop):
        return
    elif step == 0:
        yield f"{stop} - 1"


def _while_loops(site: Site, name: str) -> Iterator[Proposal]:
    for loop in site.body_nodes(ast.While):
        for compare in ast.walk(loop.test):
            match compare:
                case ast.Compare(left=ast.Name(id=found), ops=[ast.LtE()], comparators=[stop]) if (
                    found == name
                ):
                    start, end = site.source.span(compare.left)[1], site.source.span(stop)[0]
                    at = site.source.text.index("<=", start, end)
                    yield Proposal("The last index is the length minus 1.", [Edit(at, at + 2, "<")])


def _length_as_place(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Subtract 1 from an index that is the length, or that counts from 1."""
    for node in site.nodes(ast.Subscript):
        text = site.source.segment(node.slice)
        if isinstance(node.slice, ast.Call) and text.startswith("len("):
            yield Proposal("The last index is the length minus 1.", site.source.wrap(node.slice, "", " - 1"))
        elif isinstance(node.slice, ast.Name) and not _loop_of(site, node.slice.id):
            made = site.assignments(node.slice.id)
            if made and site.source.segment(made[0].value).startswith("len("):
                yield Proposal(
                    "The last index is the length minus 1.", site.source.wrap(node.slice, "", " - 1")
                )
            elif node.slice.id in site.values and site.values[node.slice.id] != 0:
                yield Proposal("Indexes start at 0.", site.source.wrap(node.slice, "", " - 1"), less=0.2)


_PLAIN = FixExample("def tool(a):\n    return a[7]\n", arguments={"a": [1]})


INDEXES: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("IndexError",),
        r"(?P<kind>list|tuple|string|bytearray|range object|deque)(?: assignment)? index out of range",
        explanations=(
            ExplanationText(
                "index_end",
                what="The {kind} has no item at that index.",
                why=(
                    "Indexes start at 0, so the last one is the length minus 1. A loop that also reads "
                    "the next item goes one too far, and an empty {kind} has no items at all."
                ),
                hint="How long is the {kind}, and which index does the code use?",
                fix="Stop one earlier, or loop over the items themselves: `for item in items:`.",
                example="[1, 2, 3][3]",
            ),
        ),
    ),
    FailurePattern(
        ("IndexError",),
        r"pop from (?:an )?empty (?P<kind>\w+)",
        explanations=(
            ExplanationText(
                "pop_empty",
                what="The code removed an item from an empty {kind}.",
                why="All items were removed before, or none were ever added.",
                hint="When does the loop that empties it end?",
                fix="Check it first: `while items:`.",
                example="[].pop()",
            ),
        ),
    ),
    FailurePattern(
        ("IndexError",),
        r"index (?P<index>-?\d+) is out of bounds for axis (?P<axis>\d+) with size (?P<size>\d+)",
        explanations=(
            ExplanationText(
                "index_axis",
                what="The array has {size:item} along axis {axis}; index {index} is out of bounds.",
                why="Indexes start at 0 and end at the size minus 1.",
                hint="What does `.shape` return?",
                fix="Stop at the size minus 1.",
                example="import numpy\nnumpy.zeros(3)[3]",
            ),
        ),
    ),
    # All of these, and arrays.
    FailurePattern(
        ("IndexError",),
        r"index out of range|out of bounds",
        fixes=(
            Fix(
                name="ends_early",
                mistake="a loop that continues past the end of the list",
                priority=0.88,
                propose=_ends_early,
                example=FixExample(
                    "def tool(a):\n    found = []\n    for i in range(len(a)):  # neighbours\n        found.append(a[i + 1] - a[i])\n    return found\n",
                    "def tool(a):\n    found = []\n    for i in range(len(a) - 1):  # neighbours\n        found.append(a[i + 1] - a[i])\n    return found\n",
                    {"a": [1, 2]},
                ),
                lookalike=_PLAIN,
            ),
            Fix(
                name="comes_round",
                mistake="an index past the end that should wrap to the first item",
                priority=0.8,
                propose=_comes_round,
                example=FixExample(
                    "def tool(a):\n    found = []\n    for i in range(len(a)):\n        found.append(a[i + 1] - a[i])\n    return found\n",
                    "def tool(a):\n    found = []\n    for i in range(len(a)):\n        found.append(a[(i + 1) % len(a)] - a[i])\n    return found\n",
                    {"a": [1, 2]},
                ),
                lookalike=_PLAIN,
            ),
            Fix(
                name="length_as_place",
                mistake="the length used as the last index",
                priority=0.85,
                propose=_length_as_place,
                example=FixExample(
                    "def tool(a):\n    return a[len(a)]\n",
                    "def tool(a):\n    return a[len(a) - 1]\n",
                    {"a": [1]},
                ),
                lookalike=_PLAIN,
            ),
        ),
    ),
)


# Lists, dicts and text used as another kind of value


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


# Loops and unpacking


def _counted_to(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use `range`, a list of one or the digits: `for i in 10`, `for i in len(x)`, `for digit in number`."""
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
            yield Proposal("Use `range` to count up to a number.", site.source.wrap(node, "range(", ")"))
        if not loops:
            yield Proposal("Put the single number into a list.", site.source.wrap(node, "[", "]"), less=0.05)
        if not isinstance(node, ast.Call):
            yield Proposal(
                "Convert the number to a string to get its digits.",
                site.source.wrap(node, "str(", ")"),
                less=0.1,
            )


def _pairs(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use `items()` or `enumerate`: `for k, v in d` gets the keys only."""
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
            yield Proposal("Use `.items()` for the keys and values of a dict.", site.source.wrap(source, "", ".items()"),
                      less=0.0 if kind else 0.05)  # fmt: skip
        if kind != "dict":
            yield Proposal(
                "Use `enumerate` for the index and the item.", site.source.wrap(source, "enumerate(", ")")
            )


def _changed_while_read(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Loop over a copy of what the loop changes."""
    loops = [node for node in site.body_nodes(ast.For) if node is site.statement] or list(
        site.body_nodes(ast.For)
    )
    for loop in loops:
        yield Proposal(
            "The loop changes what it iterates over, so it iterates over a copy.",
            site.source.wrap(loop.iter, "list(", ")"),
        )


def _pieces(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Split once only, at the first or the last separator, or take up the rest."""
    statement, source = site.statement, site.source
    targets = (
        statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    )
    count = len(targets.elts) if isinstance(targets, ast.Tuple | ast.List) else int(match["count"])
    for call in site.nodes(ast.Call, near=False):
        if (
            not isinstance(call.func, ast.Attribute)
            or call.func.attr not in {"split", "rsplit"}
            or len(call.args) > 1
        ):
            continue
        end = source.span(call)[1] - 1
        text = f", {count - 1}" if call.args else f"None, {count - 1}"
        edits = [Edit(end, end, text)]
        yield Proposal(f"Split the string into at most {count} parts.", edits)
        at = source.span(call.func)[1]
        if call.func.attr == "split" and call.args:
            yield Proposal("Split the string from the right.", [Edit(at - 5, at, "rsplit"), *edits], less=0.1)
    if isinstance(targets, ast.Tuple) and targets.elts and isinstance(targets.elts[-1], ast.Name):
        last = targets.elts[-1]
        yield Proposal(
            "Collect the remaining values in the last name.", source.replace(last, f"*{last.id}"), less=0.2
        )


_PAIRS = Fix(
    name="pairs",
    mistake="a loop that unpacks two values where there is one",
    only=r"cannot unpack non-iterable|\(expected 2",
    priority=0.85,
    propose=_pairs,
    example=FixExample(
        "def tool(a):\n    return [k for k, v in a if v]\n",
        "def tool(a):\n    return [k for k, v in a.items() if v]\n",
        {"a": {"bcd": 1}},
    ),
    lookalike=FixExample("def tool(a):\n    b, c = a\n    return b\n", arguments={"a": [1, 2, 3]}),
)

ITERATION: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"(?:'(?P<kind>[\w.]+)' object is not iterable|argument of type '(?P<other>[\w.]+)' is not (?:iterable|a container))",
        explanations=(
            ExplanationText(
                "not_iterable",
                what="A `{kind}{other}` cannot be iterated over.",
                why="`for`, `in`, `list`, `sum` and unpacking need an iterable. A number is not iterable.",
                hint="Should the number be in `range(…)`, or the value in a list?",
                fix="Use `range(…)` to count, or put the value into a list.",
                example="for i in 3:\n    pass",
            ),
        ),
        fixes=(
            Fix(
                name="counted_to",
                mistake="a number that is iterated over",
                only=r"'(?:int|float)' object is not iterable",
                priority=0.88,
                propose=_counted_to,
                example=FixExample(
                    "def tool(a):\n    return [i for i in len(a)]\n",
                    "def tool(a):\n    return [i for i in range(len(a))]\n",
                    {"a": "bc"},
                ),
                lookalike=FixExample("def tool(a):\n    b, c = a\n    return b\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"cannot unpack non-iterable",
        fixes=(_PAIRS,),
    ),
    FailurePattern(
        ("ValueError",),
        r"too many values to unpack \(expected (?P<count>\d+)",
        explanations=(
            ExplanationText(
                "unpack_many",
                what="The left side of `=` has {count:name}, but the right side has more values.",
                why="Unpacking needs exactly as many values as names.",
                hint="How many values are on the right? Print them.",
                fix="Split only once (`.split(…, 1)`), or collect the rest with `*` before the last name.",
                example="a, b = 'x=y=z'.split('=')",
            ),
        ),
        fixes=(
            _PAIRS,
            Fix(
                name="pieces",
                mistake="a string that splits into more parts than there are names",
                priority=0.9,
                propose=_pieces,
                example=FixExample(
                    'def tool(a):\n    name, value = a.split("=")\n    return {name: value}\n',
                    'def tool(a):\n    name, value = a.split("=", 1)\n    return {name: value}\n',
                    {"a": "b=c=d"},
                ),
                lookalike=FixExample(
                    'def tool(a):\n    name, value = a.split("=")\n    return {name: value}\n',
                    arguments={"a": "b"},
                ),
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"not enough values to unpack \(expected (?:at least )?(?P<count>\d+), got (?P<got>\d+)\)",
        explanations=(
            ExplanationText(
                "unpack_few",
                what="The code expects {count:value} but got {got}.",
                why=(
                    "Unpacking needs exactly as many values as names. A string without the separator stays "
                    "in one piece."
                ),
                hint="Which value is it? Print it before you unpack it.",
                fix="Skip such values, or use `.partition(…)`, which always returns three parts.",
                example="a, b = 'x'.split('=')",
            ),
        ),
        fixes=(_PAIRS,),
    ),
    FailurePattern(
        ("RuntimeError",),
        r"(?P<kind>dictionary|Set|OrderedDict|deque) (?:changed size|mutated|changed) during iteration|dictionary keys changed",
        explanations=(
            ExplanationText(
                "changed_size",
                what="A collection was changed during iteration.",
                why=(
                    "The loop would lose its position, so Python stops it. Lists raise no error: the loop "
                    "silently skips items."
                ),
                hint="Which line in the loop adds or removes something?",
                fix="Loop over a copy made with `list(…)`.",
                example="d = {1: 2}\nfor k in d:\n    d[k + 1] = 0",
            ),
        ),
        fixes=(
            Fix(
                name="changed_while_read",
                mistake="a dict or a set that changes during iteration",
                priority=0.95,
                propose=_changed_while_read,
                example=FixExample(
                    "def tool(a):\n    for k in a:\n        if not a[k]:\n            del a[k]\n    return a\n",
                    "def tool(a):\n    for k in list(a):\n        if not a[k]:\n            del a[k]\n    return a\n",
                    {"a": {"b": 0, "c": 1}},
                ),
                lookalike=FixExample("def tool(a):\n    raise RuntimeError('changed')\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"(?:(?P<text>.+) is not in (?:list|tuple|deque)|list\.(?:remove|index)\(x\): x not in list|substring not found|tuple\.index)",
        explanations=(
            ExplanationText(
                "not_in_list",
                what="The value was not found.",
                why="`index` and `remove` need a value that exists, with the same type and spelling.",
                hint="Which values exist at this line?",
                fix="Check first, with `in`. For strings, `find` returns -1 instead of an error.",
                example="[1].remove(2)",
            ),
        ),
    ),
    FailurePattern(
        ("StopIteration",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "stop_iteration",
                what="`next` was called on an exhausted iterator.",
                why=(
                    "The generator or iterator has already returned all its values; each can be iterated "
                    "over only once."
                ),
                hint="Was it used up earlier, by `list` or a loop?",
                fix="Give a default: `next(items, None)`, or create the iterator again.",
                example="next(iter([]))",
            ),
        ),
    ),
)
