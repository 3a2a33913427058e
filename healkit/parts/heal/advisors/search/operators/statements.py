"""Edits that move, change, insert or replace statements."""

from __future__ import annotations

import ast
import re

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import Function, Jump
from healkit.parts.heal.advisors.search.operators.definition import Changes, operator
from healkit.parts.heal.advisors.search.program import NUMBERS, Change, Program, may_have_type, statements

_NO_STATEMENT = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.Global,
    ast.Nonlocal,
)


def _block(program: Program, first: int, last: int) -> str:
    """Return whole lines from `first` to `last`, without the last line end."""
    return program.text[program.source.line_start(first) : program.source.line_end(last)]


def _has_text_lines(node: ast.AST) -> bool:
    """Return whether a node has a text over several lines, whose indentation may not change."""
    return any(
        isinstance(part, ast.Constant | ast.JoinedStr)
        and part.end_lineno != part.lineno
        and not (isinstance(part, ast.Constant) and not isinstance(part.value, str | bytes))
        for part in ast.walk(node)
    )


@operator("a statement removed", 0.5, ast.stmt, before="a = 1\nb = 2\n", after="b = 2\n")
def delete_statement(program: Program, node: ast.stmt) -> Changes:
    rows = program.rows(node)
    if isinstance(node, (*_NO_STATEMENT, ast.Pass)) or rows is None:
        return
    block, _ = program.places[node]
    weight = (
        1.0
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.If | ast.Break | ast.Continue)
        else 0.6
    )
    if len(block) == 1:
        if isinstance(program.parent(node), ast.Module):
            return
        yield Change((Edit(*program.source.span(node), "pass"),), weight * 0.7)
        return
    if isinstance(node, ast.If) and program.text[program.source.span(node)[0] :].startswith("elif"):
        return
    start = program.source.line_start(rows[0])
    end = program.source.line_end(rows[1])
    newline = re.compile(r"\r\n|\r|\n").match(program.text, end)
    yield Change((Edit(start, newline.end() if newline else end, ""),), weight)


@operator("two statements swapped", 0.5, ast.stmt, before="a = 1\nb = 2\n", after="b = 2\na = 1\n")
def swap_statements(program: Program, node: ast.stmt) -> Changes:
    block, position = program.places[node]
    if (
        position + 1 >= len(block)
        or isinstance(node, _NO_STATEMENT)
        or isinstance(block[position + 1], _NO_STATEMENT)
    ):
        return
    mine, next_rows = program.rows(node), program.rows(block[position + 1])
    if mine is None or next_rows is None or mine[1] >= next_rows[0]:
        return
    first = Edit(
        program.source.line_start(mine[0]), program.source.line_end(mine[1]), _block(program, *next_rows)
    )
    second = Edit(
        program.source.line_start(next_rows[0]), program.source.line_end(next_rows[1]), _block(program, *mine)
    )
    yield Change((first, second))


def _shifted(program: Program, rows: tuple[int, int], by: int) -> str:
    step, lines = program.source.indent_unit, []
    for lineno in range(rows[0], rows[1] + 1):
        line = program.source.line(lineno)
        lines.append(step + line if by > 0 and line.strip() else line.removeprefix(step) if by < 0 else line)
    return program.source.newline.join(lines)


@operator(
    "a statement moved out of its block",
    0.6,
    ast.stmt,
    before="for a in b:\n    c = a\n    d = c\n",
    after="for a in b:\n    c = a\nd = c\n",
)
def dedent_statement(program: Program, node: ast.stmt) -> Changes:
    block, position = program.places[node]
    rows, owner = program.rows(node), program.parent(node)
    if (
        position == 0
        or position + 1 != len(block)
        or rows is None
        or not isinstance(owner, ast.stmt)
        or _has_text_lines(node)
    ):
        return
    if isinstance(owner, Function | ast.ClassDef):
        return
    if (otherwise := getattr(owner, "orelse", None)) and block is not otherwise:
        return
    yield Change(
        (
            Edit(
                program.source.line_start(rows[0]),
                program.source.line_end(rows[1]),
                _shifted(program, rows, -1),
            ),
        )
    )


@operator(
    "a statement moved into the block above",
    0.5,
    ast.stmt,
    before="for a in b:\n    c = a\nd = c\n",
    after="for a in b:\n    c = a\n    d = c\n",
)
def indent_statement(program: Program, node: ast.stmt) -> Changes:
    block, position = program.places[node]
    rows = program.rows(node)
    if position == 0 or rows is None or _has_text_lines(node) or isinstance(node, _NO_STATEMENT):
        return
    above = block[position - 1]
    if isinstance(above, ast.For | ast.While | ast.If | ast.With):
        yield Change(
            (
                Edit(
                    program.source.line_start(rows[0]),
                    program.source.line_end(rows[1]),
                    _shifted(program, rows, 1),
                ),
            )
        )


@operator(
    "a plain and an augmented assignment swapped",
    0.5,
    ast.AugAssign,
    ast.Assign,
    before="a += b",
    after="a = b",
)
def swap_assignment_kind(program: Program, node: ast.AugAssign | ast.Assign) -> Changes:
    if isinstance(node, ast.AugAssign):
        start, end = program.source.span(node.target)[1], program.source.span(node.value)[0]
        yield Change((Edit(start, end, " = "),))
        if isinstance(node.value, ast.Constant):
            for name in program.names(node)[:10]:
                if name != program.segment(node.target):
                    yield Change((Edit(start, program.source.span(node.value)[1], f" = {name}"),), 0.6)
        return
    if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name | ast.Subscript | ast.Attribute):
        start, end = program.source.span(node.targets[0])[1], program.source.span(node.value)[0]
        for sign, weight in ((" += ", 1.0), (" -= ", 0.5), (" *= ", 0.5), (" |= ", 0.2)):
            if "(" not in program.text[start:end]:
                yield Change((Edit(start, end, sign),), weight)


@operator(
    "`if` and `while` swapped",
    0.3,
    ast.If,
    ast.While,
    most=1.3,
    before="if a:\n    a = 0",
    after="while a:\n    a = 0",
)
def swap_if_and_while(program: Program, node: ast.If | ast.While) -> Changes:
    start, _ = program.source.span(node)
    if program.text.startswith("elif", start):
        yield Change((Edit(start, start + 4, "if"),), 1.3)
    elif program.text.startswith("if", start) and not node.orelse:
        yield Change((Edit(start, start + 2, "while"),))
    elif program.text.startswith("while", start) and not node.orelse:
        yield Change((Edit(start, start + 5, "if"),))
    if isinstance(node, ast.If) and program.text.startswith("if", start):
        block, position = program.places[node]
        above = block[position - 1] if position else None
        if isinstance(above, ast.If) and not above.orelse and program.rows(above) and program.rows(node):
            yield Change((Edit(start, start, "el"),), 1.3)


@operator(
    "another jump statement",
    0.6,
    ast.Break,
    ast.Continue,
    ast.Pass,
    ast.Return,
    before="for a in b:\n    break",
    after="for a in b:\n    continue",
)
def change_jump(program: Program, node: ast.stmt) -> Changes:
    span = program.source.span(node)
    in_loop = any(isinstance(around, ast.For | ast.While) for around in program.around(node))
    jumps = []
    if in_loop:
        jumps += ["break", "continue", "pass"]
    if program.function(node) is not None and not isinstance(node, ast.Return):
        jumps += ["return", "return True", "return False", "return None"]
        jumps += [f"return {name}" for name in program.names(node)[:10]]
    for text in jumps:
        if program.text[span[0] : span[1]] != text:
            yield Change(
                (Edit(*span, text),),
                0.4 if isinstance(node, ast.Return) else 1.0 if not text.startswith("return ") else 0.7,
            )


#: Exceptions that handlers are often for.
_FAILURES = (
    "ValueError",
    "KeyError",
    "IndexError",
    "TypeError",
    "ZeroDivisionError",
    "AttributeError",
    "Exception",
)


@operator(
    "another exception handled",
    0.5,
    ast.ExceptHandler,
    most=1.8,
    before="try:\n    a = 1\nexcept ValueError:\n    a = 0",
    after="try:\n    a = 1\nexcept KeyError:\n    a = 0",
)
def change_handler(program: Program, node: ast.ExceptHandler) -> Changes:
    """Handle other exceptions: those that were seen, alone or with the present ones; then common ones."""
    if node.type is None:
        return
    exceptions = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    names = [program.segment(exception) for exception in exceptions]
    raised = [name for name in program.hints.raised if name not in names]
    texts = {
        _handled([*names, *raised]): 1.8, _handled(raised): 1.6,
        **{_handled([error_name]): 1.5 for error_name in raised}, **{_handled([*names, error_name]): 1.5 for error_name in raised},
        **{name: 0.6 for name in _FAILURES if name not in names},
        **{_handled([*names, name]): 0.5 for name in _FAILURES if name not in names},
    }  # fmt: skip
    for text, weight in texts.items():
        if text:
            yield from program.put(node.type, text, weight)


def _handled(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})" if names else ""


# Inserted and replaced statements.


def _at(program: Program, node: ast.stmt, line: str, weight: float) -> Changes:
    """Insert a line before a statement, and after it if it is the last of its block."""
    block, position = program.places[node]
    edit = program.insert(node, [line])
    if edit is not None and not program.text.startswith("elif", program.source.span(node)[0]):
        yield Change((edit,), weight)
    if position + 1 < len(block) or isinstance(node, Jump):
        return
    if (edit := program.insert(node, [line], after=True)) is not None:
        yield Change((edit,), weight)


@operator(
    "a statement added, copied from the program",
    0.3,
    ast.stmt,
    before="def f(a, b):\n    a.append(b)\n    return a",
    after="def f(a, b):\n    a.append(b)\n    a.append(b)\n    return a",
)
def copy_statement(program: Program, node: ast.stmt) -> Changes:
    if program.home(node) is None or isinstance(node, Function | ast.ClassDef):
        return
    for text, weight in statements(program, node):
        yield from _at(program, node, text, weight)


@operator(
    "an assignment added",
    0.22,
    ast.stmt,
    before="def f(a, b):\n    c = a\n    return b",
    after="def f(a, b):\n    c = a\n    b = a\n    return b",
)
def assign_name(program: Program, node: ast.stmt) -> Changes:
    if program.home(node) is None or isinstance(node, Function | ast.ClassDef):
        return
    names = program.names(node)[:10]
    for name in names:
        kinds = program.types(name, node)
        if may_have_type(kinds, NUMBERS):
            for text in (f"{name} += 1", f"{name} -= 1", f"{name} = 0"):
                yield from _at(program, node, text, 1.0)
            for number in _numbers(program):
                for text in (f"{name} -= {number}", f"{name} += {number}"):
                    yield from _at(program, node, text, 0.6)
        for source_name in names:
            if source_name != name:
                source_kinds = program.types(source_name, node)
                if (
                    not kinds
                    or not source_kinds
                    or kinds & source_kinds
                    or "NoneType" in kinds | source_kinds
                ):
                    yield from _at(program, node, f"{name} = {source_name}", 0.9)
                if may_have_type(kinds, NUMBERS) and may_have_type(source_kinds, NUMBERS):
                    yield from _at(program, node, f"{name} += {source_name}", 0.7)


def _numbers(program: Program) -> list[int]:
    """Return some whole numbers of the program above one."""
    numbers = dict.fromkeys(
        n.value for n in program.nodes if isinstance(n, ast.Constant) and type(n.value) is int
    )
    return [number for number in numbers if number > 1][:3]


@operator(
    "an exit from the loop added",
    0.4,
    ast.If,
    ast.For,
    before="def f(a):\n    for x in a:\n        if x:\n            b = x\n    return b",
    after="def f(a):\n    for x in a:\n        if x:\n            b = x\n            break\n    return b",
)
def leave_loop(program: Program, node: ast.If | ast.For) -> Changes:
    """Add `break` or `continue` at the end of a branch in a loop."""
    inside = isinstance(node, ast.If) and any(
        isinstance(a, ast.For | ast.While) for a in program.around(node)
    )
    for block in (node.body, node.orelse) if inside else (node.body,):
        if not block or isinstance(block[-1], Jump):
            continue
        for word in ("break", "continue") if inside else ("break",):
            edit = program.insert(block[-1], [word], after=True)
            if edit is not None and not isinstance(
                block[-1], ast.If | ast.For | ast.While | ast.Try | ast.With
            ):
                yield Change((edit,), 1.0 if inside else 0.4, line=block[-1].lineno)


@operator(
    "a statement replaced by another one from the program",
    0.2,
    ast.Assign,
    ast.AugAssign,
    ast.Expr,
    ast.Return,
    before="def f(a, b):\n    a = b\n    a += 1\n    return a",
    after="def f(a, b):\n    a += 1\n    a += 1\n    return a",
)
def replace_statement(program: Program, node: ast.stmt) -> Changes:
    if program.home(node) is None:
        return
    for text, weight in statements(program, node):
        yield Change((Edit(*program.source.span(node), text),), weight)
