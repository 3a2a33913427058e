"""Edits that add a missing case, condition or return."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.ingredients import conditions, results
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.pysource.nodes import Function
from healkit.pysource.precedence import BIT_OR
from healkit.pysource.scope import free_names, stored_names


def _inserted(edit: Edit | None, weight: float, *, guard: bool = False, line: int = 0) -> Changes:
    if edit is not None:
        yield Change((edit,), weight, guard, line)


@operator(
    "a special case at the beginning",
    0.25,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    most=2.0,
    before="def f(n):\n    return n * f(n - 1)",
    after="def f(n):\n    if n == 0:\n        return 1\n    return n * f(n - 1)",
)
def add_first_case(program: Program, node: Function) -> Changes:
    body = node.body[1:] if len(node.body) > 1 and _is_text(node.body[0]) else node.body
    recursive = any(
        isinstance(part, ast.Call) and program.segment(part.func).endswith(node.name)
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
    )
    weight = 1.6 if recursive else 1.0
    for test in conditions(program, body[0]):
        for value in results(program, node):
            yield from _inserted(
                program.insert(body[0], [f"if {test}:", f"\treturn {value}"]),
                weight,
                guard=True,
                line=body[0].lineno,
            )
        for error in program.hints.errors:
            text = f"raise {error}({_message(test)!r})"
            yield from _inserted(
                program.insert(body[0], [f"if {test}:", f"\t{text}"]), 2.0, line=body[0].lineno
            )


def _message(test: str) -> str:
    return f"not allowed: {test}"


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@operator(
    "a special case in the middle",
    0.17,
    ast.stmt,
    most=1.5,
    before="def f(a):\n    for x in a:\n        y = 1 / x\n    return y",
    after="def f(a):\n    for x in a:\n        if x == 0:\n            continue\n        y = 1 / x\n    return y",
)
def add_case(program: Program, node: ast.stmt) -> Changes:
    home, function = program.home(node), program.function(node)
    block, position = program.places[node]
    if home is None or isinstance(node, ast.FunctionDef) or (position == 0 and block is home.body):
        return
    in_loop = any(isinstance(around, ast.For | ast.While) for around in program.around(node))
    tests = conditions(program, node)
    for test in tests[:24]:
        if in_loop:
            for word in ("continue", "break"):
                yield from _inserted(program.insert(node, [f"if {test}:", f"\t{word}"]), 1.0, guard=True)
        for value in results(program, function)[:8] if function is not None else ():
            yield from _inserted(program.insert(node, [f"if {test}:", f"\treturn {value}"]), 0.8, guard=True)
        for error in program.hints.errors:
            yield from _inserted(
                program.insert(node, [f"if {test}:", f"\traise {error}({_message(test)!r})"]), 1.5
            )


@operator(
    "a statement made conditional",
    0.3,
    ast.Expr,
    ast.Assign,
    ast.AugAssign,
    before="def f(a, b):\n    a.append(b)\n    if b:\n        return b\n    return a",
    after="def f(a, b):\n    if b:\n        a.append(b)\n    if b:\n        return b\n    return a",
)
def make_conditional(program: Program, node: ast.stmt) -> Changes:
    rows = program.rows(node)
    if rows is None or program.home(node) is None or rows[0] != rows[1]:
        return
    whole = (program.source.line_start(rows[0]), program.source.line_end(rows[1]))
    line, indent, newline = program.source.line(rows[0]).strip(), program.indent(node), program.source.newline
    wider = [name for name in program.names(node)[:8] if not program.types(name, node) & {"function", "type"}]
    unequal = _unequal(program, node) if isinstance(node, ast.Expr) else ()
    for place, test in enumerate(dict.fromkeys([*unequal, *conditions(program, node)[:24], *wider])):
        text = f"{indent}if {test}:{newline}{indent}{program.source.indent_unit}{line}"
        yield Change((Edit(*whole, text),), 1.0 if place < 12 else 0.7, line=node.lineno)


def _unequal(program: Program, node: ast.Expr) -> Iterator[str]:
    """Yield conditions that a stored value differs from a name that it is made of."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp | ast.Subscript) and program.is_value(part):
            for name in sorted(free_names(part) & set(program.names(node)))[:3]:
                yield f"{program.piece(part, BIT_OR)} != {name}"


@operator(
    "a `return` added at the end",
    0.45,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    most=1.5,
    before="def f(a):\n    b = a\n    b += 1",
    after="def f(a):\n    b = a\n    b += 1\n    return b",
)
def return_at_end(program: Program, node: Function) -> Changes:
    ending = node.body[-1]
    if isinstance(ending, ast.Return | ast.Raise) or any(
        isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node)
    ):
        return
    for value in dict.fromkeys([*program.locals(node)[:12], *results(program, node)]):
        yield from _inserted(program.insert(ending, [f"return {value}"], after=True), 1.5, line=ending.lineno)


@operator(
    "an initial value before the loop",
    0.4,
    ast.For,
    ast.While,
    before="def f(a):\n    for x in a:\n        n += x\n    return n",
    after="def f(a):\n    n = 0\n    for x in a:\n        n += x\n    return n",
)
def initialize_before_loop(program: Program, node: ast.For | ast.While) -> Changes:
    for name in sorted(set(stored_names(node))):
        for value in ("0", "[]", "''", "{}", "1", "None", "set()", "False", "True"):
            yield from _inserted(program.insert(node, [f"{name} = {value}"]), 1.0)
    if isinstance(program.parent(node), ast.For | ast.While):
        for name in sorted(_outer(program, node)):
            for value in ("0", "[]", "''", "{}", "1", "None", "False", "True"):
                yield from _inserted(program.insert(node, [f"{name} = {value}"]), 0.8)


def _outer(program: Program, node: ast.stmt) -> set[str]:
    """Return the variables of the function around a loop."""
    home = program.home(node)
    return set(program.locals(home)[:12]) if home else set()


@operator(
    "an exception caught",
    0.14,
    ast.Assign,
    ast.Return,
    ast.Expr,
    ast.AugAssign,
    before="def f(a):\n    return int(a)",
    after="def f(a):\n    try:\n        return int(a)\n    except ValueError:\n        return None",
)
def catch_failure(program: Program, node: ast.stmt) -> Changes:
    rows, function = program.rows(node), program.function(node)
    if rows is None or program.home(node) is None or rows[0] != rows[1]:
        return
    line, indent, newline = program.source.line(rows[0]).strip(), program.indent(node), program.source.newline
    in_loop = any(isinstance(around, ast.For | ast.While) for around in program.around(node))
    whole = (program.source.line_start(rows[0]), program.source.line_end(rows[1]))
    values = results(program, function)[:8] if function is not None else ()
    endings = [f"return {value}" for value in values] + (["continue"] if in_loop else [])
    for error in (
        "ValueError",
        "KeyError",
        "IndexError",
        "TypeError",
        "ZeroDivisionError",
        "(TypeError, ValueError)",
    ):
        for ending in endings:
            block = [
                "try:",
                f"{program.source.indent_unit}{line}",
                f"except {error}:",
                f"{program.source.indent_unit}{ending}",
            ]
            yield Change((Edit(*whole, newline.join(indent + one for one in block)),), 1.0, guard=True)
