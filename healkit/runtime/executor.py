"""The one road: from a call to a recorded outcome.

call ─► vault entry (hash checked) ─► arguments checked ─► tier ─► RUNNING row ─► worker or SQL ─► finished
row

A call that is refused on the way (unknown tool, wrong arguments, tampered code, no isolation) is a finished
row too. Everything that starts an execution, whoever it is, comes through `Executor.execute`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import Config
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.entries import VaultEntry
from healkit.contracts.failure import Failure
from healkit.contracts.fingerprint import fingerprint
from healkit.contracts.records import (
    Finished,
    Started,
    Step,
    host_identity,
    new_trace_id,
    summarize,
    utc_now,
)
from healkit.errors import HealkitError
from healkit.runtime.contents import NOT_KEPT_VALUE, recording_without_contents, without_contents
from healkit.runtime.execution import Execution
from healkit.runtime.outcomes import interruption_of, refusal_of
from healkit.runtime.recorder import Recorder
from healkit.runtime.request import ExecutionRequest, checked_arguments
from healkit.runtime.router import CallContext, CallRouter, Provider
from healkit.runtime.steps import UNRECORDED
from healkit.runtime.underway import Prepared, Result, execution_from, init_for, result_of
from healkit.store.arguments import validate_arguments
from healkit.store.fast_reads import Lookup
from healkit.store.sql_tools import run_sql
from healkit.tracing.collector import Collector
from healkit.workers.probe import achieved_tier
from healkit.workers.sandbox import Tier

if TYPE_CHECKING:
    from healkit.workers.kernel import KernelWorker
    from healkit.workers.pool import Pool
    from healkit.workers.subprocess_worker import SubprocessWorker

#: SQL tools run in the host, on a connection that cannot write.
SQL_ISOLATION = "read-only connection"
#: How long an ending waits for the records of calls that the worker already had its answers to.
_SETTLE_S = 5.0


class Executor:
    """Executes vault entries; one for each `Healkit`. `providers` may grow while it lives."""

    def __init__(
        self, vault: Lookup, recorder: Recorder, config: Config, database_url: str, pool: Callable[[], Pool]
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

        Raises a `HealkitError` when the call itself was wrong or no worker could be had; that too is on record, under
        the error's `log_id`. What the tool does never raises.
        """
        started = time.perf_counter()
        ready = await asyncio.to_thread(self._prepare, request, started)
        try:
            if ready.begun.isolation is None:
                loading = asyncio.create_task(
                    asyncio.to_thread(_load_workers)
                )  # while the probe is waited for
                ready = await asyncio.to_thread(self._place, ready, request)
                await loading
            work = self._run_sql if ready.entry.type == "sql" else self._run_python
            result = await work(ready, request)
        except HealkitError as error:  # no worker could be had
            refusal = ready.noted_end(refusal_of(ready.begun, error, started))
            error.log_id = await self._finish(refusal, ready.collector) or ready.log_id
            await asyncio.to_thread(request.step.refused, ready.noted, refusal)
            raise
        except BaseException as error:
            # Cancelled from outside, or an error of ours: the row must not stay RUNNING for ever.
            interrupted = ready.noted_end(interruption_of(ready.begun, error, started))
            self._recorder.finish(interrupted, ready.collector)
            request.step.refused(ready.noted, interrupted)
            raise
        return await self._conclude(ready, request, result, (time.perf_counter() - started) * 1000)

    def _prepare(self, request: ExecutionRequest, started: float) -> Prepared:
        """All that can be refused before there is a worker, up to the RUNNING row; on a thread, as it may wait."""
        begun = _begun(request)
        logged = True
        try:
            request.step.admit(begun)
            arguments, conversions = checked_arguments(request)
            encoded = msgspec.json.encode(arguments)
            begun = msgspec.structs.replace(begun, arguments=encoded.decode())
            entry = self._entry(request)
            begun = msgspec.structs.replace(
                begun, revision=entry.revision or None, code_hash=entry.code_hash, grants=entry.grants
            )
            logged = entry.logged
            request.step.observed(begun if logged else without_contents(begun), entry)
            validate_arguments(entry, arguments)
            timeout_s = request.timeout_s or entry.grants.timeout_s or self._config.timeout_s
            begun = msgspec.structs.replace(
                begun,
                isolation=SQL_ISOLATION if entry.type == "sql" else self._tier,
                deadline=utc_now() + timedelta(seconds=timeout_s + self._config.start_timeout_s),
            )
            noted = begun if logged else without_contents(begun)
            if begun.isolation is not None:
                request.step.prepared(noted, timeout_s, request.mode)
        except HealkitError as error:
            refusal = refusal_of(begun, error, started)
            if not logged:
                begun, refusal = without_contents(begun), without_contents(refusal)
            error.log_id = self._recorder.refuse(begun, refusal)
            request.step.refused(begun, refusal)
            raise
        log_id = self._recorder.begin(noted)
        if begun.isolation is not None:
            request.step.started(log_id)
        collector = self._recorder.collector(noted)
        return Prepared(begun, noted, entry, encoded, conversions, timeout_s, log_id, collector)

    def _place(self, ready: Prepared, request: ExecutionRequest) -> Prepared:
        """Find the tier of the first execution, whose row is there already, and put it on record; on a thread.

        The probe takes a tenth of a second, in which a kill would leave no sign of an execution without a row. Raises
        `IsolationUnavailable`.
        """
        self._tier = achieved_tier(self._config)
        begun = msgspec.structs.replace(ready.begun, isolation=self._tier)
        noted = begun if ready.entry.logged else without_contents(begun)
        request.step.prepared(noted, ready.timeout_s, request.mode)
        log_id = self._recorder.begin(noted) or ready.log_id
        request.step.started(log_id)
        collector = self._recorder.collector(noted)
        return dataclasses.replace(ready, begun=begun, noted=noted, log_id=log_id, collector=collector)

    def _entry(self, request: ExecutionRequest) -> VaultEntry:
        """The tool's active revision, or the candidate that is to be tried in its place."""
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

    async def _run_python(self, ready: Prepared, request: ExecutionRequest) -> Result:
        begun, entry = ready.begun, ready.entry
        journal = self._recorder.journal(begun.trace_id)
        router = self._router(ready, request, ready.collector.through(journal.append))
        # A tool that never says `mcp` cannot call anything, and need not be told what there is.
        known = await asyncio.to_thread(router.definitions, entry.code) if "mcp" in entry.code else []
        init = init_for(ready, known, self._config)
        tier: Tier = begun.isolation  # type: ignore[assignment]  # _prepare has put a tier there
        pool = self._pool()
        worker: KernelWorker | SubprocessWorker
        if request.mode == "subprocess":
            worker = await pool.light(self._config, tier, entry.grants)
        else:
            worker = await pool.kernel(self._config, tier, entry.grants)
        kept = False
        try:
            outcome = await worker.run(init, router, on_output=request.on_output, stop=request.stop)
            kept = pool.retained.keep(begun.trace_id, worker, outcome, self._config)
        finally:
            if not kept:
                pool.retire(worker)
            if not router.settled:
                await asyncio.to_thread(router.settle, _SETTLE_S)
            if journal.used:
                await asyncio.to_thread(journal.close)
        return result_of(outcome, init, router.calls)

    def _router(
        self, ready: Prepared, request: ExecutionRequest, record: Callable[[Step], None]
    ) -> CallRouter:
        """Where its calls go; what is to be kept off the record is emptied on the way to `record`."""
        entry, timeout_s = ready.entry, min(ready.timeout_s, self._config.rpc_timeout_s)
        return CallRouter(
            CallContext(ready.begun.trace_id, request.persona, request.depth, timeout_s),
            self.providers,
            entry.grants,
            recording_without_contents(
                record, not entry.logged, lambda tool: self._keeps_off(tool, request.persona)
            ),
            self._config.max_calls,
            self._config.trace_max_decisions,
        )

    async def _run_sql(self, ready: Prepared, _request: ExecutionRequest) -> Result:
        entry = ready.entry
        try:
            rows = await asyncio.to_thread(
                run_sql,
                self._database_url,
                entry.code,
                msgspec.json.decode(ready.arguments),
                row_limit=self._config.sql_row_limit,
                timeout_s=ready.timeout_s,
            )
        except HealkitError as error:
            text = f"{error.message}\n\n{entry.ref.filename}\n{entry.code}"
            return Result(
                failure=Failure(error.code, type(error).__name__, error.message, text, hint=error.hint)
            )
        value, conversions = to_jsonable(rows)
        return Result(value=value, encoded=msgspec.json.encode(value).decode(), conversions=conversions)

    async def _finish(self, finished: Finished, collector: Collector) -> int | None:
        """The last record; on a thread, because it may have to wait for a locked database."""
        return await asyncio.to_thread(self._recorder.finish, finished, collector)

    async def _conclude(
        self, ready: Prepared, request: ExecutionRequest, result: Result, duration_ms: float
    ) -> Execution:
        begun = ready.begun
        finished = Finished(
            trace_id=begun.trace_id,
            finished_at=utc_now(),
            duration_ms=duration_ms,
            result_summary=None if result.failure else summarize(result.encoded),
            failure=result.failure,
            fingerprint=fingerprint(result.failure) if result.failure else None,
            last_output=result.last_output,
        )
        noted, seen = ready.noted_end(finished), result
        if not ready.entry.logged:
            seen = Result(encoded=NOT_KEPT_VALUE, calls=[without_contents(call) for call in result.calls])
        ready.collector.result = None if result.failure else seen.encoded
        log_id = await self._finish(noted, ready.collector) or ready.log_id
        if (step := request.step) is not UNRECORDED:
            await asyncio.to_thread(self._tell_end, request, noted, seen)
        return execution_from(
            ready,
            finished,
            result,
            log_id,
            warnings=self._warnings(begun, step.problem, result.problem),
            explained=self._config.explain,
        )

    def _tell_end(self, request: ExecutionRequest, noted: Finished, seen: Result) -> None:
        """Tell the run how its step ended, with the calls as they are to be kept."""
        calls: list[Any] = []
        keep = recording_without_contents(
            calls.append, own=False, keeps_off=lambda tool: self._keeps_off(tool, request.persona)
        )
        for call in seen.calls:
            keep(call)
        request.step.ended(noted, seen.encoded, seen.outputs, calls)

    def _keeps_off(self, tool: str, persona: str) -> bool:
        """Whether that tool of the vault has its contents kept off the record."""
        try:
            return not self._vault.lookup(tool, persona).logged
        except HealkitError:
            return False

    def _warnings(self, begun: Started, *problems: str) -> list[str]:
        """What the user should know besides the outcome."""
        found = [problem for problem in (self._recorder.problem, *problems) if problem]
        if begun.isolation == "process":
            found.append(
                "This tool ran without isolation (HEALKIT_ISOLATION=process): it could do whatever you can."
            )
        return found


def _load_workers() -> None:
    """Import what starts workers: no execution waits for it before its row is committed."""
    import healkit.workers.pool  # noqa: F401 - to import it is the work


def _begun(request: ExecutionRequest) -> Started:
    """The record of a call that nothing is known of yet but what was asked."""
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
