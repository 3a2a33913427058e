"""MCP servers as providers of tools.

Their tools are `mcp.<name>.<tool>` in a worker.

A server starts when its tools are first needed, and all executions share it. It starts again if a call finds that it
has ended. A call that the server may have received is never repeated: it could have deleted something, or paid.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, MutableMapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.core.contracts.tools import ToolDefinition
from healkit.core.crossing import values
from healkit.core.runtime.calls import CallContext, Provider
from healkit.errors import (
    CallRefused,
    CallTimedOut,
    ConfigError,
    McpError,
    McpMissing,
    McpUnavailable,
    did_you_mean,
    named,
)
from healkit.parts.mcp_client.mcp_data import START_TIMEOUT_S, ServerSpec, read_specs

if TYPE_CHECKING:
    from healkit.parts.mcp_client.mcp_session import Session


#: Servers that this process has started, also of a Healkit that was not closed.
_started: set[MCPServer] = set()

_Work = Callable[["Session"], Coroutine[Any, Any, Any]]
Submit = Callable[[Coroutine[Any, Any, Any]], "Future[Any]"]

#: After a failed start, the next try comes no sooner; until then, a call raises its problem at once.
_RETRY_S = 5.0
_CLOSE_S = 20.0
#: Time for telling the server that a call has timed out.
_CANCEL_S = 6.0


@dataclasses.dataclass(frozen=True)
class ServerStatus:
    """Status of a server: `state` is `idle` (not used yet), `running`, `starting`, `failed` or `gone`.

    `where` is its command or address, `tools` their known names, `problem` why it failed, and `last_words` the end of
    its stderr output.
    """

    name: str
    transport: str
    where: str
    state: str
    tools: tuple[str, ...] = ()
    problem: str = ""
    last_words: str = ""


class MCPServer:
    """MCP server as a provider; implements the router's `Provider`.

    `submit` runs a coroutine in healkit's event loop, where the connection lives. The methods wait for that loop, so
    code that runs in the loop must not call them.
    """

    def __init__(self, spec: ServerSpec, submit: Submit) -> None:
        self.server = spec.name
        self.spec = spec
        self._submit = submit
        self._session: Session | None = None
        self._known: list[ToolDefinition] = []
        self._lock = threading.Lock()
        self._closed = False

    def definitions(self, persona: str = "default") -> list[ToolDefinition]:
        """Return its tools, the same for every persona; called by the router. Starts the server.

        If the server cannot start, returns its earlier tools, so that a call of one reports the reason; otherwise
        raises like `listed`.
        """
        try:
            return self.listed()
        except McpError:
            if not self._known:
                raise
            return self._known

    def known_definitions(self) -> list[ToolDefinition]:
        """Return its tools from the last listing; starts nothing."""
        return self._known

    def listed(self) -> list[ToolDefinition]:
        """Return its current tools; raises `McpUnavailable` or `McpError`."""
        limit_s = 2 * self.spec.start_timeout_s  # to find it gone, and to start it again
        try:
            self._known = self._wait(lambda session: session.definitions(), limit_s)
        except _CannotStart as error:
            raise error.error_class(str(error)) from None
        except TimeoutError:
            raise McpUnavailable(
                f"The MCP server {self.server!r} did not list its tools within {limit_s:g} s."
            ) from None
        return self._known

    def expect(self, tool: str) -> None:
        """Refuse nothing: only the server knows its current tools; called by the router."""

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Call a tool of the server; called by the router on a bridge thread, several at a time.

        Raises `CallRefused` for arguments that are not JSON, `CallTimedOut` after the context's time (healkit asks the
        server to stop), `McpUnavailable` and `McpError`.

        The worker learns that a server is unavailable; the reason is in the error's cause, for the log.
        """
        if not values.is_plain(arguments):
            raise CallRefused(
                f"The arguments of mcp.{self.server}.{tool} contain a value that is not JSON, but an MCP "
                "server needs JSON.",
                hint="Pass strings, finite numbers, True, False, None, lists, and dicts with strings as keys.",
            )
        try:
            return self._wait(lambda session: session.call(tool, arguments), context.timeout_s)
        except TimeoutError:
            raise CallTimedOut(
                f"The MCP server {self.server!r} gave no answer within {context.timeout_s:g} s."
            ) from None
        except _CannotStart as error:
            raise error.error_class(
                f"The MCP server {self.server!r} is not available.",
                hint="The record of this call in the log says why.",
            ) from error

    def status(self) -> ServerStatus:
        """Return the server's status; starts nothing."""
        session = self._session
        state = "idle"
        if session is not None:
            state = "starting" if not session.settled.is_set() else "running"
            if session.closed:
                state = "gone" if session.ready else "failed"
        return ServerStatus(
            self.server,
            self.spec.transport,
            str(self.spec),
            state,
            tuple(definition.name for definition in self._known),
            session.problem if session else "",
            session.last_words if session else "",
        )

    def close(self) -> Future[Any] | None:
        """Stop the server permanently; the future ends when its process has ended. None if there is nothing to stop."""
        with self._lock:
            self._closed = True
        return self.rest()

    def rest(self) -> Future[Any] | None:
        """Stop the server as `close` does; the next request starts it again."""
        with self._lock:
            session, self._session = self._session, None
        _started.discard(self)
        return None if session is None or session.closed else self._submit(session.close())

    def _wait(self, work: _Work, timeout_s: float) -> Any:
        """Wait in this thread for work in the loop, and return its result; raises `TimeoutError`."""
        require_sdk()

        async def bounded() -> Any:
            async with asyncio.timeout(timeout_s):
                return await self._with_session(work)

        future = self._submit(bounded())
        try:
            return future.result(timeout_s + _CANCEL_S)
        except BaseException:
            future.cancel()
            raise

    async def _with_session(self, work: _Work) -> Any:
        """Make a request in the session; repeat it in a new session if the server had ended before it was sent."""
        from healkit.parts.mcp_client.mcp_session import CallNotMade

        for _ in range(2):
            session = await self._ready()
            try:
                return await work(session)
            except CallNotMade:
                await session.close()
        raise _CannotStart(f"The MCP server {self.server!r} ended twice before it could be called.")

    async def _ready(self) -> Session:
        """Return a ready session: the existing one, or a new one if that has ended."""
        session = self._current()
        await session.settled.wait()
        if session.ready:
            return session
        if session.refusal is not None:
            raise McpError(session.refusal.message, hint=session.refusal.hint)
        detail = f" It wrote: {session.last_words}" if session.last_words else ""
        cannot = _Missing if session.missing else _CannotStart
        raise cannot(
            f"The MCP server {self.server!r} ({self.spec}) cannot be used: {session.problem}.{detail}"
        )

    def _current(self) -> Session:
        from healkit.parts.mcp_client.mcp_session import Session

        with self._lock:
            if self._closed:
                raise _CannotStart(f"The MCP server {self.server!r} has been disconnected.")
            session = self._session
            if (
                session is None
                or session.loop is not asyncio.get_running_loop()  # forked: the connection is the parent's
                or (session.closed and (session.ready or time.monotonic() - session.ended_at > _RETRY_S))
            ):
                session = self._session = Session(self.spec)
                _started.add(self)
            return session


class _CannotStart(Exception):
    """Reason why a server is unavailable, in full: for the user and the log, not for tools."""

    error_class: type[McpUnavailable] = McpUnavailable


class _Missing(_CannotStart):
    """Its program is missing or may not run, and trying again does not help."""

    error_class = McpMissing


class MCPServers:
    """Connected servers, kept among a Healkit's providers.

    Example:
    >>> _ = Path("tools.json").write_text('{"mcpServers": {"shop": {"command": "shop-server"}}}')
    >>> hk.mcp.connect_all("tools.json")
    ['shop']
    """

    def __init__(self, providers: MutableMapping[str, Provider], submit: Submit) -> None:
        self._providers = providers
        self._submit = submit
        self._lock = threading.Lock()

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
        """Start an MCP server, or connect to one, and let tools with a grant for it call `mcp.<name>.<tool>(…)`.

        command: The command of a stdio server; it runs with your rights, outside any worker.
        url: The address of a streamable HTTP server instead.
        env, headers: For a command and for a url; see `ServerSpec`.

        Returns its tools. A second call with the same name replaces the server, unless nothing about it has changed.
        Raises `McpUnavailable` if it cannot start or the extra `healkit[mcp]` is not installed. Raises `ConfigError`
        for invalid settings, and `McpError` for tools with the same name.

        Example:
        >>> code = '''
        ... from mcp.server.mcpserver import MCPServer
        ... server = MCPServer("clock", log_level="ERROR")
        ... @server.tool()
        ... def now() -> str: return "noon"
        ... server.run()
        ... '''
        >>> _ = Path("clock.py").write_text(code)
        >>> [tool.name for tool in hk.connect("clock", command=[sys.executable, "clock.py"])]
        ['now']
        >>> hk.disconnect("clock")
        """
        spec = ServerSpec(name, command, url, env, cwd, headers, start_timeout_s)
        require_sdk()
        with self._lock:
            before = self._providers.get(spec.name)
            server = before if isinstance(before, MCPServer) and before.spec == spec else None
            server = server or MCPServer(spec, self._submit)
        try:
            tools = server.listed()
        except BaseException:
            if server is not before:
                _finish([server])
            raise
        self._keep(server)
        return tools

    def connect_all(self, path: str | Path) -> list[str]:
        """Add the servers of an `mcpServers` file, and return their names.

        Each server starts when a tool with a grant for it first runs. Raises as `connect` does, except for errors of a
        start.

        Example:
        >>> _ = Path("mcp.json").write_text('{"mcpServers": {"files": {"command": "files-server"}}}')
        >>> hk.connect_all("mcp.json")
        ['files']
        """
        require_sdk()
        specs = read_specs(path)
        for spec in specs:
            before = self._providers.get(spec.name)
            if not isinstance(before, MCPServer) or before.spec != spec:
                self._keep(MCPServer(spec, self._submit))
        return [spec.name for spec in specs]

    def disconnect(self, name: str) -> None:
        """Stop a connected MCP server; raise `ConfigError` if none has that name.

        Example:
        >>> _ = Path("one.json").write_text('{"mcpServers": {"mail": {"command": "mail-server"}}}')
        >>> _ = hk.connect_all("one.json")
        >>> hk.disconnect("mail")
        >>> "mail" in [server.name for server in hk.servers()]
        False
        """
        with self._lock:
            server = self._providers.get(name) if isinstance(name, str) else None
            if not isinstance(server, MCPServer):
                server_names = [connected_server.server for connected_server in self._all()]
                raise ConfigError(
                    f"No MCP server {named(name)} is connected.{did_you_mean(name, server_names)}"
                )
            del self._providers[name]
        _finish([server])

    def servers(self) -> list[ServerStatus]:
        """List the connected MCP servers with their status.

        Example:
        >>> _ = Path("two.json").write_text('{"mcpServers": {"wiki": {"command": "wiki-server"}}}')
        >>> _ = hk.connect_all("two.json")
        >>> [(server.name, server.state) for server in hk.servers() if server.name == "wiki"]
        [('wiki', 'idle')]
        """
        return sorted((server.status() for server in self._all()), key=lambda status: status.name)

    def close(self) -> None:
        """Stop them all, at the same time, and wait until their processes have ended.

        Example:
        >>> _ = Path("three.json").write_text('{"mcpServers": {"maps": {"command": "maps-server"}}}')
        >>> _ = hk.connect_all("three.json")
        >>> hk.mcp.close()
        >>> [server.state for server in hk.servers() if server.name == "maps"]
        ['idle']
        """
        _finish(self._all())

    def _all(self) -> list[MCPServer]:
        return [server for server in list(self._providers.values()) if isinstance(server, MCPServer)]

    def _keep(self, server: MCPServer) -> None:
        with self._lock:
            before = self._providers.get(server.server)
            self._providers[server.server] = server
        if isinstance(before, MCPServer) and before is not server:
            _finish([before])


def rest() -> None:
    """Stop every server of this process; called before healkit's event loop is stopped."""
    wait([future for server in list(_started) if (future := server.rest()) is not None], timeout=_CLOSE_S)


def require_sdk() -> None:
    """Load the protocol's SDK in this thread, not in the event loop; raises `McpUnavailable` without it."""
    try:
        import healkit.parts.mcp_client.mcp_session  # noqa: F401 - only whether it can be imported
    except ImportError as error:
        raise McpMissing(
            f"MCP servers need the package 'mcp' ({error}).", hint="Run: pip install 'healkit[mcp]'"
        ) from error


def _finish(servers: list[MCPServer]) -> None:
    wait([future for server in servers if (future := server.close()) is not None], timeout=_CLOSE_S)
