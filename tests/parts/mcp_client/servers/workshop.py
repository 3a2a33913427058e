"""Real server on the official SDK.

It serves the files of one folder, and tools that fail, wait, change and die.

workshop.py FOLDER [PORT]: over stdio, or over streamable HTTP on that port. With WORKSHOP_OLDER in its environment
it knows only the older form of the protocol, with a handshake and sessions.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp import MCPError
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError


async def older(ctx: Any, call_next: Any) -> Any:
    """Refuse what only newer clients ask."""
    if ctx.method == "server/discover" and "WORKSHOP_OLDER" in os.environ:
        raise MCPError(-32601, "no such method")
    return await call_next(ctx)


folder = Path(sys.argv[1]).resolve()
server = MCPServer("workshop", log_level="ERROR", middleware=[older])
#: A transparent pixel.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6300010000000500010d0a2db40000000049454e44ae426082"
)


@server.tool()
def read_file(path: str) -> str:
    """The text of a file of the folder."""
    found = (folder / path).resolve()
    if not found.is_relative_to(folder):
        raise ToolError(f"{path!r} is outside of the folder")
    return found.read_text()


@server.tool(name="list-files")
def list_files() -> list[str]:
    """The names of the folder's files."""
    return sorted(entry.name for entry in folder.iterdir())


class Barrier:
    """Three callers wait for each other."""

    def __init__(self) -> None:
        self.here = 0
        self.all_here = asyncio.Event()

    async def wait(self) -> None:
        self.here += 1
        if self.here == 3:
            self.all_here.set()
        await self.all_here.wait()


together = Barrier()


@server.tool(structured_output=False)
def echo(text: str, times: int = 1) -> list[str]:
    """The text, so many times."""
    return [text] * times


@server.tool()
def measure(text: str) -> dict[str, int]:
    """Counts, as structured content."""
    return {"characters": len(text), "words": len(text.split())}


@server.tool()
def pixel() -> Image:
    """An image."""
    return Image(data=PIXEL, format="png")


@server.tool()
async def slow(seconds: float, mark: str = "") -> str:
    """Wait; write a file named by `mark` at the start, and `<mark>.stopped` when told to stop."""
    if mark:
        (folder / mark).touch()
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if mark:
            (folder / f"{mark}.stopped").touch()
        raise
    return "done"


@server.tool()
async def meet(n: int) -> int:
    """Answer when three callers are here at the same time."""
    await together.wait()
    return n


@server.tool()
def environment() -> dict[str, str]:
    """The server's environment."""
    return dict(os.environ)


@server.tool()
def pid() -> int:
    """The server's process id."""
    return os.getpid()


@server.tool()
def die() -> None:
    """Leave without a word to the caller."""
    print("giving up", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool named `grown`, and say so."""
    server.add_tool(lambda: "grown", name="grown")
    await ctx.notify_tools_changed()
    return "grew"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
