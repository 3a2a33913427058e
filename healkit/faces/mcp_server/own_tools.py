"""healkit's own tools, as an agent calls them.

Each method is a tool: its signature is the schema, its docstring the description, which an agent pays for with each
session, so both are short. A call has a `AgentCall` of its own, which knows the client and the request.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult, Tool, ToolAnnotations

from healkit.config import HEAL_BUDGET_S
from healkit.core.contracts.execution import RUN_CODE, TRIED_ORIGINS
from healkit.core.contracts.vault import VaultEntry
from healkit.core.runtime.background import no_output
from healkit.core.runtime.executor import ExecutionRequest
from healkit.core.runtime.providers import schema_of
from healkit.core.store.arguments import validate_arguments
from healkit.core.times import parse_since
from healkit.errors import AgentRefused, ArgumentsInvalid, PersonaNotFound, ToolNotFound
from healkit.faces.mcp_server import answers, resources
from healkit.faces.mcp_server.answers import data_answer, execution_answer, text_answer, uri
from healkit.parts.decide.choosers import told
from healkit.parts.heal import render_check as notebook_check
from healkit.parts.heal.checks import check_text, told_apart
from healkit.parts.heal.context import HealOptions
from healkit.parts.heal.loop import run_healing
from healkit.parts.heal.records import Attempt, Patch, PatchRequest

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from healkit.app import Healkit
    from healkit.faces.mcp_server.clients import Client, OwnResults
    from healkit.faces.mcp_server.consent import Consent
    from healkit.parts.heal.advisor import Case, Workbench
    from healkit.parts.heal.notebook_check import NotebookReport
    from healkit.parts.heal.report import HealReport
    from healkit.parts.views.view_records import DataView

Answer = CallToolResult | InputRequiredResult
Json = dict[str, Any]
Report = TypeVar("Report")
_ROWS_MAX, _HISTORY_MAX, _SUGGESTED_MAX = 50, 5, 20
_VIEW = uri("views", "")
#: Greatest number that a database takes.
_INT_MAX = 2**63 - 1


class _Own(NamedTuple):
    """Tool of healkit's own, for the check of its arguments."""

    label: str
    input_schema: Json


class AgentAdvisor:
    """Advisor that proposes the one patch that an agent has sent; implements `healing.advisor.Advisor`."""

    author: Literal["agent"] = "agent"

    def __init__(self, name: str, code: str, reason: str) -> None:
        self.name, self._code, self._reason = name, code, reason

    def propose(self, case: Case, bench: Workbench) -> Iterator[Patch]:
        """Yield the patch; called by the loop."""
        if self._code != case.entry.code:
            yield Patch(code=self._code, advisor=self.name, author=self.author, reason=self._reason)


@dataclass(frozen=True)
class AgentCall:
    """Call of one of the tools: who asks, of which Healkit, and for which persona.

    context, params: the request as the SDK has it. say: tells the client how far a long call is.
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
        """Return the work of one of healkit's own tools; None for another. Raises `ArgumentsInvalid`."""
        if name not in _OWN:
            return None
        given = {key: value for key, value in given.items() if value is not None}
        properties = _schema(name)["properties"]
        if "tool_name" in given and not {"name", "tool"}.isdisjoint(
            properties
        ):  # as the seeded debug tools call it
            given = {"name" if "name" in properties else "tool": given.pop("tool_name"), **given}
        validate_arguments(_Own(name, _schema(name)), given)
        if any(isinstance(value, int) and abs(value) > _INT_MAX for value in given.values()):
            raise ArgumentsInvalid(f"{name} cannot be called with a number beyond {_INT_MAX:,}.")
        work = getattr(self, name)
        called: Awaitable[Answer]
        called = work(**given) if inspect.iscoroutinefunction(work) else asyncio.to_thread(work, **given)
        return called

    # Running.

    async def run_tool(
        self, name: str, arguments: Json | None = None, timeout_s: float | None = None, retry: bool = False
    ) -> CallToolResult:
        """Run a vault tool, restricted and on record. A text healkit://views/NAME as an argument passes that table."""
        call_arguments = dict(arguments or {})
        for key, value in call_arguments.items():
            if isinstance(value, str) and value.startswith(_VIEW):
                call_arguments[key] = await asyncio.to_thread(self._data, value)
        return await self._run(name, call_arguments, timeout_s, retry=retry)

    async def run_code(self, code: str, timeout_s: float | None = None) -> CallToolResult:
        """Run Python once: no network, no files; mcp.vault.NAME(…) calls tools. Gives the last expression's value."""
        return await self._run(RUN_CODE, {"code": code}, timeout_s, code=code, alone=True)

    async def _run(self, name: str, given: Json, timeout_s: float | None, **more: Any) -> CallToolResult:
        limit_s = None if timeout_s is None else self._limited(timeout_s)
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

    def suggest_tools(
        self, intent: str | None = None, after: list[str] | None = None, limit: int = 5
    ) -> CallToolResult:
        """Suggest vault tools for an intent, or for what comes after other calls: schema and why. Then run_tool."""
        most = max(1, min(limit, _SUGGESTED_MAX))
        suggestions = self.hk.suggest(intent, after=after or (), k=most, persona=self.persona)
        tools = []
        for suggestion in suggestions:
            entry = self.hk.vault.active(suggestion.tool, self.persona)
            tools.append(
                {
                    "name": suggestion.tool,
                    "why": suggestion.why,
                    "description": entry.description,
                    "input_schema": entry.input_schema,
                }
            )
        return data_answer({"tools": tools, **({} if tools else {"note": repr(suggestions)})})

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
        """Return another persona's tool that serves this session by that name; a new one would take its place."""
        try:
            entry = self.hk.vault.active(name, self.persona)
        except (ToolNotFound, PersonaNotFound):
            return None
        return None if entry.persona == self.persona else entry

    def _asked_instead(self, other: VaultEntry, code: str) -> CallToolResult:
        """Ask for the code as a patch of that tool, which stays as it is until a person accepts."""
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
        """Give the newest failure on record, of one tool if named, with its full traceback."""
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
        """List executions on record, newest first. since: 2h, 3d or a date; text: words of the traceback."""
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

    async def propose_patch(
        self, name: str, code: str, reason: str, log_id: int | None = None
    ) -> CallToolResult:
        """Validate the tool's whole new code on what failed, on recorded runs and examples. A person then consents."""
        active = await asyncio.to_thread(self.hk.vault.active, name, self.persona)
        if active.code == code:
            raise AgentRefused(f"{active.label} has this code already.", hint="Send other code.")
        advisor = AgentAdvisor(self.client.name, code, reason)
        return await self._healed(name, log_id, advisors=(advisor,), advisors_named=True, improves=True)

    async def heal(
        self, name: str, log_id: int | None = None, budget_s: float = HEAL_BUDGET_S
    ) -> CallToolResult:
        """Let healkit look for a patch of a failing tool: rules, search, and what else is set up."""
        return await self._healed(name, log_id, budget_s=budget_s)

    async def apply_patch(self, request_id: int, code_hash: str) -> Answer:
        """Apply a proposed patch, once a person has consented. code_hash: as propose_patch or heal gave it."""
        request = await asyncio.to_thread(self._request, request_id)
        outcome = await self.consent.settle(request, code_hash, self.context, self.params, self.client)
        return await self._settled(outcome)

    async def revert(self, name: str, to_revision: int) -> Answer:
        """Go back to an earlier revision's code, once a person has consented."""
        request = await asyncio.to_thread(self._request_to_revert, name, to_revision)
        outcome = await self.consent.settle(
            request, request.code_hash, self.context, self.params, self.client
        )
        return await self._settled(outcome)

    # Data and notebooks.

    async def decide(
        self, question: str, data: dict[str, str], choices: list[Json], tools: list[str] | None = None
    ) -> CallToolResult:
        """Answer a question about tables, told their metadata only. data: name → data view.

        choices: {"type": "gather_info" or "execute_data_op", "tool", "params", "viewName"}, then {"type": "finalize",
        "finalViewName"}. With none, tells what there is. tools: of the vault, instead of the operations.
        """
        views = {name: (await asyncio.to_thread(self._view, view)).name for name, view in data.items()}
        decision = await self.hk.adecide(question, views, chooser=choices, tools=tools, persona=self.persona)
        self.own.names.update([decision.run.run_id, *decision.views.values()])
        answer = data_answer(decision.to_json())
        answer.is_error = not decision.ok and bool(choices)
        if decision.sent:
            answer.content += text_answer(told(decision.sent[-1])).content
        if (name := decision.raw_data_view_name) is not None:
            answer.content.append(answers.link_to(await asyncio.to_thread(self.hk.views.get, name)))
        return answer

    async def check_notebook(self, path: str, heal: bool = False, timeout_s: float = 600.0) -> CallToolResult:
        """Run a notebook of the working directory restricted, top to bottom; heal: propose fixes. Writes nothing."""
        file, limit_s, stop = _below_here(path), self._limited(timeout_s), threading.Event()

        def check() -> NotebookReport:
            return self.hk.check_notebook(file, heal=heal, timeout=limit_s, progress=self.say, stop=stop)

        report = await _in_thread(check, stop)
        answer = text_answer(str(report), report=notebook_check.data(report))
        answer.is_error = report.outcome != "passed"
        return answer

    # Parts.

    def _limited(self, asked_s: float) -> float:
        """Return the time limit that was asked for; raise `AgentRefused` for more than the setting's maximum."""
        if asked_s > (most := self.hk.config.mcp_timeout_max_s):
            message = f"timeout_s={asked_s:g} is more than {most:g} s (mcp_timeout_max_s)."
            raise AgentRefused(message, hint="Ask for less.")
        return asked_s

    def _data(self, address: str) -> Any:
        return self.hk.views.load(self._view(address).name)

    def _view(self, address: str) -> DataView:
        return resources.view_of(self.hk, self.persona, self.own, unquote(address.removeprefix(_VIEW)))

    def _owner(self, name: str) -> str:
        """Return the persona whose entry this session's persona is served by."""
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

    def _options(self, name: str, log_id: int | None, **more: Any) -> HealOptions:
        config = self.hk.config
        if log_id is not None:
            resources.execution_of(self.hk, self.persona, log_id)  # refused where it is another persona's
        options: dict[str, Any] = {"advisors": config.heal_advisors, "budget_s": HEAL_BUDGET_S, **more}
        options["budget_s"] = self._limited(options["budget_s"])
        return HealOptions(
            tool_name=name, persona=self.persona, log_id=log_id, progress=self.say,
            client=self.client.name, **options,
        )  # fmt: skip

    async def _healed(self, name: str, log_id: int | None, **more: Any) -> CallToolResult:
        """Heal a tool, and tell its proposal."""
        stop = threading.Event()

        def heal() -> CallToolResult:
            report = run_healing(self.hk.services, self._options(name, log_id, stop=stop, **more))
            self.own.names.add(report.run_id)
            return self._proposal(report)

        return await _in_thread(heal, stop)

    def _proposal(self, report: HealReport) -> CallToolResult:
        """Tell a validated proposal: the verdict, each check, and the request that waits."""
        best = report.best or next(iter(report.attempts), None) or report.nearest
        names = ("outcome", "reason", "diagnosis", "verdict", "request_id", "revision", "notes")
        details: Json = {name: getattr(report, name) for name in names}
        details["run"] = uri("runs", report.run_id, "trace.jsonl")
        if best is not None:
            details |= {
                "diff": best.diff,
                "checks": list(_checks(report, best)),
                "reaches_further": list(best.reach),
                "lost": best.lost,
            }
        if report.request_id is not None:
            request = self.hk.requests.get(report.request_id)
            details |= {"code_hash": request.code_hash}
            details["next"] = f"apply_patch(request_id={request.id}, code_hash={request.code_hash!r})"
        elif report.outcome == "not_cured":
            details["next"] = "Look at the failing checks, then propose other code."
        answer = data_answer(
            {name: value for name, value in details.items() if value not in (None, "", [], ())},
            exact=("diff",),
        )
        answer.is_error = not (report.ok or report.outcome in ("pending", "shown"))
        return answer

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


def _checks(report: HealReport, attempt: Attempt) -> Iterator[Json]:
    """Yield each check of an attempt: the call, how it ended, and the difference in type and size, never a value.

    The input is what the record and the examples hold, which the session can read; what came of it is not.
    """
    for check, result in zip(report.checks, attempt.results, strict=False):
        details: Json = {"call": check_text(check), "from": check.origin, "outcome": result.outcome}
        if result.outcome != "passed":
            details["difference"] = told_apart(check, result, attempt.patch.code)
        if check.log_id is not None:
            details["log_id"] = check.log_id
        yield details


def _below_here(path: str) -> Path:
    file = Path(path).resolve()
    if not file.is_relative_to(Path.cwd()):
        here = f"It is {str(Path.cwd())!r}."
        raise AgentRefused(f"{path!r} is not below the server's working directory.", hint=here)
    return file


async def _in_thread(work: Callable[[], Report], stop: threading.Event) -> Report:
    """Do long work in a thread; cancelling it sets `stop`."""
    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        stop.set()
        raise


# The tools as the protocol has them.


#: healkit's own tools → what they may do, as annotations: reads only, may destroy, may be repeated.
_OWN: dict[str, tuple[bool, bool, bool]] = {
    "run_tool": (False, True, False),
    "run_code": (False, False, False),
    "suggest_tools": (True, False, True),
    "write_tool": (False, False, False),
    "inspect_tool": (True, False, True),
    "get_last_error": (True, False, True),
    "list_executions": (True, False, True),
    "get_execution": (True, False, True),
    "propose_patch": (False, False, True),
    "heal": (False, False, True),
    "apply_patch": (False, True, True),
    "revert": (False, True, True),
    "decide": (False, False, False),
    "check_notebook": (False, False, True),
}


def own_tools() -> list[Tool]:
    """Return healkit's own tools."""
    return [
        Tool(
            name=name,
            description=_described(name),
            input_schema=_schema(name),
            annotations=ToolAnnotations(
                read_only_hint=reads, destructive_hint=destroys, idempotent_hint=again, open_world_hint=False
            ),
        )
        for name, (reads, destroys, again) in _OWN.items()
    ]


def _described(name: str) -> str:
    return " ".join((inspect.getdoc(getattr(AgentCall, name)) or "").split())


@cache
def _schema(name: str) -> dict[str, Any]:
    """Return the schema of one of healkit's own tools, off its signature and as short as can be."""
    schema = schema_of(getattr(AgentCall, name))
    properties = {
        argument: _short(about) for argument, about in schema["properties"].items() if argument != "self"
    }
    required = [argument for argument in schema["required"] if argument != "self"]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _short(about: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument without titles and nulls: one that is left out is null."""
    schema = next(
        (alternative for alternative in about.get("anyOf", ()) if alternative.get("type") != "null"), about
    )
    fields = {name: value for name, value in schema.items() if name not in ("title", "additionalProperties")}
    return fields if about.get("default") is None else {**fields, "default": about["default"]}
