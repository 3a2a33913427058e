"""Edits of conditions, comparisons and their order."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import Jump, bound_names, free_names
from healkit.parts.explain.source import AND, ATOM, BIT_OR, NOT
from healkit.parts.heal.advisors.search.operators.definition import Changes, operator
from healkit.parts.heal.advisors.search.program import (
    NUMBERS,
    Change,
    Program,
    conditions,
    guess_types,
    may_have_type,
)

#: Weight of an added condition about other names. (85 such patches passed every check. Of the 41 about a name in the
#: same line, 14 were right; the other 44 were wrong.)
_BESIDE = 0.6
_NO_NAMES = {"and", "or", "not", "in", "is", "len", "None"}


@operator("`and` and `or` swapped", 0.9, ast.BoolOp, before="x = a and b", after="x = a or b")
def swap_and_or(program: Program, node: ast.BoolOp) -> Changes:
    word, opposite, need = ("and", "or", AND) if isinstance(node.op, ast.And) else ("or", "and", NOT)
    if len(node.values) == 2:
        yield from program.put(
            node, f" {opposite} ".join(program.piece(value, need) for value in node.values)
        )
        return
    for left_operand, right in zip(node.values, node.values[1:], strict=False):
        start, end = program.source.span(left_operand)[1], program.source.span(right)[0]
        if match := re.search(rf"\b{word}\b", program.text[start:end]):
            yield Change((Edit(start + match.start(), start + match.end(), opposite),))


@operator(
    "a test for an existing key",
    0.6,
    ast.Call,
    ast.Subscript,
    before="def f(d, k):\n    if d.get(k):\n        return 1",
    after="def f(d, k):\n    if k in d:\n        return 1",
)
def check_key(program: Program, node: ast.Call | ast.Subscript) -> Changes:
    """Test whether a key is present instead of its value, which may be 0 or empty."""
    if isinstance(node, ast.Call):
        if not (isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args):
            return
        owner, key = node.func.value, node.args[0]
    else:
        owner, key = node.value, node.slice
    parent, field = program.parents[node]
    if isinstance(key, ast.Slice) or not (
        field in ("test", "ifs") or isinstance(parent, ast.BoolOp | ast.UnaryOp)
    ):
        return
    negated = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    if isinstance(parent, ast.UnaryOp) and not negated:
        return
    text = f"{program.piece(key, BIT_OR)} {'not in' if negated else 'in'} {program.piece(owner, BIT_OR)}"
    yield from program.put(parent if isinstance(parent, ast.UnaryOp) else node, text)


@operator(
    "another loop condition",
    0.6,
    ast.While,
    before="def f(items):\n    while True:\n        items.pop()",
    after="def f(items):\n    while items:\n        items.pop()",
)
def change_loop_condition(program: Program, node: ast.While) -> Changes:
    if not isinstance(node.test, ast.Constant):
        return
    for name in program.names(node)[:16]:
        yield from program.put(node.test, name)
    for text in conditions(program, node):
        yield from program.put(node.test, text, 0.7)


@operator(
    "a condition added",
    0.33,
    ast.If,
    ast.While,
    ast.IfExp,
    ast.comprehension,
    before="def f(a, b):\n    if a == 0:\n        return b\n    return f(a - 1, b)",
    after="def f(a, b):\n    if a == 0 or not b:\n        return b\n    return f(a - 1, b)",
)
def add_condition(program: Program, node: ast.If | ast.While | ast.IfExp | ast.comprehension) -> Changes:
    tests = node.ifs if isinstance(node, ast.comprehension) else [node.test]
    for test in tests:
        if isinstance(test, ast.Constant):
            continue
        # An added condition is mostly about names in the condition, or about parameters.
        about = (
            _names(program.segment(test)) | bound_names(program.function(test) or test, "parameter").keys()
        )
        test_text = program.segment(test)
        for text in conditions(program, node if not isinstance(node, ast.comprehension) else test):
            if text not in test_text:
                weight = 1.0 if _names(text) & about else _BESIDE
                for word, need in (("or", AND), ("and", NOT)):
                    yield from program.put(test, f"{program.piece(test, need)} {word} {text}", weight)
                    # Order matters: the first operand may short-circuit.
                    yield from program.put(test, f"{text} {word} {program.piece(test, need)}", 0.8 * weight)


@operator(
    "a filter added or removed",
    0.45,
    ast.ListComp,
    ast.SetComp,
    ast.GeneratorExp,
    ast.DictComp,
    before="x = [a for a in b if a]",
    after="x = [a for a in b]",
)
def change_filter(
    program: Program, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
) -> Changes:
    last = node.generators[-1]
    if last.ifs:
        start = program.source.span(last.iter)[1]
        end = program.source.span(last.ifs[-1])[1]
        if_start = program.text.find("if", start, end)
        if if_start >= 0 and program.text[start:if_start].strip() in ("", ")") and len(last.ifs) == 1:
            gap = program.text[start:if_start]
            yield Change((Edit(start, end, gap.rstrip()),), 1.0)
        return
    end = program.source.span(last.iter)[1]
    for text in conditions(program, node.key if isinstance(node, ast.DictComp) else node.elt):
        yield Change((Edit(end, end, f" if {text}"),), 0.9)


def _names(text: str) -> set[str]:
    """Return the words in a condition, its names among them."""
    return set(re.findall(r"[A-Za-z_]\w*", text)) - _NO_NAMES


@operator(
    "a condition returned instead of a constant",
    0.45,
    ast.Return,
    before="def f(n):\n    while n > 1:\n        n -= 2\n    return True",
    after="def f(n):\n    while n > 1:\n        n -= 2\n    return n == 0",
)
def return_condition(program: Program, node: ast.Return) -> Changes:
    """Return a condition instead of a fixed truth value, most likely about variables computed before."""
    if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, bool):
        return
    parameters = bound_names(program.function(node) or program.tree, "parameter").keys()
    for text in conditions(program, node):
        found_out = not free_names(ast.parse(text, mode="eval")) <= parameters
        yield from program.put(node.value, text, 1.0 if found_out else 0.7)


# Comparisons.


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


def comparison_token(program: Program, node: ast.Compare, position: int) -> tuple[int, int, str] | None:
    """Return the place and the text of the operator before a comparison's operand."""
    left_operand = node.left if position == 0 else node.comparators[position - 1]
    start, end = program.source.span(left_operand)[1], program.source.span(node.comparators[position])[0]
    between = program.text[start:end]
    if "#" in between or (match := _TOKEN.search(between)) is None:
        return None
    return start + match.start(), start + match.end(), " ".join(match.group().split())


@operator("another comparison", 1.0, ast.Compare, before="x = a < b", after="x = a <= b")
def change_comparison(program: Program, node: ast.Compare) -> Changes:
    for position in range(len(node.ops)):
        token_span = comparison_token(program, node, position)
        if token_span is None:
            continue
        start, end, token = token_span
        weights = _WEIGHTS_OF_SAME if token in ("==", "!=") else _WEIGHTS
        for replacement, weight in zip(_OTHERS[token], weights, strict=False):
            if replacement in ("in", "not in") and not _may_contain(program, node.comparators[position]):
                continue
            if replacement in ("is", "is not") and _is_literal(node, position):
                continue
            if token in ("==", "!=") and replacement in _ORDER and _is_text(program, node, position):
                continue
            yield Change((Edit(start, end, replacement),), weight)


def _sides(node: ast.Compare, position: int) -> tuple[ast.expr, ast.expr]:
    return (node.left if position == 0 else node.comparators[position - 1], node.comparators[position])


def _is_literal(node: ast.Compare, position: int) -> bool:
    """Return whether one side is a number or a text, which is not compared by identity."""
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
        for comparison in ("== 0", "!= 0", "> 0", "< 0", ">= 0", "== 1", "> 1"):
            yield from program.put(test, f"{text} {comparison}", 0.8)
    if not (kinds and kinds <= NUMBERS):
        for comparison in ("> 1", "== 1", "== 0", "< 2"):
            yield from program.put(test, f"len({program.segment(value)}) {comparison}", 0.7)


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
        left_operand, kinds = part.left, guess_types(program, part.left)
        if isinstance(part.ops[0], ast.Lt | ast.LtE) and not (kinds and not kinds & NUMBERS):
            at = program.source.span(left_operand)[0]
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


# The order of conditions.


#: Branch: the span of its condition, and the first and last line of its block.
_Branch = tuple[tuple[int, int], tuple[int, int]]
#: Longer chains are not reordered.
_MOST = 8


@operator(
    "conditions tested in another order",
    0.5,
    ast.If,
    before="if a > 0:\n    b = 1\nelif a > 9:\n    b = 2\nelse:\n    b = 3\n",
    after="if a > 9:\n    b = 2\nelif a > 0:\n    b = 1\nelse:\n    b = 3\n",
)
def reorder_branches(program: Program, node: ast.If) -> Changes:
    """Reorder branches: a wider condition that is tested first leaves nothing for a narrower one."""
    branches = _chain(program, node)
    if branches is None or not 2 <= len(branches) <= _MOST:
        return
    order = range(len(branches))
    yield Change(_edits(program, branches, order[::-1]), 1.0)
    if len(branches) > 2:
        for first, second in itertools.combinations(order, 2):
            swapped = [second if place == first else first if place == second else place for place in order]
            yield Change(_edits(program, branches, swapped), 1.0 if second == first + 1 else 0.6)


def _chain(program: Program, node: ast.If) -> list[_Branch] | None:
    """Return the branches of an `if` with its `elif`s, or of `if`s in a row that each leave; None otherwise."""
    if program.text.startswith("elif", program.source.span(node)[0]):
        return None
    chain = [node]
    while len(chain[-1].orelse) == 1 and isinstance(following := chain[-1].orelse[0], ast.If):
        if not program.text.startswith("elif", program.source.span(following)[0]):
            break
        chain.append(following)
    if len(chain) == 1 and not node.orelse:
        chain = list(_in_a_row(program, node))
    branches = [_branch(program, statement) for statement in chain]
    return None if None in branches else [branch for branch in branches if branch is not None]


def _in_a_row(program: Program, node: ast.If) -> Iterator[ast.If]:
    block, position = program.places[node]
    before = block[position - 1] if position else None
    if _leaves(node) and not (before is not None and _leaves(before)):
        yield from (
            statement
            for statement in itertools.takewhile(_leaves, block[position:])
            if isinstance(statement, ast.If)
        )


def _leaves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], Jump)


def _branch(program: Program, node: ast.If) -> _Branch | None:
    first, last = program.rows(node.body[0]), program.rows(node.body[-1])
    return None if first is None or last is None else (program.source.span(node.test), (first[0], last[1]))


def _edits(program: Program, branches: Sequence[_Branch], order: Sequence[int]) -> tuple[Edit, ...]:
    edits = []
    for (test, rows), source in zip(branches, order, strict=True):
        other_test, other_rows = branches[source]
        if other_test != test:
            edits.append(Edit(*test, program.text[slice(*other_test)]))
            edits.append(Edit(*_span(program, rows), program.text[slice(*_span(program, other_rows))]))
    return tuple(edits)


def _span(program: Program, rows: tuple[int, int]) -> tuple[int, int]:
    return program.source.line_start(rows[0]), program.source.line_end(rows[1])
