"""Operator precedence: when an expression needs parentheses.

The levels are those of the table "Operator precedence" in the Python reference, loosest first.
"""

from __future__ import annotations

import ast
import functools

(
    NAMED,
    TUPLE,
    YIELD,
    TEST,
    OR,
    AND,
    NOT,
    COMPARE,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    SHIFT,
    SUM,
    TERM,
    FACTOR,
    POWER,
    ATOM,
) = range(17)

_BINARY: dict[type[ast.operator], int] = {
    ast.BitOr: BIT_OR, ast.BitXor: BIT_XOR, ast.BitAnd: BIT_AND, ast.LShift: SHIFT, ast.RShift: SHIFT, ast.Add: SUM,
    ast.Sub: SUM, ast.Mult: TERM, ast.Div: TERM, ast.FloorDiv: TERM, ast.Mod: TERM, ast.MatMult: TERM, ast.Pow: POWER,
}  # fmt: skip


def precedence(node: ast.expr) -> int:
    """Return the precedence of an expression, written without parentheses."""
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)]
    if isinstance(node, ast.UnaryOp):
        return NOT if isinstance(node.op, ast.Not) else FACTOR
    if isinstance(node, ast.BoolOp):
        return OR if isinstance(node.op, ast.Or) else AND
    if isinstance(node, ast.Compare):
        return COMPARE
    if isinstance(node, ast.IfExp | ast.Lambda):
        return TEST
    if isinstance(node, ast.NamedExpr):
        return NAMED
    if isinstance(node, ast.Yield | ast.YieldFrom):
        return YIELD
    if isinstance(node, ast.Await):
        return POWER
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        return POWER  # a literal's own dot would be read as a decimal point
    return TUPLE if isinstance(node, ast.Tuple | ast.Starred) else ATOM


@functools.lru_cache(maxsize=20_000)
def text_precedence(text: str) -> int:
    """Return the precedence of the expression in a text; raises `SyntaxError` if it is none."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        node = ast.parse(f"(\n{text}\n)", mode="eval").body
        # Over several lines it needs brackets; a `yield` stands alone as a statement or behind an `=`.
        return YIELD if isinstance(node, ast.Yield | ast.YieldFrom) and "\n" not in text else NAMED
    lines = text.split("\n")
    if (node.col_offset, node.end_lineno, node.end_col_offset) != (0, len(lines), len(lines[-1].encode())):
        return ATOM  # what is outside of the node are the brackets around it
    if isinstance(node, ast.Tuple):
        own = text[0] == "(" and isinstance(ast.parse(f"_{text}", mode="eval").body, ast.Call)
        return ATOM if own else TUPLE
    return precedence(node)


def parenthesized(text: str, needed: int) -> str:
    """Return the expression's text, in parentheses if it binds less tightly than its place needs."""
    return text if text_precedence(text) >= needed else f"({text})"


def required_precedence(parent: ast.AST, field: str) -> int:
    """Return the precedence that an expression needs in a field of its parent to stand without parentheses."""
    if isinstance(parent, ast.BinOp):
        own = _BINARY[type(parent.op)]
        if isinstance(parent.op, ast.Pow):
            return ATOM if field == "left" else FACTOR
        return own if field == "left" else own + 1
    if isinstance(parent, ast.UnaryOp):
        return NOT if isinstance(parent.op, ast.Not) else FACTOR
    if isinstance(parent, ast.BoolOp):
        return AND if isinstance(parent.op, ast.Or) else NOT
    if isinstance(parent, ast.Compare):
        return BIT_OR
    if isinstance(parent, ast.Attribute | ast.Await) or (
        isinstance(parent, ast.Subscript | ast.Call) and field in ("value", "func")
    ):
        return ATOM
    if isinstance(parent, ast.Starred):
        return BIT_OR
    if isinstance(parent, ast.IfExp):
        return TEST if field == "orelse" else OR
    if field in ("target", "targets"):
        return TUPLE
    if isinstance(parent, ast.comprehension):
        return OR
    if isinstance(parent, ast.Return | ast.Assign | ast.AugAssign | ast.Expr) and field == "value":
        return TUPLE
    if isinstance(parent, ast.Subscript) or (isinstance(parent, ast.For) and field == "iter"):
        return TUPLE
    return TEST
