"""A tool's code with its tree, and splices at its nodes.

Every change is a splice of the text, so that comments, blank lines and the writer's own formatting stay. Positions
are characters; the tree's columns are UTF-8 bytes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from healkit.contracts.healing import Edit
from healkit.contracts.shapes import Function

N = TypeVar("N", bound=ast.AST)

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
#: Expressions that need no brackets, whatever is put next to them.
_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set, ast.JoinedStr,
          ast.ListComp, ast.DictComp, ast.SetComp)  # fmt: skip


class Source:
    """One text that parses; `tree` is its tree."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.tree = tree
        self.lines = _LINE.findall(text)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def newline(self) -> str:
        """How its lines end."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def at(self, line: int, column: int) -> int:
        """The character of a line (from 1) and a column (UTF-8 bytes from 0)."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return self._starts[line - 1] + (
            column if text.isascii() else len(text.encode()[:column].decode(errors="replace"))
        )

    def line_start(self, line: int) -> int:
        """The first character of a line (from 1)."""
        return self._starts[line - 1]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node stands: characters, half-open. Raises `ValueError` for one without a place."""
        if isinstance(node, ast.comprehension):
            return self.span(node.target)[0], self.span((node.ifs or [node.iter])[-1])[1]
        line, end = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if line is None or end is None:
            raise ValueError(f"{type(node).__name__} has no place")
        return self.at(line, node.col_offset), self.at(end, node.end_col_offset)  # type: ignore[attr-defined]  # what has a line has a column

    def of(self, node: ast.AST) -> str:
        """The node's own text."""
        start, end = self.span(node)
        return self.text[start:end]

    def atom(self, node: ast.AST) -> str:
        """Its text, in brackets where what is put next to it could tear it apart."""
        text = self.of(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def put(self, node: ast.AST, text: str) -> list[Edit]:
        """The node replaced."""
        return [Edit(*self.span(node), text)]

    def wrap(self, node: ast.AST, left: str, right: str) -> list[Edit]:
        """The node with something on either side."""
        start, end = self.span(node)
        return [Edit(start, start, left), Edit(end, end, right)]

    def indent(self, line: int) -> str:
        """The white space that a line begins with."""
        text: str = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip(" \t"))]

    def unit(self) -> str:
        """What one step of indentation is here; four spaces where none is seen."""
        found = [self.indent(stmt.lineno) for stmt in ast.walk(self.tree) if isinstance(stmt, ast.stmt)]
        return str(min((indent for indent in found if indent), key=len, default="    "))

    def starts_line(self, stmt: ast.stmt) -> bool:
        """Whether nothing stands before it in its line."""
        line = first_line(stmt)
        return not self.text[self._starts[line - 1] : self.span(stmt)[0]].strip() or line < stmt.lineno

    def line_before(self, stmt: ast.stmt, *texts: str) -> list[Edit]:
        """New lines above a statement, as far in as it; none where it does not begin its line."""
        if not self.starts_line(stmt):
            return []
        line = first_line(stmt)
        indent = self.indent(line)
        at = self._starts[line - 1]
        return [Edit(at, at, "".join(f"{indent}{text}{self.newline}" for text in texts))]

    def line_after(self, stmt: ast.stmt, text: str) -> list[Edit]:
        """A new line below a statement, as far in as it."""
        end = stmt.end_lineno or stmt.lineno
        if not self.starts_line(stmt):
            return []
        at = self._starts[end]
        before = "" if self.lines[end - 1].endswith(("\n", "\r")) else self.newline
        return [Edit(at, at, f"{before}{self.indent(first_line(stmt))}{text}{self.newline}")]

    def delete(self, stmt: ast.stmt) -> list[Edit]:
        """A statement with its lines gone; `pass` where its block would be empty."""
        parent = self.parents[stmt]
        alone = any(getattr(parent, block, None) == [stmt] for block in ("body", "orelse", "finalbody"))
        if alone or not self.starts_line(stmt):
            return self.put(stmt, "pass")
        return [Edit(self._starts[first_line(stmt) - 1], self._starts[stmt.end_lineno or stmt.lineno], "")]

    def function_around(self, node: ast.AST) -> Function | None:
        """The nearest function around a node."""
        found = self.parents.get(node)
        while found is not None and not isinstance(found, Function):
            found = self.parents.get(found)
        return found

    def enclosing(self, node: ast.AST, *kinds: type[N]) -> N | None:
        """The nearest node around it of one of these kinds."""
        found = self.parents.get(node)
        while found is not None and not isinstance(found, kinds):
            found = self.parents.get(found)
        return found

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that a node belongs to; itself, where it is one."""
        return node if isinstance(node, ast.stmt) else (self.enclosing(node, ast.stmt) or self.tree.body[0])

    def function_at(self, line: int) -> Function | None:
        """The innermost function around a line."""
        around = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, Function) and first_line(node) <= line <= (node.end_lineno or 0)
        ]
        return max(around, key=lambda node: node.lineno, default=None)

    def import_line(self, text: str) -> list[Edit]:
        """A new import, below the docstring and what must come first, beside the other imports."""
        body = self.tree.body
        first = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        while first < len(body) and getattr(body[first], "module", None) == "__future__":
            first += 1
        if first >= len(body):
            at = len(self.text)
            return [Edit(at, at, f"{text}{self.newline}")]
        after = body[first]
        if first and not isinstance(after, ast.Import | ast.ImportFrom):
            at = self._starts[body[first - 1].end_lineno or first]
            return [Edit(at, at, f"{self.newline}{text}{self.newline}")]
        gap = 0 if isinstance(after, ast.Import | ast.ImportFrom) else 2 if _is_definition(after) else 1
        at = self._starts[first_line(after) - 1]
        return [Edit(at, at, text + self.newline * (1 + gap))]


def first_line(stmt: ast.AST) -> int:
    """The first line of a statement, its decorators' included."""
    decorators = getattr(stmt, "decorator_list", [])
    return int(min([stmt.lineno, *(d.lineno for d in decorators)]))  # type: ignore[attr-defined]  # every statement has one, an AST node need not


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it, without the insides of the functions and classes in it."""
    yield node
    pending = list(ast.iter_child_nodes(node))
    while pending:
        child = pending.pop(0)
        yield child
        if not isinstance(child, Function | ast.ClassDef | ast.Lambda):
            pending[:0] = ast.iter_child_nodes(child)


def header_nodes(stmt: ast.stmt) -> Iterator[ast.AST]:
    """What a statement consists of, without the blocks that belong to it."""
    for field, value in ast.iter_fields(stmt):
        if field in {"body", "orelse", "finalbody", "handlers", "cases"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from ast.walk(child)


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, Function | ast.ClassDef)
