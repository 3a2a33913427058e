"""Connection to an MCP server, from start to end.

Everything here runs in healkit's event loop. The protocol's scopes must be entered and left in the same task, so a
session has one task for its whole life. Calls come to it from their own tasks. A session that has ended is never used
again; `runtime.mcp_servers` makes the next one.

This is the only module that loads the `mcp` package, so it is imported only when a server is connected.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import (
    CONNECTION_CLOSED,
    Implementation,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from healkit.core.contracts.rpc import MAX_FRAME_BYTES
from healkit.core.contracts.tools import ToolDefinition
from healkit.errors import CallRefused, McpError, McpUnavailable, did_you_mean
from healkit.parts.mcp_client.mcp_data import ServerSpec, by_identifier, definition_of, result_value

if TYPE_CHECKING:
    from types import TracebackType

    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

_CLOSE_S = 8.0  # the SDK gives a server 2 s to leave, 2 s after SIGTERM, 2 s after SIGKILL
_WHY_S = 1.0
_LISTEN_AGAIN_S = 2.0
_MAX_PAGES = 1000
_NOT_CONNECTED = "cannot connect"

# Without a handler of their own, Python would print the SDK's tracebacks in the middle of a notebook.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class CallNotMade(Exception):
    """Signal that the server had ended before the call reached it, so that the call can be made again."""


class Session:
    """Session with a server, from its start or the first request until it is closed or has ended.

    `settled` is set once it is ready or has failed. `problem` says why it failed or ended. `missing` says that its
    program is missing or may not run. `closed` says that it has ended, `refusal` that healkit refused its tools.
    """

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self.settled = asyncio.Event()
        self.closed = False
        self.ready = False
        self.problem, self.missing = "", False
        self.refusal: McpError | None = None
        self.ended_at = math.inf
        self._client: Client | None = None
        self._last_words: LastWords | None = None
        self._tools: dict[str, Tool] = {}
        self._stale = True
        self._strange = ""
        self._forgotten = False
        self._in_flight = 0
        self._end = asyncio.Event()
        self._scope = anyio.CancelScope()
        self.loop = asyncio.get_running_loop()
        self._task = self.loop.create_task(self._run())

    async def definitions(self) -> list[ToolDefinition]:
        """Return the server's tools; lists them again if the server reported a change."""
        await self._fresh()
        return [definition_of(self.spec.name, name, tool) for name, tool in self._tools.items()]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return the value of a call of the tool with that Python name.

        Raises `CallNotMade` if the server certainly never saw the call, `McpUnavailable` if it ended during the call,
        and `McpError` for every other answer without a value.
        """
        await self._fresh()
        if (tool := self._tools.get(name)) is None:
            suggestion = did_you_mean(name, self._tools)
            raise CallRefused(f"The MCP server {self.spec.name!r} has no tool {name!r}.{suggestion}")
        if self.closed or self._end.is_set() or self._client is None:
            raise CallNotMade
        alone = self._in_flight == 0
        self._in_flight += 1
        try:
            return result_value(await self._client.call_tool(tool.name, arguments), tool)
        except MCPError as error:
            failure = await self._failure(error, name, alone=alone and self._in_flight == 1)
            raise failure from (ConnectionError(f"It wrote: {self.last_words}") if self.last_words else None)
        except (RuntimeError, ValueError) as error:  # the SDK's words for an answer that breaks the protocol
            raise self._invalid(error) from error
        finally:
            self._in_flight -= 1

    async def close(self) -> None:
        """Stop it and wait until the server's process has ended; in a forked child, the parent stops it."""
        if self.loop is not asyncio.get_running_loop():
            return
        if self.ready:
            self._end.set()
        else:
            self._scope.cancel()
        await asyncio.wait({self._task}, timeout=_CLOSE_S)
        self._scope.cancel()
        await asyncio.wait({self._task}, timeout=_CLOSE_S)

    @property
    def last_words(self) -> str:
        """Last lines that a stdio server wrote to stderr."""
        return self._last_words.text if self._last_words else ""

    async def _run(self) -> None:
        self._scope.deadline = anyio.current_time() + self.spec.start_timeout_s
        try:
            with self._scope:
                await self._live()
            if self._scope.cancelled_caught and not self.ready:
                self.problem = f"it did not answer within {self.spec.start_timeout_s:g} s{self._strange}"
        except Exception as error:  # noqa: BLE001 - the next question reports what ended it
            first = _first(error)
            self.problem = _reason(first) + self._strange
            self.missing = isinstance(first, FileNotFoundError | PermissionError)
            self.refusal = first if isinstance(first, McpError) else None
        finally:
            self.closed = True
            self.ended_at = time.monotonic()
            self.settled.set()
            if self._last_words is not None:
                self._last_words.close()

    async def _live(self) -> None:
        info = Implementation(name="healkit", version="1")
        client = Client(
            cast("Transport", self._transport()),
            message_handler=self._on_message,
            client_info=info,
            cache=None,
        )
        async with client:
            self._client = client
            await self._refresh()
            self._scope.deadline = math.inf
            self.ready = True
            self.settled.set()
            async with anyio.create_task_group() as listening:
                listening.start_soon(self._listen, client)
                await self._end.wait()
                listening.cancel_scope.cancel()

    @contextlib.asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Watched, WriteStream[SessionMessage]]]:
        """Open the streams of the protocol, and watch for the server's end."""
        async with contextlib.AsyncExitStack() as stack:
            if self.spec.url is not None:
                timeout = httpx2.Timeout(self.spec.start_timeout_s, read=None)
                http = await stack.enter_async_context(
                    httpx2.AsyncClient(
                        headers=dict(self.spec.headers or {}),
                        timeout=timeout,
                        event_hooks={"response": [self._on_response]},
                    )
                )
                opening: Transport = streamable_http_client(
                    self.spec.url, http_client=http, max_sse_event_size=MAX_FRAME_BYTES
                )
            else:
                command, *args = map(str, self.spec.command or ())
                env, cwd = dict(self.spec.env or {}), self.spec.cwd
                self._last_words = LastWords()
                parameters = StdioServerParameters(command=command, args=args, env=env, cwd=cwd)
                opening = stdio_client(parameters, self._last_words.file)
            read, write = await stack.enter_async_context(opening)
            yield Watched(read, self._end), write

    async def _fresh(self) -> None:
        """Refresh outdated lists; raises `CallNotMade` if the server has ended, because nothing was lost."""
        if not self._stale:
            return
        try:
            await self._refresh()
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or self._forgotten:
                self._end.set()
                raise CallNotMade from error
            raise McpError(error.message) from error
        except (RuntimeError, ValueError) as error:
            raise self._invalid(error) from error

    async def _refresh(self) -> None:
        """Ask for all pages of the tools."""
        assert self._client is not None
        self._stale = False  # before asking, so that a change meanwhile counts
        tools: list[Tool] = []
        cursor: str | None = None
        try:
            for _ in range(_MAX_PAGES):
                page = await self._client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
            else:
                raise McpError(f"The MCP server {self.spec.name!r} lists its tools endlessly.")
            self._tools = by_identifier(self.spec.name, tools)
        except BaseException:
            self._stale = True
            raise

    async def _on_message(self, message: object) -> None:
        """Handle a notification of the server; called by the SDK. Ignores lines that are not messages."""
        if isinstance(message, ToolListChangedNotification):
            self._stale = True
        elif isinstance(message, ValidationError) and not self.ready and not self._strange:
            self._strange = (
                f"; it prints text that is not a message: {message.errors()[0].get('input')!r:.80}"
            )

    async def _on_response(self, response: httpx2.Response) -> None:
        """Detect that an HTTP server was restarted: it does not know the session, so it has run nothing."""
        if response.status_code == HTTPStatus.NOT_FOUND and "mcp-session-id" in response.request.headers:
            self._forgotten = True
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            self._strange = f" (HTTP {response.status_code} {response.reason_phrase})"

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes of the tool list, as newer versions of the protocol require."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    self._stale = True  # what happened before we listened was not heard
                    async for _ in changes:
                        self._stale = True
            except SubscriptionLost:
                pass
            except MCPError:
                return  # refused: then it has nothing to tell, or the connection is at its end
            self._stale = True
            await anyio.sleep(_LISTEN_AGAIN_S)

    def _invalid(self, error: Exception) -> McpError:
        return McpError(f"The MCP server {self.spec.name!r} gave no valid answer: {error}")

    async def _failure(self, error: MCPError, tool: str, *, alone: bool) -> Exception:
        """Return the error to raise for a protocol error; `alone` when no other call was in flight."""
        name = self.spec.name
        if error.code != CONNECTION_CLOSED:
            if self._forgotten:
                self._end.set()
                return CallNotMade()
            return McpError(error.message)
        with contextlib.suppress(TimeoutError):  # the task learns why a moment after the call does
            async with asyncio.timeout(_WHY_S):
                await self._end.wait()
                if self.spec.url is not None:
                    await asyncio.wait({self._task})
        if self.closed and alone and self.problem.startswith(_NOT_CONNECTED):
            return CallNotMade()
        why = f" ({self.problem or error.message})" if self.spec.url else ""
        return McpUnavailable(
            f"The MCP server {name!r} ended before it had answered {tool!r}{why}.",
            hint="The call may have been carried out, so it was not repeated. The next call starts the server again.",
        )


def _first(error: BaseException) -> BaseException:
    """Return the first of several errors; the others follow from it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException) -> str:
    """Return why a connection failed, in a few words."""
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"{_NOT_CONNECTED}: {error}"
    if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
        return "it ended before it had answered"
    if isinstance(error, OSError) and error.filename:
        return f"{error.strerror}: {error.filename!r}"
    return str(error) or type(error).__name__


# Streams between healkit and an MCP server, watched.


_LAST_WORDS_BYTES = 4000


class Watched:
    """A stream of messages that sets `end` when there will be no more; the SDK does not report the end of a stream."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], end: asyncio.Event) -> None:
        self._stream = stream
        self._end = end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Watched:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._end.set()
            raise

    async def __aenter__(self) -> Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class LastWords:
    """A pipe for a server's stderr, read continuously so that it never blocks; only its end is kept."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._read, write = os.pipe()
        self._bytes = b""
        os.set_blocking(self._read, False)
        self.file = open(write, "w", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        self._loop.add_reader(self._read, self._more)

    @property
    def text(self) -> str:
        """Text so far, from the first complete line if it was cut."""
        return self._bytes.decode(errors="replace").strip()

    def close(self) -> None:
        """Read the rest, and close the pipe."""
        self._more()
        self._loop.remove_reader(self._read)
        os.close(self._read)
        self.file.close()

    def _more(self) -> None:
        try:
            while chunk := os.read(self._read, 64 * 1024):
                self._bytes = (self._bytes + chunk)[-_LAST_WORDS_BYTES:]
        except BlockingIOError:
            pass
