"""healkit's own tools for agents.

Each is a row (`commands.agents.AgentTool`). Those of the core are methods of `AgentCall`, which knows the client and
the request. Those of parts are functions that get it as their first argument.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast
from urllib.parse import unquote

import msgspec
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult, Tool, ToolAnnotations

from healkit import hooks
from healkit.commands.agents import AgentAnswer, AgentTool, uri
from healkit.core.contracts.execution import RUN_CODE, TRIED_ORIGINS
from healkit.core.contracts.vault import VaultEntry
from healkit.core.runtime.background import no_output
from healkit.core.runtime.executor import ExecutionRequest
from healkit.core.runtime.providers import schema_of
from healkit.core.store.arguments import validate_arguments
from healkit.core.times import parse_since
from healkit.errors import AgentRefused, ArgumentsInvalid, PersonaNotFound, ToolNotFound
from healkit.faces.mcp_server import answers, resources
from healkit.faces.mcp_server.answers import data_answer, execution_answer, text_answer
from healkit.parts.heal.records import PatchRequest

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from healkit.app import Healkit
    from healkit.core.runtime.execution import Execution
    from healkit.faces.mcp_server.clients import Client, OwnResults
    from healkit.faces.mcp_server.consent import Consent
    from healkit.parts.views.view_records import DataView
    from healkit.services import Services

Answer = CallToolResult | InputRequiredResult
Json = dict[str, Any]
_ROWS_MAX, _HISTORY_MAX = 50, 5
_VIEW = uri("views", "")
#: Greatest integer that a database accepts.
_INT_MAX = 2**63 - 1


class _Own(NamedTuple):
    """Tool of healkit's own, for the check of its arguments."""

    label: str
    input_schema: Json


@dataclass(frozen=True)
class AgentCall:
    """Call of one of the tools: its client, its Healkit and its persona.

    context, params: The request in the SDK's form. say: Reports the progress of a long call to the client.
    """

    hk: Healkit
    persona: str
    client: Client
    consent: Consent
    context: ServerRequestContext[Any, Any]
    params: CallToolRequestParams
    say: Callable[[str], None]
    own: OwnResults

    def tool(self, name: str, given: Json) -> Awaitable[Answer] | None:
        """Return the work of one of healkit's own tools; None for any other tool. Raises `ArgumentsInvalid`."""
        if (row := _rows().get(name)) is None:
            return None
        given, schema = (
            {key: value for key, value in given.items() if value is not None},
            _schema(row.function),
        )
        properties = schema["properties"]
        if "tool_name" in given and not {"name", "tool"}.isdisjoint(
            properties
        ):  # the seeded debug tools use this name
            given = {"name" if "name" in properties else "tool": given.pop("tool_name"), **given}
        validate_arguments(_Own(name, schema), given)
        if any(isinstance(value, int) and abs(value) > _INT_MAX for value in given.values()):
            raise ArgumentsInvalid(f"{name} cannot be called with a number beyond {_INT_MAX:,}.")
        return self._answered(row.function, given)

    async def _answered(self, function: Callable[..., Any], given: Json) -> Answer:
        if inspect.iscoroutinefunction(function):
            result = await function(self, **given)
        else:
            result = await asyncio.to_thread(function, self, **given)
        if not isinstance(result, AgentAnswer):
            return cast("Answer", result)
        if result.text is None:
            answer = data_answer(result.data, exact=result.exact)
        else:
            answer = text_answer(result.text, **result.data)
        answer.is_error = result.failed
        for text in result.texts:
            answer.content += text_answer(text).content
        answer.content += map(answers.link_to, result.views)
        return answer

    # Running tools.

    async def run_tool(
        self, name: str, arguments: Json | None = None, timeout_s: float | None = None, retry: bool = False
    ) -> CallToolResult:
        """Run a vault tool, restricted and recorded. An argument healkit://views/NAME passes that table."""
        call_arguments = dict(arguments or {})
        for key, value in call_arguments.items():
            if isinstance(value, str) and value.startswith(_VIEW):
                call_arguments[key] = await asyncio.to_thread(self._data, value)
        return await self._run(name, call_arguments, timeout_s, retry=retry)

    async def run_code(self, code: str, timeout_s: float | None = None) -> CallToolResult:
        """Run Python once: no network, no files; mcp.vault.NAME(…) calls tools. Returns the last expression."""
        return await self._run(RUN_CODE, {"code": code}, timeout_s, code=code, alone=True)

    async def _run(self, name: str, given: Json, timeout_s: float | None, **more: Any) -> CallToolResult:
        limit_s = None if timeout_s is None else self.limited(timeout_s)
        request = ExecutionRequest(
            name, self.persona, given, timeout_s=limit_s, origin="mcp", on_output=no_output, client=self.client.label,
            **more,
        )  # fmt: skip
        async with self.own.large.place(name):
            execution = await self.hk.runner.aperform(request)
            is_large = answers.is_large(execution)
            self.own.large.note(name, is_large=is_large)
            threads, loop = self.own.large.threads if is_large else None, asyncio.get_running_loop()
            return await loop.run_in_executor(threads, execution_answer, self.hk, execution, self.own)

    # The vault.

    def write_tool(
        self, name: str, code: str, description: str = "", examples: list[Json] | None = None
    ) -> CallToolResult:
        """Save a new tool: a Python function `name`. Examples: {"arguments": {…}, "result": …}."""
        if (shadowed := self._shadowed(name)) is not None:
            return self._asked_instead(shadowed, code)
        entry = self.hk.vault.add(
            name, code, persona=self.persona, description=description, examples=examples or (), author="agent",
            reason=f"written by {self.client.label}",
        )  # fmt: skip
        return data_answer(self._entry(entry), exact=("code",))

    def _shadowed(self, name: str) -> VaultEntry | None:
        """Return another persona's tool that this session uses under that name; a new one would replace it."""
        try:
            entry = self.hk.vault.active(name, self.persona)
        except (ToolNotFound, PersonaNotFound):
            return None
        return None if entry.persona == self.persona else entry

    def _asked_instead(self, other: VaultEntry, code: str) -> CallToolResult:
        """Request the code as a patch of that tool, which does not change until a person accepts."""
        self.consent.check_allowed(other.tool_name, other.persona, self.client)
        request = self.hk.requests.add(
            other.tool_name, code, persona=other.persona, advisor=self.client.name,
            reason=f"written by {self.client.label} for {self.persona}",
        )  # fmt: skip
        note = f"{other.label} serves this session by that name; the code waits as request {request.id}."
        details = {"saved": False, "note": note, "request_id": request.id, "code_hash": request.code_hash}
        answer = data_answer(
            details | {"next": "Take another name, or wait for a person's consent (apply_patch)."}
        )
        answer.is_error = True
        return answer

    def inspect_tool(self, name: str, revision: int | None = None) -> CallToolResult:
        """Show a tool: code, schema, examples, grants, revisions, callers."""
        vault = self.hk.vault
        entry = vault.get(name, self._owner(name), revision)
        names = ("number", "author", "reason", "active", "runs", "failures")
        newest = vault.history(entry.tool_name, entry.persona, limit=_HISTORY_MAX)
        history = [{name: getattr(version, name) for name in names} for version in newest]
        callers = [
            caller
            for caller in vault.callers(entry.tool_name)
            if caller.endswith(f"({self.persona})") or "(" not in caller
        ]
        details = self._entry(entry) | {"revisions": history, "callers": callers}
        return data_answer(details, exact=("code",))

    # The log.

    def get_last_error(self, name: str | None = None) -> CallToolResult:
        """Show the newest failure, optionally of one tool, with its full traceback."""
        execution = self.hk.last_error(name, self.persona)
        report = self.hk.last_error_report(name, self.persona)
        return text_answer(report, error=None if execution is None else answers.failure_data(execution))

    def list_executions(
        self,
        tool: str | None = None,
        status: Literal["SUCCESS", "FAILURE", "REFUSED", "RUNNING"] | None = None,
        origin: str | None = None,
        since: str | None = None,
        text: str | None = None,
        limit: int = 20,
        before_id: int | None = None,
    ) -> CallToolResult:
        """List executions, newest first. since: 2h, 3d or a date; text: words of the traceback."""
        if origin in TRIED_ORIGINS:
            raise AgentRefused(
                "What a patch gave in its checks is not listed.", hint="propose_patch tells how they ended."
            )
        rows = self.hk.executions(
            tool=tool, status=status, origin=origin, text=text, persona=self.persona,
            since=parse_since(since) if since else None, limit=max(1, min(limit, _ROWS_MAX)), before_id=before_id,
        )  # fmt: skip
        executions = [
            {"log_id": row.log_id, "tool": row.label, "status": row.status, "origin": row.origin,
             "time": row.timestamp.isoformat(timespec="seconds"), "duration_ms": row.duration_ms,
             "error": row.failure.summary if row.failure else None}
            for row in rows
        ]  # fmt: skip
        return data_answer({"executions": executions, "left_out_trials": rows.left_out})

    def get_execution(self, log_id: int) -> CallToolResult:
        """Show one execution: arguments, result or traceback, calls."""
        return data_answer(resources.execution_data(self.hk, self.persona, log_id))

    # Healing.

    async def apply_patch(self, request_id: int, code_hash: str) -> Answer:
        """Apply a proposed patch, after a person's consent. code_hash: from propose_patch or heal."""
        request = await asyncio.to_thread(self._request, request_id)
        outcome = await self.consent.settle(request, code_hash, self.context, self.params, self.client)
        return await self._settled(outcome)

    async def revert(self, name: str, to_revision: int) -> Answer:
        """Restore an earlier revision's code, after a person's consent."""
        request = await asyncio.to_thread(self._request_to_revert, name, to_revision)
        outcome = await self.consent.settle(
            request, request.code_hash, self.context, self.params, self.client
        )
        return await self._settled(outcome)

    # Helpers.

    def limited(self, asked_s: float) -> float:
        """Return the requested time limit; raise `AgentRefused` if it is above the configured maximum."""
        if asked_s > (most := self.hk.config.mcp_timeout_max_s):
            message = f"timeout_s={asked_s:g} is more than {most:g} s."
            raise AgentRefused(message, hint="Ask for less.")
        return asked_s

    def _data(self, address: str) -> Any:
        return self.hk.views.load(self.view(address).name)

    @property
    def services(self) -> Services:
        """Services of the Healkit."""
        return self.hk.services

    @property
    def client_name(self) -> str:
        """Name of the client."""
        return self.client.name

    def note(self, *names: str) -> None:
        """Allow the session to read these runs and views."""
        self.own.names.update(names)

    def execution(self, log_id: int) -> Execution:
        """Return this execution; raise `UsageInvalid` if the session has none with that number."""
        return resources.execution_of(self.hk, self.persona, log_id)

    def view(self, address: str) -> DataView:
        """Return the data view with this address or name; raise `ViewNotFound` if the session may not read it."""
        return resources.view_of(self.hk, self.persona, self.own, unquote(address.removeprefix(_VIEW)))

    def _owner(self, name: str) -> str:
        """Return the persona whose entry serves this session's persona."""
        return self.hk.vault.active(name, self.persona).persona

    def _entry(self, entry: VaultEntry) -> Json:
        names = (
            "persona",
            "revision",
            "type",
            "description",
            "input_schema",
            "examples",
            "code_hash",
            "code",
        )
        fields = {name: getattr(entry, name) for name in names}
        return {"name": entry.tool_name, "grants": msgspec.to_builtins(entry.grants), **fields}

    def _request(self, number: int) -> PatchRequest:
        request = self.hk.requests.get(number)
        if request.persona not in (self.persona, self._owner(request.tool_name)):
            raise AgentRefused(
                f"Request {number} is for the persona {request.persona!r}, not this session's."
            )
        return request

    def _request_to_revert(self, name: str, revision: int) -> PatchRequest:
        old = self.hk.vault.get(name, self._owner(name), revision)
        self.consent.check_allowed(old.tool_name, old.persona, self.client)
        return self.hk.requests.add(
            old.tool_name, old.code, persona=old.persona, advisor=self.client.name, reason=f"revert to {revision}"
        )  # fmt: skip

    async def _settled(self, found: PatchRequest | InputRequiredResult) -> Answer:
        if isinstance(found, InputRequiredResult):
            return found
        return await asyncio.to_thread(self._applied, found)

    def _applied(self, request: PatchRequest) -> CallToolResult:
        entry = self.hk.vault.get(request.tool_name, request.persona)
        details = {
            "applied": True,
            "request_id": request.id,
            "tool": entry.tool_name,
            "revision": request.revision,
        }
        details |= {
            "active_revision": entry.revision,
            "decided_by": request.decided_by,
            "code_hash": request.code_hash,
        }
        return data_answer(details)


# The tools in the protocol's form.

#: Tools of the core, with their hints.
_OWN = {
    "run_tool": AgentTool(AgentCall.run_tool, destroys=True),
    "run_code": AgentTool(AgentCall.run_code),
    "write_tool": AgentTool(AgentCall.write_tool),
    "inspect_tool": AgentTool(AgentCall.inspect_tool, reads=True, repeats=True),
    "get_last_error": AgentTool(AgentCall.get_last_error, reads=True, repeats=True),
    "list_executions": AgentTool(AgentCall.list_executions, reads=True, repeats=True),
    "get_execution": AgentTool(AgentCall.get_execution, reads=True, repeats=True),
    "apply_patch": AgentTool(AgentCall.apply_patch, destroys=True, repeats=True),
    "revert": AgentTool(AgentCall.revert, destroys=True, repeats=True),
}
#: Order of the list; all others follow.
_ORDER = (
    *("run_tool", "map_tool", "run_code", "suggest_tools", "write_tool", "inspect_tool", "get_last_error"),
    *("list_executions", "get_execution", "propose_patch", "heal", "apply_patch", "revert", "decide", "check_notebook"),
)  # fmt: skip


def _rows() -> dict[str, AgentTool]:
    """Return healkit's own tools and those of plug-ins; if two have the same name, healkit's own wins."""
    makers: dict[str, Callable[[], AgentTool]] = {}
    for tools in hooks.every("mcp_tools"):  # the last registered comes first
        makers |= tools
    made = {
        name: hooks.made_row("MCP tool", name, maker, own=name in _ORDER) for name, maker in makers.items()
    }
    rows: dict[str, AgentTool] = {name: row for name, row in made.items() if row is not None}
    rows |= _OWN
    order = {name: place for place, name in enumerate(_ORDER)}
    return dict(sorted(rows.items(), key=lambda item: order.get(item[0], len(order))))


def own_tools() -> list[Tool]:
    """Return healkit's own tools."""
    return [
        Tool(
            name=name,
            description=" ".join((inspect.getdoc(row.function) or "").split()),
            input_schema=_schema(row.function),
            annotations=ToolAnnotations(
                read_only_hint=row.reads,
                destructive_hint=row.destroys,
                idempotent_hint=row.repeats,
                open_world_hint=False,
            ),
        )
        for name, row in _rows().items()
    ]


@cache
def _schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the shortest possible schema of a tool, from its signature; its first parameter is the call."""
    signature = inspect.signature(function)
    first, *others = signature.parameters.values()

    def given() -> None:
        """Represent the function without its first parameter."""

    given.__module__ = function.__module__
    given.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]  # read by pydantic
    annotations = function.__annotations__.items()
    given.__annotations__ = {name: kind for name, kind in annotations if name not in (first.name, "return")}
    schema = schema_of(given)
    properties = {argument: _short(about) for argument, about in schema["properties"].items()}
    required = schema.get("required", [])
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _short(about: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument without titles and nulls, because an omitted argument is null."""
    schema = next(
        (alternative for alternative in about.get("anyOf", ()) if alternative.get("type") != "null"), about
    )
    fields = {name: value for name, value in schema.items() if name not in ("title", "additionalProperties")}
    return fields if about.get("default") is None else {**fields, "default": about["default"]}
