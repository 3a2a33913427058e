"""Trials: code with arguments, restricted and on record."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from datetime import timedelta
from typing import Any

import msgspec

from healkit.config import MIB, Config
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.failure import Failure
from healkit.contracts.records import (
    Finished,
    Started,
    host_identity,
    new_trace_id,
    summarize,
    utc_now,
)
from healkit.contracts.rpc import Init
from healkit.contracts.tools import EntryRef
from healkit.runtime import background
from healkit.runtime.outcomes import failure_of
from healkit.runtime.recorder import Recorder, Recording
from healkit.workers.folders import RunFolders
from healkit.workers.probe import achieved_tier
from healkit.workers.sandbox import Tier
from healkit.workers.trialserver import TrialServers, run_trials


class Trial(msgspec.Struct, frozen=True):
    """Code to try, as a vault entry would hold it, and the arguments to try it with.

    `name` is what a traceback calls it (`<name@0>`); it is also which function of several is meant. `call` is Python
    source to evaluate beside the code instead of calling its entry: statements and a last expression, whose value
    counts; the code need not have the shape of a tool then.
    """

    code: str
    arguments: Mapping[str, Any] = {}
    name: str = "trial"
    timeout_s: float | None = None
    call: str = ""


class TrialResult(msgspec.Struct, frozen=True):
    """Result of one trial, in the place of its trial in the list."""

    trace_id: str
    duration_ms: float
    value: Any = None
    failure: Failure | None = None
    printed: str = ""
    #: Time the code itself ran, as its worker claims (`ExecutionComplete.took_s`); 0 without a claim.
    took_s: float = 0.0

    @property
    def ok(self) -> bool:
        """True when it returned."""
        return self.failure is None


def _started(trial: Trial, config: Config, tier: Tier) -> Started:
    """Return the write-ahead record of a trial; it has no persona and no revision of its own."""
    arguments, _ = to_jsonable(trial.arguments)
    now = utc_now()
    return Started(
        trace_id=new_trace_id(),
        timestamp=now,
        tool_name=trial.name,
        persona="default",
        arguments=msgspec.json.encode(arguments).decode(),
        origin="trial",
        host=host_identity(),
        deadline=now + timedelta(seconds=(trial.timeout_s or config.timeout_s) + config.start_timeout_s),
        isolation=tier,
    )


def _finished(result: TrialResult) -> Finished:
    """Return its end, for the log; without a fingerprint, by which a tool's own failures are grouped."""
    value = None if result.failure else summarize(msgspec.json.encode(result.value).decode())
    last = result.printed if result.failure else ""
    return Finished(result.trace_id, utc_now(), result.duration_ms, value, result.failure, None, last)


async def run_here(
    trials: list[Trial],
    records: list[Started],
    config: Config,
    parallel: int,
    servers: TrialServers,
    on_result: Callable[[int, TrialResult], None],
) -> None:
    """Run trials in servers of this process; `on_result` gets position and result as each ends."""
    tier = achieved_tier(config)
    inits = [_init(trial, record, config) for trial, record in zip(trials, records, strict=True)]
    async for position, outcome, duration_ms in run_trials(inits, tier, config, servers, parallel):
        failure = failure_of(outcome, inits[position])
        claim = outcome.complete
        value = msgspec.json.decode(claim.value) if claim is not None and failure is None else None
        trace_id = records[position].trace_id
        took_s = 0.0 if claim is None else claim.took_s
        on_result(position, TrialResult(trace_id, duration_ms, value, failure, outcome.last_output, took_s))


def run_elsewhere(trials: list[Trial], records: list[Started], config: Config) -> list[TrialResult]:
    """Run trials in whatever process an executor calls this in; the records are the caller's to write."""
    results: list[TrialResult | None] = [None] * len(trials)

    async def run() -> None:
        folders = RunFolders()
        servers = TrialServers(folders)
        try:
            await run_here(trials, records, config, 1, servers, results.__setitem__)
        finally:
            await servers.close()
            folders.close()

    asyncio.run(run())
    return [result for result in results if result is not None]


class Trials:
    """Runs lists of trials and records each; one for each `Healkit`."""

    def __init__(self, recorder: Recorder, config: Config) -> None:
        self._recorder = recorder
        self._config = config

    async def run(
        self,
        trials: Iterable[Trial],
        parallel: int | None,
        executor: Executor | None,
        *,
        off_record: bool = False,
    ) -> list[TrialResult]:
        """Run all of them; results are in the order of the trials. Raises `IsolationUnavailable`, `WorkerStartFailed`.

        off_record: their rows hold no contents, as those of a tool that is kept off the record.
        """
        chosen = list(trials)
        tier = await asyncio.to_thread(achieved_tier, self._config)
        records = [_started(trial, self._config, tier) for trial in chosen]
        recordings = [Recording(self._recorder, record, contents=not off_record) for record in records]
        parallel = max(1, min(parallel or os.cpu_count() or 1, len(chosen)))
        results: dict[int, TrialResult] = {}

        def take(position: int, result: TrialResult) -> None:
            results[position] = result
            recordings[position].finish(_finished(result))

        try:
            for recording in recordings:
                recording.begin()
            if executor is None:
                servers = background.pool_for(self._config).trial_servers
                await run_here(chosen, records, self._config, parallel, servers, take)
            else:
                await self._hand_out(executor, chosen, records, parallel, take)
        finally:
            for position in set(range(len(chosen))) - set(results):
                _give_up(recordings[position])
        return [results[position] for position in range(len(chosen))]

    async def _hand_out(
        self,
        executor: Executor,
        trials: list[Trial],
        records: list[Started],
        parallel: int,
        take: Callable[[int, TrialResult], None],
    ) -> None:
        """Spread over an executor's workers, each of which has a trial server of its own for its share."""
        shares = [range(start, len(trials), parallel) for start in range(parallel)]
        futures: list[Future[list[TrialResult]]] = [
            executor.submit(
                run_elsewhere, [trials[i] for i in share], [records[i] for i in share], self._config
            )
            for share in shares
        ]
        for share, future in zip(shares, futures, strict=True):
            results: list[TrialResult] = await asyncio.wrap_future(future)
            for position, result in zip(share, results, strict=True):
                take(position, result)


def _give_up(recording: Recording) -> None:
    said = "the trials were stopped"
    failure = Failure("TOOL_KILLED", "Stopped", said, f"Stopped: {said}")
    trace_id, duration_ms = recording.started.trace_id, recording.elapsed_ms
    recording.finish(Finished(trace_id, utc_now(), duration_ms, None, failure))


def _init(trial: Trial, record: Started, config: Config) -> Init:
    return Init(
        entry=EntryRef(trial.name, "default", 0, ""),
        code=trial.code,
        arguments=msgspec.Raw(record.arguments.encode()),
        definitions=[],
        timeout_s=trial.timeout_s or config.timeout_s,
        rpc_timeout_s=config.rpc_timeout_s,
        memory_bytes=config.memory_mb * MIB,
        cpu_s=config.cpu_s,
        result_max_bytes=config.result_max_bytes,
        output_max_bytes=config.output_max_bytes,
        call=trial.call,
    )
