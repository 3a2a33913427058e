"""Agent server: a Healkit, a persona, their clients.

A client waits for the first answer before it does anything else, and importing the SDK alone takes half a second. So
the database is opened, and the other modules are imported, after that answer was sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    NotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Tool,
    ToolAnnotations,
)

from healkit.config import Config
from healkit.core.contracts.vault import DEFAULT_PERSONA, VaultEntry
from healkit.errors import HealkitError, InternalError, PersonaNotFound, ToolNotFound, did_you_mean
from healkit.faces.mcp_server.clients import Client, Limits, OwnResults, client_of
from healkit.faces.mcp_server.transports import GONE
from healkit.package import VERSION
from healkit.plain_text import visible

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp.server.session import ServerSession

    from healkit.app import Healkit
    from healkit.faces.mcp_server.consent import Consent
    from healkit.faces.mcp_server.own_tools import Answer

INSTRUCTIONS = (
    "healkit runs generated Python tools in restricted workers, records each execution, and repairs tools. A tool that "
    "fails answers with isError and a log_id. Read it, then propose_patch. Use apply_patch once a person has consented."
)
#: Group of the operations of a decision: `decide` calls and lists them.
_DECIDING = "decide"
#: Group of the seeded tools that read the log; healkit's own tools of the same names replace them.
_DEBUG = "debug"
#: Interval of progress messages of a long call, and of checks of the vault for changes, in seconds.
PROGRESS_EVERY_S, _LOOK_EVERY_S = 5.0, 1.0
#: Maximum numbers of connections that are notified of changes, and of characters of a tool's name and
#: description.
_SESSIONS_MAX, _NAME_MAX_CHARS, _ABOUT_MAX_CHARS = 100, 64, 300


@dataclasses.dataclass(frozen=True)
class ServerOptions:
    """Options for starting a server.

    persona: Persona whose tools and rows its clients can use.
    tools: Pattern for the vault's tools to list; `run_tool` runs all.
    through_client: Whether a client may ask its user for consent.
    """

    persona: str = DEFAULT_PERSONA
    tools: str = "*"
    through_client: bool = True
    progress_every_s: float = PROGRESS_EVERY_S


class _Listed(NamedTuple):
    """Tools as they were listed.

    stamp: The vault's stamp at that time; empty for none. names: Names of the vault's tools for clients → in the vault.
    """

    stamp: tuple[object, ...] = ()
    result: ListToolsResult = ListToolsResult(tools=[])
    names: Mapping[str, str] = MappingProxyType({})


class HealkitServer(Server[None]):
    """The protocol's side of the server: it announces to clients that the list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the capabilities; called by the SDK for each connection."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class AgentServer:
    """Serves one Healkit to agents; a transport runs `protocol`.

    opened: Opens the Healkit, once; its exception, or `DatabaseNotTrusted`, is the answer to each call.
    """

    def __init__(
        self, opened: Callable[[], Healkit], config: Config, options: ServerOptions = ServerOptions()
    ) -> None:
        self._opener, self._options = opened, options
        self._opening = threading.Lock()
        self._opened: tuple[Healkit, Consent] | None = None
        self._limits = Limits(config)
        self._session = secrets.token_hex(4)
        self._sessions: deque[ServerSession] = deque(maxlen=_SESSIONS_MAX)
        self._bus = InMemorySubscriptionBus()
        self._own = OwnResults()
        self._listed = _Listed()
        self.protocol = HealkitServer(
            "healkit",
            version=VERSION,
            instructions=INSTRUCTIONS,
            lifespan=self._watched,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=_no_resources,
            on_list_resource_templates=_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=_prompts,
            on_get_prompt=_prompt,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self.protocol.add_notification_handler(
            "notifications/initialized", NotificationParams, self._connected
        )

    def _open(self) -> tuple[Healkit, Consent]:
        """Return the Healkit, opened by the first request, and its `Consent`; may take a second."""
        from healkit.faces.mcp_server.consent import Consent

        with self._opening:
            if (opened := self._opened) is None:
                hk = self._opener()
                hk.database.require_trust("Agents cannot be served")
                opened = self._opened = hk, Consent(hk, through_client=self._options.through_client)
            return opened

    def close(self) -> None:
        """Remove the stored results; called after the last transport has ended."""
        self._own.large.close()

    async def _ready(self) -> tuple[Healkit, Consent]:
        return await asyncio.to_thread(self._open) if self._opened is None else self._opened

    # Tools.

    async def _list_tools(
        self, _: ServerRequestContext[None], __: PaginatedRequestParams | None
    ) -> ListToolsResult:
        opened = await self._ready()
        return (await asyncio.to_thread(self._tools, opened[0])).result

    def _tools(self, hk: Healkit) -> _Listed:
        """Return the list of tools; made again if the vault has changed."""
        from healkit.faces.mcp_server.own_tools import own_tools

        stamp = hk.vault.stamp()
        if stamp == self._listed.stamp:
            return self._listed
        best: dict[str, VaultEntry] = {}
        for entry in hk.vault.list():
            name, persona = entry.tool_name, self._options.persona
            served = entry.persona == persona or (entry.persona == DEFAULT_PERSONA and name not in best)
            if served and not entry.draft:
                best[name] = entry
        pattern, builtin_tools = self._options.tools, own_tools()
        builtin_names = {tool.name for tool in builtin_tools}
        entries = {
            name: best_entry
            for name, best_entry in best.items()
            if fnmatchcase(name, pattern)
            and (pattern != "*" or best_entry.group != _DECIDING)
            and (name not in builtin_names or best_entry.group != _DEBUG)
        }
        names = exposed_names(entries, builtin_names)
        tools = [*builtin_tools, *(tool_of(hk, exposed, entries[name]) for exposed, name in names.items())]
        self._listed = _Listed(stamp, ListToolsResult(tools=tools), names)
        return self._listed

    async def _call_tool(self, context: ServerRequestContext[None], params: CallToolRequestParams) -> Answer:
        client = client_of(context, self._session)
        try:
            with self._limits.call(client):
                return await self._with_progress(context, params, client)
        except Exception as error:  # noqa: BLE001 - our own mistakes are answers too, or the client would wait for ever
            from healkit.faces.mcp_server.answers import error_answer

            public_error = error if isinstance(error, HealkitError) else InternalError.of(error)
            if isinstance(error, ToolNotFound | PersonaNotFound):
                # The vault suggests similar names of any persona; a session only sees its own.
                name = str((params.arguments or {}).get("name", params.name))
                near = did_you_mean(name, [tool.name for tool in self._listed.result.tools])
                public_error = ToolNotFound(
                    f"There is no tool {name[:200]!r}.{near}", hint="tools/list has them all."
                )
                public_error.log_id = error.log_id
            return error_answer(public_error)

    async def _with_progress(
        self, context: ServerRequestContext[None], params: CallToolRequestParams, client: Client
    ) -> Answer:
        news, loop, began = asyncio.Event(), asyncio.get_running_loop(), time.monotonic()
        sentences: deque[str] = deque(maxlen=1)

        def say(sentence: str) -> None:  # called on any thread
            sentences.append(sentence)
            loop.call_soon_threadsafe(news.set)

        async def tell() -> None:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), self._options.progress_every_s)
                news.clear()
                elapsed_s = time.monotonic() - began
                message = visible(sentences[-1])[:200] if sentences else f"{params.name} is running"
                await context.session.report_progress(elapsed_s, message=f"{message} ({elapsed_s:.0f} s)")

        async def leave(gone: asyncio.Event, working: asyncio.Task[Any] | None) -> None:
            await gone.wait()
            if working is not None:
                working.cancel()

        beside = [asyncio.create_task(tell())]
        if context.request is not None:
            gone = context.request.scope[GONE]
            beside.append(asyncio.create_task(leave(gone, asyncio.current_task())))
        try:
            hk, consent = await self._ready()
            from healkit.faces.mcp_server.own_tools import AgentCall

            call = AgentCall(hk, self._options.persona, client, consent, context, params, say, self._own)
            arguments = params.arguments or {}
            if (work := call.tool(params.name, arguments)) is not None:
                return await work
            names = (await asyncio.to_thread(self._tools, hk)).names
            if params.name not in names:
                raise ToolNotFound(params.name)
            return await call.run_tool(names[params.name], arguments)
        finally:
            for task in beside:
                task.cancel()
            await self._look()

    # Resources.

    async def _read_resource(
        self, context: ServerRequestContext[None], params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        try:
            with self._limits.call(client_of(context, self._session)):
                hk, _ = await self._ready()
                from healkit.faces.mcp_server.resources import read_resource

                return await read_resource(hk, self._options.persona, self._own, str(params.uri))
        except Exception as error:  # noqa: BLE001 - as in `_call_tool`
            public_error = error if isinstance(error, HealkitError) else InternalError.of(error)
            raise MCPError(INVALID_PARAMS, str(public_error), {"code": public_error.code}) from None

    # Changes of the vault, reported to all clients.

    async def _connected(self, context: ServerRequestContext[None], _: NotificationParams) -> None:
        self._sessions.append(context.session)

    @contextlib.asynccontextmanager
    async def _watched(self, _: Server[None]) -> AsyncIterator[None]:
        """Check the vault while the server runs; entered by the SDK once for each transport."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            with contextlib.suppress(HealkitError):  # each call reports it
                await self._ready()
            await self._look()

    async def _look(self) -> None:
        """Notify the clients if the vault differs from the list."""
        listed = self._listed.stamp
        if not listed or self._opened is None:
            return
        try:
            if await asyncio.to_thread(self._opened[0].vault.stamp) == listed:
                return
        except HealkitError:  # a locked database: checked again soon
            return
        self._listed = _Listed()
        await self._bus.publish(ToolsListChanged())
        for session in list(self._sessions):
            try:
                await session.send_tool_list_changed()
            except Exception:  # noqa: BLE001 - a closed connection
                self._sessions.remove(session)


def tool_of(hk: Healkit, exposed: str, entry: VaultEntry) -> Tool:
    """Return a tool of the vault for clients, with its hints."""
    from healkit.core.pysource.nodes import declares_effects

    acts = declares_effects(entry, lambda name: hk.vault.lookup(name, entry.persona))
    outside = any(not pattern.startswith("vault.") for pattern in entry.grants.calls or ())
    about = entry.description or f"The tool {entry.tool_name}."
    return Tool(
        name=exposed,
        description=visible(about if len(about) <= _ABOUT_MAX_CHARS else f"{about[:_ABOUT_MAX_CHARS]}…"),
        input_schema={"type": "object", **entry.input_schema},
        annotations=ToolAnnotations(
            read_only_hint=not acts and not outside,
            destructive_hint=acts,
            idempotent_hint=not acts and not outside,
            open_world_hint=outside,
        ),
    )


def exposed_names(names: Iterable[str], own: Collection[str]) -> dict[str, str]:
    """Return the names of the vault's tools for clients → their names in the vault; never one of healkit's `own`."""
    by_exposed_name: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:_NAME_MAX_CHARS]
        exposed = f"vault_{plain}"[:_NAME_MAX_CHARS] if plain in own else plain
        number = 1
        while exposed in by_exposed_name:
            number += 1
            exposed = f"{plain[: _NAME_MAX_CHARS - 4]}_{number}"
        by_exposed_name[exposed] = name
    return by_exposed_name


async def _no_resources(_: Any, __: PaginatedRequestParams | None) -> ListResourcesResult:
    """Return an empty list: resources grow with each call, so they are read by address."""
    return ListResourcesResult(resources=[])


async def _templates(_: Any, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
    from healkit.faces.mcp_server.resources import TEMPLATES

    return ListResourceTemplatesResult(resource_templates=TEMPLATES)


async def _prompts(_: Any, __: PaginatedRequestParams | None) -> ListPromptsResult:
    from healkit.faces.mcp_server.resources import PROMPT

    return ListPromptsResult(prompts=[PROMPT])


async def _prompt(_: Any, params: GetPromptRequestParams) -> GetPromptResult:
    from healkit.faces.mcp_server.resources import PROMPT, prompt

    if params.name != PROMPT.name or not (params.arguments or {}).get("name"):
        raise MCPError(INVALID_PARAMS, "There is one prompt, fix_tool; it needs the argument name.")
    return prompt((params.arguments or {})["name"])
