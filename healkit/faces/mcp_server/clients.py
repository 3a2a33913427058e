"""Clients: their identities, limits and configurations."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.config import Config
from healkit.errors import AgentLimit, ConfigError, did_you_mean
from healkit.faces.mcp_server.large_results import LargeResults
from healkit.parts.collect.limits import RateLimiter
from healkit.plain_text import visible

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

_NAME_MAX_CHARS = 60
#: Maximum number of concurrent calls of one client.
_AT_ONCE_MAX = 32


@dataclass(frozen=True)
class Client:
    """Client by its own name, and its session with this server."""

    name: str
    version: str
    session: str

    @property
    def label(self) -> str:
        """Name of the client in the log: `claude-code 2.1.0, session 4f2a91c0`."""
        return f"{self.name} {self.version}".rstrip() + f", session {self.session}"


def client_of(context: ServerRequestContext[Any, Any], session: str) -> Client:
    """Return the sender of a request; what a client says about itself is not trusted, so it is cut and made visible.

    session: Name of the connection, if the transport has none.
    """
    params = context.session.client_params
    info = None if params is None else params.client_info
    headers = getattr(context.request, "headers", {})
    name, version, session_id = (
        visible(str(text or "")).replace("\n", " ")[:_NAME_MAX_CHARS]
        for text in (info and info.name, info and info.version, headers.get("mcp-session-id") or session)
    )
    return Client(name or "unnamed", version, session_id[:8])


class Limits:
    """Limits of each client; clients are distinguished by their names."""

    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = RateLimiter(config.mcp_rate_per_s, max(1, round(2 * config.mcp_rate_per_s)), clock)
        self._budget_s, self._clock = config.mcp_budget_s, clock
        self._used_s: defaultdict[str, float] = defaultdict(float)
        self._running: Counter[str] = Counter()

    @contextmanager
    def call(self, client: Client) -> Iterator[None]:
        """Count a call and its time; raise `AgentLimit` above a limit."""
        if wait_s := self._rate.take(client.name):
            raise AgentLimit(
                f"Too many calls from {client.name!r}.", hint=f"Wait {wait_s:.1f} s and call again."
            )
        if self._running[client.name] >= _AT_ONCE_MAX:
            raise AgentLimit(
                f"{_AT_ONCE_MAX} calls of {client.name!r} are running.", hint="Wait for one of them to end."
            )
        if 0 < self._budget_s <= self._used_s[client.name]:
            raise AgentLimit(
                f"The time of {client.name!r} is used up: {self._budget_s:g} s (mcp_budget_s).",
                hint="A person can raise HEALKIT_MCP_BUDGET_S and start the server again.",
            )
        began = self._clock()
        self._running[client.name] += 1
        try:
            yield
        finally:
            self._running[client.name] -= 1
            self._used_s[client.name] += self._clock() - began


class OwnResults:
    """Results of this server's calls: runs and data views by name, and results that did not fit into an answer."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.large = LargeResults()


# Configurations of clients, as commands or files.


def _json(key: str, **more: str) -> Callable[[list[str]], str]:
    def configured(words: list[str]) -> str:
        return json.dumps({key: {"healkit": {**more, "command": words[0], "args": words[1:]}}})

    return configured


def _codex(words: list[str]) -> str:
    return f"mcp_servers.healkit = {{ command = {json.dumps(words[0])}, args = {json.dumps(words[1:])} }}"


#: Client → how its configuration is written, and where it goes.
CLIENTS: dict[str, tuple[Callable[[list[str]], str], str]] = {
    "claude-code": (lambda words: f"claude mcp add healkit -- {shlex.join(words)}", "a shell"),
    "claude-desktop": (_json("mcpServers"), "claude_desktop_config.json"),
    "codex": (_codex, "~/.codex/config.toml"),
    "cursor": (_json("mcpServers"), ".cursor/mcp.json"),
    "gemini": (_json("mcpServers"), "~/.gemini/settings.json"),
    "vscode": (_json("servers", type="stdio"), ".vscode/mcp.json"),
    "windsurf": (_json("mcpServers"), "~/.codeium/windsurf/mcp_config.json"),
    "zed": (_json("context_servers", source="custom"), "settings.json"),
}


def configuration(client: str, options: Sequence[str], database: Path | str) -> tuple[str, str]:
    """Return a client's configuration for this healkit and that database, in one line, and where it goes.

    It names the interpreter by its path, because a desktop program rarely has the shell's PATH. The interpreter must
    not import from the working folder (-P), because editors start a server in the open project. Raises `ConfigError`.
    """
    if client not in CLIENTS:
        raise ConfigError(
            f"No configuration is known for {client!r}.{did_you_mean(client, CLIENTS)}",
            hint=f"There are {', '.join(CLIENTS)}.",
        )
    write, where = CLIENTS[client]
    return write([sys.executable, "-P", "-m", "healkit", "mcp", "--db", str(database), *options]), where
