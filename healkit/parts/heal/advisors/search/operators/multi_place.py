"""Edits of several places that are one mistake."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import free_names
from healkit.parts.heal.advisors.search.operators.conditions import comparison_token
from healkit.parts.heal.advisors.search.operators.definition import Changes, operator
from healkit.parts.heal.advisors.search.program import Change, Program

_STRICTNESS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


@operator(
    "all bounds of a condition changed",
    0.7,
    ast.BoolOp,
    ast.Compare,
    before="x = 0 < a <= 8",
    after="x = 0 <= a < 8",
)
def change_all_bounds(program: Program, node: ast.BoolOp | ast.Compare) -> Changes:
    """Change the strictness of all bounds of a condition."""
    if isinstance(program.parent(node), ast.BoolOp):
        return
    edits: list[Edit] = []
    for part in node.values if isinstance(node, ast.BoolOp) else [node]:
        if not isinstance(part, ast.Compare):
            continue
        edits += [edit for _, edit in _strictness_edits(program, part)]
    if len(edits) > 1:
        yield Change(tuple(edits))


def _strictness_edits(program: Program, node: ast.Compare) -> Iterator[tuple[str, Edit]]:
    """Yield each sign of order in a comparison, with the edit that makes it strict, or no longer strict."""
    for position in range(len(node.ops)):
        start, end, sign = comparison_token(program, node, position) or (0, 0, "")
        if sign in _STRICTNESS:
            yield sign, Edit(start, end, _STRICTNESS[sign])


@operator(
    "a constant changed everywhere",
    0.42,
    ast.Constant,
    before="x = a['n']\ny = b['n']\nz = c['m']",
    after="x = a['m']\ny = b['m']\nz = c['m']",
)
def change_constant_everywhere(program: Program, node: ast.Constant) -> Changes:
    """Replace a key or number at all its places."""
    if not isinstance(node.value, str | int) or isinstance(node.value, bool) or not node.value:
        return
    if isinstance(program.parent(node), ast.FormattedValue | ast.JoinedStr):
        return
    places = [
        constant
        for constant in program.nodes
        if isinstance(constant, ast.Constant)
        and constant.value == node.value
        and type(constant.value) is type(node.value)
        and not isinstance(program.parent(constant), ast.FormattedValue | ast.JoinedStr)
    ]
    if len(places) < 2 or places[0] is not node:
        return
    if isinstance(node.value, int):
        texts = [str(node.value + 1), str(node.value - 1)]
    else:
        strings = [o.value for o in program.nodes if isinstance(o, ast.Constant) and isinstance(o.value, str)]
        texts = [
            text
            for text in dict.fromkeys([*program.hints.constants, *map(repr, strings)])
            if text[:1] in "'\""
        ]
    for text in texts[:24]:
        if text != repr(node.value):
            yield Change(
                tuple(Edit(*program.source.span(place), program.quoted(text)) for place in places),
                1.0 if isinstance(node.value, int) else 0.8,
            )


@operator(
    "an `f` added before a string",
    0.9,
    ast.Constant,
    before="def f(name):\n    return 'hello {name}'",
    after="def f(name):\n    return f'hello {name}'",
)
def add_f_prefix(program: Program, node: ast.Constant) -> Changes:
    """Make a text with a variable's name in braces an f-string."""
    if not isinstance(node.value, str) or isinstance(
        program.parent(node), ast.FormattedValue | ast.JoinedStr | ast.Attribute
    ):
        return
    start, _ = program.source.span(node)
    needed = _filled_in(node.value)
    if needed and needed <= {*program.names(node), *program.defined} and program.text[start] in "'\"":
        yield Change((Edit(start, start, "f"),))


def _filled_in(text: str) -> frozenset[str]:
    """Return the names that a text would read as an f-string; none if it cannot be one."""
    try:
        tree = ast.parse(f"f{text!r}", mode="eval")
    except (SyntaxError, ValueError):
        return frozenset()
    return free_names(tree)


@operator(
    "the same comparison changed everywhere",
    0.35,
    ast.FunctionDef,
    ast.Module,
    before="def f(a, b):\n    if a <= b:\n        a += 1\n    if b <= 9:\n        return a",
    after="def f(a, b):\n    if a < b:\n        a += 1\n    if b < 9:\n        return a",
)
def change_all_comparisons(program: Program, node: ast.FunctionDef | ast.Module) -> Changes:
    """Change the strictness of all comparisons of one kind."""
    places: dict[str, list[Edit]] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Compare) and part in program.parents:
            for sign, edit in _strictness_edits(program, part):
                places.setdefault(sign, []).append(edit)
    for edits in places.values():
        if 2 <= len(edits) <= 4:
            yield Change(tuple(edits))


@operator(
    "a key converted to the type of the keys",
    0.4,
    ast.Compare,
    before="def f(d, k):\n    if k in d:\n        return d[k]",
    after="def f(d, k):\n    if str(k) in d:\n        return d[str(k)]",
)
def convert_key(program: Program, node: ast.Compare) -> Changes:
    """Convert a key to a text or a number at each place where it is looked up, as for JSON's keys."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return
    key, owner = node.left, node.comparators[0]
    if isinstance(key, ast.Constant):
        return
    texts, around = (program.segment(owner), program.segment(key)), program.function(node) or program.tree
    places: list[ast.expr] = [key]
    for part in ast.walk(around):
        if not isinstance(part, ast.Subscript) or part not in program.parents:
            continue
        if (program.segment(part.value), program.segment(part.slice)) == texts:
            places.append(part.slice)
    if len(places) > 1:
        for form in ("str", "int"):
            yield Change(tuple(Edit(*program.source.span(place), f"{form}({texts[1]})") for place in places))


@operator(
    "parentheses around a negative base",
    0.8,
    ast.UnaryOp,
    before="x = -1 ** n",
    after="x = (-1) ** n",
)
def parenthesize_sign(program: Program, node: ast.UnaryOp) -> Changes:
    power = node.operand
    if isinstance(node.op, ast.USub) and isinstance(power, ast.BinOp) and isinstance(power.op, ast.Pow):
        start, end = program.source.span(node)[0], program.source.span(power.left)[1]
        yield Change((Edit(start, start, "("), Edit(end, end, ")")))
