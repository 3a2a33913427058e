"""Traces as they are learned from, and who learns.

healkit learns from a trace once it is over and its tool ran. It ignores trials and searches, and calls that were
refused, stopped, or whose host died. It uses only the wire form, so that a collector learns the same from a client's
traces.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from healkit.errors import UsageInvalid, is_refused
from healkit.parts.traces.contract import NO_HASH, ExecutionTrace

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_VAULT = "vault:"
#: Origins of executions that only try code, and endings that say nothing of the code.
_TRIED = {"try", "trial", "search"}
NOT_ITS_OWN = {"TOOL_KILLED", "WORKER_LOST", "HOST_DIED", "INTERNAL_ERROR"}


@dataclasses.dataclass(frozen=True, slots=True)
class Learned:
    """Trace to learn from; `tool` is its name in the graph, `code_hash` its first digits, empty if unknown.

    collected: Whether a client sent it; this matters if the order counts.
    process: The host process that ran it, as a short text; empty if unknown.
    """

    trace: ExecutionTrace
    tool: str
    persona: str
    code_hash: str
    succeeded: bool
    collected: bool = False
    process: str = ""


class Learner(Protocol):
    """Part that learns from every trace, inside the transaction that moves the checkpoint."""

    def load(self, session: Session) -> None:
        """Forget the data in memory, and read the stored data."""
        ...

    def learn(self, traces: Sequence[Learned]) -> None:
        """Learn from traces, in their order; in memory only."""
        ...

    def store(self, session: Session) -> None:
        """Write what changed since the last time."""
        ...

    def clear(self, session: Session) -> None:
        """Remove all stored data, before everything is learned again."""
        ...


def node_of(call: str) -> str:
    """Return a tool's name in the graph: a vault tool's own name, any other as `server:tool`."""
    return call.removeprefix(_VAULT)


def learned_of(trace: ExecutionTrace, *, collected: bool = False, process: str = "") -> Learned | None:
    """Return the facts of a trace for learning; None if there is nothing to learn.

    process: Used if the trace itself names none.
    """
    metadata = trace.metadata
    code = metadata.get("errorCode")
    if metadata.get("origin") in _TRIED or code in NOT_ITS_OWN or is_refused(code):
        return None
    parts = trace.capability_id.rsplit(".", 2)
    named = len(parts) == 3
    tool = metadata.get("tool") or (parts[1] if named else trace.capability_id)
    code_hash = parts[2] if named and parts[2] != NO_HASH else ""
    return Learned(
        trace, str(tool)[:500], str(metadata.get("persona") or ""), code_hash[:64], trace.success, collected,
        str(metadata.get("process") or process)[:64],
    )  # fmt: skip


def load_extra(name: str) -> Any:
    """Import a package of `healkit[learn]`; raise `UsageInvalid` with the install command if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageInvalid(f"This needs {name}.", hint="pip install 'healkit[learn]'") from None
