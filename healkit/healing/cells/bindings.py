"""What a cell binds, reads, changes and deletes.

Two readings of one text. What runs when the cell runs is walked in the order in which it does, so that a name which is
read before the cell binds it is told from one that is read after. What is inside of functions runs some other time;
for that Python's own `symtable` says which names are a function's own and which it looks up in the notebook. It no
longer tells a comprehension's names from those around it (3.12 and later), so those come from the syntax tree.
"""

from __future__ import annotations

import ast
import functools
import symtable
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from healkit.healing.cells.nodes import names_in
from healkit.healing.cells.text import CellText, read_text
from healkit.healing.cells.walk import Binding, Inner, Walk

_COMPREHENSIONS = frozenset({"listcomp", "setcomp", "dictcomp", "genexpr"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Names:
    """A cell's names.

    bound: those that it gives a value. needs: those that it reads before, in order. late: those that its functions
    look up when they are called. changed: those whose value it changes in place. deleted: name → line. inner: names
    that exist only inside of a function, class or comprehension. stars: modules of which everything is imported.
    parsed: whether the text is Python at all.
    """

    bound: Mapping[str, Binding] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    deleted: Mapping[str, int] = field(default_factory=dict)
    inner: Mapping[str, Inner] = field(default_factory=dict)
    stars: tuple[str, ...] = ()
    opaque: str = ""
    parsed: bool = True


@functools.lru_cache(maxsize=2048)
def names_of(source: str) -> Names:
    """The names of a cell's text; never raises."""
    text = read_text(source)
    if text.tree is None:
        return Names(opaque=text.opaque, parsed=False)
    try:
        return _read(text)
    except (SyntaxError, ValueError, RecursionError):
        return Names(opaque=text.opaque, parsed=False)


@functools.lru_cache(maxsize=256)
def functions_of(source: str) -> Mapping[str, frozenset[str]]:
    """The functions and methods in a cell, by name: their code without its position and its docstring's spaces."""
    tree = read_text(source).tree
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, _FUNCTIONS):
            found.setdefault(node.name, set()).add(ast.dump(node))
    return {name: frozenset(codes) for name, codes in found.items()}


@functools.lru_cache(maxsize=1024)
def function_reads(source: str, function: str) -> frozenset[str]:
    """The names that the functions of that name in a cell mention."""
    tree = read_text(source).tree
    return frozenset(
        inner.id
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, _FUNCTIONS) and node.name == function
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name)
    )


def _read(text: CellText) -> Names:
    assert text.tree is not None
    walk = Walk()
    walk.block(text.tree.body)
    for name, line in text.bound.items():
        walk.bound.setdefault(name, Binding(line))
    for node in ast.walk(text.tree):
        if isinstance(node, ast.comprehension):
            for name in names_in(node.target):
                walk.inner.setdefault(name, Inner("comprehension", "", node.target.lineno))
    late: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = symtable.symtable(text.code, "<cell>", "exec")
    for name, binding in _scopes(table, late, walk.inner, within=False):
        walk.bound.setdefault(name, binding)
    return Names(
        walk.bound,
        tuple(walk.needs),
        tuple(name for name in late if name not in walk.bound),
        frozenset(walk.changed),
        walk.deleted,
        {name: inner for name, inner in walk.inner.items() if name not in walk.bound},
        tuple(walk.stars),
        text.opaque or walk.opaque,
    )


def _scopes(
    table: symtable.SymbolTable, late: dict[str, None], inner: dict[str, Inner], *, within: bool
) -> Iterator[tuple[str, Binding]]:
    """Fill in what functions look up and what is only theirs; yields names that they bind as `global`."""
    for child in table.get_children():
        name, kind = child.get_name(), str(child.get_type())
        comprehension = name in _COMPREHENSIONS
        function = "function" in kind and not comprehension
        what = "class" if "class" in kind else "function"
        for symbol in child.get_symbols():
            if symbol.is_declared_global() and symbol.is_assigned():
                yield symbol.get_name(), Binding(child.get_lineno(), f"a call of {name}()")
            elif symbol.is_global() and symbol.is_referenced():
                if function or within:
                    late[symbol.get_name()] = None
            elif symbol.is_local() and (
                symbol.is_assigned() or symbol.is_parameter() or symbol.is_imported()
            ):
                owner = "" if name == "lambda" else name
                inner.setdefault(symbol.get_name(), Inner(what, owner, child.get_lineno()))
        yield from _scopes(child, late, inner, within=within or function)
