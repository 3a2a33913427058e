"""Calls of a worker: allowed, recorded, performed, answered.

One `CallRouter` for each execution. It decides whether the call is allowed (grants, budget), has its record written
before anything happens (`CallRecords`), and hands it to the provider. From the worker come only the arguments.

A branch decision, `trace.decision(…)`, comes as a call of a server that no provider can be, and is answered like one:
when it returns in the worker, the decision is in the journal, and kill -9 cannot undo it. Its texts are a claim: types
are checked, sizes and number capped.
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
    from healkit.core.workers.worker import Worker  # it loads what starts workers, which no row waits for


_NAME_MAX_CHARS, _CONDITION_MAX_CHARS = 200, 1000
#: Calls that one execution may make.
CALLS_MAX = 10_000
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
        """Record a branch decision; called on a bridge thread. Never raises."""
        try:
            decision = claims.decode(call.args, _decision, max_bytes=_DECISION_MAX_BYTES)
        except claims.BadClaim as error:
            refused = rpc.RpcError("CALL_REFUSED", "", f"That is no decision: {error}")
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
        """Perform the call; called on a bridge thread, several at a time. What it raises becomes the caller's error."""
        ...


class Replay(Protocol):
    """Answers to an execution's calls from a record; what is not on record is refused, or made where that is allowed.

    cassette: the record. missed: how the execution ends, whatever its tool makes of it, once it has made a call that is
    not on record; None until then. warning: a sentence on answers that other arguments had.
    """

    @property
    def cassette(self) -> Cassette: ...
    @property
    def missed(self) -> Failure | None: ...
    @property
    def warning(self) -> str: ...

    def may_reach(self, server: str) -> bool:
        """Return whether that server itself may be asked what it has."""
        ...

    def may_make(self, name: str) -> bool:
        """Return whether the call of `server.tool` may be made, where it is not on record."""
        ...

    def answer(self, call: rpc.RpcCall, opened: OpenCall) -> rpc.RpcResult | None:
        """Return the answer on record, or the refusal of a call that is not; None for one that the host judges."""
        ...

    def keep(self, call: rpc.RpcCall, opened: OpenCall, result: rpc.RpcResult) -> None:
        """Keep the answer of a call that was made."""
        ...


class CallRouter:
    """Answers the calls of one execution; implements the bridge's `CallHandler`.

    replay: answers them from a record instead. keep: gets a call's task id and its answer as it crossed, where that has
    frames or arrays that its record only shows.
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
        #: Failed vault tools, by the message with which their caller was told.
        self._failed: dict[str, tuple[str, ToolExecutionError]] = {}
        self._allowed: set[tuple[str, str]] = set()
        self.records = CallRecords(context.trace_id, record)
        # Without a detour: a tenth of what the host does for a call is calls of functions.
        self.ended, self.timed_out = self.records.end, self.records.time_out

    def definitions(self, code: str = "") -> list[ToolDefinition]:
        """Return what the worker's `mcp` object shows: exactly what a call of it would be allowed to reach.

        A server that cannot say what it has shows whatever `code` may call, so that the call itself is on record and
        told why. Waits for servers that have to be started; called on a thread that may wait.
        """
        definitions: list[ToolDefinition] = []
        if self._replay is not None:
            definitions = list(self._replay.cassette.definitions)
        for server, provider in list(self._providers.items()):
            if not reaches(self._patterns, server) or (
                self._replay is not None and not self._replay.may_reach(server)
            ):
                continue  # do not start it for nothing
            try:
                definitions += provider.definitions(self._context.persona)
            except HealkitError as error:
                definitions += _stand_ins(server, code, str(error.code))
        return [definition for definition in definitions if self._allows(definition.server, definition.name)]

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

    def explained(self, failure: Failure | None, leaves_out: Callable[[str], bool]) -> Failure | None:
        """Return the failure of the code; where it passes on that of a vault tool, with that one linked to it.

        Of several tools that called each other, the last is linked. leaves_out: asked for tools kept off the record.
        """
        tool, called = ("", None) if failure is None else self._failed.get(failure.evalue, ("", None))
        if failure is None or called is None or failure.ename != "ToolCallError" or leaves_out(tool):
            return failure
        inner = called.failure.called or msgspec.structs.replace(
            called.failure, traceback="", linked=[], link="call", log_id=called.log_id
        )
        return msgspec.structs.replace(failure, linked=[*failure.linked, inner])

    def _answer(self, call: rpc.RpcCall, number: int, opened: OpenCall) -> rpc.RpcResult:
        """Return the answer to the call; what only the host may know goes into `opened`."""
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
            if error.__cause__ is not None:  # kept from the worker
                opened.in_full = self.records.ends_of(f"{error} Cause: {error.__cause__}")
            return rpc.RpcResult(call.id, success=False, error=_told(error))
        except Exception as error:  # noqa: BLE001 - a provider is foreign code
            # Tell the worker what went wrong, without the host's traceback and paths.
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
    """Return True for an answer with frames or arrays that its record cannot hold whole."""
    return len(answer) > CALL_MAX_CHARS and values.MARK in bytes(answer)


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


# A call is on record before it is performed, and again when it ends. It ends with its answer, with CALL_TIMEOUT, or
# with CALL_UNANSWERED where its worker ended first. An answer that comes after one of the last two changes neither
# the outcome nor the code, but what the provider returned is added: the call may have changed something outside.


_replace = msgspec.structs.replace
#: Text of one execution's calls that is kept at full length, and what is kept of each text beyond it, in characters.
_TEXTS_MAX_CHARS, _SHORT_MAX_CHARS = 8_000_000, 200
#: How long a call waits at most until those that were answered before it are on record.
_IN_TURN_S = 1.0
_TIMED_OUT = rpc.RpcError(CallTimedOut.code, "TimeoutError", "no answer in time")
#: Ending of a call that no worker waits for any more.
UNANSWERED = rpc.RpcError(CallUnanswered.code, "", "its worker ended before it had an answer")


class OpenCall:
    """Call that has no answer yet, or whose answer is not recorded yet, with its record so far.

    in_full: the error as the host knows it, with what is kept from the worker.
    answered: true once there is an answer.
    shown: the answer as it is recorded, where its frames and arrays are kept apart.
    turn: held while an ending that may not be the last one is written, so that they are written in order.
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

    A call is known by its object: its `id` is the worker's, and may come again. `_open` is changed without a lock: each
    change is one operation on a dict.
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
        """Calls that have ended, in the order in which they came."""
        return sorted(self._ended.values(), key=lambda record: int(record.task_id[1:]))

    @property
    def settled(self) -> bool:
        """True when there is nothing to wait for, and nothing to end."""
        return not self._open

    def begin(self, call: rpc.RpcCall, task_id: str, server: str, tool: str) -> OpenCall:
        """Put a call on record, after those that were answered before it; kill -9 cannot undo what this has done."""
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
        """Write how the call ended; an answer that was dropped is added to the ending that it has.

        Called by the bridge once the answer is on its way, or dropped as too late.
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
        """End the record of every call.

        Called once the work is over, before its records are closed. A worker may have its answer, and be done with
        everything, before the thread that gave it has come to writing that down: this waits so long for those.
        """
        with self._recorded:
            self.over = True
        if self._open:
            self._wait_for_answered(timeout_s)
            self._give_up(list(self._open.values()), UNANSWERED)

    def ends_of(self, text: str) -> str:
        """Return an error's text, without its middle if it is long: a worker's arguments may be part of it."""
        limit = CALL_MAX_CHARS if self._left_chars > 0 else _SHORT_MAX_CHARS
        if len(text) > 2 * limit:
            text = f"{text[:limit]}\n… [{len(text):,} characters]\n{text[-limit:]}"
        self._left_chars -= len(text)
        return text

    def _wait_for_answered(self, timeout_s: float) -> None:
        """Wait until the endings of the calls that have their answers are on record."""
        if not self._any_answered():
            return
        with self._recorded:
            self._waiting += 1
            self._recorded.wait_for(lambda: not self._any_answered(), timeout_s)
            self._waiting -= 1

    def _any_answered(self) -> bool:
        return any(opened.answered for opened in list(self._open.values()))

    def _give_up(self, calls: Iterable[OpenCall], error: rpc.RpcError) -> None:
        """End the records of calls whose answers may still come; one that has an ending keeps it."""
        for opened in calls:
            with opened.turn:
                with self._lock:
                    is_open = opened.record.success is None
                    if is_open:
                        self._fail(opened, error)
                if is_open:
                    self._record(opened.record)

    def _add(self, opened: OpenCall, result: rpc.RpcResult) -> None:
        """Add the result of a call whose worker has ended, or was told that the time is up."""
        with opened.turn:
            with self._lock:
                if opened.record.success is None:  # ahead of the thread that was to write it
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
        """Return the call's record with that ending."""
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
        """Return JSON as text, cut to what a call's record may hold, and to less once the records are full."""
        if len(raw) <= _SHORT_MAX_CHARS:
            return bytes(raw).decode(errors="replace")
        text = summarize_json(raw, CALL_MAX_CHARS if self._left_chars > 0 else _SHORT_MAX_CHARS)
        self._left_chars -= len(text)
        return text


# A nested call runs with the intersection of its caller's grants in force and the callee's own: a tool gains nothing
# by being called, and a caller nothing by calling. That is the rule of a stack walk (Java's `AccessController`,
# .NET's code access security), applied once for each call, because what is in force goes down with it. A tool whose
# owner marked it with `own_grants` keeps its own, as a SECURITY DEFINER function of a database does.


_WILDCARDS = frozenset("*?[")
#: Stands between patterns of which all must match.
_AND = " & "


class Caller:
    """Execution that calls others: its grants in force, and what it has left of its limits.

    Made with the limits in force for it. above: the execution that has called it, if one has. `acted` is True once it,
    or one that it called, began a tool with side effects.
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
        """Note that a tool with side effects begins on its behalf, for those above it too."""
        caller: Caller | None = self
        while caller is not None:
            caller.acted, caller = True, caller._above

    def start(self, worker: Worker) -> None:
        """Start counting what this worker uses; called on a thread, when it gets the work."""
        self._ends = time.monotonic() + self._timeout_s
        self._worker, self._started_cpu_s = worker, worker.cpu_used_s

    @property
    def time_left_s(self) -> float:
        """Wall time until its deadline; negative after it."""
        return self._ends - time.monotonic()

    @property
    def cpu_used_s(self) -> float:
        """Processor time of its worker and of the calls below it that have ended.

        A worker that has ended by itself cannot be asked any more: all that its limit allows is counted.
        """
        with self._lock:
            if self._worker is None:
                return self._nested_cpu_s
            own_s = self._worker.cpu_used_s - self._started_cpu_s if self._worker.alive else self._cpu_s
            return own_s + self._nested_cpu_s

    @property
    def cpu_left_s(self) -> float:
        """Processor time that its limit leaves."""
        return self._cpu_s - self.cpu_used_s

    def charge(self, caller: Caller) -> None:
        """Count what this execution has used for the one that called it; on a thread, before its worker is ended."""
        used_s = self.cpu_used_s
        with caller._lock:
            caller._nested_cpu_s += used_s


def allows(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of the grants `calls` allows that name; of a pattern `a & b` both must match."""
    return any(all(fnmatch.fnmatchcase(name, part) for part in pattern.split(_AND)) for pattern in patterns)


def reaches(patterns: Iterable[str], server: str) -> bool:
    """Return whether one of the grants `calls` names that server, whatever the tool."""
    return allows(
        (_AND.join(part.partition(".")[0] for part in pattern.split(_AND)) for pattern in patterns), server
    )


def effective(own: Grants, caller: Grants, config: Config) -> Grants:
    """Return the grants in force for a tool with its `own` grants, called by one that runs with the `caller`'s."""
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
    """Return the grants in force for code that nobody has accepted, in the place of a tool with its `own` grants.

    It has no folder and no file but those that a person has named: `files` are paths, or patterns of granted ones. What
    it may write, it may only read.
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

    asked_s: the wall time that was asked for, which for a nested call can only be shorter. within: the grants of the
    nested execution that it repeats. caller: the execution that calls it.

    Raises `CallRefused` where its caller has nothing left.
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
    """Return what lies in both: of `/data` and `/data/a` the inner one, and none inside another."""
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
    """Return patterns that match what both allow; None, the default, where both are the default."""
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
    """Return a pattern for what both match; None if they certainly share nothing.

    Two patterns that have no single one for what they share are kept side by side: `*.x & vault.*`.
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
    """Return the smaller limit; None, the configured one, where neither tool has one of its own."""
    if own is None and caller is None:
        return None
    return min(configured if limit is None else limit for limit in (own, caller))


def _packages(own: Grants, caller: Grants) -> tuple[str, ...] | None:
    """Return the packages that both may see, with what they need."""
    if caller.packages is None or own.packages == caller.packages:
        return own.packages
    if own.packages is None:
        return caller.packages
    mine, theirs = package_names(own.packages), package_names(caller.packages)
    if mine <= theirs:
        return own.packages
    return caller.packages if theirs <= mine else tuple(sorted(mine & theirs))
