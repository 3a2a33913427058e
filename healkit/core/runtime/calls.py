"""Calls of a worker: allowed, recorded, performed, answered.

Each execution has one `CallRouter`. It checks that a call is allowed (grants, budget), has the call recorded before
anything happens (`CallRecords`), and passes it to the provider. Only the arguments come from the worker.

A branch decision, `trace.decision(…)`, arrives as a call of a reserved server and is answered like a call. When it
returns in the worker, the decision is in the journal, and kill -9 cannot undo it. The worker's texts are not trusted:
types are checked, sizes and numbers are limited.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import math
import os
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from healkit.config import Config
from healkit.core.contracts import rpc
from healkit.core.contracts.cassette import Cassette
from healkit.core.contracts.execution import CALL_MAX_CHARS, CallRecord, DecisionRecord, Grants, Step, utc_now
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.tools import ToolDefinition
from healkit.core.crossing import values
from healkit.core.wire import claims
from healkit.core.wire.record_text import shortened, summarize_json
from healkit.core.workers.interpreters import package_names
from healkit.errors import (
    CallRefused,
    CallTimedOut,
    CallUnanswered,
    HealkitError,
    ToolExecutionError,
    did_you_mean,
)

if TYPE_CHECKING:
    from healkit.core.workers.worker import Worker  # late, because rows must not wait for it


_NAME_MAX_CHARS, _CONDITION_MAX_CHARS = 200, 1000
#: Maximum number of calls of one execution.
CALLS_MAX = 10_000
#: Maximum size of a decision's arguments, in bytes.
_DECISION_MAX_BYTES = 64 * 1024
_decision = msgspec.json.Decoder(rpc.Decision).decode


class Decisions:
    """Branch decisions of one execution; `record` writes each to the log."""

    def __init__(self, trace_id: str, most: int, record: Callable[[DecisionRecord], None]) -> None:
        self._trace_id = trace_id
        self._most = most
        self._record = record
        self._numbers = itertools.count(1)

    def take(self, call: rpc.RpcCall, after_task: str) -> rpc.RpcResult:
        """Record a branch decision; called on a bridge thread. Never raises."""
        try:
            decision = claims.decode(call.args, _decision, max_bytes=_DECISION_MAX_BYTES)
        except claims.BadClaim as error:
            refused = rpc.RpcError("CALL_REFUSED", "", f"That is not a decision: {error}")
            return rpc.RpcResult(call.id, success=False, error=refused)
        number = next(self._numbers)
        if number == self._most + 1:
            decision = rpc.Decision(
                "…", "[TRUNCATED]", f"more than {self._most:,} decisions; the rest is not kept"
            )
        if number <= self._most + 1:
            self._record(
                DecisionRecord(
                    trace_id=self._trace_id,
                    number=number,
                    after_task=after_task,
                    node=shortened(decision.node, _NAME_MAX_CHARS),
                    outcome=shortened(decision.outcome, _NAME_MAX_CHARS),
                    condition=shortened(decision.condition, _CONDITION_MAX_CHARS),
                    decided_at=utc_now(),
                )
            )
        return rpc.RpcResult(call.id, success=True)


@dataclasses.dataclass(frozen=True)
class CallContext:
    """Execution that makes a call; `depth` counts the executions above it, from 0.

    caller: Limits what the called tool may do.
    """

    trace_id: str
    persona: str
    depth: int
    timeout_s: float
    caller: Caller | None = None


class Provider(Protocol):
    """Source of tools, which are `mcp.<server>.…` in a worker."""

    server: str

    def definitions(self, persona: str) -> list[ToolDefinition]:
        """Return the tools that the persona can see; called once for each execution whose code mentions `mcp`."""
        ...

    def expect(self, tool: str) -> None:
        """Raise `CallRefused` if the tool certainly does not exist; called before the arguments are decoded."""
        ...

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Perform the call; called on a bridge thread, several at a time. An exception becomes the caller's error."""
        ...


class Replay(Protocol):
    """Answers from a record to an execution's calls; an unrecorded call is refused, or made if that is allowed.

    cassette: The record.
    missed: Failure of the execution after an unrecorded call, whatever its tool does with the error; None before.
    warning: Sentence about answers whose recorded calls had other arguments.
    """

    @property
    def cassette(self) -> Cassette: ...
    @property
    def missed(self) -> Failure | None: ...
    @property
    def warning(self) -> str: ...

    def may_reach(self, server: str) -> bool:
        """Return whether the real server may be asked for its tools."""
        ...

    def may_make(self, name: str) -> bool:
        """Return whether the call of `server.tool` may be made if it is not recorded."""
        ...

    def answer(self, call: rpc.RpcCall, opened: OpenCall) -> rpc.RpcResult | None:
        """Return the recorded answer, or the refusal of an unrecorded call; None if the host has to decide."""
        ...

    def keep(self, call: rpc.RpcCall, opened: OpenCall, result: rpc.RpcResult) -> None:
        """Keep the answer of a call that was made."""
        ...


class CallRouter:
    """Answers the calls of one execution; implements the bridge's `CallHandler`.

    replay: Answers them from a record instead.
    keep: Receives a call's task id and its encoded answer, if it has frames or arrays that its record only previews.
    """

    def __init__(
        self,
        context: CallContext,
        providers: Mapping[str, Provider],
        grants: Grants,
        record: Callable[[Step], None],
        max_calls: int,
        max_decisions: int = 1000,
        replay: Replay | None = None,
        keep: Callable[[str, bytes], None] = lambda _task_id, _answer: None,
    ) -> None:
        self._context = context
        self._replay, self._keep = replay, keep
        self._providers = providers
        self._patterns = grants.call_patterns
        self._max_calls = max_calls
        self._decisions = Decisions(context.trace_id, max_decisions, record)
        self._numbers = itertools.count(1)
        self._last_task = ""
        #: Failed vault tools, each with the message that its caller received.
        self._failed: dict[str, tuple[str, ToolExecutionError]] = {}
        self._allowed: set[tuple[str, str]] = set()
        self.records = CallRecords(context.trace_id, record)
        # Direct references: a tenth of the host's time for a call goes into function calls.
        self.ended, self.timed_out = self.records.end, self.records.time_out

    def definitions(self, code: str = "") -> list[ToolDefinition]:
        """Return the tools for the worker's `mcp` object: exactly those that it may call.

        If a server fails to list its tools, this returns those that `code` may call. So each call is recorded with the
        reason of its failure. This waits for servers that have to start; call it on a thread that may wait.
        """
        definitions: list[ToolDefinition] = []
        if self._replay is not None:
            definitions = list(self._replay.cassette.definitions)
        for server, provider in list(self._providers.items()):
            if not reaches(self._patterns, server) or (
                self._replay is not None and not self._replay.may_reach(server)
            ):
                continue  # do not start it without need
            try:
                definitions += provider.definitions(self._context.persona)
            except HealkitError as error:
                definitions += _stand_ins(server, code, str(error.code))
        return [definition for definition in definitions if self._allows(definition.server, definition.name)]

    def handle(self, call: rpc.RpcCall) -> rpc.RpcResult:
        """Record, check and perform a call; called by the bridge. Never raises."""
        if call.server == rpc.DECISIONS_SERVER:
            return self._decisions.take(call, self._last_task)
        number = next(self._numbers)
        if number > self._max_calls + 1:  # the first call over the budget is recorded, on behalf of all
            return rpc.RpcResult(call.id, success=False, error=_told(self._over_budget()))
        task_id = self._last_task = f"t{number}"
        unknown = call.server == rpc.UNKNOWN_SERVER
        server, tool = call.tool.split(".", 1) if unknown and "." in call.tool else (call.server, call.tool)
        opened = self.records.begin(call, task_id, server, tool)
        if self.records.over:  # its worker ended first
            result = rpc.RpcResult(call.id, success=False, error=UNANSWERED)
        else:
            result = self._answer(call, number, opened)
        opened.answered = True
        return result

    def explained(self, failure: Failure | None, leaves_out: Callable[[str], bool]) -> Failure | None:
        """Return the failure; if it passes on that of a vault tool, that failure is linked to it.

        Of several tools that called each other, the last one is linked. leaves_out: Tells if a tool is not logged.
        """
        tool, called = ("", None) if failure is None else self._failed.get(failure.evalue, ("", None))
        if failure is None or called is None or failure.ename != "ToolCallError" or leaves_out(tool):
            return failure
        inner = called.failure.called or msgspec.structs.replace(
            called.failure, traceback="", linked=[], link="call", log_id=called.log_id
        )
        return msgspec.structs.replace(failure, linked=[*failure.linked, inner])

    def _answer(self, call: rpc.RpcCall, number: int, opened: OpenCall) -> rpc.RpcResult:
        """Return the answer to the call; details for the host only go into `opened`."""
        if self._replay is not None and number <= self._max_calls:
            replayed = self._replay.answer(call, opened)
            if replayed is not None:
                if _is_large_frame(replayed.result):
                    opened.shown = values.encode_for_log(values.decode(replayed.result))[0].decode()
                    self._keep(opened.record.task_id, bytes(replayed.result))
                return replayed
            result = self._made(call, number, opened)
            self._replay.keep(call, opened, result)
            return result
        return self._made(call, number, opened)

    def _made(self, call: rpc.RpcCall, number: int, opened: OpenCall) -> rpc.RpcResult:
        try:
            value = self._perform(call, number)
            answer, _ = values.encode(value)
            if _is_large_frame(answer):
                opened.shown = values.encode_for_log(value)[0].decode()
                self._keep(opened.record.task_id, answer)
            return rpc.RpcResult(call.id, success=True, result=msgspec.Raw(answer))
        except values.CannotCross as error:
            rpc_error = rpc.RpcError(
                "CALL_FAILED", "AnswerUnsupported", f"the answer holds {error.why} at {error.path}"
            )
            return rpc.RpcResult(call.id, success=False, error=rpc_error)
        except HealkitError as error:
            if isinstance(error, ToolExecutionError) and error.log_id is not None:
                failure = error.failure
                text = f"mcp.{call.server}.{call.tool}: {failure.ename}: {failure.evalue}"
                self._failed[text] = call.tool, error
            if error.__cause__ is not None:  # not shown to the worker
                opened.in_full = self.records.ends_of(f"{error} Cause: {error.__cause__}")
            return rpc.RpcResult(call.id, success=False, error=_told(error))
        except Exception as error:  # noqa: BLE001 - a provider is foreign code
            # The worker gets the error without the host's traceback and paths.
            message = str(error)[:10_000]
            rpc_error = rpc.RpcError("CALL_FAILED", type(error).__name__, message)
            opened.in_full = self.records.ends_of("".join(traceback.format_exception(error)))
            return rpc.RpcResult(call.id, success=False, error=rpc_error)

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
            suggestion = did_you_mean(call.server, self._providers)
            raise CallRefused(f"No server named {call.server!r} is connected.{suggestion}")
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

    def _allows(self, server: str, tool: str) -> bool:
        if (server, tool) in self._allowed:
            return True
        allowed = allows(self._patterns, f"{server}.{tool}")
        if allowed:
            self._allowed.add((server, tool))
        return allowed


def _is_large_frame(answer: bytes | msgspec.Raw) -> bool:
    """Return True for an answer with frames or arrays that its record cannot contain whole."""
    return len(answer) > CALL_MAX_CHARS and values.MARK in bytes(answer)


def _stand_ins(server: str, code: str, why: str) -> list[ToolDefinition]:
    """Return a proxy for each attribute in the code; it accepts positional arguments, and any call of it is refused."""
    anything: dict[str, Any] = {"properties": {f"argument_{n}": {} for n in range(1, 10)}}
    names = dict.fromkeys(re.findall(r"\.\s*([^\W\d]\w*)", code))
    return [ToolDefinition(server, name, f"not available: {why}", anything) for name in names]


def _told(error: HealkitError) -> rpc.RpcError:
    """Return a healkit error for the worker; a failed vault tool adds its own type, message and traceback."""
    if isinstance(error, ToolExecutionError):
        failure = error.failure
        return rpc.RpcError(error.code, failure.ename, failure.evalue, failure.traceback)
    return rpc.RpcError(error.code, "", str(error))


# A call is recorded before it is performed, and again when it ends. It ends with its answer, with
# CALL_TIMEOUT, or with CALL_UNANSWERED if its worker ended first. An answer that arrives after one of the
# last two does not change the outcome or the code. But the provider's result is added, because the call may
# have changed something outside.


_replace = msgspec.structs.replace
#: Total length of the texts of one execution's calls that are recorded in full, and length of each later
#: text, in characters.
_TEXTS_MAX_CHARS, _SHORT_MAX_CHARS = 8_000_000, 200
#: Longest time that a call waits for the records of calls that were answered before it, in seconds.
_IN_TURN_S = 1.0
_TIMED_OUT = rpc.RpcError(CallTimedOut.code, "TimeoutError", "no answer in time")
#: Ending of a call whose worker has ended.
UNANSWERED = rpc.RpcError(CallUnanswered.code, "", "its worker ended before it had an answer")


class OpenCall:
    """Call without an answer, or without a record of its answer, with its record so far.

    in_full: The error as the host knows it, including what the worker may not see.
    answered: True once there is an answer.
    shown: The answer for the record, if its frames and arrays are stored separately.
    turn: Held while an ending is written that may not be the last, so that they are written in order.
    """

    __slots__ = ("answered", "in_full", "record", "shown", "started", "turn")

    def __init__(self, record: CallRecord, started: float) -> None:
        self.record = record
        self.started = started
        self.in_full = self.shown = ""
        self.answered = False
        self.turn = threading.Lock()


class CallRecords:
    """Records of one execution's calls, for several threads; `record` writes one of them.

    A call is identified by its object, because its `id` comes from the worker and may repeat. `_open` is changed
    without a lock, since each change is one operation on a dict.
    """

    def __init__(self, trace_id: str, record: Callable[[Step], None]) -> None:
        self._trace_id = trace_id
        self._record = record
        self._left_chars = _TEXTS_MAX_CHARS
        self._lock = threading.Lock()
        self._open: dict[int, OpenCall] = {}
        self._ended: dict[str, CallRecord] = {}
        self._recorded = threading.Condition(self._lock)
        self._waiting = 0
        #: True once the execution has ended.
        self.over = False

    @property
    def calls(self) -> list[CallRecord]:
        """Finished calls, in the order in which they began."""
        return sorted(self._ended.values(), key=lambda record: int(record.task_id[1:]))

    @property
    def settled(self) -> bool:
        """True if no call is left to wait for or to end."""
        return not self._open

    def begin(self, call: rpc.RpcCall, task_id: str, server: str, tool: str) -> OpenCall:
        """Record a call, after the calls that were answered before it; kill -9 cannot undo this."""
        self._wait_for_answered(_IN_TURN_S)
        started = time.perf_counter()
        record = CallRecord(
            trace_id=self._trace_id,
            task_id=task_id,
            server=server,
            tool=tool,
            arguments=self._summary(call.args),
            started_at=utc_now(),
        )
        opened = OpenCall(record, started)
        self._record(record)
        self._open[id(call)] = opened
        return opened

    def end(self, call: rpc.RpcCall, result: rpc.RpcResult, *, late: bool) -> None:
        """Record how the call ended; a late answer is added to the ending that was recorded.

        Called by the bridge once the answer was sent, or dropped because it was late.
        """
        opened = self._open.get(id(call))
        if opened is None:  # beyond the budget
            return
        with self._lock:
            if not (late := late or opened.record.success is not None):
                self._set(opened, self._ending(opened, result, opened.in_full))
        if late:
            self._add(opened, result)
        else:
            self._record(opened.record)
        del self._open[id(call)]
        if self._waiting:
            with self._recorded:
                self._recorded.notify_all()

    def time_out(self, call: rpc.RpcCall, error: rpc.RpcError) -> None:
        """Record that the call timed out for the worker; called by the bridge, before or after the late answer."""
        opened = self._open.get(id(call))
        if opened is not None:
            self._give_up([opened], error)

    def settle(self, timeout_s: float) -> None:
        """Record an ending for every call.

        Called once the work is over, before its records are closed. A worker may have received its answer, and
        finished, before the answering thread has recorded it; this waits up to `timeout_s` for such threads.
        """
        with self._recorded:
            self.over = True
        if self._open:
            self._wait_for_answered(timeout_s)
            self._give_up(list(self._open.values()), UNANSWERED)

    def ends_of(self, text: str) -> str:
        """Return an error's text, without its middle if it is long, because it may include a worker's arguments."""
        limit = CALL_MAX_CHARS if self._left_chars > 0 else _SHORT_MAX_CHARS
        if len(text) > 2 * limit:
            text = f"{text[:limit]}\n… [{len(text):,} characters]\n{text[-limit:]}"
        self._left_chars -= len(text)
        return text

    def _wait_for_answered(self, timeout_s: float) -> None:
        """Wait until the endings of all answered calls are recorded."""
        if not self._any_answered():
            return
        with self._recorded:
            self._waiting += 1
            self._recorded.wait_for(lambda: not self._any_answered(), timeout_s)
            self._waiting -= 1

    def _any_answered(self) -> bool:
        return any(opened.answered for opened in list(self._open.values()))

    def _give_up(self, calls: Iterable[OpenCall], error: rpc.RpcError) -> None:
        """Record an ending for calls whose answers may still arrive; a recorded ending is kept."""
        for opened in calls:
            with opened.turn:
                with self._lock:
                    is_open = opened.record.success is None
                    if is_open:
                        self._fail(opened, error)
                if is_open:
                    self._record(opened.record)

    def _add(self, opened: OpenCall, result: rpc.RpcResult) -> None:
        """Add the result of a call that has timed out, or whose worker has ended."""
        with opened.turn:
            with self._lock:
                if opened.record.success is None:  # before the thread that should have written it
                    self._fail(opened, _TIMED_OUT)
                late_record = self._ending(opened, result, opened.in_full)
                what = "its answer" if result.success else f"its error ({late_record.error})"
                after_s = (late_record.duration_ms or 0.0) / 1000
                error = f"{opened.record.error}; {what} came after {after_s:.1f} s and was dropped"
                self._set(
                    opened, _replace(opened.record, result_summary=late_record.result_summary, error=error)
                )
            self._record(opened.record)

    def _fail(self, opened: OpenCall, error: rpc.RpcError) -> None:
        self._set(opened, self._ending(opened, rpc.RpcResult(0, success=False, error=error), ""))

    def _set(self, opened: OpenCall, record: CallRecord) -> None:
        opened.record = self._ended[record.task_id] = record

    def _ending(self, opened: OpenCall, result: rpc.RpcResult, in_full: str) -> CallRecord:
        """Return the call's record with this ending."""
        duration_ms = (time.perf_counter() - opened.started) * 1000
        error = result.error
        if error is None:
            return _replace(
                opened.record,
                success=result.success,
                result_summary=opened.shown or self._summary(result.result),
                error_code=None,
                error=in_full,
                duration_ms=duration_ms,
            )
        message = f"{error.ename}: {error.message}" if error.ename else error.message
        return _replace(
            opened.record,
            success=False,
            result_summary="",
            error_code=error.code,
            error=in_full or message,
            duration_ms=duration_ms,
        )

    def _summary(self, raw: msgspec.Raw) -> str:
        """Return JSON as text, cut to the limit of a call's record; the limit is lower once the records are full."""
        if len(raw) <= _SHORT_MAX_CHARS:
            return bytes(raw).decode(errors="replace")
        text = summarize_json(raw, CALL_MAX_CHARS if self._left_chars > 0 else _SHORT_MAX_CHARS)
        self._left_chars -= len(text)
        return text


# A nested call runs with the intersection of its caller's grants and its own: a tool gains nothing by being
# called, and a caller nothing by calling. This is the rule of a stack walk (Java's `AccessController`, .NET's
# code access security). It is applied once for each call, because the grants in force are passed down. A tool
# that its owner marked with `own_grants` keeps its own grants, like a SECURITY DEFINER function of a
# database.


_WILDCARDS = frozenset("*?[")
#: Separates patterns that must all match.
_AND = " & "


class Caller:
    """Execution that calls others: its grants in force, and the rest of its limits.

    It is created with the limits in force for the execution. above: The execution that called it, if any. `acted` is
    True once this execution, or one that it called, started a tool with side effects.
    """

    def __init__(self, grants: Grants, timeout_s: float, cpu_s: int, above: Caller | None = None) -> None:
        self.grants = grants
        self.acted = False
        self._above = above
        self._timeout_s, self._cpu_s = timeout_s, cpu_s
        self._ends = time.monotonic() + timeout_s
        self._worker: Worker | None = None
        self._started_cpu_s = 0.0
        self._nested_cpu_s = 0.0
        self._lock = threading.Lock()

    def act(self) -> None:
        """Note that a tool with side effects starts on its behalf, also for all executions above it."""
        caller: Caller | None = self
        while caller is not None:
            caller.acted, caller = True, caller._above

    def start(self, worker: Worker) -> None:
        """Start counting this worker's use; called on a thread when the worker gets the work."""
        self._ends = time.monotonic() + self._timeout_s
        self._worker, self._started_cpu_s = worker, worker.cpu_used_s

    @property
    def time_left_s(self) -> float:
        """Wall time until its deadline, in seconds; negative after it."""
        return self._ends - time.monotonic()

    @property
    def cpu_used_s(self) -> float:
        """Processor time of its worker and of the finished calls below it, in seconds.

        A worker that has ended cannot be measured; its whole limit is counted.
        """
        with self._lock:
            if self._worker is None:
                return self._nested_cpu_s
            own_s = self._worker.cpu_used_s - self._started_cpu_s if self._worker.alive else self._cpu_s
            return own_s + self._nested_cpu_s

    @property
    def cpu_left_s(self) -> float:
        """Processor time left under its limit, in seconds."""
        return self._cpu_s - self.cpu_used_s

    def charge(self, caller: Caller) -> None:
        """Add the use of this execution to its caller's; called on a thread, before the worker is ended."""
        used_s = self.cpu_used_s
        with caller._lock:
            caller._nested_cpu_s += used_s


def allows(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of the `calls` patterns allows that name; in a pattern `a & b`, both must match."""
    return any(all(fnmatch.fnmatchcase(name, part) for part in pattern.split(_AND)) for pattern in patterns)


def reaches(patterns: Iterable[str], server: str) -> bool:
    """Return whether one of the `calls` patterns includes that server, for any tool."""
    return allows(
        (_AND.join(part.partition(".")[0] for part in pattern.split(_AND)) for pattern in patterns), server
    )


def effective(own: Grants, caller: Grants, config: Config) -> Grants:
    """Return the grants in force for a tool with its `own` grants and its `caller`'s grants in force."""
    if own.own_grants:
        return own
    write = _paths(own.write, caller.write)
    read = _paths((*own.read, *own.write), (*caller.read, *caller.write))
    return Grants(
        read=tuple(path for path in read if not any(_is_within(path, folder) for folder in write)),
        write=write,
        calls=_calls(own, caller),
        memory_mb=_smaller(own.memory_mb, caller.memory_mb, config.memory_mb),
        cpu_s=_smaller(own.cpu_s, caller.cpu_s, config.cpu_s),
        timeout_s=_smaller(own.timeout_s, caller.timeout_s, config.timeout_s),
        packages=_packages(own, caller),
    )


def unaccepted(own: Grants, files: Iterable[str] = ()) -> Grants:
    """Return the grants in force for code that no one has accepted yet, in place of a tool with its `own` grants.

    The code gets only the files and folders that a person named: `files` are paths, or patterns of granted paths. All
    of them are read-only.
    """
    granted = (*own.read, *own.write)
    patterns = [os.path.abspath(os.path.expanduser(file)) if file[:1] in "~./" else file for file in files]
    fitting = [path for path in granted if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)]
    named = _paths(granted, [*fitting, *map(os.path.realpath, patterns)])
    return msgspec.structs.replace(own, read=named, write=(), own_grants=False)


def bounded(
    own: Grants, config: Config, asked_s: float | None, within: Grants | None, caller: Caller | None
) -> tuple[Grants, float]:
    """Return the grants in force for an execution of a tool with its `own` grants, and its wall time in seconds.

    asked_s: The requested wall time; in a nested call, it can only shorten the limit.
    within: The grants of the nested execution that it repeats.
    caller: The execution that calls it.

    Raises `CallRefused` if its caller has used up its limits.
    """
    grants = own if within is None else effective(own, within, config)
    if caller is None:
        return grants, asked_s or grants.timeout_s or config.timeout_s
    grants, left_s = effective(grants, caller.grants, config), caller.time_left_s
    if left_s <= 0:
        raise CallRefused("Its caller has no time left.")
    if not grants.own_grants:
        cpu_left_s = math.ceil(caller.cpu_left_s)
        if cpu_left_s <= 0:
            raise CallRefused("Its caller has used up its processor time.")
        if cpu_left_s < (grants.cpu_s or config.cpu_s):
            grants = msgspec.structs.replace(grants, cpu_s=cpu_left_s)
    return grants, min(grants.timeout_s or config.timeout_s, asked_s or left_s, left_s)


def _paths(own: Iterable[str], caller: Iterable[str]) -> tuple[str, ...]:
    """Return the intersection of two lists of paths: of `/data` and `/data/a`, the inner one. No path is nested."""
    caller = tuple(caller)
    shared = dict.fromkeys(
        mine if _is_within(mine, theirs) else theirs
        for mine in own
        for theirs in caller
        if _is_within(mine, theirs) or _is_within(theirs, mine)
    )
    return tuple(
        path for path in shared if not any(path != folder and _is_within(path, folder) for folder in shared)
    )


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _calls(own: Grants, caller: Grants) -> tuple[str, ...] | None:
    """Return patterns that match only names that both allow; None, the default, if both are the default."""
    if own.calls == caller.calls:
        return own.calls
    shared = dict.fromkeys(
        both
        for pattern in own.call_patterns
        for caller_pattern in caller.call_patterns
        if (both := _pattern(pattern, caller_pattern)) is not None
    )
    return tuple(shared)


def _pattern(a: str, b: str) -> str | None:
    """Return a pattern for the names that both match; None if there certainly are none.

    If no single pattern describes them, both patterns are kept: `*.x & vault.*`.
    """
    if a == b:
        return a
    for plain, counterpart in ((a, b), (b, a)):
        if not _WILDCARDS & set(plain):
            return plain if allows([counterpart], plain) else None
    if all(pattern[-1] == "*" and not _WILDCARDS & set(pattern[:-1]) for pattern in (a, b)):
        short, long = sorted((a, b), key=len)
        return long if long.startswith(short[:-1]) else None
    return _AND.join(dict.fromkeys([*a.split(_AND), *b.split(_AND)]))


def _smaller(own: float | None, caller: float | None, configured: float) -> Any:
    """Return the smaller limit; None, for the configured limit, if neither tool has its own."""
    if own is None and caller is None:
        return None
    return min(configured if limit is None else limit for limit in (own, caller))


def _packages(own: Grants, caller: Grants) -> tuple[str, ...] | None:
    """Return the packages that both may import, with their dependencies."""
    if caller.packages is None or own.packages == caller.packages:
        return own.packages
    if own.packages is None:
        return caller.packages
    mine, theirs = package_names(own.packages), package_names(caller.packages)
    if mine <= theirs:
        return own.packages
    return caller.packages if theirs <= mine else tuple(sorted(mine & theirs))
