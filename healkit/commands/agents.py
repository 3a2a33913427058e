"""Tools that an agent calls: their form.

Parts add such tools by the hook `mcp_tools`. A tool is a function that takes an `AgentCaller` and the agent's
arguments. Its signature is the schema and its docstring the description. Both are short, because an agent reads them in
every session.
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
    """Call of an agent: who called, and what its session may read."""

    @property
    def services(self) -> Services:
        """Services of the database."""

    @property
    def persona(self) -> str:
        """Persona of the session."""

    @property
    def client_name(self) -> str:
        """Name of the calling program, as recorded in the log."""

    def say(self, sentence: str) -> None:
        """Report the progress of a long call to the client."""

    def limited(self, asked_s: float) -> float:
        """Return the time limit in seconds; raise `AgentRefused` if it is above the configured maximum."""

    def view(self, address: str) -> Any:
        """Return the data view with this address or name; raise `ViewNotFound` if the session may not read it."""

    def execution(self, log_id: int) -> Execution:
        """Return this execution; raise `UsageInvalid` if the session may not read it."""

    def note(self, *names: str) -> None:
        """Allow the session to read these runs and views."""


@dataclass(frozen=True)
class AgentAnswer:
    """Answer to an agent.

    data: JSON; the values of the keys in `exact` are passed on unchanged.
    text: Text to show in place of the JSON.
    texts: Texts to show below it.
    views: Data views to link.
    failed: Whether the answer is an error.
    """

    data: dict[str, Any]
    text: str | None = None
    exact: tuple[str, ...] = ()
    texts: Sequence[str] = ()
    views: Sequence[Any] = ()
    failed: bool = False


@dataclass(frozen=True)
class AgentTool:
    """Tool that an agent can call, with its hints: read-only, destructive, safe to repeat.

    function: Takes the `AgentCaller` and returns an `AgentAnswer`; may be a coroutine function.
    """

    function: Callable[..., Any]
    reads: bool = False
    destroys: bool = False
    repeats: bool = False


def uri(kind: str, *parts: object) -> str:
    """Return the address of a resource, such as `healkit://executions/7`."""
    return f"healkit://{kind}/" + "/".join(quote(str(part), safe="") for part in parts)
