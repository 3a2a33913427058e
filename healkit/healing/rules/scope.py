"""Names that mean something at a place, and their types."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

from healkit.contracts.shapes import Function
from healkit.healing.rules.source import Source, own_nodes

BUILTINS = frozenset(name for name in vars(builtins) if not name.startswith("_"))


def parameters(function: Function) -> list[ast.arg]:
    """All of them, in the order of their places, then those by name only, then `*` and `**`."""
    args = function.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return named + [arg for arg in (args.vararg, args.kwarg) if arg is not None]


def bound_names(node: ast.AST) -> dict[str, None]:
    """The names that a function, a class or a module binds itself, in the order of the text."""
    names: dict[str, None] = {}
    if isinstance(node, Function):
        names.update({arg.arg: None for arg in parameters(node)})
    for inner in own_nodes(node):
        for name in _bound_by(inner, node):
            names[name] = None
    return names


def _bound_by(inner: ast.AST, owner: ast.AST) -> Iterator[str]:
    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
        yield inner.id
    elif isinstance(inner, Function | ast.ClassDef) and inner is not owner:
        yield inner.name
    elif isinstance(inner, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name.partition(".")[0]) for alias in inner.names)
    elif isinstance(inner, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and inner.name:
        yield inner.name


def names_at(source: Source, node: ast.AST) -> list[str]:
    """Names that mean something at a node: its function's first, then those around it, then the module's."""
    found: dict[str, None] = {}
    around: ast.AST | None = node
    while around is not None:
        if isinstance(around, Function | ast.Module):
            found.update(bound_names(around))
        elif isinstance(around, ast.Lambda):
            found.update({arg.arg: None for arg in around.args.args})
        around = source.parents.get(around)
    return list(found)


def unknown_names(tree: ast.Module) -> list[str]:
    """Names that are read somewhere and bound nowhere."""
    bound = {"__name__", "__file__", "arguments", "mcp", "trace", "Tool", *dir(builtins)}
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.Module | ast.ClassDef):
            bound |= bound_names(node).keys()
        elif isinstance(node, ast.Lambda):
            args = node.args
            named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            bound |= {arg.arg for arg in named if arg is not None}
    read = {n.id: None for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return [name for name in read if name not in bound]


_CALLS = {"str": "str", "int": "int", "float": "float", "len": "int", "list": "list", "dict": "dict", "set": "set",
          "sorted": "list", "tuple": "tuple", "round": "float", "input": "str", "range": "range", "map": "map",
          "filter": "filter", "zip": "zip", "reversed": "list_reverseiterator", "enumerate": "enumerate"}  # fmt: skip
_METHODS = dict.fromkeys(
    ("strip", "lower", "upper", "replace", "join", "title", "format", "lstrip", "rstrip", "capitalize"), "str"
) | {
    "split": "list",
    "splitlines": "list",
    "count": "int",
    "keys": "dict_keys",
    "values": "dict_values",
    "items": "dict_items",
}
_LITERALS: dict[type[ast.expr], str] = {
    ast.JoinedStr: "str", ast.List: "list", ast.ListComp: "list", ast.Dict: "dict", ast.DictComp: "dict",
    ast.Set: "set", ast.SetComp: "set", ast.Tuple: "tuple", ast.GeneratorExp: "generator", ast.Compare: "bool",
}  # fmt: skip


def type_of(node: ast.AST, values: dict[str, Any]) -> str:
    """The name of an expression's type as far as it can be read off, else an empty text.

    values: what is known of the names: the arguments that failed.
    """
    if type(node) in _LITERALS:
        return _LITERALS[type(node)]  # type: ignore[index]  # `in` says so, which mypy does not see
    match node:
        case ast.Constant(value=value):
            return type(value).__name__
        case ast.Name(id=name) if name in values:
            return type(values[name]).__name__
        case ast.Call(func=ast.Name(id=name)):
            return _CALLS.get(name, "")
        case ast.Call(func=ast.Attribute(attr=name)):
            return _METHODS.get(name, "")
        case ast.BinOp(left=left, op=op, right=right):
            sides = {type_of(left, values), type_of(right, values)}
            if isinstance(op, ast.Add | ast.Mod) and "str" in sides:
                return "str"
            return "float" if isinstance(op, ast.Div) else sides.pop() if len(sides) == 1 else ""
    return ""
