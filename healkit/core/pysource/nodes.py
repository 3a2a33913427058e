"""Syntax trees: their parts, names, and types of expressions.

Names come from the syntax tree, not from `symtable`. Its tables have no link to the nodes. From Python 3.12 on, they do
not separate the names of a comprehension from those around it.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from healkit.core.contracts.vault import VaultEntry
from healkit.errors import HealkitError

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
#: Statements that end their block: the next statement does not run.
Jump = ast.Return | ast.Raise | ast.Break | ast.Continue
#: Fields of a compound statement that contain other statements.
BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    """Return all parameters: positional, keyword-only, then `*args` and `**kwargs`."""
    args = function.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return named + [arg for arg in (args.vararg, args.kwarg) if arg is not None]


def called_name(call: ast.AST | None) -> str:
    """Return the name of the called function or method; empty for any other expression."""
    func = getattr(call, "func", None)
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


def first_statement(function: Function) -> ast.stmt:
    """Return the first statement after the docstring."""
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    return body[1] if documented else body[0]


def first_line(stmt: ast.AST) -> int:
    """Return the first line of a statement, with its decorators."""
    decorators = getattr(stmt, "decorator_list", [])
    return int(min([stmt.lineno, *(d.lineno for d in decorators)]))  # type: ignore[attr-defined]  # every statement has one, an AST node need not


def dump_without_names(node: ast.AST) -> str:
    """Return a tree as text without its names: code that differs only in names gives equal texts."""
    return re.sub(r"Name\('\w+'", "Name(''", ast.dump(node, annotate_fields=False))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a node in text order, without entering functions, classes and lambdas."""
    yield node
    pending = list(ast.iter_child_nodes(node))
    while pending:
        child = pending.pop(0)
        yield child
        if not isinstance(child, Function | ast.ClassDef | ast.Lambda):
            pending[:0] = ast.iter_child_nodes(child)


def header_nodes(stmt: ast.stmt) -> Iterator[ast.AST]:
    """Walk a statement without its blocks."""
    for field, value in ast.iter_fields(stmt):
        if field in BLOCKS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from ast.walk(child)


# Names that code binds and reads


_BUILTINS_AND_DUNDERS = frozenset(vars(builtins))
BUILTINS = frozenset(name for name in _BUILTINS_AND_DUNDERS if not name.startswith("_"))
#: Names that exist in a tool's module, besides Python's own.
PROVIDED = frozenset({"__name__", "__file__", "arguments", "mcp", "trace", "Tool"})
#: Kinds of binding. `comprehension`: any assignment in a comprehension, including `:=`.
BindingKind = Literal[
    "parameter", "variable", "comprehension", "definition", "import", "exception", "pattern"
]
Scope = Function | ast.Lambda | ast.ClassDef | ast.Module


def bound_names(owner: ast.AST, *kinds: BindingKind) -> dict[str, None]:
    """Return the names that a function, class or module binds itself, in text order.

    kinds: Kinds of binding to include, all by default. Names that are declared `global` or `nonlocal` count here too.
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
    """Return all names in a piece of code."""
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
    """Return the names that an expression or a statement needs from its scope, without built-in names."""
    bound = set(stored_names(node))
    bound |= {arg.arg for part in ast.walk(node) if isinstance(part, ast.Lambda) for arg in parameters(part)}
    return frozenset(read_names(node).keys() - _BUILTINS_AND_DUNDERS - bound)


def unknown_names(tree: ast.Module) -> list[str]:
    """Return the names that are read but never bound."""
    bound = {*PROVIDED, *_BUILTINS_AND_DUNDERS}
    for node in ast.walk(tree):
        if isinstance(node, Scope):
            bound |= bound_names(node).keys()
    return [name for name in read_names(tree) if name not in bound]


# Types of expressions, as far as the code shows them
#
# The tables list the result types of built-in functions, literals and methods of common types. A method name is in the
# table only if nearly all code uses it for that one type.


#: Function → type name of its result.
FUNCTION_RESULTS = {
    "len": "int", "int": "int", "str": "str", "float": "float", "bool": "bool", "list": "list", "dict": "dict",
    "set": "set", "tuple": "tuple", "sorted": "list", "range": "range", "any": "bool", "all": "bool", "ord": "int",
    "isinstance": "bool", "chr": "str", "repr": "str", "enumerate": "enumerate", "zip": "zip", "map": "map",
    "filter": "filter", "reversed": "list_reverseiterator", "input": "str", "hash": "int", "round": "float",
    "frozenset": "frozenset", "defaultdict": "defaultdict", "Counter": "Counter", "deque": "deque", "floor": "int",
    "ceil": "int", "sqrt": "float", "divmod": "tuple",
}  # fmt: skip
#: Types of the iterators that functions return.
ITERATORS = frozenset({"enumerate", "zip", "map", "filter", "list_reverseiterator"})
#: Method → type name of its result.
METHOD_RESULTS = {
    "split": "list", "rsplit": "list", "splitlines": "list", "join": "str", "strip": "str", "lstrip": "str",
    "rstrip": "str", "lower": "str", "upper": "str", "title": "str", "capitalize": "str", "replace": "str",
    "format": "str", "find": "int", "rfind": "int", "index": "int", "count": "int", "startswith": "bool",
    "endswith": "bool", "isdigit": "bool", "isalpha": "bool", "isalnum": "bool", "isspace": "bool", "isupper": "bool",
    "islower": "bool", "items": "dict_items", "keys": "dict_keys", "values": "dict_values", "zfill": "str",
    "ljust": "str", "rjust": "str", "center": "str", "strftime": "str", "isoformat": "str", "findall": "list",
    "group": "str", "swapcase": "str", "casefold": "str",
}  # fmt: skip
#: Kind of expression → type name.
LITERALS: dict[type[ast.expr], str] = {
    ast.List: "list", ast.ListComp: "list", ast.Tuple: "tuple", ast.Dict: "dict", ast.DictComp: "dict",
    ast.Set: "set", ast.SetComp: "set", ast.GeneratorExp: "generator", ast.JoinedStr: "str", ast.Compare: "bool",
    ast.Lambda: "function",
}  # fmt: skip


def value_of(node: ast.AST | None, values: dict[str, Any]) -> Any:
    """Return the value of a constant, of a known name, or of an item of one; else None."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values.get(name)
        case ast.Subscript(value=owner, slice=item):
            container, key = value_of(owner, values), value_of(item, values)
            if type(container) is dict and type(key) in (str, int):
                return container.get(key)
            if (
                type(container) in (list, tuple)
                and type(key) is int
                and -len(container) <= key < len(container)
            ):
                return container[key]
    return None


def type_of(node: ast.AST, values: dict[str, Any]) -> str:
    """Return the name of an expression's type; empty if the code does not show it.

    values: Known values by name, such as the arguments of a failed call.
    """
    match node:
        case ast.Constant(value=value):
            return type(value).__name__
        case ast.Name(id=name) if name in values:
            return type(values[name]).__name__
        case ast.Subscript() if (value := value_of(node, values)) is not None:
            return type(value).__name__
        case ast.Call(func=ast.Name(id=name)):
            return FUNCTION_RESULTS.get(name, "")
        case ast.Call(func=ast.Attribute(attr=name)):
            return METHOD_RESULTS.get(name, "")
        case ast.BinOp(left=left, op=op, right=right):
            sides = {type_of(left, values), type_of(right, values)}
            if isinstance(op, ast.Add | ast.Mod) and "str" in sides:
                return "str"
            return "float" if isinstance(op, ast.Div) else sides.pop() if len(sides) == 1 else ""
        case ast.expr():
            return LITERALS.get(type(node), "")
    return ""


_OWN = "healkit"  # the server for the log and the vault, which only reads


def effects_of(
    entry: VaultEntry, lookup: Callable[[str], VaultEntry], seen: frozenset[str] = frozenset()
) -> str:
    """Return a phrase, to follow the tool's name, that says why the tool may have effects; empty if there is no reason.

    There are three reasons. The tool, or a tool that it calls, has declared side effects. It may write files. It calls
    something outside the vault: a host function, another server, or a tool whose name the code computes.
    """
    if entry.flags.get("side_effects"):
        return "has side effects"
    if entry.grants.write:
        return "may write files"
    for called in called_by(entry.code) if entry.type == "python" else []:
        if called is None or not called.startswith("vault."):
            return "calls out of the vault" if called is None else f"calls mcp.{called}"
        name = called.removeprefix("vault.")
        if name in seen or name == entry.tool_name:
            continue
        try:
            why = effects_of(lookup(name), lookup, seen | {entry.tool_name, name})
        except HealkitError:  # the call will fail
            continue
        if why:
            return f"calls {name}, which {why}"
    return ""


def called_by(code: str) -> list[str | None]:
    """Return the tools that code calls through `mcp`, such as `vault.fibonacci`; None for each unclear call."""
    if code.isascii() and "mcp" not in code:  # Python normalises some non-ASCII letters to ASCII
        return []
    tree = parsed_or_none(code)
    if tree is None:
        return [None]
    return [call for call in mcp_calls(tree) if call is None or not call.startswith(f"{_OWN}.")]


def mcp_calls(tree: ast.Module) -> list[str | None]:
    """Return the tools that a syntax tree calls through `mcp`; None for each call that is not clear."""
    calls: list[str | None] = []
    read: set[ast.Name] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            name, server = node.value.value, node.value.attr
            if isinstance(name, ast.Name) and name.id == "mcp":
                read.add(name)
                calls.append(f"{server}.{node.attr}")
    bare_names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "mcp" and n not in read]
    return [*calls, *([None] if bare_names else [])]


def declares_effects(
    entry: VaultEntry, lookup: Callable[[str], VaultEntry], seen: frozenset[str] = frozenset()
) -> bool:
    """Return True if the tool, or a tool that it calls, has declared side effects."""
    if entry.flags.get("side_effects"):
        return True
    names = {
        called.removeprefix("vault.")
        for called in (called_by(entry.code) if entry.type == "python" else [])
        if called is not None and called.startswith("vault.")
    } - seen
    for name in names:
        try:
            if declares_effects(lookup(name), lookup, seen | names):
                return True
        except HealkitError:  # the call will fail
            continue
    return False


def parsed_or_none(code: str) -> ast.Module | None:
    """Return the syntax tree; None if the code does not parse."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
