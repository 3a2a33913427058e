"""What the MCP servers that tools call hook into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.core.runtime import background
from healkit.hooks import hookimpl
from healkit.parts.mcp_client import mcp_servers

if TYPE_CHECKING:
    from healkit.services import Services


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`mcp` with its methods."""
    return {
        "mcp": lambda services: mcp_servers.MCPServers(services.executor.providers, background.loop.submit),
        "connect": lambda services: services.mcp.connect,
        "connect_all": lambda services: services.mcp.connect_all,
        "disconnect": lambda services: services.mcp.disconnect,
        "servers": lambda services: services.mcp.servers,
    }


@hookimpl
def closing(services: Services) -> None:
    """End the servers of that database."""
    if (servers := services.made("mcp")) is not None:
        servers.close()


@hookimpl
def resting() -> None:
    """End every server of this process; the next request starts it again."""
    mcp_servers.rest()
