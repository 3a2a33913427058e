"""Edits of comparisons."""

from __future__ import annotations

import ast
import re

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.healing.advisors.search.type_guesses import NUMBERS, guess_types, may_have_type
from healkit.pysource.precedence import ATOM, BIT_OR

_TOKEN = re.compile(r"not\s+in|is\s+not|==|!=|<=|>=|<|>|\bin\b|\bis\b")
#: Replacements of each comparison, likeliest first: the bound, the direction, then another kind.
_OTHERS = {
    "<": ("<=", ">", ">=", "!=", "=="), "<=": ("<", ">=", ">", "==", "!="), ">": (">=", "<", "<=", "!=", "=="),
    ">=": (">", "<=", "<", "==", "!="), "==": ("!=", "<=", ">=", "in", "<", ">", "is"), "!=": ("==", "<", ">", "not in", "is not"),
    "is": ("==", "is not", "!="), "is not": ("!=", "is", "=="), "in": ("not in", "=="), "not in": ("in", "!="),
}  # fmt: skip
_WEIGHTS = (1.0, 0.95, 0.85, 0.7, 0.7, 0.6, 0.5)
#: An equality test is seldom meant as an ordering.
_WEIGHTS_OF_SAME = (1.0, 0.75, 0.7, 0.7, 0.55, 0.55, 0.5)
_ORDER = ("<", "<=", ">", ">=")


def _token(program: Program, node: ast.Compare, position: int) -> tuple[int, int, str] | None:
    """Return the place and the text of the operator before a comparison's operand."""
    left = node.left if position == 0 else node.comparators[position - 1]
    start, end = program.source.span(left)[1], program.source.span(node.comparators[position])[0]
    between = program.text[start:end]
    if "#" in between or (found := _TOKEN.search(between)) is None:
        return None
    return start + found.start(), start + found.end(), " ".join(found.group().split())


@operator("another comparison", 1.0, ast.Compare, before="x = a < b", after="x = a <= b")
def change_comparison(program: Program, node: ast.Compare) -> Changes:
    for position in range(len(node.ops)):
        found = _token(program, node, position)
        if found is None:
            continue
        start, end, token = found
        weights = _WEIGHTS_OF_SAME if token in ("==", "!=") else _WEIGHTS
        for other, weight in zip(_OTHERS[token], weights, strict=False):
            if other in ("in", "not in") and not _may_contain(program, node.comparators[position]):
                continue
            if other in ("is", "is not") and _is_literal(node, position):
                continue
            if token in ("==", "!=") and other in _ORDER and _is_text(program, node, position):
                continue
            yield Change((Edit(start, end, other),), weight)


def _sides(node: ast.Compare, position: int) -> tuple[ast.expr, ast.expr]:
    return (node.left if position == 0 else node.comparators[position - 1], node.comparators[position])


def _is_literal(node: ast.Compare, position: int) -> bool:
    """Return whether one side is a number or a text, which nobody compares by identity."""
    return any(
        isinstance(side, ast.Constant) and not isinstance(side.value, bool | None)
        for side in _sides(node, position)
    )


def _is_text(program: Program, node: ast.Compare, position: int) -> bool:
    """Return whether one side is a text: an equality test of texts is seldom meant as an ordering."""
    return any(guess_types(program, side) == {"str"} for side in _sides(node, position))


def _may_contain(program: Program, node: ast.expr) -> bool:
    kinds = guess_types(program, node)
    return not (kinds and kinds <= NUMBERS | {"NoneType", "bool"})


@operator(
    "another comparison of a remainder or a length",
    0.5,
    ast.If,
    ast.While,
    ast.IfExp,
    before="if items:\n    x = 1",
    after="if len(items) > 1:\n    x = 1",
)
def change_truth_test(program: Program, node: ast.If | ast.While | ast.IfExp) -> Changes:
    test = node.test
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    value = test.operand if isinstance(test, ast.UnaryOp) and negated else test
    if isinstance(value, ast.Compare | ast.BoolOp | ast.Constant):
        return
    text = program.piece(value, BIT_OR)
    kinds = guess_types(program, value)
    yes, no = ("is", "is not") if negated else ("is not", "is")
    yield from program.put(test, f"{text} {yes} None", 1.0)
    yield from program.put(test, f"{text} {no} None", 0.4)
    if may_have_type(kinds, NUMBERS):
        for other in ("== 0", "!= 0", "> 0", "< 0", ">= 0", "== 1", "> 1"):
            yield from program.put(test, f"{text} {other}", 0.8)
    if not (kinds and kinds <= NUMBERS):
        for other in ("> 1", "== 1", "== 0", "< 2"):
            yield from program.put(test, f"len({program.segment(value)}) {other}", 0.7)


@operator(
    "lengths compared instead of values", 0.35, ast.Compare, before="x = a > b", after="x = len(a) > len(b)"
)
def compare_measures(program: Program, node: ast.Compare) -> Changes:
    """Compare lengths, absolute values or lower-case texts instead of the values."""
    right, sign = node.comparators[0], node.ops[0]
    if len(node.ops) != 1 or isinstance(sign, ast.Is | ast.IsNot | ast.In | ast.NotIn):
        return
    if isinstance(node.left, ast.Constant) or isinstance(right, ast.Constant):
        return
    kinds = guess_types(program, node.left) | guess_types(program, right)
    forms = []
    if not kinds <= NUMBERS or not kinds:
        forms.append(("len({})", 1.0))
    if may_have_type(kinds, NUMBERS) and not isinstance(sign, ast.Eq | ast.NotEq):
        forms.append(("abs({})", 0.8))
    if may_have_type(kinds, frozenset({"str"})):
        forms.append(("{}.lower()", 0.9))
    for form, weight in forms:
        need = ATOM if form[0] == "{" else 0
        yield Change(
            tuple(
                Edit(*program.source.span(side), form.format(program.piece(side, need)))
                for side in (node.left, right)
            ),
            weight,
        )


@operator("a range instead of a single value", 0.5, ast.Compare, before="x = a == 0", after="x = a <= 1")
def compare_with_next(program: Program, node: ast.Compare) -> Changes:
    """Replace equality with a number by a comparison with the next number."""
    right = node.comparators[0]
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return
    if isinstance(right, ast.Constant) and type(right.value) is int:
        text = program.piece(node.left, BIT_OR)
        signs = ("<=", ">=") if isinstance(node.ops[0], ast.Eq) else (">", "<")
        yield from program.put(node, f"{text} {signs[0]} {right.value + 1}", 1.0)
        yield from program.put(node, f"{text} {signs[1]} {right.value - 1}", 0.6)


@operator(
    "a second bound added to a comparison",
    0.5,
    ast.Compare,
    ast.BoolOp,
    most=1.5,
    before="x = a < b",
    after="x = 0 <= a < b",
)
def add_lower_bounds(program: Program, node: ast.Compare | ast.BoolOp) -> Changes:
    """Test both bounds of an index; of a row and a column at once."""
    parts = node.values if isinstance(node, ast.BoolOp) else [node]
    edits = []
    for part in parts:
        if not isinstance(part, ast.Compare) or len(part.ops) != 1 or isinstance(part.left, ast.Constant):
            continue
        left, kinds = part.left, guess_types(program, part.left)
        if isinstance(part.ops[0], ast.Lt | ast.LtE) and not (kinds and not kinds & NUMBERS):
            at = program.source.span(left)[0]
            edits.append(Edit(at, at, "0 <= "))
    if edits and (len(edits) > 1 or isinstance(node, ast.Compare)):
        lengths = "len(" in program.segment(node)
        yield Change(tuple(edits), 1.5 if lengths else 1.0)
    if isinstance(node, ast.Compare) and not edits and isinstance(node.ops[0], ast.GtE):
        right = node.comparators[0]
        if isinstance(right, ast.Constant) and right.value == 0:
            for name in program.names(node)[:10]:
                if program.types(name, node) & {"list", "str", "tuple"}:
                    yield from program.put(
                        node, f"0 <= {program.piece(node.left, BIT_OR)} < len({name})", 0.8
                    )
