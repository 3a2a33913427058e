"""Executions as OpenTelemetry spans, sent over OTLP/HTTP.

An execution is one span, `execute_tool <name>`, with the attributes of the GenAI semantic conventions; each call it
made is a child of it. The finished `ExecutionTrace` is exported, the same that is stored and sent to a collector. So it
is already clean; a raw one (by opt-in) is cleaned here.

**Ids are derived, not random.** A span's id is the last half of its execution's UUIDv7, and the trace's id is the whole
UUID of the root execution. So a child that ends first can name a parent that was not exported yet, and a trace that is
exported again gives the same spans. OpenTelemetry's own API accepts no span id. So the spans are made with the SDK,
beside any provider of the user's.

**Which conventions.** They are in development and change often; the names are those of version 1.41
(open-telemetry/semantic-conventions, model/gen-ai/spans.yaml at that tag).

OpenTelemetry does the delivery: from memory, in batches, dropped if the queue is full or the receiver is unavailable.
For guaranteed delivery, use a collector (`sync_url`).
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import Config
from healkit.core.secrets.cleaner import Cleaner
from healkit.errors import ConfigError
from healkit.package import VERSION
from healkit.parts.traces.cleaning import cleaned_trace
from healkit.parts.traces.contract import BranchDecision, ExecutionTrace, TaskResult

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import SpanContext

#: Version of the GenAI semantic conventions, and the name of each fact in it.
_SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"
_NAMES = {
    "operation": "gen_ai.operation.name",
    "name": "gen_ai.tool.name",
    "type": "gen_ai.tool.type",
    "call_id": "gen_ai.tool.call.id",
    "error": "error.type",
    "arguments": "gen_ai.tool.call.arguments",
    "result": "gen_ai.tool.call.result",
}

#: Fallback of `error.type` (semantic conventions, registry of `error`).
OTHER_ERROR = "_OTHER"

#: Callees inside healkit; any other is a server, an "extension" in the conventions' words.
_OWN_NAMESPACES = {"vault", "host", "healkit"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ERROR_CODE = re.compile(r"[A-Z][A-Z0-9_]{2,60}(?=:)")
_SHUTDOWN_S = 5.0


class OtelExporter:
    """Exporter that turns traces into spans on a background thread; several threads may use it.

    root_of: The id of the root execution, given a parent's id; without it a parent counts as the root.
    cleaner: For raw traces.

    The receiver's address comes from OpenTelemetry's own environment variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, default
    http://localhost:4318; …`_HEADERS`; …).

    Raises `ConfigError` if the extra `healkit[otel]` is not installed.
    """

    def __init__(
        self,
        config: Config,
        cleaner: Callable[[], Cleaner],
        root_of: Callable[[str], str] = lambda parent_id: parent_id,
    ) -> None:
        try:
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            raise _not_installed() from None
        self._content = config.otel_content
        self._limit_bytes = config.payload_max_bytes
        self._cleaner = cleaner
        self._root_of = root_of
        self._resource = _resource()
        self._processor = BatchSpanProcessor(_otlp())

    def export(self, trace: ExecutionTrace) -> None:
        """Queue the trace's spans; return at once, and never raise."""
        try:
            for span in self.spans(trace):
                self._processor.on_end(span)
        except Exception:  # noqa: BLE001 - an execution must not fail for its export
            return

    def flush(self, timeout_s: float = _SHUTDOWN_S) -> bool:
        """Send all queued spans; return True if that was done in time."""
        return bool(self._processor.force_flush(int(timeout_s * 1000)))

    def close(self) -> None:
        """Send all queued spans, and stop."""
        self._processor.shutdown()  # type: ignore[no-untyped-call]  # the SDK has no annotation

    def spans(self, trace: ExecutionTrace) -> Iterator[ReadableSpan]:
        """Yield the execution's own span, then one for each call."""
        if trace.metadata.get("raw"):
            trace, _ = cleaned_trace(trace, self._cleaner(), self._limit_bytes)
        root = trace.id if trace.parent_id is None else self._root_of(trace.parent_id)
        context = _context(root, _span_id(trace.id))
        parent = None if trace.parent_id is None else _context(root, _span_id(trace.parent_id))
        start = _nanoseconds(trace.timestamp)
        end = start + _duration(trace.duration_ms)
        action = trace.capability_id.split(".")[3]
        yield self._span(
            action,
            context,
            parent,
            (start, end),
            self._facts(trace, action),
            failed=not trace.success,
            said=trace.error,
            events=[self._event(decision, start) for decision in trace.decisions],
        )
        for task in trace.task_results:
            yield self._call(trace, task, root, context, end)

    def _call(
        self, trace: ExecutionTrace, task: TaskResult, root: str, parent: SpanContext, end: int
    ) -> ReadableSpan:
        start = _nanoseconds(task.timestamp)
        namespace, _, action = task.tool.partition(":")
        facts = {
            "operation": "execute_tool",
            "name": action,
            "type": "function" if namespace in _OWN_NAMESPACES else "extension",
            "call_id": f"{trace.id}/{task.task_id}",
            "arguments": task.args,
            "result": task.result if task.success else None,
            "error": None if task.success else _call_error(task),
        }
        attributes = {"healkit.namespace": namespace, "healkit.task_id": task.task_id}
        return self._span(
            action,
            _context(root, _call_span_id(trace.id, task.task_id)),
            parent,
            (start, max(start, end) if task.duration_ms is None else start + _duration(task.duration_ms)),
            self._named(facts) | attributes,
            failed=not task.success,
            said=str(task.result) if not task.success and task.result is not None else None,
        )

    def _facts(self, trace: ExecutionTrace, action: str) -> dict[str, Any]:
        metadata = trace.metadata
        facts = {
            "operation": "execute_tool",
            "name": action,
            "type": "function",
            "call_id": trace.id,
            "arguments": metadata.get("arguments"),
            "result": metadata.get("result"),
            "error": None if trace.success else _error_type(metadata),
        }
        attributes = {
            f"healkit.{name}": metadata[name]
            for name in ("persona", "revision", "origin", "isolation")
            if isinstance(metadata.get(name), str | int)
        }
        return self._named(facts) | attributes | {"healkit.capability_id": trace.capability_id}

    def _named(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Name the facts by the conventions; content only by opt-in, as JSON."""
        named: dict[str, Any] = {}
        for fact, name in _NAMES.items():
            value = facts.get(fact)
            if value is None:
                continue
            if fact in {"arguments", "result"}:
                if self._content:
                    named[name] = _json(value)
            else:
                named[name] = value
        return named

    def _span(
        self,
        action: str,
        context: SpanContext,
        parent: SpanContext | None,
        times: tuple[int, int],
        attributes: dict[str, Any],
        *,
        failed: bool,
        said: str | None,
        events: list[Event] | None = None,
    ) -> ReadableSpan:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import Status, StatusCode

        return ReadableSpan(
            f"execute_tool {action}",
            context,
            parent,
            self._resource,
            attributes,
            events or (),
            status=Status(StatusCode.ERROR, said) if failed else Status(),
            start_time=times[0],
            end_time=times[1],
            instrumentation_scope=InstrumentationScope("healkit", VERSION, _SCHEMA_URL),
        )

    def _event(self, decision: BranchDecision, moment: int) -> Event:
        """Return a branch that the tool took as an event; a trace knows the order of branches, not their times."""
        from opentelemetry.sdk.trace import Event

        attributes = {"healkit.node": decision.node_id, "healkit.outcome": decision.outcome}
        if self._content:
            attributes["healkit.condition"] = decision.condition
        return Event("healkit.decision", attributes, moment)


def _span_id(trace_id: str) -> int:
    """Return the last 64 bits of a UUIDv7: 62 random ones, never all zero (RFC 9562, section 5.7)."""
    return uuid.UUID(trace_id).int & (1 << 64) - 1


def _call_span_id(trace_id: str, task_id: str) -> int:
    digest = hashlib.sha256(f"{trace_id}/{task_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1


def _context(root: str, span_id: int) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(
        uuid.UUID(root).int, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )


def _nanoseconds(moment: datetime) -> int:
    """Convert to nanoseconds since 1970, exactly; a float would lose the last digits."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _duration(milliseconds: float) -> int:
    return int(milliseconds * 1_000_000)


def _error_type(metadata: Mapping[str, Any]) -> str:
    """Return the exception's name if the tool raised one, otherwise the code of the ending."""
    code, raised = metadata.get("errorCode"), metadata.get("errorType")
    if isinstance(raised, str) and raised and code in {None, "TOOL_EXCEPTION"}:
        return raised
    return code if isinstance(code, str) and code else OTHER_ERROR


def _call_error(task: TaskResult) -> str:
    """Return the code that a failed call's answer begins with."""
    if task.duration_ms is None:
        return "unanswered"
    match = _ERROR_CODE.match(task.result) if isinstance(task.result, str) else None
    return match[0] if match else OTHER_ERROR


def _json(value: object) -> str:
    import json

    try:
        return msgspec.json.encode(value).decode()
    except OverflowError:
        return json.dumps(value)


def _otlp() -> SpanExporter:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise _not_installed() from None
    return OTLPSpanExporter()


def _resource() -> Resource:
    """Describe the sender: from `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, otherwise `healkit`."""
    from opentelemetry.sdk.resources import Resource

    resource = Resource.create()
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        return resource.merge(Resource({"service.name": "healkit"}))
    return resource


def _not_installed() -> ConfigError:
    return ConfigError(
        "otel=True needs OpenTelemetry, which is not installed.", hint="pip install 'healkit[otel]'"
    )
