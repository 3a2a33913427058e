"""Code whose trials may share a child, found by reading it.

Such code changes nothing outside its own module. It imports only harmless modules of the standard library and does not
change them. It reads and writes no file, and uses no name that reaches further. Each trial has a fresh module and its
own arguments. So the trials of one child find the same state as they would find alone.

This check is not a boundary. Every child is sealed, and the trials that share one belong to the same tool with the same
authority. Code that deceives the check disturbs only its own results. Code that is not known to be pure is tried alone,
which only costs time.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterable, Iterator, Sequence

from healkit.core.contracts.rpc import NO_CASSETTE, Init
from healkit.core.contracts.tools import Withheld
from healkit.core.crossing import values

#: Modules without a state that code can change by calling what they offer.
_MODULES = {
    "__future__", "abc", "array", "base64", "binascii", "bisect", "cmath", "collections", "collections.abc", "colorsys",
    "contextlib", "copy", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "graphlib",
    "hashlib", "heapq", "hmac", "html", "io", "itertools", "json", "math", "numbers", "operator", "pprint", "random",
    "re", "statistics", "string", "struct", "textwrap", "time", "typing", "unicodedata", "urllib.parse", "zlib",
}  # fmt: skip
#: Names of builtins, and of what a tool is given to call, that reach further.
_REACHING = {
    "__import__", "breakpoint", "compile", "copyright", "credits", "delattr", "eval", "exec", "exit", "getattr",
    "globals", "help", "input", "license", "locals", "mcp", "open", "quit", "setattr", "trace", "vars",
}  # fmt: skip
#: What the modules above offer that has a state, sets one or reaches further.
_EXCEPTED = {
    "BasicContext", "DefaultContext", "EXCLUDED_ATTRIBUTES", "ExtendedContext", "FileIO", "Formatter",
    "algorithms_available", "algorithms_guaranteed", "attrgetter", "bltns", "chdir", "clear_overloads", "decoder",
    "dispatch_table", "encoder", "entities", "get_overloads", "get_type_hints", "getcontext", "localcontext",
    "methodcaller", "non_hierarchical", "open", "open_code", "overload", "redirect_stderr", "redirect_stdout",
    "register", "scanner", "setcontext", "stdlib_re", "tzset", "update_wrapper", "uses_fragment", "uses_netloc",
    "uses_params", "uses_query", "uses_relative",
}  # fmt: skip
#: Names with two underscores that lead nowhere else: of attributes, and of variables.
_ATTRIBUTES = {"__class__", "__doc__", "__init__", "__name__", "__qualname__"}
_VARIABLES = {"__all__", "__doc__", "__hash__", "__name__", "__slots__", "__version__"}
_ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
#: What is looked at; the rest of the syntax names nothing.
_READ = (
    *_ASYNC, ast.AnnAssign, ast.Assign, ast.Attribute, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Name,
    ast.NamedExpr, ast.Subscript,
)  # fmt: skip
#: Longest code that is read for this; a longer one would hold the host up.
_MAX_CHARS = 10_000
#: Size of the trials that go out in one message, in characters.
_TOGETHER_CHARS = 200_000


def runs(trials: Iterable[Init]) -> Iterator[list[Init]]:
    """Yield the trials in order, together if they may share a child."""
    run, size = list[Init](), 0
    for init in trials:
        chars = len(init.code) + len(init.arguments)
        if run and not (may_share(run[0], init) and size + chars <= _TOGETHER_CHARS):
            yield run
            run, size = [], 0
        run.append(init)
        size += chars
    if run:
        yield run


def may_share(first: Init, other: Init) -> bool:
    """Return whether two trials may run one after the other in one child."""
    if (first.entry, first.code, first.call, first.timeout_s) != (
        other.entry, other.code, other.call, other.timeout_s
    ):  # fmt: skip
        return False
    return not any(map(_is_special, (first, other))) and is_pure(first.code, first.call)


def _is_special(init: Init) -> bool:
    """Return whether a trial gets more than plain JSON: frames and the like load libraries with a state."""
    tagged = init.exact and (bool(init.contents) or values.MARK in bytes(init.arguments))
    return bool(
        tagged or init.watch or init.setup or init.cassette != NO_CASSETTE or init.withheld != Withheld()
    )


@functools.lru_cache(maxsize=64)
def is_pure(code: str, call: str = "") -> bool:
    """Return whether the code, and a call beside it, is known to change nothing outside its own module."""
    if len(code) + len(call) > _MAX_CHARS:
        return False
    try:
        nodes = [
            node for text in (code, call) for node in ast.walk(ast.parse(text)) if isinstance(node, _READ)
        ]
        imports = _Imports(nodes)
        return all(_is_harmless(node, imports) for node in nodes) and not imports.misused(nodes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


class _Imports:
    """Names that imports bind: `modules` are names of modules with their meaning; `all` are all names."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.modules = dict[str, str]()
        self.all = set[str]()
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    self.modules[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                self.all |= {alias.asname or alias.name for alias in node.names}
        self.all |= {*self.modules}

    def misused(self, nodes: Sequence[ast.AST]) -> bool:
        """Return whether a module is used as a value, or an import has another name and attributes are set."""
        bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        if any(
            isinstance(node, ast.Name) and node.id in self.modules and id(node) not in bases for node in nodes
        ):
            return True
        renamed = any(
            isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)
            and isinstance(node.value, ast.Name | ast.Attribute)
            and _path(node.value)[0] in self.all
            for node in nodes
        )
        return renamed and any(
            isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and _path(node)[0] not in {"self", "cls"}
            for node in nodes
        )


def _is_harmless(node: ast.AST, imports: _Imports) -> bool:
    match node:
        case ast.Import(names=names):
            return all(alias.name in _MODULES for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            return not level and module in _MODULES and all(_offers(module, alias.name) for alias in names)
        case ast.Name(id=name):
            return name not in _REACHING and (not name.startswith("__") or name in _VARIABLES)
        case ast.Attribute(attr=name, ctx=ctx):
            root, *before = _path(node)[:-1]
            if name in _EXCEPTED or (name.startswith("__") and name not in _ATTRIBUTES):
                return False
            if root in imports.modules and not _offers(".".join([imports.modules[root], *before]), name):
                return False
            return isinstance(ctx, ast.Load) or root not in {"", *imports.all}
        case ast.Subscript(ctx=ast.Store() | ast.Del()):
            return _path(node)[0] not in imports.all
        case ast.FunctionDef(name=name):
            return name != "__del__"
    return not isinstance(node, _ASYNC)


def _offers(module: str, name: str) -> bool:
    """Return whether a module itself defines the name: its imports belong to other modules."""
    if name in _EXCEPTED or name.startswith("_") or name == "*":
        return False
    last = module.rpartition(".")[2]
    return (
        f"{module}.{name}" in _MODULES
        or name not in sys.stdlib_module_names
        or name == last
        or (last, name) == ("datetime", "time")
    )


def _path(node: ast.expr) -> list[str]:
    """Return the names by which an attribute or an item is looked up; the first is empty if it is not a name."""
    names = list[str]()
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *reversed(names)]
