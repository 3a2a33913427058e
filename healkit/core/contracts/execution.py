"""Execution as data: its records, its outcome, its filters.

`Started` is written before a worker is touched. A `CallRecord` is written when a bridged call begins and again when it
ends. Each branch that the tool reports adds a `DecisionRecord`. `Finished` is the end. All records name the execution
by its trace id, which exists before the row does. So a record that cannot reach the database can wait in a spool file
and still find its row. `ExecutionData` is the result for the caller, new or read from the log. `Filters` select rows of
the log.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from healkit.core.contracts.failure import Failure
from healkit.core.contracts.tools import revision_label
from healkit.errors import UsageInvalid, check_text, is_refused, named

if TYPE_CHECKING:
    from healkit.config import ExplainLevel


#: Maximum length of a `result_summary`, in characters.
SUMMARY_MAX_CHARS = 2000
#: Origins of executions on trial. They are in the log, but do not count in the tool's statistics.
TRIED_ORIGINS = ("trial", "search")
#: Origins that a list shows beside the tool: executions of a healing, a trial or a search.
HEALING_ORIGINS = (*TRIED_ORIGINS, "heal")
#: Name in the log of code that ran on its own, without a tool.
RUN_CODE = "run_code"
#: Limit of the count of executions that a page leaves out; counting this many takes at most 20 ms.
TRIED_COUNTED_MAX = 1_000
#: Limit of the count of traces in one state; an index has to count them one by one.
TRACES_COUNTED_MAX = 5_000
#: Maximum length of the stored arguments, and of the stored result, of a bridged call, in characters.
CALL_MAX_CHARS = 10_000
#: Placeholder in a record for contents that the tool does not log.
NOT_KEPT = "(not kept)"
#: Placeholder where a JSON object or a JSON value is expected.
NOT_KEPT_OBJECT, NOT_KEPT_VALUE = f'{{"…":"{NOT_KEPT}"}}', f'"{NOT_KEPT}"'


#: What a tool may call without a grant: other vault tools and the user's functions, but neither the log nor
#: any MCP server. Providing a function grants it to all tools; connecting a server must not grant everything
#: on that server.
DEFAULT_CALLS = ("vault.*", "host.*")


class Grants(msgspec.Struct, frozen=True, omit_defaults=True):
    """Grants of a tool; stored with the tool, recorded with each execution. Without them, nothing is allowed.

    read, write: Absolute paths.
    calls: `server.tool` patterns, which may end in `*`. None means the default: every vault tool and every host
        function, but neither the log (`healkit.*`) nor MCP servers.
    packages: Installed distributions that the tool can import, with their dependencies, besides those that a worker
        needs. None means all.
    own_grants: Keep these grants if another tool calls this one. Otherwise they are limited to the caller's grants.

    The other fields override the configuration's limits for this tool.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    calls: tuple[str, ...] | None = None
    memory_mb: int | None = None
    cpu_s: int | None = None
    timeout_s: float | None = None
    packages: tuple[str, ...] | None = None
    own_grants: bool = False

    @property
    def call_patterns(self) -> tuple[str, ...]:
        """Patterns of allowed calls; the default if no calls are granted."""
        return DEFAULT_CALLS if self.calls is None else self.calls

    def reading_only(self) -> Grants:
        """Return the grants with every writable path made read-only; the same object if there is none."""
        if not self.write:
            return self
        return msgspec.structs.replace(self, read=(*self.read, *self.write), write=())

    @property
    def starts_cold(self) -> bool:
        """True if its workers cannot be forked, because the fork server has imported packages that they may not see."""
        return self.packages is not None


class HostIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Identity of the process that ran an execution; it shows later whether that process is still alive.

    The system reuses process ids. So the identity includes the start time (clock ticks since boot) and the boot id.
    Containers with the same host name number their processes separately, so it includes `pid_namespace` too, which is
    empty if unknown. `clock` is set on a row whose time differs from the clock of its host; it is that clock's time
    (ISO 8601).
    """

    hostname: str
    boot_id: str
    pid: int
    started_ticks: int
    pid_namespace: str = ""
    clock: str = ""


class Started(msgspec.Struct, frozen=True, tag="started"):
    """Record of an execution, written before it begins.

    deadline: Latest time at which it must have ended.
    run_id: The run that it belongs to, if any.
    client: The MCP client that requested it, with its version and session.
    """

    trace_id: str
    timestamp: datetime
    tool_name: str
    persona: str
    arguments: str
    origin: str
    host: HostIdentity
    deadline: datetime
    parent_trace_id: str | None = None
    revision: int | None = None
    code_hash: str | None = None
    isolation: str | None = None
    grants: Grants = Grants()
    run_id: str | None = None
    client: str | None = None


class CallRecord(msgspec.Struct, frozen=True, tag="call"):
    """Call that a tool made through the bridge, as seen by the host; `success` is None until it ends.

    `task_id` is `t1`, `t2`, … in the order in which the host received the calls. `answered_from` is the trace id of an
    execution whose recorded call answered this one; then the call was not made.
    """

    trace_id: str
    task_id: str
    server: str
    tool: str
    arguments: str
    started_at: datetime
    success: bool | None = None
    result_summary: str = ""
    error_code: str | None = None
    error: str = ""
    duration_ms: float | None = None
    answered_from: str | None = None


class DecisionRecord(msgspec.Struct, frozen=True, tag="decision"):
    """Branch that a tool reported with `trace.decision(node, outcome, condition)`; numbered from 1.

    `after_task` is the last call that the execution had made by then; empty if it had made no call.
    """

    trace_id: str
    number: int
    after_task: str
    node: str
    outcome: str
    condition: str
    decided_at: datetime


class StoredTrace(msgspec.Struct, frozen=True):
    """Trace of an execution in the wire format, stored with the outcome; `send` puts it into the outbox."""

    wire: str
    parent_trace_id: str | None = None
    send: bool = False


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Outcome of an execution: SUCCESS without a failure, else FAILURE. `trace` is None if tracing is off."""

    trace_id: str
    finished_at: datetime
    duration_ms: float
    result_summary: str | None = None
    failure: Failure | None = None
    fingerprint: str | None = None
    last_output: str = ""
    trace: StoredTrace | None = None

    @property
    def status(self) -> str:
        """Status in the log: `SUCCESS` or `FAILURE`."""
        return "SUCCESS" if self.failure is None else "FAILURE"


#: Records between the beginning and the end of an execution.
Step = CallRecord | DecisionRecord
Record = Started | CallRecord | DecisionRecord | Finished
#: Any kind of record: a function that takes one kind returns the same kind.
AnyRecord = TypeVar("AnyRecord", bound=Record)


def new_trace_id() -> str:
    """Return a new UUIDv7 (RFC 9562), which sorts by time."""
    milliseconds = time.time_ns() // 1_000_000
    noise = int.from_bytes(
        os.urandom(10), "big"
    )  # `secrets` imports `random`, which slows down each fork of a trial server
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | (noise >> 68) << 64
    value |= 0b10 << 62 | noise & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def utc_now() -> datetime:
    """Return the current time in UTC, timezone-aware."""
    return datetime.now(UTC)


def escaped(value: object) -> Any:
    """Return a text, or a structure of texts, with characters that cannot be stored written as escapes."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")
    if isinstance(value, dict):
        return {key: escaped(item) for key, item in value.items()}
    return [escaped(item) for item in value] if isinstance(value, list | tuple) else value


# Executions as data, for the caller and from the log.

Held = TypeVar("Held")


class Raw(Generic[Held]):
    """Container of uncleaned data: no face can print or encode it; only `uncleaned` returns the content."""

    __slots__ = ("_held",)

    def __init__(self, held: Held) -> None:
        self._held = held

    @property
    def uncleaned(self) -> Held:
        """Recorded content, including secrets."""
        return self._held

    def __repr__(self) -> str:
        return "<not cleaned>"


@dataclasses.dataclass(frozen=True)
class ExecutionData:
    """Outcome of one tool call: a value or a failure, and its place in the log.

    A result of `Healkit.execute` has the `value` itself. One read from the log has only the summary, and `value` is
    None.

    outputs: nbformat output dicts.
    decisions: Branches that the tool reported.
    conversions: Arguments or parts of the result that arrived as another type.
    warnings: healkit's own notes for the caller.
    grants: Grants in force during the execution.
    run_id: The run whose folder records it, if any.
    client: The MCP client that requested it.
    status: `SUCCESS`, `FAILURE`, or `RUNNING` for a row of the log that has not ended.
    code: The code that ran, if available.
    explained: The level up to which the configuration allows a failure to be explained.

    A failed cell of a notebook has this form too, with the origin `cell`. It ran in the notebook's kernel, not in a
    worker, and is not in the log.
    """

    tool_name: str
    persona: str
    arguments: dict[str, Any]
    status: str
    trace_id: str
    timestamp: datetime
    log_id: int | None = None
    value: Any = None
    failure: Failure | None = None
    result_summary: str | None = None
    outputs: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    calls: list[CallRecord] = dataclasses.field(default_factory=list)
    decisions: list[DecisionRecord] = dataclasses.field(default_factory=list)
    duration_ms: float | None = None
    isolation: str | None = None
    revision: int | None = None
    origin: str = "python"
    last_output: str = ""
    conversions: list[str] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    grants: Grants = Grants()
    run_id: str | None = None
    client: str | None = None
    code: str | None = dataclasses.field(default=None, repr=False)
    explained: ExplainLevel = "fix"

    @property
    def uncleaned(self) -> ExecutionData:
        """Execution with the recorded texts, for running, comparing or storing; never show it."""
        return self

    @property
    def label(self) -> str:
        """Name and revision: `fibonacci v2`, or `fibonacci v2 (teacher)` for another persona."""
        return revision_label(self.tool_name, self.persona, self.revision)

    @property
    def ok(self) -> bool:
        """True if it ended with a value."""
        return self.status == "SUCCESS"

    @property
    def refused(self) -> bool:
        """True for a call that was refused before any code ran: it was wrong, or could not be started."""
        return self.failure is not None and is_refused(self.failure.code)


# Filters of the log.
#
# `Filters` is the only list of filters. The decorator `takes_filters` lets callers of a method also pass each filter by
# name. `parsing.read_filters` reads typed options, and `store.log_pages` translates the filters to SQL.


#: Statuses for filters. The column never contains REFUSED: such a row is a FAILURE with the code of a refused
#: call.
STATUSES = ("SUCCESS", "FAILURE", "REFUSED", "RUNNING")
#: Typed words for a status, as lists and panels show it → the status.
STATUS_WORDS = {
    **{status.casefold(): status for status in STATUSES},
    **dict.fromkeys(("succeeded", "ok", "done", "passed"), "SUCCESS"),
    **dict.fromkeys(("failed", "failures", "error", "errors"), "FAILURE"),
}


def status_of(word: str) -> str:
    """Return the status for a word, in upper or lower case, with or without its mark; other words stay as they are."""
    return STATUS_WORDS.get(word.strip(" ✓✗…").casefold(), word)


#: A time (local if it is naive), a date (local midnight), or either in ISO 8601.
Moment = datetime | date | str

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Filters:
    """Filters that select rows of the log; a row must match all given filters.

    status: `SUCCESS`, `FAILURE`, `REFUSED` or `RUNNING`, in upper or lower case, or as it is shown (`failed`). Refused
        calls are failures too.
    since, until: Bounds of the row's time; `until` is exclusive.
    text: Prefixes of words in the traceback, and phrases in double quotes (`store.log_pages` describes the exact
        match).
    trace: The execution with this trace id, and its calls of other tools.
    fingerprint: Failures with this fingerprint.
    run: Executions of this run.
    origin: Who requested the execution, such as `magic` or `trial`.
    tried: Whether to include trials and searches; selecting their origin always includes them.
    refused: Whether to include calls that were refused before any code ran; selecting that status always includes them.
    """

    status: str | None = None
    tool: str | None = None
    persona: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    text: str | None = None
    trace: str | None = None
    fingerprint: str | None = None
    run: str | None = None
    origin: str | None = None
    tried: bool = True
    refused: bool = True

    def __post_init__(self) -> None:
        """Convert a shown status to the stored one; write characters as they are stored (`records.storable`)."""
        for name in ("status", "tool", "persona", "text", "trace", "fingerprint", "run", "origin"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        if self.status is not None:
            object.__setattr__(self, "status", status_of(self.status))
        for name in ("since", "until"):
            value = getattr(self, name)
            if not isinstance(value, date | str | None):
                raise UsageInvalid(f"{name} must be a time or a date, not {named(value)}.")
        for name in ("tool", "persona", "text", "trace", "fingerprint", "run", "origin"):
            value = getattr(self, name)
            if value is not None and (not value.isascii() or "\x00" in value):
                object.__setattr__(self, name, escaped(value))

    @property
    def leaves_out_tried(self) -> bool:
        """True if trials and searches are excluded."""
        return not self.tried and self.origin not in TRIED_ORIGINS

    @property
    def leaves_out_refused(self) -> bool:
        """True if calls that were refused before any code ran are excluded."""
        return not self.refused and self.status != "REFUSED"

    @property
    def given(self) -> dict[str, Any]:
        """Return the filters that have a value, by name, without `tried` and `refused`."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: value for name, value in values.items() if value is not None and not isinstance(value, bool)
        }


#: Names of all filters.
FILTER_NAMES = tuple(field.name for field in dataclasses.fields(Filters))
#: Filters that groups of failures and summaries of tools accept.
GROUP_FILTERS = ("status", "tool", "persona", "since", "until", "fingerprint")
SUMMARY_FILTERS = ("tool", "persona", "since", "until")


def takes_filters(*names: str, **defaults: Any) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a method with a keyword `filters` also take each filter by name, and list the names in its signature.

    names: The accepted filters, all by default. defaults: Values of filters that are not given. The method raises
    `TypeError` for any other name.
    """
    filter_names = names or FILTER_NAMES

    def decorate(method: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(method)
        def with_filters(
            self: object, *args: object, filters: Filters | None = None, **options: Any
        ) -> Result:
            named = {name: options.pop(name) for name in filter_names if name in options}
            chosen = dataclasses.replace(filters or Filters(**defaults), **named)
            if beyond := sorted(chosen.given.keys() - set(filter_names)):
                raise TypeError(
                    f"{method.__name__}() takes no filter {beyond[0]!r}, only {', '.join(filter_names)}"
                )
            return method(self, *args, filters=chosen, **options)

        signature = inspect.signature(method)
        parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "filters"]
        filter_parameters = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(field.name, field.default),
                annotation=field.type,
            )
            for field in dataclasses.fields(Filters)
            if field.name in filter_names
        ]
        before = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        after = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
        with_filters.__signature__ = signature.replace(parameters=[*before, *filter_parameters, *after])  # type: ignore[attr-defined]  # read by inspect.signature
        return with_filters

    return decorate


# Counts of executions: groups of failures, summaries of tools.


@dataclasses.dataclass(frozen=True)
class GroupInfo:
    """Group of equal failures; the ids are rows of the log.

    first_revision, last_revision: First and last revision that failed in this way; None if the call was refused before
        its revision was known.
    cured_by: Revision that cured the failure; None if there is none yet.
    """

    fingerprint: str
    tool_name: str
    persona: str
    count: int
    first_seen: datetime
    last_seen: datetime
    first_log_id: int
    last_log_id: int
    first_revision: int | None
    last_revision: int | None
    cured_by: int | None
    ename: str
    evalue: str

    @property
    def summary(self) -> str:
        """Exception and message of the last failure, such as `KeyError: 'x'`."""
        return f"{self.ename}: {self.evalue}" if self.evalue else self.ename


@dataclasses.dataclass(frozen=True)
class ToolSummary:
    """Statistics of finished executions; None in each column that they are not grouped by.

    The revision of refused calls is None, too.

    runs: Number of all executions.
    failures: Number of executions whose code failed.
    refused: Number of calls that were refused before any code ran.
    mean_ms: Exact mean duration.
    p50_ms, p95_ms: Upper ends of the classes that contain the median and the 95th percentile of the duration. None if
        no duration is recorded; infinite above 1,000,000,000 ms.
    """

    tool_name: str
    runs: int
    failures: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    persona: str | None = None
    revision: int | None = None
    day: date | None = None
    refused: int = 0

    @property
    def failure_rate(self) -> float:
        """Share of failures among the executions that were not refused, from 0 to 1; 0 if there are no executions."""
        return self.failures / max(self.runs - self.refused, 1)


@dataclasses.dataclass(frozen=True)
class Ran:
    """Finished execution, reduced to what a plot shows."""

    timestamp: datetime
    failed: bool
    revision: int | None
    duration_ms: float | None
