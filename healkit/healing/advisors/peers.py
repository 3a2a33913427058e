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
from healkit.errors import ToolShapeError
from healkit.healing.advisor import Case, Peer, Workbench
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
            code = peer.code if peer.same_tool else _callable(peer)
            if code is None:
                continue
            what = "Go back to" if peer.same_tool else "Do as this other tool does:"
            yield Patch(
                code=code, advisor=self.name, author=self.author, reason=f"{what} {peer.label}.", rank=-place
            )


def _callable(peer: Peer) -> str | None:
    """Return the other tool's code with an entry that this tool can have; None where it is not a plain function."""
    try:
        tree = ast.parse(peer.code)
        shape = read_shape(tree, peer.label.partition("@")[0])
    except (SyntaxError, ToolShapeError):
        return None
    if shape.kind != "function" or shape.entry == "run":
        return peer.code if shape.kind == "function" else None
    return f"{peer.code.rstrip()}\n\n\ndef run(*args, **kwargs):\n    return {shape.entry}(*args, **kwargs)\n"
