"""Execution path: from a call to a recorded outcome.

call ─► vault entry (hash checked) ─► arguments checked ─► RUNNING row ─► tier ─► worker or SQL ─► finished row

A call that is refused on the way (unknown tool, wrong arguments, tampered code, no isolation) is a finished
row too. Every execution of a tool comes through `Executor.execute`. The trials of a search, which have no kernel and
nothing to call, run in `runtime/trials.py` and are recorded by the same recorder.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from healkit.config import MIB, Config
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.entries import VaultEntry
from healkit.contracts.failure import Failure
from healkit.contracts.fingerprint import fingerprint
from healkit.contracts.records import (
    CallRecord,
    Finished,
    Started,
    host_identity,
    new_trace_id,
    summarize,
    utc_now,
)
from healkit.contracts.rpc import ExecutionComplete, Init
from healkit.contracts.tools import ToolDefinition
from healkit.errors import HealkitError
from healkit.runtime.execution import Execution, ExecutionRequest
from healkit.runtime.outcomes import failure_of, interruption_of, refusal_of
from healkit.runtime.recorder import Recorder, Recording
from healkit.runtime.router import CallContext, CallRouter, Provider
from healkit.store.arguments import arguments_as_json, validate_arguments
from healkit.store.fast_reads import EntryLookup
from healkit.store.sql_tools import run_sql
from healkit.workers.probe import achieved_tier
from healkit.workers.sandbox import Tier
from healkit.workers.worker import Outcome

if TYPE_CHECKING:
    from healkit.workers.kernel import KernelWorker
    from healkit.workers.pool import Pool
    from healkit.workers.subprocess_worker import SubprocessWorker

#: SQL tools run in the host, on a connection that cannot write.
SQL_ISOLATION = "read-only connection"
#: Wait for the records of calls whose answers the worker already had.
_SETTLE_S = 5.0
_NOT_DRAINED = "Some of what the tool displayed may be missing: its worker did not send it in time."


@dataclasses.dataclass
class _Call:
    """A request with its record and what is needed to run it; `calls` are those it made, once it has ended."""

    request: ExecutionRequest
    recording: Recording
    entry: VaultEntry
    conversions: list[str]
    timeout_s: float
    calls: list[CallRecord] = dataclasses.field(default_factory=list)


class Executor:
    """Executes vault entries; one for each `Healkit`. `providers` may grow while it lives."""

    def __init__(
        self,
        vault: EntryLookup,
        recorder: Recorder,
        config: Config,
        database_url: str,
        pool: Callable[[], Pool],
    ) -> None:
        self.providers: dict[str, Provider] = {}
        self._vault = vault
        self._recorder = recorder
        self._config = config
        self._database_url = database_url
        self._pool = pool
        #: What the probe has found; None until the first execution has waited for it.
        self._tier: Tier | None = None

    async def execute(self, request: ExecutionRequest) -> Execution:
        """Run one tool and return its outcome, recorded.

        Raises a `HealkitError` when the call itself was wrong or no worker could be started; that too is on record,
        under the error's `log_id`. What the tool does never raises.
        """
        call = await asyncio.to_thread(self._prepare, request)
        recording = call.recording
        try:
            if recording.started.isolation is None:
                # The import runs while the next line waits for the probe.
                loading = asyncio.create_task(asyncio.to_thread(_load_workers))
                await asyncio.to_thread(self._find_tier, call)
                await loading
            run = self._run_sql if call.entry.type == "sql" else self._run_python
            outcome, failure = await run(call)
        except HealkitError as error:  # no worker could be started
            refusal = refusal_of(recording.started, error, recording.elapsed_ms)
            error.log_id = await asyncio.to_thread(recording.fail, refusal)
            raise
        except BaseException as error:
            # Cancelled from outside, or an error of ours: the row must not stay RUNNING for ever.
            recording.fail(interruption_of(recording.started, error, recording.elapsed_ms))
            raise
        return await self._conclude(call, outcome, failure)

    def _prepare(self, request: ExecutionRequest) -> _Call:
        """Do all that can refuse the call, up to the RUNNING row; on a thread, as it may wait."""
        recording = Recording(
            self._recorder,
            _started(request),
            request.step,
            leaves_out=lambda tool: self._leaves_out(tool, request.persona),
        )
        try:
            request.step.admit(recording.started)
            arguments, conversions = arguments_as_json(request.tool_name, request.arguments)
            recording.add(arguments=msgspec.json.encode(arguments).decode())
            entry = self._entry(request)
            recording.add(revision=entry.revision or None, code_hash=entry.code_hash, grants=entry.grants)
            recording.contents = entry.logged
            recording.observe(entry)
            validate_arguments(entry, arguments)
            timeout_s = request.timeout_s or entry.grants.timeout_s or self._config.timeout_s
            recording.add(
                isolation=SQL_ISOLATION if entry.type == "sql" else self._tier,
                deadline=utc_now() + timedelta(seconds=timeout_s + self._config.start_timeout_s),
            )
        except HealkitError as error:
            error.log_id = recording.refuse(refusal_of(recording.started, error, recording.elapsed_ms))
            raise
        if recording.started.isolation is None:
            recording.begin()  # `_find_tier` records the rest, once the tier is known
        else:
            recording.begin_step(timeout_s, request.mode)
        return _Call(request, recording, entry, conversions, timeout_s)

    def _find_tier(self, call: _Call) -> None:
        """Probe for the tier and add it to the call's record; for the first execution only, and on a thread.

        The row is committed before: the probe takes a tenth of a second, and a host that is killed in it must leave a
        sign of the execution. Raises `IsolationUnavailable`.
        """
        self._tier = achieved_tier(self._config)
        call.recording.add(isolation=self._tier)
        call.recording.begin_step(call.timeout_s, call.request.mode)

    def _entry(self, request: ExecutionRequest) -> VaultEntry:
        """Return the tool's active revision, or the candidate to try in its place."""
        entry = self._vault.lookup(request.tool_name, request.persona)
        if request.code is None:
            return entry
        request.step.proposed(entry, request.code)
        try:
            entry = self._vault.candidate(entry, request.code)
        except HealkitError as error:
            request.step.judged(str(error), error.code)
            raise
        request.step.judged(None)
        return entry

    async def _run_python(self, call: _Call) -> tuple[Outcome, Failure | None]:
        request, entry, recording = call.request, call.entry, call.recording
        router = CallRouter(
            CallContext(
                recording.started.trace_id,
                request.persona,
                request.depth,
                min(call.timeout_s, self._config.rpc_timeout_s),
            ),
            self.providers,
            entry.grants,
            recording.record,
            self._config.max_calls,
            self._config.trace_max_decisions,
        )
        # Skip proxy definitions for code that never mentions `mcp`.
        known = await asyncio.to_thread(router.definitions, entry.code) if "mcp" in entry.code else []
        init = _init(call, known, self._config)
        tier: Tier = recording.started.isolation  # type: ignore[assignment]  # _prepare has put a tier there
        pool = self._pool()
        worker: KernelWorker | SubprocessWorker
        if request.mode == "subprocess":
            worker = await pool.subprocess_worker(self._config, tier, entry.grants)
        else:
            worker = await pool.kernel(self._config, tier, entry.grants)
        retained = False
        try:
            outcome = await worker.run(init, router, on_output=request.on_output, stop=request.stop)
            retained = pool.retained.retain(recording.started.trace_id, worker, outcome, self._config)
        finally:
            if not retained:
                pool.retire(worker)
            if not router.settled:
                await asyncio.to_thread(router.settle, _SETTLE_S)
            if recording.has_steps:
                await asyncio.to_thread(recording.close_journal)
        call.calls = router.calls
        return outcome, failure_of(outcome, init)

    async def _run_sql(self, call: _Call) -> tuple[Outcome, Failure | None]:
        entry = call.entry
        try:
            rows = await asyncio.to_thread(
                run_sql,
                self._database_url,
                entry.code,
                msgspec.json.decode(call.recording.started.arguments),
                row_limit=self._config.sql_row_limit,
                timeout_s=call.timeout_s,
            )
        except HealkitError as error:
            text = f"{error.message}\n\n{entry.ref.filename}\n{entry.code}"
            failure = Failure(error.code, type(error).__name__, error.message, text, hint=error.hint)
            return Outcome("complete"), failure
        value, conversions = to_jsonable(rows)
        encoded = msgspec.Raw(msgspec.json.encode(value))
        return Outcome("complete", ExecutionComplete(encoded, conversions=conversions)), None

    async def _conclude(self, call: _Call, outcome: Outcome, failure: Failure | None) -> Execution:
        """Record the end and return it as the caller gets it."""
        recording, complete = call.recording, outcome.complete
        encoded = bytes(complete.value).decode() if complete is not None and failure is None else "null"
        finished = Finished(
            trace_id=recording.started.trace_id,
            finished_at=utc_now(),
            duration_ms=recording.elapsed_ms,
            result_summary=None if failure else summarize(encoded),
            failure=failure,
            fingerprint=fingerprint(failure) if failure else None,
            last_output=outcome.last_output if failure else "",
        )
        # On a thread, because it may have to wait for a locked database.
        log_id = await asyncio.to_thread(recording.finish, finished, encoded, outcome.outputs, call.calls)
        given = [f"argument {conversion}" for conversion in call.conversions]
        returned = [f"result {conversion}" for conversion in (complete.conversions if complete else [])]
        started = recording.started
        return Execution(
            tool_name=started.tool_name,
            persona=started.persona,
            arguments=msgspec.json.decode(started.arguments),
            status=finished.status,
            trace_id=started.trace_id,
            timestamp=started.timestamp,
            log_id=log_id,
            value=msgspec.json.decode(encoded),
            failure=failure,
            result_summary=finished.result_summary,
            outputs=outcome.outputs,
            calls=call.calls,
            decisions=recording.decisions,
            duration_ms=finished.duration_ms,
            isolation=started.isolation,
            revision=started.revision,
            origin=started.origin,
            last_output=finished.last_output,
            conversions=[*given, *returned],
            warnings=self._warnings(started, recording.step.problem, "" if outcome.drained else _NOT_DRAINED),
            grants=started.grants,
            run_id=started.run_id,
            code=call.entry.code,
            explained=self._config.explain,
        )

    def _leaves_out(self, tool: str, persona: str) -> bool:
        """Return whether that tool of the vault has its contents kept off the record."""
        try:
            return not self._vault.lookup(tool, persona).logged
        except HealkitError:
            return False

    def _warnings(self, started: Started, *problems: str) -> list[str]:
        """Return what the user should know besides the outcome."""
        found = [problem for problem in (self._recorder.problem, *problems) if problem]
        if started.isolation == "process":
            found.append(
                "This tool ran without isolation (HEALKIT_ISOLATION=process): it could do whatever you can."
            )
        return found


def _load_workers() -> None:
    """Import what starts workers: no execution waits for it before its row is committed."""
    import healkit.workers.pool  # noqa: F401 - to import it is the work


def _started(request: ExecutionRequest) -> Started:
    """Return the record of a call of which only the request is known."""
    return Started(
        trace_id=new_trace_id(),
        timestamp=utc_now(),
        tool_name=request.tool_name,
        persona=request.persona,
        arguments="{}",
        origin=request.origin,
        host=host_identity(),
        deadline=utc_now(),
        parent_trace_id=request.parent_trace_id,
        run_id=request.step.run_id,
    )


def _init(call: _Call, definitions: list[ToolDefinition], config: Config) -> Init:
    """Return the work as the worker gets it: the tool's own limits where it has any, else the configured ones."""
    entry = call.entry
    return Init(
        entry=entry.ref,
        code=entry.code,
        arguments=msgspec.Raw(call.recording.started.arguments.encode()),
        definitions=definitions,
        timeout_s=call.timeout_s,
        rpc_timeout_s=config.rpc_timeout_s,
        memory_bytes=(entry.grants.memory_mb or config.memory_mb) * MIB,
        cpu_s=entry.grants.cpu_s or config.cpu_s,
        result_max_bytes=config.result_max_bytes,
        output_max_bytes=config.output_max_bytes,
    )
