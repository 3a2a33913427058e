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
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from datetime import timedelta
from typing import Annotated, Any

import msgspec

from healkit import values
from healkit.config import MIB, Config
from healkit.contracts import claims
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.execution import Finished, Started, host_identity, new_trace_id, utc_now
from healkit.contracts.healing import PASSED, Batch, BatchCheck, Check, CheckResult, Observed
from healkit.contracts.rpc import REPORT_EXTRA_BYTES, Init, raw
from healkit.contracts.tools import EntryRef
from healkit.errors import HealkitError, InternalError
from healkit.runtime import background
from healkit.runtime.outcomes import (
    conclude,
    fault_of,
    interruption_of,
    is_exact,
    judged,
    outline_of,
    refusal_of,
)
from healkit.runtime.recording import Recorder, Recording
from healkit.runtime.remote_scoring import run_batch_away
from healkit.runtime.shares import Settings, slots_of
from healkit.runtime.trials import Trial, Trials
from healkit.workers.preloads import preloading
from healkit.workers.probe import achieved_tier
from healkit.workers.sandbox import Tier
from healkit.workers.scoring import Draw, Scores, run_batch
from healkit.workers.trial_runs import run_trials

#: A search's row that says RUNNING for longer may be taken for one of a dead host.
_DEADLINE_S = 3600.0


@dataclasses.dataclass
class Score:
    """Score of a search so far: how many candidates, how many passed every check, and each outcome's number.

    lost: how many were in a share that was lost with its worker, and were tried again.
    """

    candidates: int = 0
    plausible: int = 0
    outcomes: Counter[str] = dataclasses.field(default_factory=Counter)
    lost: int = 0

    def add(self, scores: Scores) -> None:
        """Count some more."""
        self.candidates += len(scores)
        for _, letters in scores:
            self.outcomes.update(letters)
            self.plausible += letters == PASSED * len(letters)

    def lose(self, count: int) -> None:
        """Count candidates whose share was lost."""
        self.lost += count

    def summary(self) -> dict[str, Any]:
        """Return it for the log."""
        counts = {"candidates": self.candidates, "plausible": self.plausible, "outcomes": dict(self.outcomes)}
        return counts | ({"lost": self.lost} if self.lost else {})


_Line = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class _Observation(msgspec.Struct, frozen=True):
    """A child's own account of what it ran; a claim."""

    lines: list[_Line] = []
    failed_lines: list[_Line] = []
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

        parallel: how many servers; by default as many as there are processors, or workers of the executor. executor:
        any `concurrent.futures.Executor`, whose workers then do the work. Cancelling it ends what runs; what was
        counted until then is on record. Raises `ConfigError` for an executor that cannot be used.
        """
        batch = msgspec.structs.replace(self._batch(entry, code, checks, limits_s, every), as_code=as_code)
        slots = 0 if executor is None else await slots_of(executor, parallel)
        config = preloading(self._config, [batch])
        score = Score()
        async with self._recorded(entry, {"checks": len(checks)}, score.summary) as tier:
            if executor is None:
                servers = background.pool_for(self._config).trial_servers
                parallel = parallel or os.cpu_count() or 1
                coming = run_batch(batch, draw, tier, config, servers, parallel)
            else:
                settings = Settings.of(config, tier)
                coming = run_batch_away(batch, draw, settings, executor, slots, score.lose)
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
            Trial(code, values.remade(check.arguments), entry.tool_name, limit_s, check.call, is_exact(check))
            for code in codes
            for check, limit_s in zip(checks, limits_s, strict=True)
        ]
        results = await self._trials.run(trials, parallel, executor, off_record=off_record)
        found = [
            judged(
                checks[i % len(checks)],
                r.value,
                r.failure,
                _took_s(r.took_s, r.duration_ms),
                r.trace_id,
                r.outline,
            )
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
        config = preloading(self._config, inits)
        async with contextlib.aclosing(run_trials(inits, tier, config, servers, parallel)) as coming:
            async for position, outcome, duration_ms in coming:
                (value, failure), claim = await conclude(outcome, inits[position]), outcome.complete
                took_s = _took_s(0.0 if claim is None else claim.took_s, duration_ms)
                outline = outline_of(value, claim, inits[position])
                result = judged(checks[position], value, failure, took_s, outline=outline)
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
            arguments=raw(_sent_arguments(check)),
            definitions=[],
            timeout_s=limit_s,
            rpc_timeout_s=config.rpc_timeout_s,
            memory_bytes=config.memory_mb * MIB,
            cpu_s=config.cpu_s,
            result_max_bytes=config.result_max_bytes,
            output_max_bytes=config.output_max_bytes,
            call=check.call,
            watch=watch,
            exact=is_exact(check),
            data_max_bytes=config.data_mb * MIB,
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

        def end(**more: bool) -> None:
            value = msgspec.json.encode(what | summary() | more).decode()
            recording.finish(Finished(started.trace_id, utc_now(), recording.elapsed_ms, value))

        try:
            recording.begin()
            yield tier
            end()
        except asyncio.CancelledError:
            end(stopped=True)
            raise
        except HealkitError as error:
            recording.refuse(refusal_of(recording.started, error, recording.elapsed_ms))
            raise
        except Exception as error:
            recording.refuse(fault_of(recording.started, error, recording.elapsed_ms))
            raise InternalError.of(error) from error
        finally:
            if (raised := sys.exception()) is not None:  # the first end counts
                recording.refuse(interruption_of(recording.started, raised, recording.elapsed_ms))


def _as_sent(check: Check, limit_s: float) -> BatchCheck:
    return BatchCheck(
        arguments=raw(_sent_arguments(check)),
        exact=is_exact(check),
        call=check.call,
        known=check.known,
        expected=raw(check.expected),
        raises=check.raises,
        timeout_s=limit_s,
    )


def _sent_arguments(check: Check) -> Any:
    return check.arguments if is_exact(check) else to_jsonable(check.arguments)[0]


def _took_s(claimed_s: float, duration_ms: float) -> float:
    """Return how long a check took: what its worker says, where that is possible."""
    own_s = duration_ms / 1000
    return claimed_s if 0.0 < claimed_s < own_s else own_s


def _seen(claim: msgspec.Raw) -> _Observation:
    """Return what a child says it saw; nothing where that cannot be read."""
    try:
        return claims.decode(claim, _observation, max_bytes=REPORT_EXTRA_BYTES) or _Observation()
    except claims.BadClaim:
        return _Observation()
