"""Indexes that a list does not have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site


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


PATTERNS: tuple[FailurePattern, ...] = (
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
