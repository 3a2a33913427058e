"""Parsed tool as the operators see it.

Everything that an operator needs to know about the code around a node is here, so an operator is only the few lines
that make its edits. It yields a `Change`; the search adds which operator made it and how likely it is.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from healkit.contracts.healing import Edit
from healkit.pysource.nodes import Function
from healkit.pysource.precedence import parenthesized, required_precedence
from healkit.pysource.scope import bound_names, stored_names
from healkit.pysource.shapes import is_script
from healkit.pysource.source import Source

#: Fields without an expression to change: annotations, decorators.
_OUT_OF_REACH = {"annotation", "returns", "decorator_list", "type_params", "type_comment"}


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """Edits of a program that make one variant.

    weight: its share of the operator's prior, up to the operator's `most`. guard: it avoids a failure without knowing
    the right result. line: the line whose suspicion counts, if that is not the node's own line.
    """

    edits: tuple[Edit, ...]
    weight: float = 1.0
    guard: bool = False
    line: int = 0


@dataclasses.dataclass(frozen=True)
class Hints:
    """Facts from outside the code: constants of expected values, types seen at run time, peers' code.

    errors: exceptions that are right. raised: exceptions that were seen and are wrong. columns: names of the columns of
    frames in the checks.
    """

    constants: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    raised: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)
    columns: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)
    types: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    peers: tuple[str, ...] = ()


class Program:
    """Parsed tool: places of its nodes and names in scope; raises `SyntaxError` if it does not parse."""

    def __init__(self, text: str, hints: Hints | None = None) -> None:
        self.source = Source(text)
        self.text = text
        self.tree = self.source.tree
        self.hints = hints or Hints()
        self.parents: dict[ast.AST, tuple[ast.AST, str]] = {}
        #: Nodes that may be changed, in text order.
        self.nodes: list[ast.AST] = []
        #: Each statement's block and its index there.
        self.places: dict[ast.stmt, tuple[list[ast.stmt], int]] = {}
        self._statement: dict[ast.AST, ast.stmt] = {}
        self._rows: dict[ast.stmt, tuple[int, int] | None] = {}
        self._visit(self.tree, None)

    def _visit(self, node: ast.AST, statement: ast.stmt | None) -> None:
        for field, value in ast.iter_fields(node):
            if field in _OUT_OF_REACH:
                continue
            children = value if isinstance(value, list) else [value]
            for position, child in enumerate(children):
                if not isinstance(child, ast.AST):
                    continue
                self.parents[child] = (node, field)
                inside = child if isinstance(child, ast.stmt) else statement
                if isinstance(child, ast.stmt):
                    self.places[child] = (value, position)
                if inside is not None:
                    self._statement[child] = inside
                if isinstance(child, ast.JoinedStr):
                    self.nodes.append(child)
                    self._visit_fstring(child, inside)
                elif not _is_docstring(field, child):
                    self.nodes.append(child)
                    self._visit(child, inside)

    def _visit_fstring(self, string: ast.JoinedStr, statement: ast.stmt | None) -> None:
        """Visit the expressions in an f-string whose places are right; before Python 3.12 some are not."""
        for part in string.values:
            if not isinstance(part, ast.FormattedValue):
                continue
            try:
                same = ast.dump(ast.parse(self.segment(part.value), mode="eval").body) == ast.dump(part.value)
            except (SyntaxError, ValueError, IndexError):
                same = False
            if not same:
                continue
            self.parents[part.value] = (part, "value")
            if statement is not None:
                self._statement[part.value] = statement
            self.nodes.append(part.value)
            self._visit(part.value, statement)

    # Nodes

    def segment(self, node: ast.AST) -> str:
        """Return a node's text."""
        return self.source.segment(node)

    def piece(self, node: ast.expr, needed: int) -> str:
        """Return an expression's text for a place that needs a certain precedence."""
        return parenthesized(self.segment(node), needed)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node around a node."""
        found = self.parents.get(node)
        return found[0] if found else None

    def field(self, node: ast.AST) -> str:
        """Return the field of its parent that a node is in."""
        found = self.parents.get(node)
        return found[1] if found else ""

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement around a node, or the node itself."""
        return node if isinstance(node, ast.stmt) else self._statement[node]

    def function(self, node: ast.AST) -> Function | None:
        """Return the innermost `def` around a node."""
        for around in self.around(node):
            if isinstance(around, Function):
                return around
        return None

    def home(self, node: ast.AST) -> Function | ast.Module | None:
        """Return the innermost `def` around a node; the module in a script; None for code beside functions."""
        return self.function(node) or (self.tree if self._is_script else None)

    @functools.cached_property
    def _is_script(self) -> bool:
        return is_script(self.tree)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        while (found := self.parents.get(node)) is not None:
            node = found[0]
            yield node

    def is_value(self, node: ast.AST) -> bool:
        """Return whether a node is an expression whose value is read."""
        if not isinstance(node, ast.expr) or isinstance(node, ast.Starred | ast.Slice):
            return False
        return isinstance(getattr(node, "ctx", None), ast.Load | None)

    # Edits

    def replace(self, node: ast.expr, text: str) -> Edit:
        """Return an edit that replaces an expression, in parentheses if needed."""
        found = self.parents.get(node)
        if found is not None and not self.source.in_parentheses(node):
            text = parenthesized(text, required_precedence(*found))
        return Edit(*self.source.span(node), text)

    def put(self, node: ast.expr, text: str, weight: float = 1.0, *, guard: bool = False) -> Iterator[Change]:
        """Yield the change that replaces an expression; nothing if the text stays the same."""
        if text != self.segment(node):
            text = self.quoted(text)
            try:
                yield Change((self.replace(node, text),), weight, guard)
            except SyntaxError:  # the text is no expression by itself
                return

    def quoted(self, text: str) -> str:
        """Return the text; a plain string literal gets the quotes that the program uses."""
        if (
            len(text) < 2
            or text[0] != "'"
            or text[-1] != "'"
            or not self._double
            or set(text[1:-1]) & set("'\"\\")
        ):
            return text
        return f'"{text[1:-1]}"'

    @functools.cached_property
    def _double(self) -> bool:
        return self.text.count('"') > self.text.count("'")

    def rows(self, statement: ast.stmt) -> tuple[int, int] | None:
        """Return the first and last line of a statement; None if other statements share them."""
        if statement not in self._rows:
            self._rows[statement] = self._rows_of(statement)
        return self._rows[statement]

    def _rows_of(self, statement: ast.stmt) -> tuple[int, int] | None:
        start, end = self.source.span(statement)
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        last = statement.end_lineno or statement.lineno
        before = self.text[self.source.line_start(statement.lineno) : start]
        after = self.text[end : self.source.line_end(last)].strip()
        return None if before.strip() or (after and not after.startswith("#")) else (first, last)

    def indent(self, statement: ast.stmt) -> str:
        """Return the white space before a statement."""
        return self.text[self.source.line_start(statement.lineno) : self.source.span(statement)[0]]

    def insert(self, statement: ast.stmt, lines: Sequence[str], *, after: bool = False) -> Edit | None:
        """Return an edit that inserts lines before or after a statement, indented like it.

        A tab in a line is one level of indentation. None if the statement shares its lines with others.
        """
        rows = self.rows(statement)
        if rows is None:
            return None
        indent, step = self.indent(statement), self.source.indent_unit
        block = [indent + line.replace("\t", step) for line in lines]
        newline = self.source.newline
        if after:
            at = self.source.line_end(rows[1])
            return Edit(at, at, newline + newline.join(block))
        at = self.source.line_start(rows[0])
        return Edit(at, at, newline.join(block) + newline)

    # Names in scope

    def names(self, node: ast.AST) -> list[str]:
        """Return the variables that can be read at a node, innermost first."""
        found: dict[str, None] = {}
        for around in self.around(node):
            if isinstance(around, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
                if any(part is node or self.parent(node) is part for part in around.generators[:1]):
                    continue
                for part in around.generators:
                    found.update(dict.fromkeys(stored_names(part.target)))
            elif isinstance(around, Function | ast.Lambda | ast.Module):
                found.update(dict.fromkeys(self.locals(around)))
        return list(found)

    def locals(self, owner: Any) -> list[str]:
        """Return the variables of a function or module, parameters first, without functions and imports."""
        known: list[str] | None = getattr(owner, "_locals", None)
        if known is None:
            found = bound_names(owner, "parameter", "variable")
            known = owner._locals = [name for name in found if name != "_"]
        return known

    @functools.cached_property
    def defined(self) -> dict[str, Function]:
        """Functions of the program by name."""
        return {node.name: node for node in ast.walk(self.tree) if isinstance(node, Function)}

    def types(self, name: str, node: ast.AST) -> frozenset[str]:
        """Return the type names that a variable was seen to have; empty if it was not seen."""
        function = self.function(node)
        seen = self.hints.types
        if function is not None and (found := seen.get(f"{function.name}.{name}")):
            return found
        return seen.get(name, frozenset())


def _is_docstring(field: str, child: Any) -> bool:
    """Return whether a node is a string for the reader, such as a docstring."""
    return (
        field == "body"
        and isinstance(child, ast.Expr)
        and isinstance(child.value, ast.Constant)
        and isinstance(child.value.value, str)
    )
