"""Events of an execution, and the interface of its receivers.

An event is emitted once, where it happens, through the execution's `Recording`. The receivers get it in this order, and
each guarantees something:

- the log: the RUNNING row is committed before a worker gets work; a call is in the journal before it is made;
- the trace: made from the log's records, and committed in one transaction with the end of the row; then OpenTelemetry;
- the `Sink` of the run, or of the retries, that the execution belongs to: `runs.RunStep` writes the run folder;
- the audit chain: takes each event that the run's journal has written (`run_audit`), and is committed with the step.

Contents that a tool does not log are removed before any receiver gets the event. An error in a sink never reaches the
tool.
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
    """Other code will be tried in place of `base`, the stored entry."""

    base: VaultEntry
    code: str


@dataclasses.dataclass(frozen=True)
class Judged:
    """Result of the check of that code; `fault` says why it cannot run as this tool."""

    fault: HealkitError | None


@dataclasses.dataclass(frozen=True)
class Found:
    """Event: the tool was found, and its code matches its hash."""

    entry: VaultEntry


@dataclasses.dataclass(frozen=True)
class Prepared:
    """The call passed all checks; emitted before its row is written."""

    timeout_s: float
    mode: str


@dataclasses.dataclass(frozen=True)
class Running:
    """The RUNNING row is committed, with the id `log_id` (None if it is in the spool); the worker is next."""

    log_id: int | None


@dataclasses.dataclass(frozen=True)
class Acted:
    """A tool with side effects is called, by the execution or by one that it called; emitted before its end."""


@dataclasses.dataclass(frozen=True)
class Ended:
    """End of the execution.

    ran: False if it was refused, had no worker, or was cancelled from outside.
    encoded: Its whole value as JSON; None if there is none.
    """

    finished: Finished
    ran: bool = False
    encoded: str | None = None
    outputs: Sequence[dict[str, Any]] = ()
    calls: Sequence[CallRecord] = ()


Event = Proposed | Judged | Found | Prepared | Running | Acted | Ended


class Sink:
    """Receiver of one execution's events, on any thread; this class ignores them.

    run_id: The run that the execution is a step of.
    problem: What could not be recorded.
    attempts: Log rows of the earlier attempts; None for one that is not in the database yet.
    retry_in_s: Pause before the next attempt, in seconds; None if the policy allows none.
    """

    run_id: str | None = None
    problem: str = ""
    attempts: tuple[int | None, ...] = ()
    retry_in_s: float | None = None

    def admit(self, tool_name: str) -> None:
        """Admit the step; called before anything else. Raises `PolicyHalted` or `RunNotAllowed` if it may not start."""

    def take(self, started: Started, event: Event) -> None:
        """Take an event, with the record of the beginning as far as it is known; never raises."""

    def next_try(self) -> Sink:
        """Return the sink of the next attempt; called when the pause is over."""
        return self


#: Sink of an execution that does not belong to a run.
UNRECORDED = Sink()

#: Role of an execution in a run: a call, other code in place of a tool, or a repeated call.
StepKind = Literal["run", "try", "rerun"]


class OpenRun(Protocol):
    """Open run, which an execution can be added to as a step."""

    @property
    def run_id(self) -> str:
        """Its id, which is the name of its folder."""
        ...


class RetryPolicy(Protocol):
    """Policy of retries: how often an action is repeated after a temporary fault, and after which pauses."""

    @property
    def retries_per_action(self) -> int:
        """Maximum number of retries."""
        ...

    @property
    def backoff_ms(self) -> tuple[int, ...]:
        """Pauses before the first, second and further retries, in milliseconds."""
        ...


class Steps:
    """Source of sinks, one for each execution; this class returns sinks that ignore everything.

    A part that records runs, or retries, replaces it with a subclass (`hooks.Specs.steps`).
    """

    @contextmanager
    def step(
        self,
        record: bool | OpenRun | None,
        kind: StepKind = "run",
        earlier: Finished | None = None,
        retry: bool | RetryPolicy = False,
    ) -> Iterator[Sink]:
        """Return the sink for one execution: for a step of a run, a new run, retries without a run, or nothing.

        record: A run, or whether to make one. None takes the run around the caller, or else follows `record_runs`.
        earlier: The ending that the execution repeats.
        retry: Policy outside of a run, or whether to retry.

        Raises `UsageInvalid` for a combination that is not possible here.
        """
        if record or retry:
            raise UsageInvalid(
                "Runs and retries are not installed here.", hint="Leave out record= and retry=."
            )
        yield UNRECORDED


# Calls are recorded as `CallRecord`s, when they begin and when they end; `on_call` gets an event for each.


class CallEvent(msgspec.Struct, frozen=True):
    """Beginning or end of a call through the bridge, as seen by the host.

    `tool` is `server.name`, `trace_id` the execution that makes the call, and `task_id` the call's number in it (`t1`).
    `success`, `error_code` and `duration_ms` are only set for `tool_end`.
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
    """Return a `record` that also sends each recorded call to `on_call`; called by the executor."""

    def tell(step: Step) -> None:
        record(step)
        if isinstance(step, CallRecord):
            with suppress(Exception):  # an error of the listener must not change how a call ends
                on_call(event_of(step))

    return tell


def event_of(call: CallRecord) -> CallEvent:
    """Return the event for this state of a call."""
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
    """Return the events of recorded calls; a call without an ending only has a beginning."""
    events: list[CallEvent] = []
    for call in calls:
        events.append(event_of(msgspec.structs.replace(call, success=None)))
        if call.success is not None:
            events.append(event_of(call))
    return sorted(events, key=lambda event: event.time)
