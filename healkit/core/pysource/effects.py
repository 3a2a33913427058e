"""Calls of a tool, and whether they may change something.

Read off the code, before anything runs. It bounds nothing, which is the sandbox's part.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from healkit.core.contracts.vault import VaultEntry
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
    if code.isascii() and "mcp" not in code:  # other letters may be read as these
        return []
    tree = parsed_or_none(code)
    if tree is None:
        return [None]
    return [call for call in mcp_calls(tree) if call is None or not call.startswith(f"{_OWN}.")]


def mcp_calls(tree: ast.Module) -> list[str | None]:
    """Return what a syntax tree reaches through `mcp`; None for what cannot be read off it."""
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


def parsed_or_none(code: str) -> ast.Module | None:
    """Return the syntax tree; None for what is not Python."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
