"""Execution as data: its records, its outcome, its filters.

`Started` is written before a worker is touched, one `CallRecord` as each bridged call begins and once more as it ends,
a `DecisionRecord` for each branch that the tool reports, `Finished` at the end. All of them name the execution by its
trace id, which exists before the row does, so that a record that cannot reach the database can wait in a spool file and
still find its row. `ExecutionData` is what the caller gets, fresh or read back from the log; `Filters` say which rows
of the log are meant.
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


#: The longest `result_summary`, in characters.
SUMMARY_MAX_CHARS = 2000
#: Origins of executions that only try code out. They are on record, but do not count for how the tool fares.
TRIED_ORIGINS = ("trial", "search")
#: Origins that a list names beside the tool: runs that a healing, a trial or a search made.
HEALING_ORIGINS = (*TRIED_ORIGINS, "heal")
#: Name in the log of code that was run alone, in no tool's place.
RUN_CODE = "run_code"
#: The highest count of executions that a page leaves out: counting goes on for 20 ms at most.
TRIED_COUNTED_MAX = 1_000
#: Traces of one state are counted up to here: an index has to count them one by one.
TRACES_COUNTED_MAX = 5_000
#: The longest arguments, and the longest result, that are kept of a bridged call, in characters.
CALL_MAX_CHARS = 10_000
#: Stands in a record for contents that its tool keeps off it.
NOT_KEPT = "(not kept)"
#: The same where a JSON object or a JSON value is expected.
NOT_KEPT_OBJECT, NOT_KEPT_VALUE = f'{{"…":"{NOT_KEPT}"}}', f'"{NOT_KEPT}"'


#: What a tool may call without a grant: other vault tools and the user's functions, but neither the log nor any MCP
#: server. Providing a function is a grant of that function; connecting a server must not be one of all it can do.
DEFAULT_CALLS = ("vault.*", "host.*")


class Grants(msgspec.Struct, frozen=True, omit_defaults=True):
    """Grants of a tool beyond the default of nothing; stored with the tool, recorded with each execution.

    `read` and `write` are absolute paths. `calls` are `server.tool` patterns, `*` at the end allowed; None means
    the default: every vault tool and every host function, but neither the log (`healkit.*`) nor MCP servers.
    `packages` are the installed distributions it sees, with all they depend on, besides what a worker itself needs;
    None means all. `own_grants` lets the tool keep these grants when another tool calls it, which otherwise narrows
    them to the caller's. The rest override the configuration's limits for this tool.
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
        """Patterns of what may be called; the default where nothing else is granted."""
        return DEFAULT_CALLS if self.calls is None else self.calls

    def reading_only(self) -> Grants:
        """Return the same grants with the folders that may be written only readable; itself where there are none."""
        if not self.write:
            return self
        return msgspec.structs.replace(self, read=(*self.read, *self.write), write=())

    @property
    def starts_cold(self) -> bool:
        """True when its workers cannot be forked: the fork server has imported what they must not see."""
        return self.packages is not None


class HostIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Identity of the process that ran it, exact enough to know later whether that process is alive.

    The system uses process ids again, so the start time (clock ticks since boot) and the boot id go with it. Containers
    of one host name count their processes each for itself, so `pid_namespace` goes with it too; empty where it is not
    known. `clock` is on a row whose time is not what the clock of its host said, and is what it said (ISO 8601).
    """

    hostname: str
    boot_id: str
    pid: int
    started_ticks: int
    pid_namespace: str = ""
    clock: str = ""


class Started(msgspec.Struct, frozen=True, tag="started"):
    """Write-ahead record of an execution.

    `deadline` is when it must have ended at the latest; `run_id` names the run it is part of, where it is; `client` is
    the MCP client that asked for it, with its version and session.
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
    """Call that a tool made through the bridge, as the host saw it; `success` is None until it has ended.

    `task_id` is `t1`, `t2`, … in the order in which the host received them. `answered_from` is the trace id of the
    execution whose recorded call answered it: such a call was not made.
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
    """Branch that a tool reported, `trace.decision(node, outcome, condition)`; numbered from 1.

    `after_task` is the last call that the execution had made by then, empty where it had made none.
    """

    trace_id: str
    number: int
    after_task: str
    node: str
    outcome: str
    condition: str
    decided_at: datetime


class StoredTrace(msgspec.Struct, frozen=True):
    """Trace of an execution in its wire form, stored with the outcome; `send` puts it into the outbox."""

    wire: str
    parent_trace_id: str | None = None
    send: bool = False


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Outcome of an execution: SUCCESS without a failure, FAILURE with one. `trace` is None with tracing off."""

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


#: Records between an execution's beginning and its end.
Step = CallRecord | DecisionRecord
Record = Started | CallRecord | DecisionRecord | Finished
#: One kind of record, whichever: a function that takes one returns the same kind.
AnyRecord = TypeVar("AnyRecord", bound=Record)


def new_trace_id() -> str:
    """Make a UUIDv7 (RFC 9562): sortable by time, made before the execution starts."""
    milliseconds = time.time_ns() // 1_000_000
    noise = int.from_bytes(
        os.urandom(10), "big"
    )  # `secrets` loads `random`, which costs each fork of a trial server
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | (noise >> 68) << 64
    value |= 0b10 << 62 | noise & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def utc_now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


def escaped(value: object) -> Any:
    """Return a text, or every text in a structure, with the characters that cannot be stored written as escapes."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")
    if isinstance(value, dict):
        return {key: escaped(item) for key, item in value.items()}
    return [escaped(item) for item in value] if isinstance(value, list | tuple) else value


# Execution as data, for its caller and from the log.

Held = TypeVar("Held")


class Raw(Generic[Held]):
    """Box of what is not cleaned: no face can print or encode it; `uncleaned` is the only way in."""

    __slots__ = ("_held",)

    def __init__(self, held: Held) -> None:
        self._held = held

    @property
    def uncleaned(self) -> Held:
        """Content as it was recorded, with every secret in it."""
        return self._held

    def __repr__(self) -> str:
        return "<not cleaned>"


@dataclasses.dataclass(frozen=True)
class ExecutionData:
    """Outcome of one tool call: a value or a failure, and its place on record.

    Fresh from `Healkit.execute` it holds the `value` itself; read back from the log it holds the summary only, and
    `value` is None. `outputs` are nbformat output dicts. `decisions` are the branches that the tool reported.
    `conversions` says what of the arguments or the result arrived as what it holds. `warnings` are healkit's own: what
    else the caller should know. `grants` are those it ran with. `run_id` is the run whose folder records it, if one
    does; `client` the MCP client that asked for it. `status` is `SUCCESS`, `FAILURE`, or `RUNNING` for a row of the log
    that has not ended. `code` is the code that ran, where it is at hand. `explained` is how far the configuration lets
    a failure be explained. A failing cell of a notebook's own has this form too, with the origin `cell`: it ran in that
    notebook's kernel, not in a worker, and is in no log.
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
        """Execution with the texts as they were recorded: for what runs, compares or stores it, never to be shown."""
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


# Filters of the log: which executions are meant.
#
# `Filters` is the one list of them. A method that takes it is decorated with `takes_filters`, so that a caller may also
# give each by name; `parsing.read_filters` reads options as people type them, and `store.log_pages` makes SQL of them.


#: What executions are chosen by. The column has no REFUSED: such a row is a FAILURE with the code of a refused call.
STATUSES = ("SUCCESS", "FAILURE", "REFUSED", "RUNNING")
#: Words that people type for a status, as lists and panels show it → the status.
STATUS_WORDS = {
    **{status.casefold(): status for status in STATUSES},
    **dict.fromkeys(("succeeded", "ok", "done", "passed"), "SUCCESS"),
    **dict.fromkeys(("failed", "failures", "error", "errors"), "FAILURE"),
}


def status_of(word: str) -> str:
    """Return the status that a word stands for, in any case and with its mark; another word as it is."""
    return STATUS_WORDS.get(word.strip(" ✓✗…").casefold(), word)


#: An aware time (a naive one is local), a date (local midnight), or either in ISO 8601.
Moment = datetime | date | str

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Filters:
    """Choice of rows of the log; all filters that are given must hold.

    status: `SUCCESS`, `FAILURE`, `REFUSED` or `RUNNING`, in any case, or as it is shown (`failed`). The refused
    calls are among the failures.
    since, until: the row's time; until is exclusive.
    text: words in the traceback, each from its beginning, and phrases in double quotes (`store.log_pages` says exactly
    what matches). trace: that execution and the calls it made of other tools. fingerprint: failures of that kind.
    run: all executions of that run. origin: who asked for it, such as `magic` or `trial`. tried: whether executions
    that only try code out (trials, searches) are meant too; naming their origin includes them in any case. refused:
    whether calls that were refused before any code ran are meant too; naming that status includes them in any case.
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
        """Read a status as lists and panels show it; write characters as they are stored (`records.storable`)."""
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
        """True when executions that only try code out are not meant."""
        return not self.tried and self.origin not in TRIED_ORIGINS

    @property
    def leaves_out_refused(self) -> bool:
        """True when calls that were refused before any code ran are not meant."""
        return not self.refused and self.status != "REFUSED"

    @property
    def given(self) -> dict[str, Any]:
        """Filters with a value, by name, without `tried` and `refused`."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: value for name, value in values.items() if value is not None and not isinstance(value, bool)
        }


#: The names of all filters.
FILTER_NAMES = tuple(field.name for field in dataclasses.fields(Filters))
#: The filters that groups of failures, and sums of a tool's executions, can be chosen by.
GROUP_FILTERS = ("status", "tool", "persona", "since", "until", "fingerprint")
SUMMARY_FILTERS = ("tool", "persona", "since", "until")


def takes_filters(*names: str, **defaults: Any) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a method with a keyword `filters` also take each filter by name, and show the names in its signature.

    names: the filters that it takes, all by default. defaults: values of filters that are not given. The method
    raises `TypeError` for any other name.
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


# Counts of executions: groups of failures, sums of tools.


@dataclasses.dataclass(frozen=True)
class GroupInfo:
    """Group of equal failures; ids are of rows of the log.

    `first_revision` is the first that failed so, `last_revision` the last, `cured_by` the one that has cured it; None
    where a call was refused before a revision was known, or while nothing has cured it.
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
        """Exception and message of the last failure: `KeyError: 'x'`."""
        return f"{self.ename}: {self.evalue}" if self.evalue else self.ename


@dataclasses.dataclass(frozen=True)
class ToolSummary:
    """Sum of finished executions; a column that they were not summed by is None, as is the revision of refused calls.

    `runs` counts all of them, `failures` those of code, `refused` the calls that were refused before any code ran.
    `mean_ms` is exact; half of the runs took at most `p50_ms`, 95 % at most `p95_ms` (upper ends of classes; None
    where no duration is on record, infinite over 1,000,000,000 ms).
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
        """Share of failures among the runs that were not refused, from 0 to 1; 0 where there is none."""
        return self.failures / max(self.runs - self.refused, 1)


@dataclasses.dataclass(frozen=True)
class Ran:
    """Finished execution, as far as a plot shows it."""

    timestamp: datetime
    failed: bool
    revision: int | None
    duration_ms: float | None
