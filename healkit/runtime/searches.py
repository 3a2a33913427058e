"""Searches: many variants of one code, one row of the log.

Three ways to try: `score` runs thousands of candidates in batches and tells one letter a check; `observe` runs a code
with its lines and types watched; `run` gives every pair a process of its own, through the same door as `hk.trials`,
with a row for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from datetime import timedelta
from typing import Any

import msgspec

from healkit.config import MIB, Config
from healkit.contracts.batches import PASSED, Batch, BatchCheck
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.failure import Failure
from healkit.contracts.healing import Check, CheckResult, Observed
from healkit.contracts.records import Finished, Started, host_identity, new_trace_id, utc_now
from healkit.contracts.rpc import Init, raw
from healkit.contracts.tools import EntryRef
from healkit.runtime import background
from healkit.runtime.outcomes import failure_of, judged
from healkit.runtime.recorder import Recorder, Recording
from healkit.runtime.trials import Trial, Trials
from healkit.workers.folders import RunFolders
from healkit.workers.probe import achieved_tier
from healkit.workers.sandbox import Tier
from healkit.workers.scoring import Candidate, Draw, Scores, run_batch
from healkit.workers.trialserver import TrialServers, run_trials

#: A search's row that says RUNNING for longer may be taken for one of a dead host.
_DEADLINE_S = 3600.0
#: Size and time of a share for an executor's worker, which starts a trial server for it.
_AWAY_FIRST, _AWAY_S = 50, 2.0


@dataclasses.dataclass
class Score:
    """Score of a search so far: how many candidates, how many passed every check, and each outcome's number."""

    candidates: int = 0
    plausible: int = 0
    outcomes: Counter[str] = dataclasses.field(default_factory=Counter)

    def add(self, scores: Scores) -> None:
        """Count some more."""
        self.candidates += len(scores)
        for _, letters in scores:
            self.outcomes.update(letters)
            self.plausible += letters == PASSED * len(letters)

    def summary(self) -> dict[str, Any]:
        """Return it for the log."""
        return {"candidates": self.candidates, "plausible": self.plausible, "outcomes": dict(self.outcomes)}


class _Observation(msgspec.Struct, frozen=True):
    """A child's own account of what it ran; a claim."""

    lines: list[int] = []
    failed_lines: list[int] = []
    types: dict[str, list[str]] = {}


_observation = msgspec.json.Decoder(_Observation | None).decode


class Searches:
    """Searches on one database's record; one for each `Healkit`. All methods belong to healkit's event loop.

    `limits_s` is each check's time limit. All raise `IsolationUnavailable` and `WorkerStartFailed`.
    """

    def __init__(self, recorder: Recorder, config: Config) -> None:
        self._recorder = recorder
        self._config = config
        self._trials = Trials(recorder, config)

    async def score(
        self,
        entry: EntryRef,
        code: str,
        draw: Draw,
        checks: Sequence[Check],
        limits_s: Sequence[float],
        on_scores: Callable[[Scores], None],
        *,
        every: bool = False,
        as_code: bool = False,
        parallel: int | None = None,
        executor: Executor | None = None,
    ) -> Score:
        """Try all candidates that can be drawn, splices of `code`; `on_scores` gets outcomes as they come.

        parallel: how many servers; by default as many as there are processors. executor: any
        `concurrent.futures.Executor`, whose workers then do the work. Cancelling it ends what runs; what was counted
        until then is on record.
        """
        batch = msgspec.structs.replace(self._batch(entry, code, checks, limits_s, every), as_code=as_code)
        parallel = max(1, parallel or os.cpu_count() or 1)
        score = Score()
        async with self._recorded(entry, {"checks": len(checks)}, score.summary) as tier:
            if executor is None:
                servers = background.pool_for(self._config).trial_servers
                coming = run_batch(batch, draw, tier, self._config, servers, parallel)
            else:
                coming = _run_away(batch, draw, self._config, executor, parallel)
            async with contextlib.aclosing(coming):
                async for scores in coming:
                    score.add(scores)
                    on_scores(scores)
        return score

    async def observe(
        self, entry: EntryRef, code: str, checks: Sequence[Check], limits_s: Sequence[float]
    ) -> list[Observed]:
        """Run the code once for each check, watched, each in a process of its own."""
        async with self._recorded(entry, {"observed": len(checks)}, dict) as tier:
            return await self._watched(entry, code, checks, limits_s, tier, watch=True)

    async def time(
        self, entry: EntryRef, code: str, checks: Sequence[Check], limits_s: Sequence[float]
    ) -> list[CheckResult]:
        """Run as `observe` does, unwatched: what each check gives and how long it takes."""
        async with self._recorded(entry, {"timed": len(checks)}, dict) as tier:
            observed = await self._watched(entry, code, checks, limits_s, tier, watch=False)
        return [one.result for one in observed]

    async def run(
        self,
        entry: EntryRef,
        codes: Sequence[str],
        checks: Sequence[Check],
        limits_s: Sequence[float],
        *,
        parallel: int | None = None,
        executor: Executor | None = None,
        off_record: bool = False,
    ) -> list[list[CheckResult]]:
        """Run each code with each check, every pair in a process of its own and on record as a trial."""
        trials = [
            Trial(code, check.arguments, entry.tool_name, limit_s, check.call)
            for code in codes
            for check, limit_s in zip(checks, limits_s, strict=True)
        ]
        results = await self._trials.run(trials, parallel, executor, off_record=off_record)
        found = [
            judged(checks[i % len(checks)], r.value, r.failure, _took_s(r.took_s, r.duration_ms), r.trace_id)
            for i, r in enumerate(results)
        ]
        return [found[i * len(checks) : (i + 1) * len(checks)] for i in range(len(codes))]

    async def _watched(
        self,
        entry: EntryRef,
        code: str,
        checks: Sequence[Check],
        limits_s: Sequence[float],
        tier: Tier,
        *,
        watch: bool,
    ) -> list[Observed]:
        inits = [
            self._init(entry, code, check, limit_s, watch=watch)
            for check, limit_s in zip(checks, limits_s, strict=True)
        ]
        found: dict[int, Observed] = {}
        servers = background.pool_for(self._config).trial_servers
        parallel = min(os.cpu_count() or 1, max(len(inits), 1))
        async with contextlib.aclosing(run_trials(inits, tier, self._config, servers, parallel)) as coming:
            async for position, outcome, duration_ms in coming:
                failure, claim = failure_of(outcome, inits[position]), outcome.complete
                value = msgspec.json.decode(claim.value) if claim is not None and failure is None else None
                took_s = _took_s(0.0 if claim is None else claim.took_s, duration_ms)
                result = judged(checks[position], value, failure, took_s)
                seen = _seen(claim.watched if claim is not None else msgspec.Raw(b"null"))
                if not seen.failed_lines and failure is not None:  # killed before it could tell
                    seen = msgspec.structs.replace(
                        seen, failed_lines=[frame.lineno for frame in failure.frames if frame.in_tool]
                    )
                found[position] = Observed(
                    result=result, lines=seen.lines, failed_lines=seen.failed_lines, types=seen.types
                )
        return [found[position] for position in range(len(checks))]

    def _batch(
        self, entry: EntryRef, code: str, checks: Sequence[Check], limits_s: Sequence[float], every: bool
    ) -> Batch:
        return Batch(
            entry=entry,
            code=code,
            checks=[_as_sent(check, limit_s) for check, limit_s in zip(checks, limits_s, strict=True)],
            every=every,
            memory_bytes=self._config.memory_mb * MIB,
            result_max_bytes=self._config.result_max_bytes,
            output_max_bytes=self._config.output_max_bytes,
        )

    def _init(self, entry: EntryRef, code: str, check: Check, limit_s: float, *, watch: bool) -> Init:
        config = self._config
        return Init(
            entry=entry,
            code=code,
            arguments=raw(to_jsonable(check.arguments)[0]),
            definitions=[],
            timeout_s=limit_s,
            rpc_timeout_s=config.rpc_timeout_s,
            memory_bytes=config.memory_mb * MIB,
            cpu_s=config.cpu_s,
            result_max_bytes=config.result_max_bytes,
            output_max_bytes=config.output_max_bytes,
            call=check.call,
            watch=watch,
        )

    @contextlib.asynccontextmanager
    async def _recorded(
        self, entry: EntryRef, what: dict[str, Any], summary: Callable[[], dict[str, Any]]
    ) -> AsyncIterator[Tier]:
        """Keep a row for what is done in the block: RUNNING before, with the result after."""
        tier = await asyncio.to_thread(achieved_tier, self._config)
        now = utc_now()
        started = Started(
            trace_id=new_trace_id(),
            timestamp=now,
            tool_name=entry.tool_name,
            persona=entry.persona,
            arguments=msgspec.json.encode(what).decode(),
            origin="search",
            host=host_identity(),
            deadline=now + timedelta(seconds=_DEADLINE_S),
            isolation=tier,
        )
        recording = Recording(self._recorder, started)
        recording.begin()
        failure, stopped = None, False
        try:
            yield tier
        except asyncio.CancelledError:
            stopped = True
            raise
        except BaseException as error:
            said = getattr(error, "message", str(error))
            kind = type(error).__name__
            failure = Failure(getattr(error, "code", "TOOL_KILLED"), kind, said, f"{kind}: {said}")
            raise
        finally:
            result = what | summary() | ({"stopped": True} if stopped else {})
            value = None if failure else msgspec.json.encode(result).decode()
            trace_id, duration_ms = started.trace_id, recording.elapsed_ms
            recording.finish(Finished(trace_id, utc_now(), duration_ms, value, failure))


def _as_sent(check: Check, limit_s: float) -> BatchCheck:
    return BatchCheck(
        arguments=raw(to_jsonable(check.arguments)[0]),
        call=check.call,
        known=check.known,
        expected=raw(check.expected),
        raises=check.raises,
        timeout_s=limit_s,
    )


def _took_s(claimed_s: float, duration_ms: float) -> float:
    """Return how long a check took: what its worker says, where that is possible."""
    own_s = duration_ms / 1000
    return claimed_s if 0.0 < claimed_s < own_s else own_s


def _seen(claim: msgspec.Raw) -> _Observation:
    """Return what a child says it saw; nothing where that cannot be read."""
    try:
        return _observation(claim) or _Observation()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Observation()


def score_here(batch: Batch, candidates: Sequence[Candidate], config: Config) -> list[str]:
    """Score candidates in whatever process an executor calls this in; the record is the caller's to write."""
    letters = [""] * len(candidates)
    left = iter([candidates])

    async def draw(_count: int) -> Sequence[Candidate]:
        return next(left, ())

    async def run() -> None:
        folders = RunFolders()
        servers = TrialServers(folders)
        try:
            async for scores in run_batch(batch, draw, achieved_tier(config), config, servers, 1):
                for position, row in scores:
                    letters[position] = row
        finally:
            await servers.close()
            folders.close()

    asyncio.run(run())
    return letters


async def _run_away(
    batch: Batch, draw: Draw, config: Config, executor: Executor, parallel: int
) -> AsyncGenerator[Scores, None]:
    """Score candidates on an executor's workers, a share each at a time; yields each share when it is done."""
    drawn, size, ended = 0, _AWAY_FIRST, False
    running: dict[asyncio.Future[list[str]], tuple[int, float]] = {}
    try:
        while running or not ended:
            while not ended and len(running) < parallel:
                if not (candidates := await draw(size)):
                    ended = True
                    break
                future = asyncio.wrap_future(executor.submit(score_here, batch, candidates, config))
                running[future] = (drawn, time.perf_counter())
                drawn += len(candidates)
            if not running:
                return
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                first, began = running.pop(future)
                letters = future.result()
                took_s = time.perf_counter() - began
                size = max(_AWAY_FIRST, min(4 * size, int(len(letters) * _AWAY_S / max(took_s, 0.01))))
                yield list(enumerate(letters, first))
    finally:
        for future in running:
            future.cancel()
