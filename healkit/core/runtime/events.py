"""Events of an execution, and the interface of its receivers.

An event is emitted once, where it happens, through the execution's `Recording`. Its sinks take it in this order, and
each has a promise of its own:

- the log: the RUNNING row is committed before a worker gets work, a call is in the journal before it is made;
- the trace: made of what the log says, and committed in one transaction with the row's end; then OpenTelemetry;
- the `Sink` of the run, or of the retries, that the execution is a part of: `runs.RunStep` writes the run folder;
- the audit chain: takes each event that the run's journal has written (`run_audit`), and is committed with the step.

What a tool keeps off the record is taken out before any of them sees it. No mistake of a sink reaches the tool.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from healkit.core.contracts.execution import CallRecord, Finished, Started, Step
from healkit.errors import UsageInvalid

if TYPE_CHECKING:
    from healkit.core.contracts.vault import VaultEntry
    from healkit.errors import HealkitError


@dataclasses.dataclass(frozen=True)
class Proposed:
    """Other code than that of `base`, the stored entry, is to be tried in its place."""

    base: VaultEntry
    code: str


@dataclasses.dataclass(frozen=True)
class Judged:
    """Whether that code can be run as this tool: `fault` says why not."""

    fault: HealkitError | None


@dataclasses.dataclass(frozen=True)
class Found:
    """Presence of the tool: it was found, and its code has its hash."""

    entry: VaultEntry


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Clearance of the call: it passed all checks; emitted before its row is written."""

    timeout_s: float
    mode: str


@dataclasses.dataclass(frozen=True)
class Running:
    """Commit of the RUNNING row, whose id is `log_id`, None where it is in the spool; the worker comes next."""

    log_id: int | None


@dataclasses.dataclass(frozen=True)
class Acted:
    """Call of a tool with side effects, by the execution itself or through others; emitted before its end."""


@dataclasses.dataclass(frozen=True)
class Ended:
    """End of the execution.

    ran: False for one that was refused, had no worker, or was cancelled from outside. encoded: its
    whole value as JSON, None where there is none.
    """

    finished: Finished
    ran: bool = False
    encoded: str | None = None
    outputs: Sequence[dict[str, Any]] = ()
    calls: Sequence[CallRecord] = ()


Event = Proposed | Judged | Found | Prepared | Running | Acted | Ended


class Sink:
    """Receiver of one execution's events, on any thread; this one discards them.

    `run_id` is the run that the execution is a step of, `problem` says what of it could not be recorded. `attempts` are
    the log rows of the tries before this one, None for one that is not in the database yet; `retry_in_s` is the pause
    before another try that the policy has granted, None where the outcome stands.
    """

    run_id: str | None = None
    problem: str = ""
    attempts: tuple[int | None, ...] = ()
    retry_in_s: float | None = None

    def admit(self, tool_name: str) -> None:
        """Admit the step; called before anything else. Raises `PolicyHalted` or `RunNotAllowed` if it may not begin."""

    def take(self, started: Started, event: Event) -> None:
        """Take an event, with the record of the beginning as far as it is known; raises nothing."""

    def next_try(self) -> Sink:
        """Return the sink of that other try; called when the pause is over."""
        return self


#: For an execution that is no step of a run.
UNRECORDED = Sink()

#: What an execution is in a run: a call, other code in a tool's place, or an earlier call again.
StepKind = Literal["run", "try", "rerun"]


class OpenRun(Protocol):
    """Run that goes on; an execution can be made a step of it."""

    @property
    def run_id(self) -> str:
        """Its id, the name of its folder."""
        ...


class RetryPolicy(Protocol):
    """Policy of retries: how often an action that failed by a passing fault is tried again, after which pauses."""

    @property
    def retries_per_action(self) -> int:
        """Number of retries."""
        ...

    @property
    def backoff_ms(self) -> tuple[int, ...]:
        """Pauses before the first, second and further retries, in milliseconds."""
        ...


class Steps:
    """Giver of sinks, one for each execution; this one gives the one that discards everything.

    A part that records runs, or tries again, puts a subclass in its place (`hooks.Specs.steps`).
    """

    @contextmanager
    def step(
        self,
        record: bool | OpenRun | None,
        kind: StepKind = "run",
        earlier: Finished | None = None,
        retry: bool | RetryPolicy = False,
    ) -> Iterator[Sink]:
        """Give one execution its sink: a step of a run, a run of its own, retries without one, or none.

        record: a run, whether to make one, or None: the run around the caller, else as `record_runs` says. earlier: the
        ending that the execution repeats. retry: the policy where there is no run yet, or whether there is one. Raises
        `UsageInvalid` for what cannot be had here.
        """
        if record or retry:
            raise UsageInvalid(
                "Runs and retries are not installed here.", hint="Leave out record= and retry=."
            )
        yield UNRECORDED


# Calls are on record as `CallRecord`s, at their beginning and at their end; `on_call` hears of each of them.


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


def announcing(on_call: OnCall, record: Callable[[Step], None]) -> Callable[[Step], None]:
    """Return `record`, which then tells `on_call` of each call it has recorded; called by the executor."""

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
