"""Advisor that proposes code that has worked before.

An earlier revision, another persona's version, or another tool with the same arguments may do what this one should.
Each is proposed whole, and validation decides. (Correct peers are how the best repairers of student programs work:
Gulwani, Radiček and Zuleger, "Automated Clustering and Program Repair for Introductory Programming Assignments", PLDI
2018.)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from healkit.contracts.healing import Patch
from healkit.contracts.vault import VaultEntry
from healkit.errors import ToolShapeError
from healkit.healing.advisor import Case, Peer, Workbench
from healkit.pysource.nodes import Function
from healkit.pysource.shapes import read_shape


class PeersAdvisor:
    """Advisor that proposes other versions of the tool, newest first, then tools with the same arguments."""

    name = "peers"
    author: Literal["rule"] = "rule"

    def propose(self, case: Case, bench: Workbench) -> Iterator[Patch]:
        """Yield each peer as a patch; called by the loop."""
        if case.entry.type != "python":
            return
        for place, peer in enumerate(case.peers):
            code = peer.code if peer.same_tool else _as_this_tool(peer, case.entry)
            if code is None:
                continue
            reason, doubt = f"Go back to {peer.label}.", ""
            if not peer.same_tool:
                reason = f"Replace the tool by {peer.label}, another program."
                doubt = f"It does what {peer.label} does; whether this tool should do the same is unknown."
            yield Patch(
                code=code, advisor=self.name, author=self.author, reason=reason, rank=-place, doubt=doubt
            )


def _as_this_tool(peer: Peer, entry: VaultEntry) -> str | None:
    """Return the other tool's code with this tool's signature; None where it is not a plain function."""
    try:
        tree = ast.parse(peer.code)
        shape = read_shape(tree, peer.label.partition(" ")[0])
    except (SyntaxError, ToolShapeError):
        return None
    if shape.kind != "function":
        return None
    if shape.entry in ("run", entry.tool_name):
        return peer.code
    name = entry.tool_name if entry.tool_name.isidentifier() else "run"
    names = list(entry.input_schema.get("properties", {}))
    taken = {node.name for node in tree.body if isinstance(node, Function | ast.ClassDef)}
    if shape.takes_dict or name in taken or not all(map(str.isidentifier, names)):
        return None
    imports, signature = _head(entry) or ("", ", ".join(names))
    passed = ", ".join(f"{name}={name}" for name in names)
    call = f"def {name}({signature}):\n    return {shape.entry}({passed})\n"
    return f"{peer.code.rstrip()}\n\n\n{imports}{call}"


def _head(entry: VaultEntry) -> tuple[str, str] | None:
    """Return the tool's imports and its parameters as its code has them; None where they cannot be read or kept."""
    try:
        tree = ast.parse(entry.code)
        entry_name = read_shape(tree, entry.tool_name).entry
    except (SyntaxError, ToolShapeError):
        return None
    function = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == entry_name), None)
    if function is None or function.args.posonlyargs or function.args.vararg or function.args.kwarg:
        return None
    imports = [
        node
        for node in tree.body
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
    ]
    return "".join(f"{ast.unparse(node)}\n" for node in imports), ast.unparse(function.args)
