"""Tools that an agent calls: their form.

A part returns its rows by the hook `mcp_tools`. A tool is a function of an `AgentCaller` and of what the agent gives:
the signature is the schema and the docstring the description, which an agent pays for with each session, so both are
short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

if TYPE_CHECKING:
    from healkit.core.runtime.execution import Execution
    from healkit.services import Services


class AgentCaller(Protocol):
    """Call of an agent: whose it is, and what the session may read."""

    @property
    def services(self) -> Services:
        """Services of the database."""

    @property
    def persona(self) -> str:
        """Persona of the session."""

    @property
    def client_name(self) -> str:
        """Name of the program that asks, as it is put on record."""

    def say(self, sentence: str) -> None:
        """Tell the client how far a long call is."""

    def limited(self, asked_s: float) -> float:
        """Return a time limit; raise `AgentRefused` for more than the setting's maximum."""

    def view(self, address: str) -> Any:
        """Return the data view of an address or name; raise `ViewNotFound` for one of others."""

    def execution(self, log_id: int) -> Execution:
        """Return that row of the log; raise `UsageInvalid` for one of others."""

    def note(self, *names: str) -> None:
        """Let the session read these runs and views."""


@dataclass(frozen=True)
class AgentAnswer:
    """Answer to an agent.

    data: as JSON, of which the keys `exact` stay as they are. text: what is read in its place. texts: stand below.
    views: data views that are linked. failed: whether it is an error.
    """

    data: dict[str, Any]
    text: str | None = None
    exact: tuple[str, ...] = ()
    texts: Sequence[str] = ()
    views: Sequence[Any] = ()
    failed: bool = False


@dataclass(frozen=True)
class AgentTool:
    """Tool of an agent, and what it may do: whether it only reads, may destroy, may be repeated.

    function: gets the `AgentCaller`, and returns an `AgentAnswer`; may be a coroutine function.
    """

    function: Callable[..., Any]
    reads: bool = False
    destroys: bool = False
    repeats: bool = False


def uri(kind: str, *parts: object) -> str:
    """Return the address of a resource: `healkit://executions/7`."""
    return f"healkit://{kind}/" + "/".join(quote(str(part), safe="") for part in parts)
