"""Minimal edits of a source text, from its syntax tree.

The search works on the standard `ast`, whose nodes know their place; what it changes is written back as a splice of
the text, so that comments, quotes and layout outside of the splice stay as they are. `ast.unparse` would lose them, and
a concrete syntax tree is ten times slower to parse. Columns of `ast` count UTF-8 bytes and lines end as the tokenizer
ends them (`\\n`, `\\r\\n`, `\\r`, and nothing else); both are turned into positions in the string here.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import Any

_LINE_END = re.compile(r"\r\n|\r|\n")

#: How tightly an expression binds, loosest first, after the grammar's "Operator precedence" table.
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


class Source:
    """A source text with its tree, which turns nodes into places of the text.

    Raises `SyntaxError` or `ValueError` where the text does not parse. `newline` is the text's own way to end a line.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends), len(text) + 1]
        self._stops = [*(end.start() for end in ends), len(text)]
        self.newline = ends[0].group() if ends else "\n"
        self._ascii = text.isascii()

    def offset(self, lineno: int, column: int) -> int:
        """The position of a line (from 1) and a column in UTF-8 bytes."""
        start = self._starts[lineno - 1]
        if self._ascii:
            return start + column
        line = self.text[start : self._stops[lineno - 1]]
        return start + len(line.encode(errors="surrogatepass")[:column].decode(errors="ignore"))

    def span(self, node: Any) -> tuple[int, int]:
        """Where a node stands, half-open, without parentheses around it."""
        known: tuple[int, int] | None = getattr(node, "_span", None)
        if known is None:
            start = self.offset(node.lineno, node.col_offset)
            known = node._span = (start, self.offset(node.end_lineno, node.end_col_offset))
        return known

    def segment(self, node: ast.AST) -> str:
        """A node's own text."""
        start, end = self.span(node)
        return self.text[start:end]

    def line_of(self, position: int) -> int:
        """The line (from 1) in which a position of the text is."""
        low, high = 0, len(self._stops) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._starts[middle] <= position else (low, middle - 1)
        return low + 1

    def line_start(self, lineno: int) -> int:
        """Where a line begins."""
        return self._starts[lineno - 1]

    def line_stop(self, lineno: int) -> int:
        """Where a line ends, before its line end."""
        return self._stops[lineno - 1]

    def line(self, lineno: int) -> str:
        """A line's text without its end."""
        return self.text[self._starts[lineno - 1] : self._stops[lineno - 1]]

    def in_parentheses(self, node: ast.AST) -> bool:
        """Whether the characters next to a node are a pair of round brackets."""
        start, end = self.span(node)
        return self.text[:start].rstrip().endswith("(") and self.text[end:].lstrip().startswith(")")


def binds(node: ast.expr) -> int:
    """How tightly an expression binds, were it written without parentheses."""
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
def text_binds(text: str) -> int:
    """How tightly the expression in a text binds; raises `SyntaxError` where it is none."""
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
    return binds(node)


def fit(text: str, needed: int) -> str:
    """The expression's text, in parentheses where it binds less tightly than its place needs."""
    return text if text_binds(text) >= needed else f"({text})"


def needed_by(parent: ast.AST, field: str) -> int:
    """How tightly an expression has to bind to stand in that field of its parent without parentheses."""
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
