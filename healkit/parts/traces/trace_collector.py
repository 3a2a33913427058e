"""Collector of an execution's trace, from its records.

The executor makes a `TraceCollector` when an execution begins. The bridge's records pass through it on their way to the
journal, and the recorder takes the trace from it and stores it with the ending. There is no second record of a call. A
trace is made from the log, also the trace of an execution whose host died.

Nothing here raises. A trace that cannot be built becomes one that says so, so that the execution neither fails nor
lacks a trace.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import (
    HEALING_ORIGINS,
    CallRecord,
    DecisionRecord,
    Finished,
    Started,
    Step,
    StoredTrace,
)
from healkit.core.crossing import values
from healkit.core.host import process_of
from healkit.core.runtime.collecting import LogCleaner, StepCollector
from healkit.core.secrets.cleaner import (
    Cleaner,
    Verbatim,
    learn,
    payload_of,
    secret_columns,
)
from healkit.parts.traces.cleaning import trace_again
from healkit.parts.traces.contract import (
    BranchDecision,
    ExecutionTrace,
    TaskResult,
    capability_id_of,
    encode_trace,
)

#: Characters of all payloads of one trace together; later calls are listed without theirs.
_PAYLOADS_MAX_CHARS = 1_000_000
#: Limit of a trace as it is sent; beyond it the payloads of more calls are left out, down to a least room for them.
_WIRE_MAX_BYTES, _PAYLOADS_LEAST_CHARS = 1_000_000, 10_000
_ERROR_MAX_CHARS = 2000
#: Bounds of the wire form on a decision's texts (`contracts.traces`).
_DECISION_MAX_CHARS, _CONDITION_MAX_CHARS = 1000, 10_000
#: How long after a suggestion an execution is taken to be for its intent.
_INTENT_KEPT = timedelta(minutes=10)


class Tracer(LogCleaner):
    """Maker of trace collectors; `on_trace` gets each finished trace; it must neither wait nor raise."""

    def __init__(
        self,
        config: Config,
        cleaner: Callable[[], Cleaner] = Verbatim,
        on_trace: Callable[[ExecutionTrace], None] = lambda _: None,
    ) -> None:
        super().__init__(config, cleaner)
        self.on_trace = on_trace
        #: Persona → the intent of what it runs next, and when a suggestion was made for it.
        self.intents: dict[str, tuple[str, datetime]] = {}

    def collector(self, started: Started, served: str = "", steps: Iterable[Step] = ()) -> TraceCollector:
        """Make the collector of an execution's trace."""
        if self.config.tracing and not self.config.trace_raw:
            self.warm_up()
        return TraceCollector(self, started, served, steps)

    def take_intent(self, started: Started) -> str:
        """Return the intent of an execution: it counts for the first execution after the suggestion."""
        if started.parent_trace_id is not None or started.origin in HEALING_ORIGINS:
            return ""
        intent, asked_at = self.intents.get(started.persona, ("", started.timestamp))
        if not intent or started.timestamp < asked_at:
            return ""
        del self.intents[started.persona]
        return intent if started.timestamp - asked_at <= _INTENT_KEPT else ""


class TraceCollector(StepCollector):
    """Collector of one execution's trace."""

    def __init__(self, tracer: Tracer, started: Started, served: str, steps: Iterable[Step] = ()) -> None:
        super().__init__(tracer, started, served, steps)
        self._tracer = tracer
        self._intent = ""

    def conclude(self, finished: Finished) -> Finished:
        """Return the ending with its trace, unless tracing is off.

        The recorder calls it once.
        """
        config = self._tracer.config
        if not config.tracing:
            return finished
        started = self._started
        self._intent = self._tracer.take_intent(started)
        try:
            room = _PAYLOADS_MAX_CHARS
            trace = self._trace(finished, room)
            wire = encode_trace(trace)
            while len(wire) > _WIRE_MAX_BYTES and room > _PAYLOADS_LEAST_CHARS:
                room //= 2
                trace = self._trace(finished, room)
                wire = encode_trace(trace)
            while len(wire) > _WIRE_MAX_BYTES and (trace.decisions or trace.task_results):
                trace = _shorter(trace)
                wire = encode_trace(trace)
            if len(wire) > _WIRE_MAX_BYTES:
                trace = self._skeleton(finished, {"problem": f"more than {_WIRE_MAX_BYTES:,} bytes"})
                wire = encode_trace(trace)
        except Exception as error:  # noqa: BLE001 - an execution must not fail for its trace
            trace = self._skeleton(finished, {"problem": type(error).__name__})
            wire = encode_trace(trace)
        self._tracer.on_trace(trace)
        stored = StoredTrace(wire.decode(), started.parent_trace_id, send=bool(config.sync_url))
        return msgspec.structs.replace(finished, trace=stored)

    def _trace(self, finished: Finished, room_chars: int) -> ExecutionTrace:
        tally = _Tally(self._tracer.cleaner, self._tracer.config.payload_max_bytes, room_chars)
        metadata = self._metadata(finished, tally)
        calls = sorted(self._calls.values(), key=lambda call: int(call.task_id[1:]))
        most = self._tracer.config.trace_max_tasks
        tasks = [_task(call, tally, f"taskResults[{i}]") for i, call in enumerate(calls[:most])]
        decisions = [_decision(record, tally, f"decisions[{i}]") for i, record in enumerate(self.decisions)]
        error = None
        if finished.failure is not None:
            error = str(tally.value(finished.failure.summary[:_ERROR_MAX_CHARS], "error"))
        if len(calls) > most:
            metadata["tasksOmitted"] = len(calls) - most
        metadata["hidden"] = dict(tally.hidden)
        metadata["truncated"] = tally.truncated
        trace = msgspec.structs.replace(
            self._skeleton(finished, metadata), error=error, task_results=tasks, decisions=decisions
        )
        return trace_again(trace, tally.cleaner)

    def _skeleton(self, finished: Finished, metadata: dict[str, Any]) -> ExecutionTrace:
        """Build the trace from facts that neither a tool nor a user wrote, so that they need no cleaning."""
        started = self._started
        org, _, project = self._tracer.config.trace_project.partition(".")
        return ExecutionTrace(
            id=started.trace_id,
            parent_id=started.parent_trace_id,
            capability_id=capability_id_of(org, project, self._served, started.tool_name, started.code_hash),
            success=finished.failure is None,
            error=None if finished.failure is None else finished.failure.code,
            duration_ms=max(0.0, finished.duration_ms),
            timestamp=started.timestamp,
            task_results=[],
            decisions=[],
            metadata=metadata,
        )

    def _metadata(self, finished: Finished, tally: _Tally) -> dict[str, Any]:
        started, failure = self._started, finished.failure
        metadata: dict[str, Any] = {
            "tool": started.tool_name,
            "persona": started.persona,
            "revision": started.revision,
            "origin": started.origin,
            "isolation": started.isolation,
            "process": process_of(started.host),
            "arguments": tally.payload(started.arguments, "metadata.arguments"),
        }
        if started.run_id is not None:
            metadata["runId"] = started.run_id
        if self._intent:
            metadata["intent"] = tally.text(self._intent, "metadata.intent")
        if self._tracer.config.trace_raw:
            metadata["raw"] = True
        if failure is not None:
            learn(failure, tally.cleaner)
        else:
            result = self.result if self.result is not None else finished.result_summary or "null"
            return metadata | {"result": tally.payload(result, "metadata.result")}
        return metadata | {
            "errorCode": failure.code,
            "errorType": failure.ename,
            "fingerprint": finished.fingerprint,
            "traceback": tally.text(failure.traceback, "metadata.traceback"),
            "lastOutput": tally.text(finished.last_output, "metadata.lastOutput"),
        }


class _Tally:
    """Cleaner of one trace's payloads, with counts of hidden values (by rule) and cut ones (by place)."""

    def __init__(self, cleaner: Cleaner, limit_bytes: int, room_chars: int) -> None:
        self.cleaner = cleaner.of_record()
        self._limit_bytes = limit_bytes
        self._left_chars = room_chars
        self.hidden: Counter[str] = Counter()
        self.truncated: dict[str, int] = {}

    def value(self, value: object, place: str) -> Any:
        """Clean a value."""
        cleaned = self.cleaner.clean(value, limit_bytes=self._limit_bytes)
        self.hidden.update(cleaned.hidden)
        if cleaned.truncated_from is not None:
            self.truncated.setdefault(place, cleaned.truncated_from)
        return cleaned.value

    def text(self, text: str, place: str) -> str:
        """Clean a record's text that is not JSON."""
        if not text:
            return text
        if (
            len(text) > 4 * self._limit_bytes
        ):  # the end of a traceback says most, but a cut may halve a secret
            self.truncated[place] = len(text)
            text = text[: 4 * self._limit_bytes]
        return str(self.value(text, place))

    def payload(self, text: str, place: str) -> Any:
        """Clean the value of a record's JSON text; None once this trace's payloads are full."""
        self._left_chars -= min(len(text), self._limit_bytes)
        if self._left_chars < 0:
            self.truncated[place] = len(text)
            return None
        value, cut_from = payload_of(text)
        if cut_from is not None:
            self.truncated[place] = cut_from
        hidden = functools.partial(secret_columns, self.cleaner)
        return self.value(values.without_secret_frames(value, hidden), place)


def _task(call: CallRecord, tally: _Tally, place: str) -> TaskResult:
    result: Any = None
    if call.success:
        result = tally.payload(call.result_summary, f"{place}.result")
    elif call.success is not None:
        result = tally.text(f"{call.error_code}: {call.error}", f"{place}.result")
    return TaskResult(
        task_id=call.task_id,
        tool=f"{call.server}:{call.tool}",
        args=tally.payload(call.arguments, f"{place}.args"),
        result=result,
        duration_ms=call.duration_ms,
        success=bool(call.success),
        timestamp=call.started_at,
    )


def _shorter(trace: ExecutionTrace) -> ExecutionTrace:
    """Return the trace with the first half of its decisions and calls, and how many are left out."""
    decisions, tasks = len(trace.decisions) // 2, len(trace.task_results) // 2
    omitted = {
        "decisionsOmitted": len(trace.decisions) - decisions,
        "tasksOmitted": len(trace.task_results) - tasks,
    }
    counted = {key: number + trace.metadata.get(key, 0) for key, number in omitted.items() if number}
    return msgspec.structs.replace(
        trace,
        decisions=trace.decisions[:decisions],
        task_results=trace.task_results[:tasks],
        metadata={**trace.metadata, **counted},
    )


def _decision(record: DecisionRecord, tally: _Tally, place: str) -> BranchDecision:
    node, outcome, condition = (
        str(tally.value(text, place)) if text else ""
        for text in (record.node, record.outcome, record.condition)
    )
    return BranchDecision(
        node[:_DECISION_MAX_CHARS], outcome[:_DECISION_MAX_CHARS], condition[:_CONDITION_MAX_CHARS]
    )
