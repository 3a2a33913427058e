"""Execution traces, and their wire form.

The wire form is JSON in camelCase with exactly the names of the classes below (`taskResults`, `nodeId`, …); times are
ISO 8601 in UTC. Foreign traces are read by `read_trace` and `read_batch`, which trust nothing of it: ids, names, times
and numbers are checked, and the fault of one trace does not lose the others.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

import msgspec

from healkit.errors import BatchTooLarge, TraceInvalid

#: Digits of the code's SHA-256 at the end of a capability's name.
HASH_DIGITS = 12
#: Replaces them for a call without code: an unknown tool, a trial.
NO_HASH = "none"

# `$` alone also matches before a newline at the end.
_UUID7 = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$(?!\n)"
_CAPABILITY = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,1000}$(?!\n)"

TraceId = Annotated[str, msgspec.Meta(pattern=_UUID7)]
CapabilityId = Annotated[str, msgspec.Meta(pattern=_CAPABILITY)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0)]


class TaskResult(msgspec.Struct, frozen=True, rename="camel"):
    """Call that the execution made, `t1` being the first; `tool` is `namespace:action`.

    `duration_ms` is None for a call that had no answer when the run ended; such a call did not succeed. `result` is the
    value of a successful call, else the error's text.
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
    holds whatever else is known, see the page on traces.
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
    """Fault of one trace, in its place in the batch; `id` is None where even that cannot be read."""

    index: int
    id: str | None
    code: str
    message: str
    retryable: bool = False


class _Identified(msgspec.Struct):
    id: str | None = None


_encode = msgspec.json.Encoder().encode
_trace: msgspec.json.Decoder[ExecutionTrace] = msgspec.json.Decoder(ExecutionTrace)
_identified = msgspec.json.Decoder(_Identified)


class _Batch(msgspec.Struct):
    traces: list[msgspec.Raw]


_batch: msgspec.json.Decoder[list[msgspec.Raw] | _Batch] = msgspec.json.Decoder(list[msgspec.Raw] | _Batch)


def capability_id_of(org: str, project: str, namespace: str, action: str, code_hash: str | None) -> str:
    """Return `org.project.namespace.action.hash`; characters not allowed between two dots become underscores."""
    parts = (re.sub(r"[^\w-]", "_", part)[:200] or "_" for part in (org, project, namespace, action))
    return ".".join([*parts, code_hash[:HASH_DIGITS] if code_hash else NO_HASH])


def encode_trace(trace: ExecutionTrace) -> bytes:
    """Encode the trace in its wire form."""
    return _encode(trace)


def read_trace(data: bytes | str) -> ExecutionTrace:
    """Read one trace from the wire; raise `TraceInvalid` with the place of the fault."""
    try:
        return _trace.decode(data)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TraceInvalid(f"This is no trace: {error}.", hint=_HINT) from None
    except RecursionError:
        raise TraceInvalid("This is no trace: it is nested too deep.", hint=_HINT) from None


def read_batch(body: bytes, limit: int) -> list[ExecutionTrace | TraceFault]:
    """Read the traces of a request, `[…]` or `{"traces": […]}`, with a fault in place of each bad one.

    Raises `TraceInvalid` where the body as a whole is not readable, `BatchTooLarge` where it holds more than `limit`.
    """
    try:
        found = _batch.decode(body)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TraceInvalid(f"This is no list of traces: {error}.", hint=_HINT) from None
    except RecursionError:
        raise TraceInvalid("This is no list of traces: it is nested too deep.", hint=_HINT) from None
    items = found.traces if isinstance(found, _Batch) else found
    if len(items) > limit:
        raise BatchTooLarge(
            f"There are {len(items):,} traces in this request, and {limit:,} are taken at once.",
            hint="Send them in several requests.",
        )
    return [_read_item(index, bytes(item)) for index, item in enumerate(items)]


_HINT = "The form is on the page docs/traces.md."


def _read_item(index: int, item: bytes) -> ExecutionTrace | TraceFault:
    try:
        return read_trace(item)
    except TraceInvalid as error:
        return TraceFault(index, _id_in(item), error.code, error.message)


def _id_in(item: bytes) -> str | None:
    """Return the id of a trace that is otherwise wrong, if it has a readable one."""
    try:
        claimed = _identified.decode(item).id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return claimed if claimed is not None and re.fullmatch(_UUID7, claimed) else None
