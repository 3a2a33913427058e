"""Execution path: from a call to a recorded outcome.

call ─► vault entry (hash checked) ─► arguments checked ─► RUNNING row ─► tier ─► worker or SQL ─► finished row

A refused call (unknown tool, wrong arguments, tampered code, no isolation) is a finished row too. Every execution of a
tool uses `Executor.perform`. Only the trials of a search, which have no kernel and make no calls, run in
`parts/trials/trials.py`; the same recorder records them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, get_args

import msgspec

from healkit.config import MIB, Config, Mode
from healkit.core.contracts.cassette import NAME_IT_HINT, not_run
from healkit.core.contracts.execution import CallRecord, Finished, Grants, Started, new_trace_id, utc_now
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.rpc import CELL_VALUE, ExecutionComplete, Init
from healkit.core.contracts.tools import ToolDefinition, Withheld
from healkit.core.contracts.vault import UNTRUSTED_GRANTS, VaultEntry
from healkit.core.crossing import regions, values
from healkit.core.host import host_identity
from healkit.core.pysource.shapes import parse
from healkit.core.runtime.calls import (
    CALLS_MAX,
    CallContext,
    Caller,
    CallRouter,
    Provider,
    Replay,
    allows,
    bounded,
    unaccepted,
)
from healkit.core.runtime.contents import Contents, Side
from healkit.core.runtime.events import (
    UNRECORDED,
    Acted,
    Found,
    Judged,
    OnCall,
    OpenRun,
    Prepared,
    Proposed,
    RetryPolicy,
    Sink,
    StepKind,
    announcing,
)
from healkit.core.runtime.execution import Execution
from healkit.core.runtime.outcomes import (
    NO_ISOLATION,
    conclude,
    end_of,
    fault_of,
    interruption_of,
    refusal_of,
)
from healkit.core.runtime.recording import Recorder, Recording
from healkit.core.secrets.cleaner import HEAD_CHARS, WHOLE_MAX_CHARS
from healkit.core.store.arguments import PackedArguments, pack_arguments, validate_arguments
from healkit.core.store.entries import EntryLookup, code_hash
from healkit.core.store.sql_tools import READ_LOG, SqlFailed, run_sql
from healkit.core.store.trust import WITHOUT_GRANTS
from healkit.core.wire.encoding import to_jsonable
from healkit.core.wire.record_text import summarize_json
from healkit.core.workers.process import library_of, off_loop, surely
from healkit.core.workers.sandbox import Tier
from healkit.core.workers.tiers import achieved_tier
from healkit.core.workers.worker import OnOutput, Outcome
from healkit.errors import (
    ArgumentsInvalid,
    ConfigError,
    HealkitError,
    InternalError,
    ToolRemoved,
    WorkerNotRestricted,
    check_text,
    named,
)
from healkit.plain_text import count

if TYPE_CHECKING:
    from healkit.core.workers.kernel import KernelWorker
    from healkit.core.workers.pool import Pool
    from healkit.core.workers.worker import SubprocessWorker

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
#: SQL tools run in the host, on a read-only connection.
SQL_ISOLATION = "read-only connection"
#: Longest wait for the records of calls whose answers the worker already had, in seconds.
_SETTLE_S = 5.0
_NULL = msgspec.Raw(b"null")
#: Runs a tool without a bridge, in place of its own worker; raises the errors of a worker's start.
Place = Callable[[Init, Tier], Awaitable[Outcome]]
_NOT_DRAINED = "Some of what the tool displayed may be missing: its worker did not send it in time."


@dataclasses.dataclass(frozen=True)
class ExecutionRequest:
    """Call of a tool, created once by its caller and passed on unchanged.

    timeout_s: Wall time in seconds.
    on_output: Gets nbformat output dicts as they arrive.
    on_call: Gets a `CallEvent` when a call begins and when it ends.
    code: Candidate code to run in place of the stored code, without saving it.
    within: Grants of a nested execution that is repeated.
    parent: Execution that makes a nested call; it limits what the tool may do.
    record, kind, earlier, retry: As in `Steps.step`.
    replay: Answers the calls from a record; then writable folders are read-only.
    files: For code that no one has accepted: the only granted paths that it may read. None gives the code all grants.
    foreign: Tool that the code belongs to, if it is not in the vault.
    client: MCP client that requests it, for the record.
    alone: Run the code like a notebook cell, not as a tool; its value is that of its last expression.
    place: Runs a tool that `fits_place`; other tools have their own worker.

    Raises `ConfigError` for an invalid mode or time, `UsageInvalid` for a name or a persona that is not a text.
    """

    tool_name: str
    persona: str = "default"
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    timeout_s: float | None = None
    mode: Mode | None = None
    origin: str = "python"
    on_output: OnOutput | None = None
    on_call: OnCall | None = None
    code: str | None = None
    within: Grants | None = None
    parent: CallContext | None = None
    record: bool | OpenRun | None = None
    kind: StepKind = "run"
    earlier: Finished | None = None
    retry: bool | RetryPolicy = False
    replay: Replay | None = None
    files: tuple[str, ...] | None = None
    foreign: VaultEntry | None = None
    client: str | None = None
    alone: bool = False
    place: Place | None = None

    def __post_init__(self) -> None:
        check_text("tool_name", self.tool_name)
        check_text("persona", self.persona)
        if self.mode not in (None, *get_args(Mode)):
            raise ConfigError(f"mode={self.mode!r} is not one of {', '.join(get_args(Mode))}.")
        timeout_s = self.timeout_s
        if timeout_s is not None and not (isinstance(timeout_s, int | float) and timeout_s > 0):
            raise ConfigError(f"timeout={named(timeout_s)} must be greater than 0 seconds.")


@dataclasses.dataclass
class _Call:
    """A request with its record and everything needed to run it; `calls` is set once it has ended.

    granted: Grants of the tool, while code that no one has accepted runs in its place with less.
    withheld: Granted files that this code may not read.
    untrusted: The database is untrusted, so that the tool runs without its grants.
    """

    request: ExecutionRequest
    recording: Recording
    entry: VaultEntry
    arguments: PackedArguments
    timeout_s: float
    mode: Mode
    granted: Grants
    withheld: Withheld
    calls: list[CallRecord] = dataclasses.field(default_factory=list)
    untrusted: bool = False

    @property
    def prepared(self) -> Prepared:
        """Event that the call passed all checks."""
        return Prepared(self.timeout_s, self.mode)


def fits_place(entry: VaultEntry) -> bool:
    """Return whether a tool makes no calls and uses no files, so that it does not need its own worker."""
    grants = entry.grants
    return not (entry.type == "sql" or "mcp" in entry.code or entry.acts or grants.read or grants.starts_cold)


class Executor:
    """Executes vault entries; each `Healkit` has one. `providers` may grow during its life.

    grants_in_force: Turns a tool's stored grants into those that apply here and now; raises `ConfigError`.
    """

    def __init__(
        self,
        vault: EntryLookup,
        recorder: Recorder,
        config: Config,
        database_url: str,
        pool: Callable[[], Pool],
        contents: Contents,
        grants_in_force: Callable[[Grants], Grants] = lambda stored: stored,
    ) -> None:
        self.providers: dict[str, Provider] = {}
        self._vault = vault
        self._recorder = recorder
        self._config = config
        self._database_url = database_url
        self._pool = pool
        self._contents = contents
        self.grants_in_force = grants_in_force
        #: Result of the probe; None until the first execution has waited for it.
        self._tier: Tier | None = None

    async def perform(
        self,
        request: ExecutionRequest,
        sink: Sink = UNRECORDED,
        on_output: OnOutput | None = None,
        stop: asyncio.Event | None = None,
    ) -> Execution:
        """Run one tool and return its recorded outcome; `on_output` gets its outputs, `stop` ends it.

        Raises a `HealkitError` if the call was wrong or no worker could be started; that is recorded too, under the
        error's `log_id`. It never raises for what the tool does.
        """
        try:
            recording = Recording(
                self._recorder,
                _started(request, sink.run_id),
                sink,
                leaves_out=lambda tool: self._vault.leaves_out(tool, request.persona),
            )
        except Exception as error:
            raise InternalError.of(error) from error
        call = None
        try:
            call = await self._written(request, self._prepare, request, recording)
            if recording.started.isolation is None:
                # The import runs while the next line waits for the probe.
                loading = asyncio.create_task(asyncio.to_thread(_load_workers))
                await surely(self._find_tier, call)
                await loading
            if (failure := self._not_run(call)) is not None:
                return await self._conclude(call, Outcome("complete"), None, failure)
            if request.place is not None and fits_place(call.entry):
                run = self._run_placed(call, request.place)
            elif call.entry.type == "sql":
                run = self._run_sql(call)
            else:
                run = self._run_python(call, on_output, stop)
            return await self._conclude(call, *await run)
        except HealkitError as error:  # the call was wrong, or no worker could be started
            if isinstance(error, ToolRemoved):
                recording.contents = error.logged
            if isinstance(error, WorkerNotRestricted):
                recording.add(isolation=NO_ISOLATION)
                await surely(recording.begin)
            refusal = refusal_of(recording.started, error, recording.elapsed_ms)
            error.log_id = await surely(recording.refuse, refusal)
            raise
        except Exception as error:
            fault, ended = fault_of(recording.started, error, recording.elapsed_ms), recording.ended
            await surely(recording.refuse, fault)
            if call is not None and not ended:
                return self._execution(call, Outcome("lost"), None, fault)
            internal = InternalError.of(error)
            internal.log_id = recording.log_id
            raise internal from error
        except BaseException as error:
            # Cancelled from outside: the row must not remain RUNNING.
            recording.refuse(interruption_of(recording.started, error, recording.elapsed_ms))
            raise
        finally:
            if (raised := sys.exception()) is not None and not recording.ended:
                recording.refuse(fault_of(recording.started, raised, recording.elapsed_ms))

    async def _written(self, request: ExecutionRequest, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Write to the log: on a thread, because it may wait, or directly if there are many small writes to a file.

        A switch to a thread and back costs as much as such a write.
        """
        if request.place is not None and self._database_url.startswith("sqlite"):
            return work(*args)
        return await surely(work, *args)

    def _prepare(self, request: ExecutionRequest, recording: Recording) -> _Call:
        """Do all steps that can refuse the call, up to the RUNNING row; runs on a thread, because it may wait."""
        if recording.sink is not UNRECORDED:
            recording.sink.admit(request.tool_name)
        arguments = pack_arguments(
            request.tool_name,
            request.arguments,
            self._recorder.secret_columns,
            inline=request.place is not None,
        )
        recording.add(arguments=arguments.logged.decode())
        entry = self._entry(request, recording)
        recording.contents = entry.logged
        recording.add(
            tool_name=entry.tool_name,  # the caller may have used a former name
            revision=entry.revision or None,
            code_hash=entry.code_hash,
            grants=entry.grants,
        )
        caller = None if request.parent is None else request.parent.caller
        stored = entry.grants if request.alone else self.grants_in_force(entry.grants)
        grants, timeout_s = bounded(stored, self._config, request.timeout_s, request.within, caller)
        if request.replay is not None:
            grants = grants.reading_only()
        whole, withheld = grants, Withheld()
        if request.files is not None:
            grants = unaccepted(whole, request.files)
            withheld = Withheld((*whole.read, *whole.write), grants.read)
        if grants is not entry.grants:
            entry = dataclasses.replace(entry, grants=grants)
            recording.add(grants=grants)
        recording.emit(Found(entry))
        if entry.acts and caller is not None:
            caller.act()
        validate_arguments(entry, arguments.plain)
        if entry.type == "sql" and values.MARK in arguments.sent:
            raise ArgumentsInvalid(
                f"{entry.label} cannot be called: a SQL tool takes JSON only.",
                hint="Give text, finite numbers, True, False, None.",
            )
        recording.add(
            isolation=SQL_ISOLATION if entry.type == "sql" else self._tier,
            deadline=utc_now() + timedelta(seconds=timeout_s + self._config.start_timeout_s),
        )
        mode = request.mode or self._config.mode
        call = _Call(request, recording, entry, arguments, timeout_s, mode, whole, withheld)
        call.untrusted = stored is UNTRUSTED_GRANTS
        # If the tier is not known yet, `_find_tier` emits the event.
        recording.begin(None if recording.started.isolation is None else call.prepared)
        return call

    def _find_tier(self, call: _Call) -> None:
        """Probe for the tier and add it to the call's record; only for the first execution, on a thread.

        The row is committed before. The probe takes a tenth of a second, and if the host is killed during that time,
        the log must show the execution. Raises `IsolationUnavailable`.
        """
        self._tier = achieved_tier(self._config)
        call.recording.add(isolation=self._tier)
        call.recording.begin(call.prepared)

    def _entry(self, request: ExecutionRequest, recording: Recording) -> VaultEntry:
        """Return the tool's active revision, the candidate to try in its place, or code to run without a tool."""
        if request.alone and request.code is not None:
            entry = VaultEntry(request.tool_name, request.persona, 0, request.code, code_hash(request.code))
            parse(request.code, entry.label)
            return entry
        entry = request.foreign or self._vault.lookup(request.tool_name, request.persona)
        if request.code is None:
            return entry
        recording.emit(Proposed(entry, request.code))
        try:
            entry = self._vault.candidate(entry, request.code)
        except HealkitError as error:
            recording.emit(Judged(error))
            raise
        recording.emit(Judged(None))
        return entry

    def _not_run(self, call: _Call) -> Failure | None:
        """Return why code that no one has accepted is not run: it needs a grant that only its tool has."""
        request, granted = call.request, call.granted
        if request.files is None:
            return None
        reads_log = call.entry.type == "sql" and allows(granted.call_patterns, READ_LOG)
        if not reads_log or self._may_read_log(call):
            return None
        message = not_run("the log", READ_LOG, "live")
        return Failure(
            "CALL_NOT_ON_RECORD", "NotOnRecord", message, f"NotOnRecord: {message}", hint=NAME_IT_HINT
        )

    def _may_read_log(self, call: _Call) -> bool:
        """Return whether a SQL tool may read its persona's rows of the log."""
        request = call.request
        named = request.files is None or (request.replay is not None and request.replay.may_make(READ_LOG))
        return named and allows(call.entry.grants.call_patterns, READ_LOG)

    async def _run_python(
        self, call: _Call, on_output: OnOutput | None, stop: asyncio.Event | None
    ) -> tuple[Outcome, Any, Failure | None]:
        request, entry, recording = call.request, call.entry, call.recording
        above = None if request.parent is None else request.parent.caller
        cpu_s = entry.grants.cpu_s or self._config.cpu_s
        caller = Caller(entry.grants, call.timeout_s, cpu_s, above)
        router = CallRouter(
            CallContext(
                recording.started.trace_id,
                request.persona,
                0 if request.parent is None else request.parent.depth + 1,
                min(call.timeout_s, self._config.rpc_timeout_s),
                caller,
            ),
            self.providers,
            entry.grants,
            recording.record if request.on_call is None else announcing(request.on_call, recording.record),
            CALLS_MAX,
            self._config.trace_max_tasks,
            request.replay,
            lambda task_id, answer: self._keep_answer(call, task_id, answer),
        )
        # Skip proxy definitions for code that never mentions `mcp`.
        definitions = await asyncio.to_thread(router.definitions, entry.code) if "mcp" in entry.code else []
        init = _init(call, definitions, self._config)
        tier: Tier = recording.started.isolation  # type: ignore[assignment]  # _prepare has put a tier there
        pool = self._pool()
        worker: KernelWorker | SubprocessWorker
        if call.mode == "subprocess":
            worker = await pool.subprocess_worker(self._config, tier, entry.grants)
        else:
            worker = await pool.kernel(self._config, tier, entry.grants, library_of(init))
        retained = False
        try:
            if "mcp" in entry.code or above is not None:  # it may call, or counts for its caller
                await off_loop(caller.start, worker)
            if call.arguments.previews and recording.contents:
                worker.on_sent = partial(self._keep, call, "arguments", call.arguments.sent)
            outcome = await worker.run(
                init, router, contents=call.arguments.contents, on_output=on_output, stop=stop
            )
            retained = pool.retained.retain(recording.started.trace_id, worker, outcome, self._config)
        finally:
            try:
                if above is not None and not entry.grants.own_grants:
                    await off_loop(caller.charge, above)
            finally:
                if not retained:
                    pool.retire(worker)
                if caller.acted:
                    recording.emit(Acted())
                if router.records.settled and not recording.has_steps:
                    _close_calls(router, recording)  # at once
                else:
                    await surely(_close_calls, router, recording)
        call.calls = router.records.calls
        value, failure = await conclude(outcome, init)
        failure = router.explained(failure, lambda tool: self._vault.leaves_out(tool, request.persona))
        if request.replay is not None and (missed := request.replay.missed) is not None:
            failure = missed
        return outcome, value, failure

    async def _run_placed(self, call: _Call, place: Place) -> tuple[Outcome, Any, Failure | None]:
        tier: Tier = call.recording.started.isolation  # type: ignore[assignment]  # _prepare has put a tier there
        init = _init(call, [], self._config)
        outcome = await place(init, tier)
        return outcome, *await conclude(outcome, init)

    async def _run_sql(self, call: _Call) -> tuple[Outcome, Any, Failure | None]:
        entry = call.entry
        try:
            rows = await asyncio.to_thread(
                run_sql,
                self._database_url,
                entry.code,
                msgspec.json.decode(call.arguments.sent),
                row_limit=self._config.sql_row_limit,
                timeout_s=call.timeout_s,
                log_of=call.request.persona if self._may_read_log(call) else None,
            )
        except HealkitError as error:
            text = f"{error.message}\n\n{entry.ref.filename}\n{entry.code}"
            near, existing_names = (error.near, error.known) if isinstance(error, SqlFailed) else ([], [])
            kind = type(error).__name__
            failure = Failure(
                error.code, kind, error.message, text, hint=error.hint, near=near, known=existing_names
            )
            return Outcome("complete"), None, failure
        value, conversions = to_jsonable(rows)
        encoded = msgspec.Raw(msgspec.json.encode(value))
        return Outcome("complete", ExecutionComplete(encoded, conversions=conversions)), value, None

    async def _conclude(
        self, call: _Call, outcome: Outcome, value: object, failure: Failure | None
    ) -> Execution:
        """Record the end, on threads: the sanitiser may have to load first, and the database may be locked."""
        recording, started = call.recording, call.recording.started
        if failure is not None:
            failure = await asyncio.to_thread(self._recorder.without_secret_facts, failure)
        result = outcome.complete if failure is None else None
        raw = _NULL if result is None else result.value
        if values.MARK in bytes(raw):  # plain JSON is already recorded as it arrived
            if recording.contents:
                await off_loop(self._keep, call, "result", bytes(raw), outcome.sealed)
            raw = msgspec.Raw(await off_loop(values.readable_json, value, self._recorder.secret_columns))
        # A run's folder has the whole value; a trace has no more than this.
        whole = recording.sink is not UNRECORDED or len(raw) <= WHOLE_MAX_CHARS
        encoded = str(raw, "utf-8") if whole else summarize_json(raw, HEAD_CHARS)
        last_output = outcome.last_output if failure else ""
        duration_ms = recording.elapsed_ms if outcome.duration_ms is None else outcome.duration_ms
        finished = end_of(started, failure, raw, duration_ms, last_output)
        await self._written(call.request, recording.finish, finished, encoded, outcome.outputs, call.calls)
        return self._execution(call, outcome, value, finished)

    def _execution(self, call: _Call, outcome: Outcome, value: object, finished: Finished) -> Execution:
        """Return the execution for the caller, after its end is recorded."""
        recording, fault = call.recording, call.recording.fault
        if fault is not None:
            finished = msgspec.structs.replace(finished, failure=fault, result_summary=fault.summary)
        failed = finished.failure is not None
        result = None if failed else outcome.complete
        converted = [] if result is None else [f"result {conversion}" for conversion in result.conversions]
        return Execution.of(
            recording.started,
            finished,
            arguments=values.decode(recording.started.arguments.encode()),
            log_id=recording.log_id,
            value=None if failed else value,
            outputs=outcome.outputs,
            calls=call.calls,
            decisions=recording.decisions,
            conversions=[*(f"argument {note}" for note in call.arguments.notes), *converted],
            warnings=self._warnings(
                recording.started,
                recording.sink.problem,
                _attempts_before(recording.sink.attempts) if recording.sink.attempts else "",
                WITHOUT_GRANTS if call.untrusted else "",
                "" if outcome.drained else _NOT_DRAINED,
                _threads_left(result.threads) if result is not None and result.threads else "",
                _programs_denied(recording.started, outcome),
                "" if call.request.replay is None else call.request.replay.warning,
            ),
            code=call.entry.code,
            explained=self._config.explain,
        )

    def _keep(self, call: _Call, side: Side, encoded: bytes, sealed: Sequence[Any]) -> None:
        started = call.recording.started
        self._contents.keep(started.trace_id, side, started.tool_name, encoded, sealed)

    def _keep_answer(self, call: _Call, task_id: str, answer: bytes) -> None:
        """Store the frames and arrays in a call's answer, unless its tool does not log contents."""
        if call.recording.contents:
            self._contents.keep(call.recording.started.trace_id, task_id, call.entry.tool_name, answer, ())

    def _warnings(self, started: Started, *problems: str) -> list[str]:
        """Return warnings for the user, besides the outcome."""
        warnings = list(filter(None, (self._recorder.problem, self._contents.problem, *problems)))
        if started.isolation == "process":
            warnings.append(
                "This tool ran without isolation (HEALKIT_ISOLATION=process): it could do whatever you can."
            )
        return warnings


def _started(request: ExecutionRequest, run_id: str | None) -> Started:
    """Return the record of the beginning, with the facts from the request."""
    now = utc_now()
    return Started(
        trace_id=new_trace_id(),
        timestamp=now,
        tool_name=request.tool_name,
        persona=request.persona,
        arguments="{}",
        origin=request.origin,
        host=host_identity(),
        deadline=now,
        parent_trace_id=None if request.parent is None else request.parent.trace_id,
        run_id=run_id,
        client=request.client,
    )


def _attempts_before(rows: Sequence[int | None]) -> str:
    """Return a note on the attempts before a retried call."""
    log_ids = ", ".join(f"{row}" for row in rows if row is not None)
    where = f" (log: {log_ids})" if log_ids else ""
    return f"Attempt {len(rows) + 1}; {count(len(rows), 'earlier one')} failed by a passing fault{where}."


def _programs_denied(started: Started, outcome: Outcome) -> str:
    """Return a note that the tool tried to start a program; empty if it did not, or may do so."""
    tried = () if outcome.complete is None else outcome.complete.programs
    if not tried or started.isolation == "process":
        return ""
    return (
        f"The tool tried to start a program ({', '.join(tried)}), which no worker may: it was not run. "
        "Do it in Python, or let the tool call your function (hk.provide)."
    )


def _threads_left(names: Sequence[str]) -> str:
    """Return a note on the threads of a tool that were ended with its worker."""
    return (
        f"The tool returned while its {'thread' if len(names) == 1 else 'threads'} {', '.join(names)} still ran, which "
        "ended with the worker: what was left to do or to print is lost. Join each thread before you return."
    )


def _close_calls(router: CallRouter, recording: Recording) -> None:
    """End the records of all calls, and move them into their table; may wait if there were calls."""
    router.records.settle(_SETTLE_S)
    recording.close_journal()


def _load_workers() -> None:
    """Import the modules that start workers, so that no execution waits for them before its row is committed."""
    import healkit.core.workers.pool  # noqa: F401 - imported early for speed


def _init(call: _Call, definitions: list[ToolDefinition], config: Config) -> Init:
    """Return the work for the worker, with the tool's own limits if it has any, else the configured ones."""
    entry = call.entry
    return Init(
        entry=entry.ref,
        code=entry.code,
        arguments=msgspec.Raw(call.arguments.sent),
        definitions=definitions,
        timeout_s=call.timeout_s,
        rpc_timeout_s=config.rpc_timeout_s,
        memory_bytes=(entry.grants.memory_mb or config.memory_mb) * MIB,
        cpu_s=entry.grants.cpu_s or config.cpu_s,
        result_max_bytes=config.result_max_bytes,
        output_max_bytes=config.result_max_bytes,
        exact=True,
        contents=regions.places_of(call.arguments.contents),
        data_max_bytes=regions.at_most(config.memory_mb * MIB),
        call=CELL_VALUE if call.request.alone else "",
        setup="pass" if call.request.alone else "",
        withheld=call.withheld,
    )
