"""Execution traces: their wire form, and their delivery.

The wire form is JSON in camelCase with exactly the names of the classes below (`taskResults`, `nodeId`, …); times are
ISO 8601 in UTC. `read_trace` and `read_batch` read traces and do not trust any part of them. They check ids, names,
times and numbers, and an error in one trace does not lose the others. A batch may come from a client that is not
healkit's. `read_batch` accepts other names for a field, a time in milliseconds, and missing fields (docs/collector.md).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from healkit.errors import BatchTooLarge, TraceInvalid

#: Digits of the code's SHA-256 at the end of a capability's name.
HASH_DIGITS = 12
#: Replaces them for a call without code: an unknown tool, a trial.
NO_HASH = "none"

# `$` alone also matches before a newline at the end.
# healkit's own ids are of version 7; another client's may be of any.
_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$(?!\n)"
_CAPABILITY = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,1000}$(?!\n)"

TraceId = Annotated[str, msgspec.Meta(pattern=_UUID)]
CapabilityId = Annotated[str, msgspec.Meta(pattern=_CAPABILITY)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0)]


class TaskResult(msgspec.Struct, frozen=True, rename="camel"):
    """Call that the execution made, `t1` being the first; `tool` is `namespace:action`.

    `duration_ms` is None for a call that had no answer when the execution ended; such a call did not succeed. `result`
    is the value of a successful call, otherwise the error's text.
    """

    task_id: Annotated[str, msgspec.Meta(pattern=r"^t[1-9][0-9]{0,8}$(?!\n)")]
    tool: Annotated[str, msgspec.Meta(pattern=r"^[^:]*:", max_length=500)]
    args: Any
    result: Any
    duration_ms: Milliseconds | None
    success: bool
    timestamp: Moment


class BranchDecision(msgspec.Struct, frozen=True, rename="camel"):
    """Branch that the execution took: at `node_id`, `outcome`, because of `condition`."""

    node_id: Annotated[str, msgspec.Meta(max_length=1000)]
    outcome: Annotated[str, msgspec.Meta(max_length=1000)]
    condition: Annotated[str, msgspec.Meta(max_length=10_000)] = ""


class ExecutionTrace(msgspec.Struct, frozen=True, rename="camel"):
    """Trace of one execution; `id` is made at its start, so that the executions it causes can name their parent.

    `capability_id` is `org.project.namespace.action.hash`, see `capability_id_of`; a foreign trace may have another
    text there, such as a UUID, and keeps it. `error` is the failure on one line; `timestamp` is the start. `metadata`
    contains further facts, see the page on traces.
    """

    id: TraceId
    parent_id: TraceId | None
    capability_id: CapabilityId
    success: bool
    error: str | None
    duration_ms: Milliseconds
    timestamp: Moment
    task_results: list[TaskResult]
    decisions: list[BranchDecision]
    metadata: dict[str, Any] = {}


class TraceFault(msgspec.Struct, frozen=True):
    """Fault of one trace, at its position in the batch; `id` is None if it cannot be read."""

    index: int
    id: str | None
    code: str
    message: str
    retryable: bool = False


_encode = msgspec.json.Encoder().encode
_trace: msgspec.json.Decoder[ExecutionTrace] = msgspec.json.Decoder(ExecutionTrace)
_read_object = msgspec.json.Decoder(dict[str, Any]).decode


class _Batch(msgspec.Struct):
    traces: list[msgspec.Raw]


_batch: msgspec.json.Decoder[list[msgspec.Raw] | _Batch] = msgspec.json.Decoder(list[msgspec.Raw] | _Batch)


def capability_id_of(org: str, project: str, namespace: str, action: str, code_hash: str | None) -> str:
    """Return `org.project.namespace.action.hash`; characters not allowed between two dots become underscores."""
    parts = [re.sub(r"[^\w-]", "_", part)[:200] or "_" for part in (org, project, namespace, action)]
    return ".".join([*parts, code_hash[:HASH_DIGITS] if code_hash else NO_HASH])


def encode_trace(trace: ExecutionTrace) -> bytes:
    """Encode the trace in its wire form."""
    return _encode(trace)


def read_trace(data: bytes | str) -> ExecutionTrace:
    """Read one trace from the wire; raise `TraceInvalid` with the place of the fault."""
    try:
        return _trace.decode(data)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TraceInvalid(f"This is not a trace: {error}.", hint=_HINT) from None
    except RecursionError:
        raise TraceInvalid("This is not a trace: it is nested too deeply.", hint=_HINT) from None


def read_batch(body: bytes, limit: int) -> list[ExecutionTrace | TraceFault]:
    """Read the traces of a request, `[…]` or `{"traces": […]}`, with a fault in place of each bad one.

    A trace that came without an id has `NO_ID`.

    Raises `TraceInvalid` if the body as a whole is not readable, `BatchTooLarge` if it has more than `limit`.
    """
    try:
        batch = _batch.decode(body)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TraceInvalid(f"This is not a list of traces: {error}.", hint=_HINT) from None
    except RecursionError:
        raise TraceInvalid("This is not a list of traces: it is nested too deeply.", hint=_HINT) from None
    items = batch.traces if isinstance(batch, _Batch) else batch
    if len(items) > limit:
        raise BatchTooLarge(
            f"There are {len(items):,} traces in this request, but at most {limit:,} are accepted at once.",
            hint="Send them in several requests.",
        )
    return [_read_item(index, bytes(item)) for index, item in enumerate(items)]


_HINT = "The format is described in docs/traces.md."


def _read_item(index: int, item: bytes) -> ExecutionTrace | TraceFault:
    try:
        return _trace.decode(item)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    plain: dict[str, Any] = {}
    try:
        plain = _named(_read_object(item), _TRACE_NAMES)
        trace = msgspec.convert(_completed(plain), ExecutionTrace)
        return trace if "id" in plain else msgspec.structs.replace(trace, id=NO_ID)
    except (msgspec.MsgspecError, UnicodeError, TraceInvalid) as error:
        message = error.message if isinstance(error, TraceInvalid) else f"This is not a trace: {error}."
    except RecursionError:
        message = "This is not a trace: it is nested too deeply."
    claimed = plain.get("id")
    trace_id = claimed if isinstance(claimed, str) and re.fullmatch(_UUID, claimed) else None
    return TraceFault(index, trace_id, TraceInvalid.code, message)


#: Id of a trace that came without one, until it is given one; and what stands for it while the rest is checked.
NO_ID, _ANY_ID = "", "00000000-0000-8000-8000-000000000000"
#: Field → the other names by which it is known.
_TRACE_NAMES = {
    "id": ("traceId",),
    "parentId": ("parentTraceId",),
    "capabilityId": ("toolId",),
    "error": ("errorMessage",),
    "timestamp": ("executedAt", "startedAt"),
}
_TASK_NAMES = {"tool": ("toolId",), "args": ("arguments",), "timestamp": ("executedAt", "startedAt")}
#: Times that a number may mean: a smaller one is one of seconds, a larger one of microseconds.
_FIRST_MS, _LAST_MS = 946_684_800_000, 4_102_444_800_000  # the years 2000 to 2100


def _named(plain: dict[str, Any], names: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return an object without its nulls, each field under its own name; that name has precedence over the others."""
    fields = {name: value for name, value in plain.items() if value is not None}
    for name, aliases in names.items():
        alias_values = [fields.pop(alias) for alias in aliases if alias in fields]
        if alias_values:
            fields.setdefault(name, alias_values[0])
    return fields


def _completed(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a trace's fields with defaults for missing ones, and its times read."""
    unsaid: dict[str, Any] = {
        "id": _ANY_ID, "parentId": None, "error": None, "taskResults": [], "decisions": [],
    }  # fmt: skip
    whole = {**unsaid, **plain}
    for name in ("id", "parentId"):
        whole[name] = whole[name].lower() if isinstance(whole[name], str) else whole[name]
    if "timestamp" in whole:
        whole["timestamp"] = _moment(whole["timestamp"], "$.timestamp")
    if isinstance(whole["taskResults"], list):
        whole["taskResults"] = [
            _completed_task(call, number, whole.get("timestamp")) if isinstance(call, dict) else call
            for number, call in enumerate(whole["taskResults"], 1)
        ]
    return whole


def _completed_task(call: dict[str, Any], number: int, began: object) -> dict[str, Any]:
    """Return a call's fields; an unnamed call gets its number as its name, one without a time began at once."""
    plain = _named(call, _TASK_NAMES)
    when = _moment(plain.get("timestamp", began), f"$.taskResults[{number - 1}].timestamp")
    return {
        "taskId": f"t{number}", "args": {}, "result": None, "durationMs": None, **plain, "timestamp": when,
    }  # fmt: skip


def _moment(value: object, place: str) -> Any:
    """Read a number as milliseconds since 1970; leave anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if not _FIRST_MS <= value <= _LAST_MS:
        seconds = (
            " It is probably in seconds: multiply it by 1000."
            if _FIRST_MS <= value * 1000 <= _LAST_MS
            else ""
        )
        raise TraceInvalid(
            f"This is not a trace: {value!r} is not a time in milliseconds since 1970, as of Date.now(), "
            "between the years "
            f"2000 and 2100 - at `{place}`.{seconds}"
        )
    return datetime.fromtimestamp(value / 1000, UTC)


# Messages between the outbox and its sender.


class Waiting(msgspec.Struct, frozen=True):
    """Trace to send, in the form for its sender; `attempts` are the refusals so far."""

    trace_id: str
    wire: str
    attempts: int = 0
    attempted_at: datetime | None = None


class DeliveryVerdict(msgspec.Struct, frozen=True):
    """Verdict on one trace that was sent.

    `sent`: The collector has it. `parked`: It is not sent again automatically. `pending`: It is sent again after
    `delay_s`; `counted` if the trace itself was refused, not if the collector was unavailable.
    """

    trace_id: str
    state: Literal["sent", "pending", "parked"]
    reason: str = ""
    delay_s: float = 0.0
    counted: bool = False
