"""Edits of indexes, slices, elements and keys."""

from __future__ import annotations

import ast

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.healing.advisors.search.type_guesses import SEQUENCES, guess_types, may_have_type
from healkit.pysource.precedence import TEST

#: Expressions that make a new mutable object each time.
_OWN = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.Call)


@operator("two elements swapped", 0.8, ast.List, ast.Tuple, ast.Dict, before="x = [a, b]", after="x = [b, a]")
def swap_elements(program: Program, node: ast.List | ast.Tuple | ast.Dict) -> Changes:
    groups = [node.elts] if not isinstance(node, ast.Dict) else [node.values]
    share = 1.0 if len(groups[0]) < 4 else 0.5  # with many elements each pair is less likely
    match program.parent(node):
        case ast.For(target=target, iter=iterable) | ast.comprehension(target=target, iter=iterable):
            # Targets are mixed up with `items()` or `enumerate()`; in other loops the code would never have worked.
            share *= 0.5 if target is node and not isinstance(iterable, ast.Call) else 1.0
    for group in groups:
        for first in range(len(group)):
            for second in range(first + 1, min(first + 7, len(group))):
                one, other = group[first], group[second]
                if isinstance(one, ast.Starred) or isinstance(other, ast.Starred):
                    continue
                if program.segment(one) != program.segment(other):
                    yield Change(
                        (
                            Edit(*program.source.span(one), program.piece(other, TEST)),
                            Edit(*program.source.span(other), program.piece(one, TEST)),
                        ),
                        share if second == first + 1 else 0.8 * share,
                    )
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and len(node.keys) == 1:
                edits = (
                    Edit(*program.source.span(key), program.piece(value, TEST)),
                    Edit(*program.source.span(value), program.piece(key, TEST)),
                )
                yield Change(edits, 0.8)


@operator(
    "a separate list for each element",
    0.7,
    ast.BinOp,
    before="def f(n):\n    return [[]] * n",
    after="def f(n):\n    return [[] for _ in range(n)]",
)
def copy_for_each_element(program: Program, node: ast.BinOp) -> Changes:
    """Build a new list for each element: repeating a list repeats references to one object."""
    if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List) and len(node.left.elts) == 1:
        one = node.left.elts[0]
        if isinstance(one, (*_OWN, ast.BinOp)):
            text, count = program.segment(one), program.segment(node.right)
            yield from program.put(node, f"[{text} for _ in range({count})]")


@operator(
    "a separate value for each object",
    0.6,
    ast.ClassDef,
    before="class A:\n    items = []\n\n    def __init__(self, n):\n        self.n = n\n",
    after="class A:\n\n    def __init__(self, n):\n        self.items = []\n        self.n = n\n",
)
def move_to_init(program: Program, node: ast.ClassDef) -> Changes:
    """Move a mutable class attribute into `__init__`: all objects of a class share it."""
    makers = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
    for statement in node.body:
        if not (makers and makers[0].args.args and isinstance(statement, ast.Assign)):
            continue
        target, rows = statement.targets[0], program.rows(statement)
        if rows is None or not isinstance(target, ast.Name) or not isinstance(statement.value, _OWN):
            continue
        text = f"{makers[0].args.args[0].arg}.{target.id} = {program.segment(statement.value)}"
        start, stop = program.source.line_start(rows[0]), program.source.line_end(rows[1])
        if (edit := program.insert(makers[0].body[0], [text])) is not None:
            end = stop + len(program.source.newline)
            yield Change((Edit(start, end, ""), edit), line=statement.lineno)


@operator("an element removed", 0.4, ast.List, ast.Tuple, ast.Set, before="x = [a, b]", after="x = [b]")
def drop_element(program: Program, node: ast.List | ast.Tuple | ast.Set) -> Changes:
    if (
        not program.is_value(node)
        or len(node.elts) < 2
        or any(program.source.in_parentheses(one) for one in node.elts)
    ):
        return
    for leave, one in enumerate(node.elts):
        start, stop = program.source.span(one)
        if leave + 1 < len(node.elts):
            stop = program.source.span(node.elts[leave + 1])[0]
        elif len(node.elts) > 2 or not isinstance(node, ast.Tuple):
            start = program.source.span(node.elts[leave - 1])[1]
        if not (isinstance(node, ast.Tuple) and len(node.elts) == 2):
            yield Change((Edit(start, stop, ""),))
    if isinstance(node, ast.Tuple):
        for one in node.elts[:3]:
            yield from program.put(node, program.segment(one), 0.7)


@operator("another slice", 0.6, ast.Subscript, before="x = a[1:b]", after="x = a[1:]")
def change_slice(program: Program, node: ast.Subscript) -> Changes:
    if not isinstance(node.slice, ast.Slice):
        return
    low, high, step = (
        program.segment(part) if part else ""
        for part in (node.slice.lower, node.slice.upper, node.slice.step)
    )
    own = program.segment(node.value)
    found = [("", high, step), (low, "", step), (low, high, ""), (high, low, step), (low, high, "-1")]
    found += [
        (low or "1", high, step),
        (low, high or "-1", step),
        (low, f"{low} + {high}" if low and high else high, step),
    ]
    found += [(name, high, step) for name in program.names(node)[:8] if not low] + [
        (low, name, step) for name in program.names(node)[:8] if not high
    ]
    found += [(f"-{high}", "", step)] if high and not low else []
    found += [("", f"-{low}", step)] if low and not high else []
    for one, other, by in dict.fromkeys(found):
        text = f"{own}[{one}:{other}{':' + by if by else ''}]"
        yield from program.put(node, text, 1.0)


@operator(
    "a slice instead of the whole sequence",
    0.4,
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    before="def f(a, k):\n    return a",
    after="def f(a, k):\n    return a[k:]",
)
def take_slice(program: Program, node: ast.expr) -> Changes:
    parent, field = program.parents[node]
    kinds = guess_types(program, node)
    if (
        not program.is_value(node)
        or field == "func"
        or not may_have_type(kinds, SEQUENCES)
        or isinstance(parent, ast.Attribute | ast.Expr)
    ):
        return
    if isinstance(parent, ast.Subscript) and field == "value":
        return
    text, sure = program.segment(node), 1.0 if kinds else 0.6
    for part in ("1:", ":-1", "::-1", ":"):
        yield from program.put(node, f"{text}[{part}]", sure)
    for name in program.names(node)[:10]:
        if name != text and may_have_type(program.types(name, node), frozenset({"int"})):
            for part in (f"{name}:", f":{name}", f"{name} + 1:"):
                yield from program.put(node, f"{text}[{part}]", 0.9 * sure if "+" not in part else 0.6 * sure)


@operator("indexes swapped", 0.8, ast.Subscript, before="x = a[i][j]", after="x = a[j][i]")
def swap_indexes(program: Program, node: ast.Subscript) -> Changes:
    inner = node.value
    if (
        isinstance(inner, ast.Subscript)
        and not isinstance(inner.slice, ast.Slice)
        and not isinstance(node.slice, ast.Slice)
    ):
        one, other = inner.slice, node.slice
        if program.segment(one) != program.segment(other):
            yield Change(
                (
                    Edit(*program.source.span(one), program.segment(other)),
                    Edit(*program.source.span(other), program.segment(one)),
                )
            )
