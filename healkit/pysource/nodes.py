"""Parts of a syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
#: Statements after which the next one in their block does not run.
Jump = ast.Return | ast.Raise | ast.Break | ast.Continue
#: Fields of a compound statement that hold other statements.
BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    """Return all parameters: positional, keyword-only, then `*args` and `**kwargs`."""
    args = function.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return named + [arg for arg in (args.vararg, args.kwarg) if arg is not None]


def first_line(stmt: ast.AST) -> int:
    """Return the first line of a statement, with its decorators."""
    decorators = getattr(stmt, "decorator_list", [])
    return int(min([stmt.lineno, *(d.lineno for d in decorators)]))  # type: ignore[attr-defined]  # every statement has one, an AST node need not


def dump_without_names(node: ast.AST) -> str:
    """Return a tree as text without its names: equal for code that differs in names only."""
    return re.sub(r"Name\('\w+'", "Name(''", ast.dump(node, annotate_fields=False))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a node in text order, without entering the functions, classes and lambdas in it."""
    yield node
    pending = list(ast.iter_child_nodes(node))
    while pending:
        child = pending.pop(0)
        yield child
        if not isinstance(child, Function | ast.ClassDef | ast.Lambda):
            pending[:0] = ast.iter_child_nodes(child)


def header_nodes(stmt: ast.stmt) -> Iterator[ast.AST]:
    """Walk a statement without the blocks that belong to it."""
    for field, value in ast.iter_fields(stmt):
        if field in BLOCKS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from ast.walk(child)
