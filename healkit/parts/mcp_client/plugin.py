"""What the MCP servers that tools call hook into."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl

if TYPE_CHECKING:
    from healkit.parts.mcp_client.mcp_servers import MCPServers
    from healkit.services import Services


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`mcp` with its methods."""
    return {
        "mcp": _mcp,
        "connect": lambda services: services.mcp.connect,
        "connect_all": lambda services: services.mcp.connect_all,
        "disconnect": lambda services: services.mcp.disconnect,
        "servers": lambda services: services.mcp.servers,
    }


def _mcp(services: Services) -> MCPServers:
    from healkit.core.runtime import background
    from healkit.parts.mcp_client.mcp_servers import MCPServers

    return MCPServers(services.executor.providers, background.loop.submit)


@hookimpl
def closing(services: Services) -> None:
    """Stop the servers of that database."""
    if (servers := services.made("mcp")) is not None:
        servers.close()


@hookimpl
def resting() -> None:
    """Stop every server of this process; the next request starts it again."""
    if (mcp_servers := sys.modules.get("healkit.parts.mcp_client.mcp_servers")) is not None:
        mcp_servers.rest()
