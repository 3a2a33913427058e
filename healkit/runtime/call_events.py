"""Events of a tool's calls, live and from the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from healkit.contracts.execution import CallRecord, Step


class CallEvent(msgspec.Struct, frozen=True):
    """Beginning or end of a call through the bridge, as the host saw it.

    `tool` is `server.name`, `trace_id` the execution that makes the call, and `task_id` the call's place in it (`t1`).
    `success`, `error_code` and `duration_ms` are those of a `tool_end`.
    """

    type: Literal["tool_start", "tool_end"]
    trace_id: str
    task_id: str
    tool: str
    time: datetime
    success: bool | None = None
    error_code: str | None = None
    duration_ms: float | None = None


OnCall = Callable[[CallEvent], object]


def announcing(on_call: OnCall | None, record: Callable[[Step], None]) -> Callable[[Step], None]:
    """Return `record`, which then tells `on_call` of each call it has recorded; called by the executor."""
    if on_call is None:
        return record

    def tell(step: Step) -> None:
        record(step)
        if isinstance(step, CallRecord):
            with suppress(Exception):  # the listener's own affair: it must not change how a call ends
                on_call(event_of(step))

    return tell


def event_of(call: CallRecord) -> CallEvent:
    """Return the event that this state of a call is."""
    tool, took_ms = f"{call.server}.{call.tool}", call.duration_ms or 0.0
    if call.success is None:
        return CallEvent("tool_start", call.trace_id, call.task_id, tool, call.started_at)
    return CallEvent(
        "tool_end",
        call.trace_id,
        call.task_id,
        tool,
        call.started_at + timedelta(milliseconds=took_ms),
        call.success,
        call.error_code,
        call.duration_ms,
    )


def events_of(calls: Iterable[CallRecord]) -> list[CallEvent]:
    """Return the events of calls as their records have them; a call without an ending has a beginning only."""
    events: list[CallEvent] = []
    for call in calls:
        events.append(event_of(msgspec.structs.replace(call, success=None)))
        if call.success is not None:
            events.append(event_of(call))
    return sorted(events, key=lambda event: event.time)
