"""Extraction of a function from a cell.

A cell reads names that other cells bound; a tool gets everything as arguments. Names that the cell reads before it
binds them become parameters if their values can go to a worker as they are; modules become imports, and the notebook's
own functions are copied as source. Any other name is refused before anything is saved. The cell's text stays as it was
typed, comments included; its last expression becomes the function's result.
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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from healkit.cells.dataflow import dataflow_of
from healkit.contracts.encoding import is_plain, to_jsonable
from healkit.contracts.post_mortem import type_name
from healkit.crossing import values
from healkit.errors import UsageInvalid
from healkit.pysource.nodes import own_nodes

#: Annotations by the type of a value; the input schema is read off them.
_ANNOTATIONS = {int: "int", float: "float", str: "str", bool: "bool", list: "list", dict: "dict"}
#: Larger values belong in a file, not in an argument.
_VALUE_MAX_CHARS = 1_000_000


@dataclass(frozen=True)
class ExtractedFunction:
    """Tool made of a cell: its code, and the notebook's variables that are its arguments."""

    code: str
    arguments: tuple[str, ...]


def extract_function(name: str, cell: str, namespace: Mapping[str, Any]) -> ExtractedFunction:
    """Make a cell the code of a tool of that name; raises `UsageInvalid` if that is not possible.

    namespace: the notebook's variables, whose values decide which names become arguments.
    """
    tree = _parsed(cell)
    parts = _Requirements(namespace)
    for free in _free_names(cell):
        parts.require(free)
    if parts.refused:
        reasons = "; ".join(f"{who} is {why}" for who, why in parts.refused.items())
        raise UsageInvalid(
            f"This cell cannot be a tool yet: {reasons}.",
            hint="Make such values in the cell itself, or grant the tool a file to read "
            "(%vault grant NAME --read PATH).",
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
    return ExtractedFunction(code, tuple(parts.arguments))


def _parsed(cell: str) -> ast.Module:
    try:
        tree = ast.parse(cell)
    except SyntaxError as error:
        reason = "it holds a magic or a shell command" if _has_magic(cell) else str(error.msg)
        raise UsageInvalid(
            f"This cell is not plain Python: {reason}.",
            hint="Correct it, or save it with %%tool NAME --draft.",
        ) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            raise UsageInvalid(
                f"'from {node.module} import *' cannot stand in a function.", hint="Name what is imported."
            )
    if not tree.body:
        raise UsageInvalid("This cell is empty.")
    return tree


def _has_magic(cell: str) -> bool:
    return any(line.lstrip().startswith(("%", "!", "?")) for line in cell.splitlines())


def _awaits(tree: ast.Module) -> bool:
    """Return whether the cell itself awaits, not a function in it."""
    return any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in own_nodes(tree))


@dataclass
class _Requirements:
    """Names that a cell needs from the notebook, sorted by how a tool can get them."""

    namespace: Mapping[str, Any]
    arguments: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def require(self, name: str) -> None:
        """Take in one name and what it needs itself."""
        if name in self._seen or (hasattr(builtins, name) and name not in self.namespace):
            return
        self._seen.add(name)
        if name not in self.namespace:
            return  # the missing name may be the failure that the tool reproduces
        value = self.namespace[name]
        if isinstance(value, types.ModuleType):
            self.imports.append(import_of(name, value.__name__))
        elif isinstance(value, types.FunctionType | type | types.BuiltinFunctionType):
            self._callable(name, value)
        elif (why := _why_refused(value)) is None:
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
        for free in _free_names(source):
            self.require(free)
        self.sources.append(source)


def import_of(name: str, module: str) -> str:
    if name == module:
        return f"import {module}"
    package, _, last = module.rpartition(".")
    return f"from {package} import {last}" if package and last == name else f"import {module} as {name}"


def _why_refused(value: object) -> str | None:
    """Return why a value cannot be an argument; None if it arrives in a worker as it is."""
    try:
        if is_plain(value):
            to_jsonable(value, max_chars=_VALUE_MAX_CHARS)
            return None
        _, notes = values.encode(value, [])
    except values.CannotCross as error:
        return f"a {type_name(value)}, which cannot go to a worker ({error.why})"
    except Exception:  # noqa: BLE001 - too large, or a stranger that raises
        return f"a {type_name(value)} of more than {_VALUE_MAX_CHARS:,} characters"
    return (
        f"a {type_name(value)}, which does not arrive as it is ({notes[0].partition(': ')[2]})"
        if notes
        else None
    )


def _free_names(source: str) -> list[str]:
    """Return the names that code reads before it binds them, those that its functions look up last."""
    flow = dataflow_of(source)
    return [*flow.reads, *flow.guarded_reads, *flow.deferred_reads]


def _returning(cell: str, tree: ast.Module) -> str:
    """Return the cell with a `return` of its last expression, or of the name that it assigns last."""
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
    """Return the code indented, except lines that begin inside of a string."""
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
