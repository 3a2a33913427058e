"""Router of a worker's calls.

One `CallRouter` for each execution. It decides whether the call is allowed (grants, budget), has its record written
before anything happens (`runtime.call_records`), and hands it to the provider. From the worker come only the arguments.

A branch decision, `trace.decision(…)`, comes as a call of a server that no provider can be, and is answered like one:
when it returns in the worker, the decision is in the journal, and kill -9 cannot undo it. Its texts are a claim: types
are checked, sizes and number capped.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from healkit import values
from healkit.contracts import claims, rpc
from healkit.contracts.execution import (
    DecisionRecord,
    Grants,
    Step,
    summarize,
    utc_now,
)
from healkit.contracts.tools import ToolDefinition
from healkit.errors import CallRefused, HealkitError, ToolExecutionError, did_you_mean
from healkit.runtime.authority import Caller, allows, reaches
from healkit.runtime.call_records import UNANSWERED, CallRecords, OpenCall

_NAME_MAX_CHARS, _CONDITION_MAX_CHARS = 200, 1000
#: Limit of a decision's arguments, in bytes.
_DECISION_MAX_BYTES = 64 * 1024
_decision = msgspec.json.Decoder(rpc.Decision).decode


class Decisions:
    """Branch decisions of one execution; `record` puts each on record."""

    def __init__(self, trace_id: str, most: int, record: Callable[[DecisionRecord], None]) -> None:
        self._trace_id = trace_id
        self._most = most
        self._record = record
        self._numbers = itertools.count(1)

    def take(self, call: rpc.RpcCall, after_task: str) -> rpc.RpcResult:
        """Put one on record and say so; called on a bridge thread. Never raises."""
        try:
            said = claims.decode(call.args, _decision, max_bytes=_DECISION_MAX_BYTES)
        except claims.BadClaim as error:
            refused = rpc.RpcError("CALL_REFUSED", "", f"That is no decision: {error}")
            return rpc.RpcResult(call.id, success=False, error=refused)
        number = next(self._numbers)
        if number == self._most + 1:
            said = rpc.Decision(
                "…", "[TRUNCATED]", f"more than {self._most:,} decisions; the rest is not kept"
            )
        if number <= self._most + 1:
            self._record(
                DecisionRecord(
                    trace_id=self._trace_id,
                    number=number,
                    after_task=after_task,
                    node=summarize(said.node, _NAME_MAX_CHARS),
                    outcome=summarize(said.outcome, _NAME_MAX_CHARS),
                    condition=summarize(said.condition, _CONDITION_MAX_CHARS),
                    decided_at=utc_now(),
                )
            )
        return rpc.RpcResult(call.id, success=True)


@dataclasses.dataclass(frozen=True)
class CallContext:
    """Execution that a call comes from; `depth` counts executions above it, from 0.

    caller: bounds what a tool that is called may do.
    """

    trace_id: str
    persona: str
    depth: int
    timeout_s: float
    caller: Caller | None = None


class Provider(Protocol):
    """A source of tools, `mcp.<server>.…` in a worker."""

    server: str

    def definitions(self, persona: str) -> list[ToolDefinition]:
        """Return its tools as that persona sees them; asked once for each execution whose code mentions `mcp`."""
        ...

    def expect(self, tool: str) -> None:
        """Raise `CallRefused` for a tool that it knows it has not; called before the arguments are decoded."""
        ...

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Do it; called on a bridge thread, several at a time. What it raises becomes the caller's error."""
        ...


class CallRouter:
    """Answers the calls of one execution; implements the bridge's `CallHandler`."""

    def __init__(
        self,
        context: CallContext,
        providers: Mapping[str, Provider],
        grants: Grants,
        record: Callable[[Step], None],
        max_calls: int,
        max_decisions: int = 1000,
    ) -> None:
        self._context = context
        self._providers = providers
        self._patterns = grants.call_patterns
        self._max_calls = max_calls
        self._decisions = Decisions(context.trace_id, max_decisions, record)
        self._numbers = itertools.count(1)
        self._last_task = ""
        self._allowed: set[tuple[str, str]] = set()
        self.records = CallRecords(context.trace_id, record)
        # Without a detour: a tenth of what the host does for a call is calls of functions.
        self.ended, self.timed_out = self.records.end, self.records.time_out

    def definitions(self, code: str = "") -> list[ToolDefinition]:
        """Return what the worker's `mcp` object shows: exactly what a call of it would be allowed to reach.

        A server that cannot say what it has shows whatever `code` may call, so that the call itself is on record and
        told why. Waits for servers that have to be started; called on a thread that may wait.
        """
        found: list[ToolDefinition] = []
        for server, provider in list(self._providers.items()):
            if not self._may_reach(server):
                continue  # do not start it for nothing
            try:
                found += provider.definitions(self._context.persona)
            except HealkitError as error:
                found += _stand_ins(server, code, str(error.code))
        return [definition for definition in found if self._allows(definition.server, definition.name)]

    def handle(self, call: rpc.RpcCall) -> rpc.RpcResult:
        """Record, decide, perform; called by the bridge. Never raises."""
        if call.server == rpc.DECISIONS_SERVER:
            return self._decisions.take(call, self._last_task)
        number = next(self._numbers)
        if number > self._max_calls + 1:  # the first one over the budget is on record, for all of them
            return rpc.RpcResult(call.id, success=False, error=_told(self._over_budget()))
        task_id = self._last_task = f"t{number}"
        unknown = call.server == rpc.UNKNOWN_SERVER
        server, tool = call.tool.split(".", 1) if unknown and "." in call.tool else (call.server, call.tool)
        opened = self.records.begin(call, task_id, server, tool)
        if self.records.over:  # its worker ended before its turn came
            result = rpc.RpcResult(call.id, success=False, error=UNANSWERED)
        else:
            result = self._answer(call, number, opened)
        opened.answered = True
        return result

    def _answer(self, call: rpc.RpcCall, number: int, opened: OpenCall) -> rpc.RpcResult:
        """Return the answer to the call; what only the host may know goes into `opened`."""
        try:
            answer, _ = values.encode(self._perform(call, number))
            return rpc.RpcResult(call.id, success=True, result=msgspec.Raw(answer))
        except values.CannotCross as error:
            told = rpc.RpcError(
                "CALL_FAILED", "AnswerUnsupported", f"the answer holds {error.why} at {error.path}"
            )
            return rpc.RpcResult(call.id, success=False, error=told)
        except HealkitError as error:
            if error.__cause__ is not None:  # kept from the worker
                opened.in_full = self.records.ends_of(f"{error} Cause: {error.__cause__}")
            return rpc.RpcResult(call.id, success=False, error=_told(error))
        except Exception as error:  # noqa: BLE001 - a provider is foreign code
            # Tell the worker what went wrong, without the host's traceback and paths.
            message = str(error)[:10_000]
            told = rpc.RpcError("CALL_FAILED", type(error).__name__, message)
            opened.in_full = self.records.ends_of("".join(traceback.format_exception(error)))
            return rpc.RpcResult(call.id, success=False, error=told)

    def _perform(self, call: rpc.RpcCall, number: int) -> Any:
        if number > self._max_calls:
            raise self._over_budget()
        if call.server == rpc.UNKNOWN_SERVER:
            raise CallRefused(
                f"This tool may call no mcp.{call.tool}, or there is none.",
                hint=f"Grant it: hk.vault.set_grants(…, calls=['{call.tool}']).",
            )
        provider = self._providers.get(call.server)
        if provider is None:
            known = did_you_mean(call.server, self._providers)
            raise CallRefused(f"No server named {call.server!r} is connected.{known}")
        if not self._allows(call.server, call.tool):
            raise CallRefused(
                f"This tool may not call mcp.{call.server}.{call.tool}.",
                hint=f"Grant it: hk.vault.set_grants(…, calls=['{call.server}.{call.tool}']).",
            )
        provider.expect(call.tool)
        try:
            arguments = values.decode(call.args, limit_bytes=values.EXPANDED_MAX_BYTES)
        except values.BadValue as error:
            raise CallRefused(
                f"The arguments of mcp.{call.server}.{call.tool} cannot be read: {error}."
            ) from None
        if not isinstance(arguments, dict):
            raise CallRefused(f"The arguments of mcp.{call.server}.{call.tool} are not an object.")
        return provider.call(call.tool, arguments, self._context)

    def _over_budget(self) -> CallRefused:
        return CallRefused(
            f"This execution has used up its {self._max_calls:,} calls.",
            hint="HEALKIT_MAX_CALLS is the limit.",
        )

    def _may_reach(self, server: str) -> bool:
        """Return whether a grant names that server, whatever the tool."""
        return reaches(self._patterns, server)

    def _allows(self, server: str, tool: str) -> bool:
        if (server, tool) in self._allowed:
            return True
        allowed = allows(self._patterns, f"{server}.{tool}")
        if allowed:
            self._allowed.add((server, tool))
        return allowed


def _stand_ins(server: str, code: str, why: str) -> list[ToolDefinition]:
    """Return a proxy for each attribute in the code, with room for arguments by position; any call of it is refused."""
    anything: dict[str, Any] = {"properties": {f"argument_{n}": {} for n in range(1, 10)}}
    names = dict.fromkeys(re.findall(r"\.\s*([^\W\d]\w*)", code))
    return [ToolDefinition(server, name, f"not available: {why}", anything) for name in names]


def _told(error: HealkitError) -> rpc.RpcError:
    """Return a healkit error for the worker; a failed vault tool brings its own type, message and traceback."""
    if isinstance(error, ToolExecutionError):
        failure = error.failure
        return rpc.RpcError(error.code, failure.ename, failure.evalue, failure.traceback)
    return rpc.RpcError(error.code, "", str(error))
