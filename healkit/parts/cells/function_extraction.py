"""Extraction of a function from a cell.

A cell reads names that other cells bound; a tool gets everything as arguments. Names that the cell reads before it
binds them become parameters if a tool can be given their values: plain data, arrays, frames. Modules become imports,
and the notebook's own functions are copied as source. Any other name is refused before anything is saved. The cell's
text stays as it was typed, comments included; its last expression becomes the function's result.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import textwrap
import tokenize
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from healkit.core.pysource.nodes import own_nodes
from healkit.core.store.arguments import pack_arguments
from healkit.errors import ArgumentsInvalid, UsageInvalid
from healkit.parts.cells.cell_program import free_names, import_of, is_own_code, library_import
from healkit.parts.post_mortem.previews import type_name

#: Types that a parameter is annotated with; the input schema is read off the annotations.
_ANNOTATED = (int, float, str, bool, list, dict, tuple)


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
    for free in free_names(cell):
        parts.require(free)
    arguments = {argument: namespace[argument] for argument in parts.arguments}
    _check_can_be_given(name, arguments)
    parameters = ", ".join(f"{argument}{_annotation(value)}" for argument, value in arguments.items())
    prefix = "async def" if _awaits(tree) else "def"
    body = _indented(_returning(cell, tree))
    pieces = [*parts.imports, *([""] if parts.imports else []), *(f"{source}\n" for source in parts.sources)]
    code = "\n".join([*pieces, f"{prefix} {name}({parameters}):", body, ""])
    ast.parse(code)
    return ExtractedFunction(code, tuple(parts.arguments))


def _check_can_be_given(tool: str, arguments: Mapping[str, Any]) -> None:
    """Raise `UsageInvalid` for a value that does not reach a worker, or not as what it is."""
    try:
        changed = [note.removeprefix("$.") for note in pack_arguments(tool, arguments).notes]
    except ArgumentsInvalid as error:
        raise UsageInvalid(f"This cell cannot be a tool yet. {error.message}", hint=error.hint) from None
    if changed:
        raise UsageInvalid(
            f"This cell cannot be a tool yet. In a worker, {'; '.join(changed)}.",
            hint="Make that value in the cell itself.",
        )


def _annotation(value: object) -> str:
    if type(value) in _ANNOTATED:
        return f": {type(value).__name__}"
    return f': "{type_name(value)}"' if type(value).__name__ == "DataFrame" else ""


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
        elif (line := library_import(name, value)) is not None:
            self.imports.append(line)
        elif is_own_code(value):
            self._copy(name, value)
        else:
            self.arguments.append(name)

    def _copy(self, name: str, value: Any) -> None:
        try:
            source = textwrap.dedent(inspect.getsource(value))
        except (OSError, TypeError):
            raise UsageInvalid(
                f"This cell cannot be a tool yet. The source of `{name}` is not known.",
                hint=f"Define {name} in a cell, and run that.",
            ) from None
        for free in free_names(source):
            self.require(free)
        self.sources.append(source)


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
