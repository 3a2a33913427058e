"""Edits of the parts of a text and their formats."""

from __future__ import annotations

import ast

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.healing.advisors.search.type_guesses import NUMBERS, guess_types, may_have_type
from healkit.pysource.precedence import ATOM

_TEXTS = frozenset({"str"})
#: Format specifications for whole numbers, and for others.
_WHOLE, _DECIMAL = (":02d", ":02", ":03d", ":,", ":04d"), (":.2f", ":.1f", ":.0f", ":,.2f", ":.3f", ":g")


@operator(
    "a format specifier added",
    0.45,
    ast.JoinedStr,
    before="x = f'{a}:{b}'",
    after="x = f'{a}:{b:02d}'",
)
def add_format(program: Program, node: ast.JoinedStr) -> Changes:
    start, end = program.source.span(node)
    for part in node.values:
        if not isinstance(part, ast.FormattedValue) or part.format_spec is not None or part.conversion != -1:
            continue
        if part.value not in program.parents:  # its place in the text is unknown
            continue
        stop = program.source.span(part.value)[1]
        if not start < stop < end or program.text[stop : stop + 1] != "}":
            continue
        kinds = guess_types(program, part.value)
        for spec in _WHOLE if may_have_type(kinds, frozenset({"int"})) else ():
            yield Change((Edit(stop, stop, spec),), 1.0 if kinds else 0.7)
        for spec in _DECIMAL if may_have_type(kinds, NUMBERS) else ():
            yield Change((Edit(stop, stop, spec),), 0.9 if kinds else 0.6)
        if may_have_type(kinds, _TEXTS):
            yield Change((Edit(stop, stop, "!r"),), 0.5)


@operator(
    "characters stripped from a string",
    0.35,
    ast.Name,
    ast.Call,
    ast.Subscript,
    ast.Attribute,
    ast.JoinedStr,
    before="def f(s):\n    t = s + '_'\n    return s",
    after="def f(s):\n    t = s + '_'\n    return s.strip('_')",
)
def strip_text(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    if not program.is_value(node) or field == "func" or not may_have_type(guess_types(program, node), _TEXTS):
        return
    if not isinstance(parent, ast.Return | ast.Assign | ast.Call | ast.comprehension | ast.For):
        return
    signs: dict[str, None] = {}
    for other in program.nodes:
        if isinstance(other, ast.Constant) and isinstance(other.value, str) and 0 < len(other.value) <= 2:
            signs.setdefault(repr(other.value))
    text = program.piece(node, ATOM)
    weight = 1.0 if isinstance(parent, ast.Return) else 0.6
    for sign in list(signs)[:8]:
        for how in ("strip", "lstrip", "rstrip"):
            yield from program.put(node, f"{text}.{how}({sign})", weight)


@operator(
    "each part converted to another type",
    0.4,
    ast.Call,
    ast.Name,
    most=1.3,
    before="def f(s):\n    return s.split('.')",
    after="def f(s):\n    return [int(part) for part in s.split('.')]",
)
def convert_parts(program: Program, node: ast.expr) -> Changes:
    """Convert or filter the parts of a split text: numbers, surrounding spaces, empty parts."""
    parent, field = program.parents[node]
    if not program.is_value(node) or field == "func" or isinstance(parent, ast.Attribute | ast.Expr):
        return
    splits = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"
    if not splits and not (isinstance(node, ast.Name) and guess_types(program, node) == {"list"}):
        return
    text, weight = program.segment(node), 1.0 if splits else 0.35
    for made, condition, share in (
        ("int(part)", "", 1.0), ("part.strip()", "", 1.0), ("part.strip()", " if part.strip()", 1.3),
        ("part", " if part", 1.0), ("float(part)", "", 1.0), ("part.lower()", "", 1.0), ("int(part)", " if part", 1.0),
    ):  # fmt: skip
        yield from program.put(node, f"[{made} for part in {text}{condition}]", weight * share)


@operator(
    "a string split at the first separator only",
    0.5,
    ast.Assign,
    before="def f(s):\n    a, b = s.split('=')",
    after="def f(s):\n    a, b = s.split('=', 1)",
)
def split_once_only(program: Program, node: ast.Assign) -> Changes:
    """Split a text into two names at one separator only, or even if there is none."""
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(value, ast.Call):
        return
    func = value.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("split", "rsplit", "partition"):
        return
    names = [program.segment(one) for one in target.elts]
    own, given = program.segment(func.value), ", ".join(map(program.segment, value.args[:1])) or "' '"
    start, end = program.source.span(node)
    if start != program.source.span(target.elts[0])[0]:  # parentheses around the names
        return
    for text in (
        f"{', '.join(names)} = {own}.split({given}, 1)",
        f"{', '.join(names)} = {own}.rsplit({given}, 1)",
        f"{names[0]}, _, {names[1]} = {own}.partition({given})",
        f"{names[0]}, _, {names[1]} = {own}.rpartition({given})",
        f"{names[1]}, {names[0]} = {own}.split({given})",
    ):
        yield Change((Edit(start, end, text),))
