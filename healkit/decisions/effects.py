"""Effects of tools, as far as they are declared or written.

`gather_info` takes tools that only look.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

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
    for called in _called(entry.code) if entry.type == "python" else []:
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


def _called(code: str) -> list[str | None]:
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
