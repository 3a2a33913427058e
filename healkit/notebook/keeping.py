"""A cell turned into a tool.

A cell reads names that other cells gave a value; a tool gets everything as arguments. So the names that the cell reads
and does not set become parameters where their values are JSON, modules become imports, and functions of the notebook's
own come along as source. What is none of these is refused by name, before anything is saved.

The cell's text is kept as it was typed, comments and all: it becomes the body of a function, and its last expression
that function's result.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import sys
import textwrap
import tokenize
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from healkit.contracts.encoding import is_plain, to_jsonable
from healkit.contracts.preview import type_name
from healkit.errors import UsageInvalid

_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
#: What a value's type is called in a signature, for the schema that is read off it.
_ANNOTATIONS = {int: "int", float: "float", str: "str", bool: "bool", list: "list", dict: "dict"}
#: Larger values are no arguments; they belong into a file.
_VALUE_MAX_CHARS = 1_000_000


@dataclass(frozen=True)
class Kept:
    """A tool made of a cell: its code, and which variables of the notebook are its arguments."""

    code: str
    arguments: tuple[str, ...]


def tool_of(name: str, cell: str, namespace: Mapping[str, Any]) -> Kept:
    """The cell as the code of a tool of that name; raises `UsageInvalid` for one that cannot be one."""
    tree = _parsed(cell)
    parts = _Parts(namespace)
    for free in _free_names(tree):
        parts.need(free)
    if parts.refused:
        reasons = "; ".join(f"{who} is {why}" for who, why in parts.refused.items())
        raise UsageInvalid(
            f"This cell cannot be a tool yet: {reasons}.",
            hint="An argument must be JSON: make it of lists, dicts, text and numbers in the cell itself, or grant the "
            "tool a file to read (%vault grant NAME --read PATH).",
        )
    parameters = ", ".join(
        f"{one}: {_ANNOTATIONS[type(namespace[one])]}" if type(namespace[one]) in _ANNOTATIONS else one
        for one in parts.arguments
    )
    prefix = "async def" if _awaits(tree) else "def"
    body = _indented(_returning(cell, tree))
    pieces = [*parts.imports, *([""] if parts.imports else []), *(f"{source}\n" for source in parts.sources)]
    code = "\n".join([*pieces, f"{prefix} {name}({parameters}):", body, ""])
    ast.parse(code)
    return Kept(code, tuple(parts.arguments))


def _parsed(cell: str) -> ast.Module:
    try:
        tree = ast.parse(cell)
    except SyntaxError as error:
        reason = "it holds a magic or a shell command" if _has_magic(cell) else str(error.msg)
        raise UsageInvalid(
            f"This cell is not plain Python: {reason}.", hint="Mend it, or save it with %%tool NAME --draft."
        ) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            raise UsageInvalid(
                f"`from {node.module} import *` cannot stand in a function.", hint="Name what is imported."
            )
    if not tree.body:
        raise UsageInvalid("This cell is empty.")
    return tree


def _has_magic(cell: str) -> bool:
    return any(line.lstrip().startswith(("%", "!", "?")) for line in cell.splitlines())


def _awaits(tree: ast.Module) -> bool:
    """Whether the cell itself awaits, not a function in it."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            return True
        pending += [
            n for n in ast.iter_child_nodes(node) if not isinstance(n, (*_FUNCTION.__args__, ast.Lambda))
        ]
    return False


@dataclass
class _Parts:
    """What a cell needs from the notebook, sorted by how a tool can have it."""

    namespace: Mapping[str, Any]
    arguments: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def need(self, name: str) -> None:
        """Take in one name and what it needs itself."""
        if name in self._seen or (hasattr(builtins, name) and name not in self.namespace):
            return
        self._seen.add(name)
        if name not in self.namespace:
            return  # a NameError is what this cell may be about
        value = self.namespace[name]
        if isinstance(value, types.ModuleType):
            self.imports.append(_import_of(name, value.__name__))
        elif isinstance(value, types.FunctionType | type | types.BuiltinFunctionType):
            self._callable(name, value)
        elif (why := _not_json(value)) is None:
            self.arguments.append(name)
        else:
            self.refused[f"`{name}`"] = why

    def _callable(self, name: str, value: Any) -> None:
        module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if module != "__main__":
            found = getattr(sys.modules.get(str(module)), own, None)
            if found is value:
                renamed = "" if own == name else f" as {name}"
                self.imports.append(f"from {module} import {own}{renamed}")
            else:
                self.refused[f"`{name}`"] = f"a {type_name(value)} that cannot be imported"
            return
        try:
            source = textwrap.dedent(inspect.getsource(value))
        except (OSError, TypeError):
            self.refused[f"`{name}`"] = f"a {type_name(value)} whose source is not to be found"
            return
        for free in _free_names(ast.parse(source)):
            self.need(free)
        self.sources.append(source)


def _import_of(name: str, module: str) -> str:
    if name == module:
        return f"import {module}"
    package, _, last = module.rpartition(".")
    return f"from {package} import {last}" if package and last == name else f"import {module} as {name}"


def _not_json(value: Any) -> str | None:
    """Why a value cannot be an argument; None if it comes back from JSON as it was."""
    try:
        _, notes = to_jsonable(value, max_chars=_VALUE_MAX_CHARS)
    except Exception:  # noqa: BLE001 - too large, or a stranger that raises
        return f"a {type_name(value)} of more than {_VALUE_MAX_CHARS:,} characters"
    if notes or not is_plain(value):
        return f"a {type_name(value)}, which JSON cannot hold as it is"
    return None


def _free_names(tree: ast.Module) -> list[str]:
    """Names that the code reads before it has given them a value itself, in the order in which it does."""
    reader = _Reader()
    reader.block(tree.body)
    reader.late(lambda name: name in reader.bound)
    return list(reader.free)


class _Reader(ast.NodeVisitor):
    """Walks code in the order in which it runs; the bodies of functions run when all is bound."""

    def __init__(self, bound: set[str] | None = None) -> None:
        self.bound: set[str] = set() if bound is None else bound
        self.free: dict[str, None] = {}
        self._bodies: list[tuple[Any, set[str]]] = []

    def block(self, body: list[ast.stmt]) -> None:
        """Statements one after the other."""
        for statement in body:
            self.visit(statement)

    def late(self, is_bound: Callable[[str], bool]) -> None:
        """What functions read that were defined on the way."""
        for nodes, parameters in self._bodies:
            inner = _Reader(set(parameters))
            inner.bound |= _stored(nodes)
            inner.block(nodes)
            inner.late(lambda name, inner=inner: name in inner.bound or is_bound(name))  # type: ignore[misc]  # a default in a lambda is not inferred
            self.free |= {name: None for name in inner.free if not is_bound(name)}

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            if node.id not in self.bound:
                self.free[node.id] = None
        else:
            self.bound.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
        self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.free[node.target.id] = None
        self.visit(node.value)
        self.visit(node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    visit_AsyncFor = visit_For

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.visit(node.type)
        if node.name:
            self.bound.add(node.name)
        self.block(node.body)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}

    visit_ImportFrom = visit_Import

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self.bound.add(node.name)
        inner = _Reader(set(self.bound))
        inner.block(node.body)
        self.free |= inner.free
        self._bodies += inner._bodies

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        self.bound.add(node.name)
        self._bodies.append((node.body, _parameters(node.args)))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._bodies.append(([ast.Expr(node.body)], _parameters(node.args)))

    def _comprehension(self, node: Any) -> None:
        inner = _Reader(set(self.bound))
        for generator in node.generators:
            for part in (generator.iter, generator.target, *generator.ifs):
                inner.visit(part)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            inner.visit(part)
        self.free |= inner.free
        self._bodies += inner._bodies

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension


def _parameters(arguments: ast.arguments) -> set[str]:
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    return {one.arg for one in every if one is not None}


def _stored(nodes: list[Any]) -> set[str]:
    """Names that a function's body binds anywhere, which makes them its own everywhere."""
    return {
        inner.id
        for node in nodes
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }


def _returning(cell: str, tree: ast.Module) -> str:
    """The cell with its last value returned: an expression's, or that of the one name it sets last."""
    last = tree.body[-1]
    lines = cell.rstrip().splitlines()
    if isinstance(last, ast.Expr):
        line = lines[last.lineno - 1].encode()
        start = last.col_offset
        lines[last.lineno - 1] = (line[:start] + b"return " + line[start:]).decode()
        text = "\n".join(lines)
        return text.rstrip().removesuffix(";") if text.rstrip().endswith(";") else text
    if isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], ast.Name):
        lines.append(f"return {last.targets[0].id}")
    return "\n".join(lines)


def _indented(code: str) -> str:
    """The code moved right, except where a line begins inside of a text."""
    inside: set[int] = set()
    middle = getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_END", -1)
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.STRING:
            inside |= set(range(token.start[0] + 1, token.end[0] + 1))
        elif token.type == middle[0]:
            starts.append(token.start[0])
        elif token.type == middle[1]:
            inside |= set(range(starts.pop() + 1, token.end[0] + 1))
    lines = code.splitlines()
    return "\n".join(
        line if number in inside or not line else f"    {line}" for number, line in enumerate(lines, 1)
    )
