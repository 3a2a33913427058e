"""Edits of conditions: and/or, one more, one that is returned."""

from __future__ import annotations

import ast
import re

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.ingredients import conditions
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.pysource.precedence import AND, BIT_OR, NOT
from healkit.pysource.scope import bound_names, free_names

#: Weight of an added condition about other names. (Of 85 such patches that passed every check, 14 of the 41 about a name
#: in the same line were right, and none of the others.)
_BESIDE = 0.6
_NO_NAMES = {"and", "or", "not", "in", "is", "len", "None"}


@operator("`and` and `or` swapped", 0.9, ast.BoolOp, before="x = a and b", after="x = a or b")
def swap_and_or(program: Program, node: ast.BoolOp) -> Changes:
    word, other, need = ("and", "or", AND) if isinstance(node.op, ast.And) else ("or", "and", NOT)
    if len(node.values) == 2:
        yield from program.put(node, f" {other} ".join(program.piece(value, need) for value in node.values))
        return
    for left, right in zip(node.values, node.values[1:], strict=False):
        start, end = program.source.span(left)[1], program.source.span(right)[0]
        if found := re.search(rf"\b{word}\b", program.text[start:end]):
            yield Change((Edit(start + found.start(), start + found.end(), other),))


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
        own = program.segment(test)
        for text in conditions(program, node if not isinstance(node, ast.comprehension) else test):
            if text not in own:
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
        found = program.text.find("if", start, end)
        if found >= 0 and program.text[start:found].strip() in ("", ")") and len(last.ifs) == 1:
            gap = program.text[start:found]
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
    given = bound_names(program.function(node) or program.tree, "parameter").keys()
    for text in conditions(program, node):
        found_out = not free_names(ast.parse(text, mode="eval")) <= given
        yield from program.put(node.value, text, 1.0 if found_out else 0.7)
