"""Dataflow of a cell: the names that it binds and reads.

Code that runs when the cell runs is visited in the order in which it runs, so that a read before the cell binds the
name differs from one after. Functions run later; for their bodies `symtable` tells which names are their own and which
they look up in the notebook. From Python 3.12 on it does not separate the names of a comprehension from those around
it, so those come from the syntax tree.
"""

from __future__ import annotations

import ast
import functools
import symtable
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from healkit.cells.cell_source import CellSource, read_cell
from healkit.cells.flow_visitor import Binding, FlowVisitor, InnerName
from healkit.pysource.nodes import Function
from healkit.pysource.scope import names_in

_COMPREHENSIONS = frozenset({"listcomp", "setcomp", "dictcomp", "genexpr"})


@dataclass(frozen=True)
class CellDataflow:
    """Names of a cell and what it does with them.

    bound: names that it binds. reads: names that it reads before it binds them, in order. guarded_reads: the same,
    inside of a `try` that catches the NameError. deferred_reads: names that its functions look up when they are called.
    mutated: names whose value it changes in place. deleted: name → line. inner_names: names that exist only inside of a
    function, class, comprehension or `except`. star_imports: modules imported with `*`. opaque: what may define any
    other name, or an empty text. parsed: False if the text is not Python.
    """

    bound: Mapping[str, Binding] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    guarded_reads: tuple[str, ...] = ()
    deferred_reads: tuple[str, ...] = ()
    mutated: frozenset[str] = frozenset()
    deleted: Mapping[str, int] = field(default_factory=dict)
    inner_names: Mapping[str, InnerName] = field(default_factory=dict)
    star_imports: tuple[str, ...] = ()
    opaque: str = ""
    parsed: bool = True


@functools.lru_cache(maxsize=2048)
def dataflow_of(source: str) -> CellDataflow:
    """Return the dataflow of a cell's text; never raises."""
    text = read_cell(source)
    if text.tree is None:
        return CellDataflow(opaque=text.opaque, parsed=False)
    try:
        return _read(text)
    except (SyntaxError, ValueError, RecursionError):
        return CellDataflow(opaque=text.opaque, parsed=False)


@functools.lru_cache(maxsize=256)
def functions_of(source: str) -> Mapping[str, frozenset[str]]:
    """Return the functions and methods in a cell, by name, as dumps of their trees."""
    tree = read_cell(source).tree
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, Function):
            found.setdefault(node.name, set()).add(ast.dump(node))
    return {name: frozenset(codes) for name, codes in found.items()}


@functools.lru_cache(maxsize=1024)
def function_reads(source: str, function: str) -> frozenset[str]:
    """Return the names that the functions of that name in a cell mention."""
    tree = read_cell(source).tree
    return frozenset(
        name
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, Function) and node.name == function
        for name in names_in(node)
    )


def _read(cell: CellSource) -> CellDataflow:
    assert cell.tree is not None
    flow = FlowVisitor()
    flow.block(cell.tree.body)
    for name, line in cell.bound.items():
        flow.bound.setdefault(name, Binding(line))
    for node in ast.walk(cell.tree):
        if isinstance(node, ast.comprehension):
            for name in names_in(node.target):
                flow.inner_names.setdefault(name, InnerName("comprehension", "", node.target.lineno))
    deferred: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = symtable.symtable(cell.code, "<cell>", "exec")
    for name, binding in _read_scopes(table, deferred, flow.inner_names, within=False):
        flow.bound.setdefault(name, binding)
    return CellDataflow(
        flow.bound,
        tuple(flow.reads),
        tuple(flow.guarded_reads),
        tuple(name for name in deferred if name not in flow.bound),
        frozenset(flow.mutated),
        flow.deleted,
        {name: inner for name, inner in flow.inner_names.items() if name not in flow.bound},
        tuple(flow.star_imports),
        cell.opaque or flow.opaque,
    )


def _read_scopes(
    table: symtable.SymbolTable, deferred: dict[str, None], inner: dict[str, InnerName], *, within: bool
) -> Iterator[tuple[str, Binding]]:
    """Fill in deferred reads and inner names of nested scopes; yield names that they bind as `global`."""
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
                    deferred[symbol.get_name()] = None
            elif symbol.is_local() and (
                symbol.is_assigned() or symbol.is_parameter() or symbol.is_imported()
            ):
                owner = "" if name == "lambda" else name
                inner.setdefault(symbol.get_name(), InnerName(what, owner, child.get_lineno()))
        yield from _read_scopes(child, deferred, inner, within=within or function)
