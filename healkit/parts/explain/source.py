r"""Source text with its tree, and edits at its nodes.

Each change replaces a piece of the text, so comments, blank lines, quotes and layout outside it stay unchanged.
`ast.unparse` would lose them, and a concrete syntax tree takes ten times as long to parse. `ast` counts columns in
UTF-8 bytes, but positions here are characters. Lines end as in the tokenizer (`\n`, `\r\n`, `\r` and nothing else).
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import Function, bound_names, first_line

N = TypeVar("N", bound=ast.AST)

_LINE_END = re.compile(r"\r\n|\r|\n")
#: Expressions that need no parentheses, whatever is put next to them.
_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set, ast.JoinedStr,
          ast.ListComp, ast.DictComp, ast.SetComp)  # fmt: skip


class Source:
    """Source text with its tree; maps nodes to places in the text and makes edits there.

    tree: The tree of that text, if it was already parsed.

    Raises `SyntaxError` or `ValueError` if the text does not parse. Lines count from 1, positions are characters, spans
    are half-open. `newline` is the text's own line end.
    """

    def __init__(self, text: str, tree: ast.Module | None = None) -> None:
        self.text = text
        self.tree = ast.parse(text) if tree is None else tree
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._stops = [*(end.start() for end in ends), len(text)]
        self.newline = ends[0].group() if ends else "\n"
        self._ascii = text.isascii()

    # Lines and positions

    @cached_property
    def lines(self) -> list[str]:
        """Lines of the text with their line ends."""
        lines = [self.text[start:stop] for start, stop in pairwise([*self._starts, len(self.text)])]
        return lines if lines[-1] else lines[:-1]

    def line(self, number: int) -> str:
        """Return a line without its line end."""
        return self.text[self._starts[number - 1] : self._stops[number - 1]]

    def line_start(self, number: int) -> int:
        """Return where a line begins; for the line after the last one, where the text ends."""
        return self._starts[number - 1] if number <= len(self._starts) else len(self.text)

    def line_end(self, number: int) -> int:
        """Return where a line ends, before its line end."""
        return self._stops[number - 1]

    def offset(self, line: int, column: int) -> int:
        """Return the position of a line and a column in UTF-8 bytes, which is what `ast` counts."""
        start = self._starts[line - 1]
        if self._ascii:
            return start + column
        text = self.text[start : self._stops[line - 1]]
        return start + len(text.encode(errors="surrogatepass")[:column].decode(errors="ignore"))

    def span(self, node: Any) -> tuple[int, int]:
        """Return where a node is, without parentheses around it; raises `ValueError` for one without a place."""
        span: tuple[int, int] | None = getattr(node, "_span", None)
        if span is None:
            span = node._span = self._span(node)
        return span

    def _span(self, node: Any) -> tuple[int, int]:
        if isinstance(node, ast.comprehension):
            return self.span(node.target)[0], self.span((node.ifs or [node.iter])[-1])[1]
        if getattr(node, "end_lineno", None) is None:
            raise ValueError(f"{type(node).__name__} has no place")
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def segment(self, node: ast.AST) -> str:
        """Return a node's own text."""
        start, end = self.span(node)
        return self.text[start:end]

    def atom(self, node: ast.AST) -> str:
        """Return a node's text, in parentheses if a neighbouring operator could bind to a part of it."""
        text = self.segment(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def in_parentheses(self, node: ast.AST) -> bool:
        """Return whether the characters next to a node are a pair of parentheses."""
        start, end = self.span(node)
        return self.text[:start].rstrip().endswith("(") and self.text[end:].lstrip().startswith(")")

    def indent(self, line: int) -> str:
        """Return the white space at the start of a line."""
        text = self.line(line)
        return text[: len(text) - len(text.lstrip(" \t"))]

    @cached_property
    def indent_unit(self) -> str:
        """White space of one level, as the first block has it; four spaces if there is none."""
        for stmt in _statements(self.tree):
            body = getattr(stmt, "body", None)
            if body and self.starts_line(body[0]) and self.starts_line(stmt):
                inner, outer = self.indent(body[0].lineno), self.indent(stmt.lineno)
                if len(inner) > len(outer) and inner.startswith(outer):
                    return inner[len(outer) :]
        return "    "

    def starts_line(self, stmt: ast.stmt) -> bool:
        """Return whether nothing is before a statement in its line."""
        line = first_line(stmt)
        return line < stmt.lineno or not self.text[self.line_start(line) : self.span(stmt)[0]].strip()

    # Nodes around a node

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def enclosing(self, node: ast.AST, *kinds: type[N]) -> N | None:
        """Return the nearest node of these kinds around a node."""
        return next((parent for parent in self.ancestors(node) if isinstance(parent, kinds)), None)

    def enclosing_function(self, node: ast.AST) -> Function | None:
        """Return the nearest function around a node."""
        return next((parent for parent in self.ancestors(node) if isinstance(parent, Function)), None)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that a node belongs to; itself, if it is one."""
        return node if isinstance(node, ast.stmt) else (self.enclosing(node, ast.stmt) or self.tree.body[0])

    def function_at(self, line: int) -> Function | None:
        """Return the innermost function around a line."""
        around = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, Function) and first_line(node) <= line <= (node.end_lineno or 0)
        ]
        return max(around, key=lambda node: node.lineno, default=None)

    # Edits

    def replace(self, node: ast.AST, text: str) -> list[Edit]:
        """Replace a node."""
        return [Edit(*self.span(node), text)]

    def replace_all(self, nodes: Iterable[ast.AST], text: str) -> list[Edit]:
        """Replace each of the nodes by the same text."""
        return [Edit(*self.span(node), text) for node in nodes]

    def add_argument(self, call: ast.Call, text: str) -> list[Edit]:
        """Add an argument at the end of a call."""
        end = self.span(call)[1] - 1
        return [Edit(end, end, f", {text}" if call.args or call.keywords else text)]

    def remove_argument(self, call: ast.Call, argument: ast.keyword) -> list[Edit]:
        """Remove a named argument of a call, with the comma before it or behind it."""
        arguments = [*call.args, *call.keywords]
        place, (start, end) = arguments.index(argument), self.span(argument)
        start = self.span(arguments[place - 1])[1] if place else start
        return [Edit(start, self.span(arguments[1])[0] if not place and arguments[1:] else end, "")]

    def wrap(self, node: ast.AST, left: str, right: str) -> list[Edit]:
        """Add text on both sides of a node."""
        start, end = self.span(node)
        return [Edit(start, start, left), Edit(end, end, right)]

    def insert_before(self, stmt: ast.stmt, *lines: str) -> list[Edit]:
        """Insert lines above a statement, indented like it; no edits if it does not begin its line."""
        if not self.starts_line(stmt):
            return []
        line = first_line(stmt)
        indent, at = self.indent(line), self.line_start(line)
        return [Edit(at, at, "".join(f"{indent}{text}{self.newline}" for text in lines))]

    def insert_after(self, stmt: ast.stmt, text: str) -> list[Edit]:
        """Insert a line below a statement, indented like it; no edits if it does not begin its line."""
        if not self.starts_line(stmt):
            return []
        end = stmt.end_lineno or stmt.lineno
        at = self.line_start(end + 1)
        before = "" if self.lines[end - 1].endswith(("\n", "\r")) else self.newline
        return [Edit(at, at, f"{before}{self.indent(first_line(stmt))}{text}{self.newline}")]

    def delete(self, stmt: ast.stmt) -> list[Edit]:
        """Delete a statement with its lines; put `pass` there if its block would be empty."""
        parent = self.parents[stmt]
        alone = any(getattr(parent, block, None) == [stmt] for block in ("body", "orelse", "finalbody"))
        if alone or not self.starts_line(stmt):
            return self.replace(stmt, "pass")
        start, end = self.line_start(first_line(stmt)), self.line_start((stmt.end_lineno or stmt.lineno) + 1)
        return [Edit(start, end, "")]

    def add_import(self, text: str) -> list[Edit]:
        """Insert import lines beside the other imports, below the docstring and `from __future__`."""
        body = self.tree.body
        first = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        while first < len(body) and getattr(body[first], "module", None) == "__future__":
            first += 1
        if first >= len(body):
            return [Edit(len(self.text), len(self.text), f"{text}{self.newline}")]
        after = body[first]
        beside = isinstance(after, ast.Import | ast.ImportFrom)
        if first and not beside:
            at = self.line_start((body[first - 1].end_lineno or first) + 1)
            return [Edit(at, at, f"{self.newline}{text}{self.newline}")]
        gap = 0 if beside else 2 if isinstance(after, Function | ast.ClassDef) else 1
        at = self.line_start(first_line(after))
        return [Edit(at, at, text + self.newline * (1 + gap))]


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements in a node, in text order."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.expr):
            yield from _statements(child)


# Operator precedence: when an expression needs parentheses
#
# The levels are those of the table "Operator precedence" in the Python reference, loosest first.


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
        has_parentheses = text[0] == "(" and isinstance(ast.parse(f"_{text}", mode="eval").body, ast.Call)
        return ATOM if has_parentheses else TUPLE
    return precedence(node)


def parenthesized(text: str, needed: int) -> str:
    """Return the expression's text, in parentheses if it binds less tightly than its place needs."""
    return text if text_precedence(text) >= needed else f"({text})"


def required_precedence(parent: ast.AST, field: str) -> int:
    """Return the precedence that an expression needs in a field of its parent to stand without parentheses."""
    if isinstance(parent, ast.BinOp):
        operator_precedence = _BINARY[type(parent.op)]
        if isinstance(parent.op, ast.Pow):
            return ATOM if field == "left" else FACTOR
        return operator_precedence if field == "left" else operator_precedence + 1
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


def names_at(source: Source, node: ast.AST) -> list[str]:
    """Return the names that can be read at a node: its function's first, then those further out."""
    names: dict[str, None] = {}
    for owner in (node, *source.ancestors(node)):
        if isinstance(owner, Function | ast.Lambda | ast.Module):
            names.update(bound_names(owner))
    return list(names)
