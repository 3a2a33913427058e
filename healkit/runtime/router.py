"""Router of a worker's calls, with their records.

One `CallRouter` for each execution. It decides whether the call is allowed (grants, budget), writes its record before
anything happens, hands it to the provider, and writes how it ended. From the worker come only the arguments.

The calls of a tool that has proved quick are written once, when they end: two commits would cost more than the call.

A branch decision, `trace.decision(…)`, comes as a call of a server that no provider can be, and is answered like one:
when it returns in the worker, the decision is in the journal, and kill -9 cannot undo it. Its texts are a claim: types
are checked, sizes and number capped.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import re
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from healkit.contracts import rpc
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.records import (
    CALL_MAX_CHARS,
    CallRecord,
    DecisionRecord,
    Grants,
    Step,
    summarize,
    utc_now,
)
from healkit.contracts.tools import ToolDefinition
from healkit.errors import CallRefused, HealkitError, ToolExecutionError, did_you_mean

_NAME_MAX_CHARS, _CONDITION_MAX_CHARS = 200, 1000
_decode = msgspec.json.Decoder(rpc.Decision).decode


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
            said = _decode(call.args)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
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


#: What a tool may call without a grant: other vault tools and the user's functions, but neither the log nor any MCP
#: server. Providing a function is a grant of that function; connecting a server must not be one of all it can do.
DEFAULT_CALLS = ("vault.*", "host.*")


@dataclasses.dataclass(frozen=True)
class CallContext:
    """Execution that a call comes from; `depth` counts executions above it, from 0."""

    trace_id: str
    persona: str
    depth: int
    timeout_s: float


class Provider(Protocol):
    """A source of tools, `mcp.<server>.…` in a worker."""

    server: str

    def definitions(self, persona: str) -> list[ToolDefinition]:
        """Return its tools as that persona sees them; asked once for each execution whose code mentions `mcp`."""
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
        self._patterns = DEFAULT_CALLS if grants.calls is None else grants.calls
        self._record = record
        self._max_calls = max_calls
        self._decisions = Decisions(context.trace_id, max_decisions, record)
        self._numbers = itertools.count(1)
        self._last_task = ""
        self._lock = threading.Lock()
        self._allowed: set[tuple[str, str]] = set()
        self._open: dict[int, tuple[CallRecord, float]] = {}
        self._ended: dict[str, CallRecord] = {}
        self._answered: set[int] = set()
        self._recorded = threading.Condition(self._lock)

    @property
    def calls(self) -> list[CallRecord]:
        """Calls that have ended, in the order in which they came."""
        return sorted(self._ended.values(), key=lambda record: int(record.task_id[1:]))

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
        started = time.perf_counter()
        task_id = self._last_task = f"t{next(self._numbers)}"
        record = CallRecord(
            trace_id=self._context.trace_id,
            task_id=task_id,
            server=call.server[:200],
            tool=call.tool[:200],
            arguments=summarize(bytes(call.args).decode(errors="replace"), CALL_MAX_CHARS),
            started_at=utc_now(),
        )
        self._open[call.id] = record, started
        self._record(record)
        result = self._answer(call, record, started)
        self._answered.add(call.id)
        return result

    def _answer(self, call: rpc.RpcCall, record: CallRecord, started: float) -> rpc.RpcResult:
        """Return the answer to the call; what only the host may know goes into its open record."""
        try:
            value, _ = to_jsonable(self._perform(call, record.task_id))
            return rpc.RpcResult(call.id, success=True, result=rpc.raw(value))
        except HealkitError as error:
            if error.__cause__ is not None:  # kept from the worker
                in_full = f"{error} Cause: {error.__cause__}"
                self._open[call.id] = msgspec.structs.replace(record, error=in_full), started
            return rpc.RpcResult(call.id, success=False, error=_told(error))
        except Exception as error:  # noqa: BLE001 - a provider is foreign code
            # Tell the worker what went wrong, without the host's traceback and paths.
            message = str(error)[:10_000]
            told = rpc.RpcError("CALL_FAILED", type(error).__name__, message)
            in_full = "".join(traceback.format_exception(error))
            self._open[call.id] = msgspec.structs.replace(record, error=in_full), started
            return rpc.RpcResult(call.id, success=False, error=told)

    def ended(self, call: rpc.RpcCall, result: rpc.RpcResult, *, late: bool) -> None:
        """Write how the call ended; called by the bridge once the answer is on its way, or dropped as too late."""
        with self._lock:
            found = self._open.get(call.id)
            if found is None:
                self._answered.discard(call.id)
                return
            record, started = found
            duration_ms = (time.perf_counter() - started) * 1000
            ended = _late(record, duration_ms) if late else _ended(record, result, duration_ms)
            if late or ended.error_code != "CALL_TIMEOUT":
                del self._open[call.id]
            else:  # its answer may still come
                self._open[call.id] = ended, started
            self._ended[ended.task_id] = ended
        self._record(ended)
        with self._recorded:
            self._answered.discard(call.id)
            self._recorded.notify_all()

    def settle(self, timeout_s: float) -> None:
        """Wait until every answer that was given is on record, or the time is up.

        A worker may have its answer, and be done with everything, before the thread that gave it has come to writing
        that down. Called once the work is over, before its records are closed.
        """
        with self._recorded:
            self._recorded.wait_for(lambda: not self._answered, timeout_s)

    @property
    def settled(self) -> bool:
        """True when there is nothing to wait for."""
        return not self._answered

    def _perform(self, call: rpc.RpcCall, task_id: str) -> Any:
        if int(task_id[1:]) > self._max_calls:
            raise CallRefused(
                f"This execution has used up its {self._max_calls:,} calls.",
                hint="HEALKIT_MAX_CALLS is the limit.",
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
        arguments = msgspec.json.decode(call.args)
        if not isinstance(arguments, dict):
            raise CallRefused(f"The arguments of mcp.{call.server}.{call.tool} are not an object.")
        return provider.call(call.tool, arguments, self._context)

    def _may_reach(self, server: str) -> bool:
        """Return whether a grant names that server, whatever the tool."""
        return any(fnmatch.fnmatchcase(server, pattern.partition(".")[0]) for pattern in self._patterns)

    def _allows(self, server: str, tool: str) -> bool:
        if (server, tool) in self._allowed:
            return True
        allowed = any(fnmatch.fnmatchcase(f"{server}.{tool}", pattern) for pattern in self._patterns)
        if allowed:
            self._allowed.add((server, tool))
        return allowed


def _stand_ins(server: str, code: str, why: str) -> list[ToolDefinition]:
    """Return a proxy for each attribute in the code, with room for arguments by position; any call of it is refused."""
    anything: dict[str, Any] = {"properties": {f"argument_{n}": {} for n in range(1, 10)}}
    names = dict.fromkeys(re.findall(r"\.\s*([^\W\d]\w*)", code))
    return [ToolDefinition(server, name, f"not available: {why}", anything) for name in names]


def _ended(record: CallRecord, result: rpc.RpcResult, duration_ms: float) -> CallRecord:
    error = result.error
    said = "" if error is None else f"{error.ename}: {error.message}" if error.ename else error.message
    return msgspec.structs.replace(
        record,
        success=result.success,
        result_summary=summarize(bytes(result.result).decode(), CALL_MAX_CHARS) if result.success else "",
        error_code=error.code if error else None,
        error=record.error or said,
        duration_ms=duration_ms,
    )


def _late(record: CallRecord, duration_ms: float) -> CallRecord:
    return msgspec.structs.replace(
        record, error=f"{record.error}; its answer came after {duration_ms / 1000:.1f} s and was dropped"
    )


def _told(error: HealkitError) -> rpc.RpcError:
    """Return a healkit error for the worker; a failed vault tool brings its own type, message and traceback."""
    if isinstance(error, ToolExecutionError):
        failure = error.failure
        return rpc.RpcError(error.code, failure.ename, failure.evalue, failure.traceback)
    return rpc.RpcError(error.code, "", str(error))
