"""Edits as templates over names, by anti-unification.

A fix is the smallest part of a tree that differs before and after. Parts that both sides share become holes, and so
does each name that is not Python's own. A template fits any code with the same rest. A fix gives several templates,
from the bare edit to the edit in its statement; their outcomes show which of them applies elsewhere. After Bader et
al., "Getafix: Learning to Fix Bugs Automatically", OOPSLA 2019.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import BUILTINS, names_in, type_of
from healkit.parts.explain.source import Source, names_at, parenthesized, required_precedence

#: Names of holes begin so: one that the old side binds, and one that only the new side has.
HOLE, FRESH = "_hole", "_fresh"
#: Place of a template that replaces statements.
BLOCK = "block"
#: Most nodes of a template, statements of a side, and names that are tried for a fresh hole.
_NODES_MAX, _STATEMENTS_MAX, _FRESH_MAX = 60, 2, 6
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_SIMPLE = (
    ast.Return | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Raise | ast.Delete | ast.Assert
)
#: Expressions that are none by themselves.
_PARTS = ast.FormattedValue | ast.Slice | ast.Starred
_OUT_OF_REACH = ("annotation", "returns", "decorator_list", "ctx", "type_comment", "kind")


@dataclasses.dataclass(frozen=True, slots=True)
class Template:
    """Edit with holes: Python source `old` becomes `new` in a place.

    place: A field as in `If.test`, `block` for statements, empty for any expression.
    """

    old: str
    new: str
    place: str = ""

    @property
    def adds(self) -> bool:
        """Return whether it adds a statement."""
        return self.place == BLOCK and len(ast.parse(self.new).body) > len(ast.parse(self.old).body)


@dataclasses.dataclass(frozen=True, slots=True)
class _Change:
    """Smallest differing part, its field, and the expressions around it with both of their sides."""

    old: Sequence[ast.AST]
    new: Sequence[ast.AST]
    place: str
    around: tuple[tuple[ast.AST, ast.AST], ...] = ()


def templates_of(
    before: str, after: str, values: Mapping[str, Any]
) -> list[tuple[Template, tuple[str, ...]]]:
    """Return the templates of a change, each with its holes' types if known; the most general first.

    A change that is not one small edit gives none.

    values: Known values by name.
    """
    try:
        change = _smallest(ast.parse(before), ast.parse(after), "", ())
        if change is None:
            return []
        is_block = change.place == BLOCK
        sides = [(change.old, change.new, BLOCK if is_block else "")]
        sides += [] if is_block else [(change.old, change.new, change.place)]
        sides += [([old], [new], BLOCK if isinstance(old, ast.stmt) else "") for old, new in change.around]
        candidates = [_generalized(*side, dict(values)) for side in sides]
    except _UNREADABLE:
        return []
    return list({template: (template, types) for template, types in filter(None, candidates)}.values())


def _same(one: object, other: object) -> bool:
    if isinstance(one, ast.AST) and isinstance(other, ast.AST):
        return ast.dump(one) == ast.dump(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


def _smallest(
    old: ast.AST, new: ast.AST, place: str, around: tuple[tuple[ast.AST, ast.AST], ...]
) -> _Change | None:
    whole = isinstance(old, ast.expr | _SIMPLE) and not isinstance(old, _PARTS)
    whole_change = None
    if whole:
        whole_change = _Change([old], [new], BLOCK if isinstance(old, ast.stmt) else place, around)
    differ = [name for name in old._fields if not _same(getattr(old, name, None), getattr(new, name, None))]
    if type(old) is not type(new) or len(differ) != 1:
        return whole_change
    old_value, new_value = getattr(old, differ[0]), getattr(new, differ[0])
    if isinstance(old_value, list) and isinstance(new_value, list):
        start = _common(old_value, new_value)
        stop = _common(old_value[start:][::-1], new_value[start:][::-1])
        old_middle, right = old_value[start : len(old_value) - stop], new_value[start : len(new_value) - stop]
        if len(old_middle) != 1 or len(right) != 1:
            return (
                _of_statements(old_value, old_middle, right, start)
                if isinstance((old_value or new_value)[0], ast.stmt)
                else whole_change
            )
        old_value, new_value = old_middle[0], right[0]
    if not isinstance(old_value, ast.AST) or not isinstance(new_value, ast.AST):
        return whole_change
    around = ((old, new), *around) if whole else () if isinstance(old, ast.stmt) else around
    return _smallest(old_value, new_value, f"{type(old).__name__}.{differ[0]}", around) or whole_change


def _common(one: list[Any], other: list[Any]) -> int:
    """Return how many items are equal at the beginning of two lists."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, pair in pairs if not _same(*pair)), min(len(one), len(other)))


def _of_statements(
    block: list[ast.stmt], left: list[ast.stmt], right: list[ast.stmt], start: int
) -> _Change | None:
    """Return a change of statements; one that only inserts is anchored at the statement after it, or before."""
    if not left:
        after = block[start : start + 1]
        anchor = after or block[start - 1 : start]
        left, right = anchor, [*right, *anchor] if after else [*anchor, *right]
    fits = max(len(left), len(right)) <= _STATEMENTS_MAX
    return _Change(left, right, BLOCK) if fits else None


def _generalized(
    old: Sequence[ast.AST], new: Sequence[ast.AST], place: str, values: dict[str, Any]
) -> tuple[Template, tuple[str, ...]] | None:
    """Return the edit with its holes; None for one that is too large, or whose old side is only a hole."""
    if sum(1 for side in (*old, *new) for _ in ast.walk(side)) > _NODES_MAX:
        return None
    anchors = {_key(node) for node in old}
    new_keys = {_key(part) for side in new if _key(side) not in anchors for part in ast.walk(side)}
    holes = _Holes(new_keys, values)
    old_nodes = [holes.visit(copy.deepcopy(node)) for node in old]
    holes.known = None
    right = [holes.visit(copy.deepcopy(node)) for node in new]
    if all(isinstance(node, ast.Name) for node in old_nodes):
        return None
    return Template(_text(old_nodes), _text(right), place), tuple(holes.types)


def _text(nodes: Sequence[ast.AST]) -> str:
    return "\n".join(ast.unparse(node) for node in nodes)


def _key(node: ast.AST) -> str:
    return ast.dump(node).replace("Store()", "Load()")


class _Holes(ast.NodeTransformer):
    """Puts holes into an edit: first its old side; then, with `known` None, its new one.

    known: The parts of the other side.
    types: Types of the holes' first values, in the holes' order; empty if unknown.
    """

    def __init__(self, known: set[str], values: dict[str, Any]) -> None:
        self.known: set[str] | None = known
        self.types: list[str] = []
        self._names: dict[str, str] = {}
        self._values = values

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                self.generic_visit(part)  # its texts and its fields' formats stay
        if not isinstance(node, ast.expr) or isinstance(node, _PARTS | ast.JoinedStr):
            return node if isinstance(node, ast.JoinedStr) else self.generic_visit(node)
        key, builtin = _key(node), isinstance(node, ast.Name) and node.id in BUILTINS
        is_local_name = isinstance(node, ast.Name) and not builtin
        if key not in self._names and (
            is_local_name or (self.known is not None and key in self.known and not builtin)
        ):
            self._names[key] = f"{FRESH if self.known is None else HOLE}{len(self._names)}"
            self.types.append(type_of(node, self._values))
        if key in self._names:
            return ast.Name(self._names[key], getattr(node, "ctx", ast.Load()))
        return self.generic_visit(node)


@functools.lru_cache(maxsize=4096)
def _parsed(text: str, place: str) -> tuple[ast.AST, ...]:
    return tuple(ast.parse(text).body) if place == BLOCK else (ast.parse(text, mode="eval").body,)


def check_template(template: Template) -> None:
    """Raise `ValueError` for a template that no fix can give: not code, too large, or one that fits everything."""
    try:
        sides = [_parsed(text, template.place) for text in (template.old, template.new)]
    except _UNREADABLE as error:
        raise ValueError(f"it is not code: {error}") from None
    nodes = [node for side in sides for part in side for node in ast.walk(part)]
    if len(nodes) > _NODES_MAX + 2 * _STATEMENTS_MAX or max(map(len, sides)) > _STATEMENTS_MAX + 1:
        raise ValueError("it is too large")
    if not sides[0] or all(isinstance(part, ast.Name) for part in sides[0]):
        raise ValueError("it would fit any code")


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """Node that a template fits, the values of its holes there, and the node's field or place in its block."""

    node: ast.AST
    bound: dict[str, ast.AST]
    field: str = ""
    last: ast.AST | None = None

    def types(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the types of the bound holes as far as known."""
        return tuple(type_of(node, dict(values)) for node in self.bound.values())


class Sites:
    """Code's nodes by kind, in which templates are looked up."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._nodes: dict[type[ast.AST], list[tuple[ast.AST, ast.AST, str]]] = {}
        self._statements: list[tuple[list[ast.stmt], int]] = []
        for node in ast.walk(source.tree):
            for field, value in ast.iter_fields(node):
                if field in _OUT_OF_REACH or isinstance(node, ast.JoinedStr):
                    continue
                for at, child in enumerate(children := value if isinstance(value, list) else [value]):
                    if isinstance(child, ast.stmt):
                        self._statements.append((children, at))
                    elif isinstance(child, ast.expr):
                        self._nodes.setdefault(type(child), []).append((child, node, field))

    def fits(self, template: Template) -> Iterator[Fit]:
        """Yield where a template fits."""
        pattern = _parsed(template.old, template.place)
        if template.place == BLOCK:
            for block, at in self._statements:
                nodes, bound = block[at : at + len(pattern)], dict[str, ast.AST]()
                if _matches(list(pattern), nodes, bound):
                    yield Fit(nodes[0], bound, last=nodes[-1])
            return
        for node, parent, field in self._nodes.get(type(pattern[0]), ()):
            bound = {}
            if template.place in ("", f"{type(parent).__name__}.{field}") and _matches(
                pattern[0], node, bound
            ):
                yield Fit(node, bound, field)

    def edits(self, template: Template, fit: Fit) -> Iterator[Edit]:
        """Yield the template's edit there; a name that only its new side has becomes each name in scope."""
        new = _parsed(template.new, template.place)
        fresh = {name for part in new for name in names_in(part) if name.startswith(FRESH)}
        used = {name for node in fit.bound.values() for name in names_in(node)}
        names = [name for name in names_at(self._source, fit.node) if name not in used][:_FRESH_MAX]
        filled: list[dict[str, ast.AST]] = [fit.bound] if not fresh else []
        if len(fresh) == 1:
            filled = [{**fit.bound, next(iter(fresh)): ast.Name(name, ast.Load())} for name in names]
        for bound in filled:
            with contextlib.suppress(*_UNREADABLE):  # what a hole stands for may not fit its other places
                yield from self._edit(fit, _text([_Filled(bound).visit(copy.deepcopy(part)) for part in new]))

    def _edit(self, fit: Fit, text: str) -> Iterator[Edit]:
        source = self._source
        if fit.last is None:
            needed = required_precedence(source.parents[fit.node], fit.field)
            yield Edit(*source.span(fit.node), parenthesized(text, needed))
        elif isinstance(fit.node, ast.stmt) and source.starts_line(fit.node):
            indent = source.newline + source.indent(fit.node.lineno)
            yield Edit(
                source.span(fit.node)[0], source.span(fit.last)[1], (text or "pass").replace("\n", indent)
            )


def _matches(pattern: object, node: object, bound: dict[str, ast.AST]) -> bool:
    if isinstance(pattern, ast.Name) and pattern.id.startswith(HOLE):
        kinds = ast.Name if isinstance(pattern.ctx, ast.Store) else ast.expr
        if not isinstance(node, kinds) or isinstance(node, _PARTS):
            return False
        assert isinstance(node, ast.AST)
        return _key(bound.setdefault(pattern.id, node)) == _key(node)
    if isinstance(pattern, list) and isinstance(node, list):
        pairs = zip(pattern, node, strict=False)
        return len(pattern) == len(node) and all(
            _matches(pattern_part, node_part, bound) for pattern_part, node_part in pairs
        )
    if isinstance(pattern, ast.AST):
        fields = [name for name in pattern._fields if name not in _OUT_OF_REACH]
        return type(pattern) is type(node) and all(
            _matches(getattr(pattern, name, None), getattr(node, name, None), bound) for name in fields
        )
    return type(pattern) is type(node) and pattern == node


class _Filled(ast.NodeTransformer):
    """Puts the values back into the holes."""

    def __init__(self, bound: Mapping[str, ast.AST]) -> None:
        self._bound = bound

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self._bound.get(node.id, node))
