"""Places that a list does not have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.healing.rules.records import Example, Fix, Rule
from healkit.healing.rules.sites import Site


def _loop_of(site: Site, name: str) -> list[tuple[ast.expr, ast.Call]]:
    """The loops over a `range` that give that name its value."""
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
    """`i + 2` as ("i", 2); None for what is no name, with or without a number added."""
    match index:
        case ast.Name(id=name):
            return name, 0
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=int(step))):
            return name, step
        case ast.BinOp(left=ast.Name(id=name), op=ast.Sub(), right=ast.Constant(value=int(step))):
            return name, -step
    return None


def _ends_early(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`for i in range(len(x))` with `x[i + 1]`: the loop ends as much earlier."""
    source = site.source
    shifts = [shift for node in site.nodes(ast.Subscript) if (shift := _shift(node.slice)) is not None]
    for name, step in sorted(set(shifts), key=lambda shift: -shift[1])[:2]:
        for _, call in _loop_of(site, name):
            stop = call.args[1] if len(call.args) > 1 else call.args[0]
            for text in _shorter(source.segment(stop), step):
                yield Fix(
                    f"The loop ends where `{text}` says, for the list ends there.", source.replace(stop, text)
                )
            if len(call.args) > 1 and step == 0 and re.fullmatch(r"1", source.segment(call.args[0])):
                start, end = source.span(call.args[0])[0], source.span(call.args[-1])[1]
                text = re.sub(r"\s*\+\s*1$", "", source.segment(stop))
                yield Fix("The first place of a list is 0.", [Edit(start, end, text)], less=0.05)
        yield from _while_loops(site, name)


def _comes_round(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`for i in range(len(x))` with `x[i + 1]`: after the last comes the first."""
    for node in site.nodes(ast.Subscript):
        shift, owner = _shift(node.slice), site.source.segment(node.value)
        if shift is None or shift[1] < 1:
            continue
        for _, call in _loop_of(site, shift[0]):
            stop = site.source.segment(call.args[1] if len(call.args) > 1 else call.args[0])
            if stop == f"len({owner})":
                text = f"({site.source.segment(node.slice)}) % len({owner})"
                yield Fix(
                    "After the last place comes the first again.", site.source.replace(node.slice, text)
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


def _while_loops(site: Site, name: str) -> Iterator[Fix]:
    for loop in site.body_nodes(ast.While):
        for compare in ast.walk(loop.test):
            match compare:
                case ast.Compare(left=ast.Name(id=found), ops=[ast.LtE()], comparators=[stop]) if (
                    found == name
                ):
                    start, end = site.source.span(compare.left)[1], site.source.span(stop)[0]
                    at = site.source.text.index("<=", start, end)
                    yield Fix("The last place is one below the length.", [Edit(at, at + 2, "<")])


def _length_as_place(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`x[len(x)]`, or a place counted from 1."""
    for node in site.nodes(ast.Subscript):
        text = site.source.segment(node.slice)
        if isinstance(node.slice, ast.Call) and text.startswith("len("):
            yield Fix("The last place is one below the length.", site.source.wrap(node.slice, "", " - 1"))
        elif isinstance(node.slice, ast.Name) and not _loop_of(site, node.slice.id):
            made = site.assignments(node.slice.id)
            if made and site.source.segment(made[0].value).startswith("len("):
                yield Fix("The last place is one below the length.", site.source.wrap(node.slice, "", " - 1"))
            elif node.slice.id in site.values and site.values[node.slice.id] != 0:
                yield Fix("Places count from 0.", site.source.wrap(node.slice, "", " - 1"), less=0.2)


def _unused(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """The line that fails gives a value to a name that nobody reads: it is left out."""
    statement = site.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or any(isinstance(n, ast.Call) for n in ast.walk(statement.value)):
        return
    reads = [
        n
        for n in ast.walk(site.scope)
        if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)
    ]
    if not reads and site.function is not None:
        yield Fix(f"Nobody reads `{target.id}`, so the line is left out.", site.source.delete(statement))


_OUT = r"index out of range|out of bounds"
_PLAIN = Example("def tool(a):\n    return a[7]\n", arguments={"a": [1]})

RULES: tuple[Rule, ...] = (
    Rule(
        name="ends_early",
        mends="a loop over places goes on where there are no more",
        enames=("IndexError",),
        message=_OUT,
        priority=0.88,
        propose=_ends_early,
        example=Example(
            "def tool(a):\n    found = []\n    for i in range(len(a)):  # neighbours\n        found.append(a[i + 1] - a[i])\n    return found\n",
            "def tool(a):\n    found = []\n    for i in range(len(a) - 1):  # neighbours\n        found.append(a[i + 1] - a[i])\n    return found\n",
            {"a": [1, 2]},
        ),
        lookalike=_PLAIN,
    ),
    Rule(
        name="comes_round",
        mends="after the last place of a list the first is meant",
        enames=("IndexError",),
        message=_OUT,
        priority=0.8,
        propose=_comes_round,
        example=Example(
            "def tool(a):\n    found = []\n    for i in range(len(a)):\n        found.append(a[i + 1] - a[i])\n    return found\n",
            "def tool(a):\n    found = []\n    for i in range(len(a)):\n        found.append(a[(i + 1) % len(a)] - a[i])\n    return found\n",
            {"a": [1, 2]},
        ),
        lookalike=_PLAIN,
    ),
    Rule(
        name="length_as_place",
        mends="the length is taken for the last place",
        enames=("IndexError",),
        message=_OUT,
        priority=0.85,
        propose=_length_as_place,
        example=Example(
            "def tool(a):\n    return a[len(a)]\n", "def tool(a):\n    return a[len(a) - 1]\n", {"a": [1]}
        ),
        lookalike=_PLAIN,
    ),
    Rule(
        name="unused_value",
        mends="the line that fails gives a value that nobody reads",
        enames=(
            "ZeroDivisionError",
            "IndexError",
            "KeyError",
            "TypeError",
            "ValueError",
            "NameError",
            "AttributeError",
        ),
        priority=0.7,
        propose=_unused,
        example=Example(
            "def tool(a):\n    b = 0\n    for n in a:\n        ratio = n / b\n        b += n\n    return b\n",
            "def tool(a):\n    b = 0\n    for n in a:\n        b += n\n    return b\n",
            {"a": [1]},
        ),
        lookalike=Example("def tool(a):\n    b = 1 / a\n    return b\n", arguments={"a": 0}),
    ),
)
