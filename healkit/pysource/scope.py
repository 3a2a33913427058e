"""Names that code binds, reads and can see.

Read off the syntax tree and not off `symtable`, whose tables have no link to the nodes and, from Python 3.12 on, do not
separate the names of a comprehension from those around it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from healkit.pysource.nodes import Comprehension, Function, parameters

if TYPE_CHECKING:
    from healkit.pysource.source import Source  # workers read a tool's shape without it

_BUILTINS_AND_DUNDERS = frozenset(vars(builtins))
BUILTINS = frozenset(name for name in _BUILTINS_AND_DUNDERS if not name.startswith("_"))
#: Names that a tool's module has besides Python's own.
PROVIDED = frozenset({"__name__", "__file__", "arguments", "mcp", "trace", "Tool"})
#: What binds a name. `comprehension`: any assignment inside of one, `:=` included.
BindingKind = Literal[
    "parameter", "variable", "comprehension", "definition", "import", "exception", "pattern"
]
Scope = Function | ast.Lambda | ast.ClassDef | ast.Module


def bound_names(owner: ast.AST, *kinds: BindingKind) -> dict[str, None]:
    """Return the names that a function, class or module binds itself, in text order.

    kinds: what may bind them; anything by default. What `global` or `nonlocal` moves elsewhere is counted here too.
    """
    return {name: None for name, kind in _bindings(owner) if not kinds or kind in kinds}


def _bindings(owner: ast.AST) -> Iterator[tuple[str, BindingKind]]:
    if isinstance(owner, Function | ast.Lambda):
        yield from ((arg.arg, "parameter") for arg in parameters(owner))
    body = getattr(owner, "body", [])
    pending: list[tuple[ast.AST, bool]] = [(node, False) for node in body] if isinstance(body, list) else []
    while pending:
        node, inside = pending.pop(0)
        yield from _bound_by(node, inside)
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            inside = inside or isinstance(node, Comprehension)
            pending[:0] = [(child, inside) for child in ast.iter_child_nodes(node)]


def _bound_by(node: ast.AST, in_comprehension: bool) -> Iterator[tuple[str, BindingKind]]:
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id, "comprehension" if in_comprehension else "variable"
    elif isinstance(node, Function | ast.ClassDef):
        yield node.name, "definition"
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name.partition(".")[0], "import") for alias in node.names)
    elif isinstance(node, ast.ExceptHandler):
        if node.name:
            yield node.name, "exception"
    elif isinstance(node, ast.MatchAs | ast.MatchStar):
        if node.name:
            yield node.name, "pattern"
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, "pattern"


def names_in(node: ast.AST) -> set[str]:
    """Return every name that a piece of code mentions."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def stored_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a piece of code assigns to, in the order of `ast.walk`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def read_names(node: ast.AST) -> dict[str, None]:
    """Return the names that a piece of code reads, in the order of `ast.walk`."""
    return {
        part.id: None
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }


def free_names(node: ast.AST) -> frozenset[str]:
    """Return the names that have to be in scope for an expression or a statement to run, without built-in ones."""
    bound = set(stored_names(node))
    bound |= {arg.arg for part in ast.walk(node) if isinstance(part, ast.Lambda) for arg in parameters(part)}
    return frozenset(read_names(node).keys() - _BUILTINS_AND_DUNDERS - bound)


def names_at(source: Source, node: ast.AST) -> list[str]:
    """Return the names that can be read at a node: its function's first, then those further out."""
    found: dict[str, None] = {}
    for owner in (node, *source.ancestors(node)):
        if isinstance(owner, Function | ast.Lambda | ast.Module):
            found.update(bound_names(owner))
    return list(found)


def unknown_names(tree: ast.Module) -> list[str]:
    """Return the names that are read somewhere and bound nowhere."""
    bound = {*PROVIDED, *_BUILTINS_AND_DUNDERS}
    for node in ast.walk(tree):
        if isinstance(node, Scope):
            bound |= bound_names(node).keys()
    return [name for name in read_names(tree) if name not in bound]
