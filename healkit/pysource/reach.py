"""Reach of code: what it calls, and what that may change.

Read off the code, before anything runs. It bounds nothing, which is the sandbox's part: it tells a person, and the
loops that ask one, what to expect.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from healkit.contracts.vault import VaultEntry
from healkit.errors import HealkitError

_OWN = "healkit"  # the log and the vault as a tool reads them


def effects_of(
    entry: VaultEntry, lookup: Callable[[str], VaultEntry], seen: frozenset[str] = frozenset()
) -> str:
    """Say why a tool does more than look, in words that follow its name; empty where nothing says so.

    Side effects are declared, of the tool or of one that it calls; or it may write files, or calls what is outside of
    the vault: a host function, another server, or by a name that its code makes.
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
    """Return what code reaches through `mcp`, as `vault.fibonacci`; None for what cannot be read off it."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return [None]
    found: list[str | None] = []
    read: set[ast.Name] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            name, server = node.value.value, node.value.attr
            if isinstance(name, ast.Name) and name.id == "mcp":
                read.add(name)
                if server != _OWN:
                    found.append(f"{server}.{node.attr}")
    others = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "mcp" and n not in read]
    return [*found, *([None] if others else [])]


def declares_effects(
    entry: VaultEntry, lookup: Callable[[str], VaultEntry], seen: frozenset[str] = frozenset()
) -> bool:
    """Return True if side effects are declared, of the tool or of one that it calls."""
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


# How far a patch reaches beyond the code that it replaces.


#: Modules that reach nothing outside of a process: numbers, texts, dates, containers, types.
_PURE = frozenset(
    {
        "__future__", "abc", "array", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "colorsys",
        "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "graphlib",
        "hashlib", "heapq", "hmac", "html", "itertools", "json", "keyword", "math", "numbers", "operator", "pprint",
        "random", "re", "statistics", "string", "struct", "textwrap", "time", "types", "typing", "unicodedata", "uuid",
        "zoneinfo",
    }
)  # fmt: skip
#: Libraries for data: what they calculate reaches nothing, their readers and writers do.
_DATA = frozenset({"numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn"})
#: Builtins that reach out of the code, or around what can be read off it.
_BUILTINS = frozenset(
    {
        "__build_class__", "__builtins__", "__import__", "__loader__", "breakpoint", "compile", "delattr", "eval",
        "exec", "getattr", "globals", "input", "locals", "memoryview", "open", "setattr", "vars",
    }
)  # fmt: skip
#: Attributes that read or write files, addresses or databases, run a text as code, or lead to a frame; of any object.
_READS_OR_WRITES = re.compile(
    r"(read|scan|write|sink)_\w+|to_(csv|excel|feather|gbq|hdf|html|json|latex|markdown|orc|parquet|pickle|sql|stata|xml)"
    r"|from_?file|to_?file|fromregex|genfromtxt|loadtxt|savetxt|savez?(_compressed)?|memmap|load|dump|open\w*|system|popen"
    r"|unlink|rmdir|eval|query|exec\w*|run_path|(f|gi|cr|ag|tb|func)_(frame|globals|builtins|locals|back|code)"
)
_DUNDER = re.compile(r"__\w+__")
_USUAL_DUNDERS = frozenset(
    {"__name__", "__doc__", "__init__", "__len__", "__iter__", "__eq__", "__hash__", "__repr__"}
)


def added_reach(before: str, after: str) -> tuple[str, ...]:
    """Return what the new code reaches for and the old one does not, in words, sorted; empty where that is nothing.

    Calls through `mcp`, modules that can reach out of the process, builtins and attributes that read, write or hide.
    A module whose name the old code used without importing it is nothing new.
    """
    new = _reach(after)
    if new is None:
        return ("cannot be read",)
    old = _reach(before)
    if old is None:  # code that does not parse: what its text names
        return tuple(sorted(one for one in new if one.split()[-1].lstrip(".") not in before))
    return tuple(sorted(one for one in new - old if not _was_meant(one, before)))


def told_reach(reach: Sequence[str]) -> str:
    """Return the line that stands above the diff of a patch with more reach; empty where there is none."""
    return f"! Reaches further than the code it replaces: {', '.join(reach)}\n" if reach else ""


def _was_meant(reached: str, before: str) -> bool:
    """Return True for a module that the old code already used by name, and for what it used of it."""
    kind, _, name = reached.partition(" ")
    if kind == "uses" and "." in name[1:]:
        return name in before
    used = {node.id for node in ast.walk(ast.parse(before)) if isinstance(node, ast.Name)}
    short = {"numpy": "np", "pandas": "pd", "polars": "pl", "pyarrow": "pa"}
    return kind == "imports" and bool({name, short.get(name, name)} & used)


def _reach(code: str) -> set[str] | None:
    """Return everything that the code reaches for; None where it cannot be read."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = {f"calls mcp.{name}" if name else "uses mcp itself" for name in called_by(code)}
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        found |= set(_imported(node, modules))
    bound = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _BUILTINS - bound:
            found.add(f"uses {node.id}")
        elif isinstance(node, ast.Attribute):
            owner = modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
            top = "" if owner is None else owner.partition(".")[0]
            inner = node.attr.startswith("_") or node.attr in sys.stdlib_module_names
            if owner is not None and (top not in _PURE | _DATA or (inner and node.attr != top)):
                found.add(f"uses {owner}.{node.attr}")
            elif top not in _PURE and _READS_OR_WRITES.fullmatch(node.attr):
                found.add(f"uses .{node.attr}")
            if _DUNDER.fullmatch(node.attr) and node.attr not in _USUAL_DUNDERS:
                found.add(f"uses .{node.attr}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DUNDER.fullmatch(node.value):
            found.add(f"names {node.value}")
    return found


def _imported(node: ast.AST, modules: dict[str, str]) -> Iterator[str]:
    """Yield the modules that an import brings, and note by which names they are known."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            modules[alias.asname or top] = alias.name if alias.asname else top
            if top not in _PURE:
                yield f"imports {top}"
    elif isinstance(node, ast.ImportFrom):
        module = node.module or "."
        top = module.partition(".")[0]
        for alias in node.names:
            modules[alias.asname or alias.name] = f"{module}.{alias.name}"
            if top not in _PURE | _DATA:
                yield f"uses {module}.{alias.name}"
        if top not in _PURE:
            yield f"imports {top}"
