"""The connecting face of Healkit: what tools can call on the host.

A mixin: functions of this process and MCP servers, which tools then reach as `mcp.<name>.<tool>(…)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from healkit.contracts.tools import ToolDefinition
from healkit.runtime.mcp_servers import MCPServers, ServerStatus
from healkit.runtime.mcp_spec import START_TIMEOUT_S, ServerSpec
from healkit.runtime.providers import HostFunctions


class Connecting:
    """What `Healkit` offers to tools beside the vault."""

    _host: HostFunctions
    _mcp: MCPServers

    def provide(self, function: Callable[..., Any], name: str | None = None) -> ToolDefinition:
        """Let tools call a Python function of this process as `mcp.host.<name>(…)`.

        It runs here, with all your rights, on a thread of healkit's. Can be used as a decorator's call.
        """
        return self._host.provide(function, name)

    def withdraw(self, name: str) -> None:
        """Take a provided function back."""
        self._host.withdraw(name)

    def connect(
        self,
        name: str,
        *,
        command: Sequence[str | os.PathLike[str]] | None = None,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        headers: Mapping[str, str] | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> list[ToolDefinition]:
        """Start an MCP server, or reach one, and let tools that are granted it call `mcp.<name>.<tool>(…)`.

        command: of a server that speaks over stdio; it runs with your rights, outside of any worker.
        url: of a server that speaks streamable HTTP, instead.
        env, headers: for the one and the other; see `ServerSpec`.

        Returns its tools. The same name again replaces the server, unless nothing about it has changed. Raises
        `McpUnavailable` when it cannot be started or the extra `healkit[mcp]` is not installed, `ConfigError` for what
        cannot work, and `McpError` for tools that cannot be told apart.
        """
        return self._mcp.connect(ServerSpec(name, command, url, env, cwd, headers, start_timeout_s))

    def connect_all(self, path: str | Path) -> list[str]:
        """Make the servers of an `mcpServers` file known, and return their names.

        Each is started when a tool that is granted it first runs. Raises as `connect` does, except for what only a
        start shows.
        """
        return self._mcp.connect_all(path)

    def disconnect(self, name: str) -> None:
        """End a connected MCP server; raises `ConfigError` where there is none of that name."""
        self._mcp.disconnect(name)

    def servers(self) -> list[ServerStatus]:
        """The MCP servers that are connected, and how each is."""
        return self._mcp.status()
