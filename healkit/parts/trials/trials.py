"""Trials and searches: restricted code, on record.

A trial has a row of the log. A search is many variants of one code, and has one row for all. `score` runs thousands of
candidates in batches and returns one letter per check; `observe` runs a code and watches its lines and types. `check`
runs every pair of a code and a check in its own process, as `hk.trials` does, with a row for each. All use the same
method: a job, on lanes (`variants.tried`).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from datetime import timedelta
from typing import Annotated, Any, TypeVar

import msgspec

from healkit.config import MIB, Config
from healkit.core.contracts.cassette import Cassette
from healkit.core.contracts.execution import Finished, Started, new_trace_id, utc_now
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import Check, CheckResult, Observed
from healkit.core.contracts.rpc import NO_CASSETTE, REPORT_EXTRA_BYTES, ExecutionComplete, Init
from healkit.core.contracts.tools import EntryRef, Withheld
from healkit.core.crossing import regions, values
from healkit.core.host import host_identity
from healkit.core.rendering import cleaning
from healkit.core.runtime import background
from healkit.core.runtime.outcomes import (
    NO_ISOLATION,
    conclude,
    fault_of,
    interruption_of,
    is_exact,
    is_typed,
    judged,
    outline_of,
    refusal_of,
)
from healkit.core.runtime.recording import Recorder, Recording
from healkit.core.store.arguments import pack_arguments
from healkit.core.wire import claims
from healkit.core.wire.encoding import to_jsonable
from healkit.core.wire.framing import raw
from healkit.core.wire.record_text import shortened
from healkit.core.workers.process import PANDAS_TAG
from healkit.core.workers.sandbox import Tier
from healkit.core.workers.tiers import achieved_tier
from healkit.core.workers.worker import LAST_CHARS, Outcome, split_crash_text
from healkit.errors import HealkitError, InternalError, WorkerNotRestricted
from healkit.parts.trials.messages import PASSED, Batch, BatchCheck, TrialDone
from healkit.parts.trials.shares import Away, Settings, slots_of
from healkit.parts.trials.trialserver import TrialServers, read_claim
from healkit.parts.trials.variants import BatchJob, Draw, Here, Job, Lane, Scores, TrialJob, tried

_EMPTY, _NONE = Cassette(), Withheld()
I = TypeVar("I")  # noqa: E741 - an item
R = TypeVar("R")


class Trial(msgspec.Struct, frozen=True):
    """Code to try, in the form of a vault entry, and its arguments.

    `name` is the name in a traceback (`<name@0>`); it also says which of several functions is meant. `call` is Python
    source to evaluate instead of calling the entry: statements and a last expression, whose value counts. The code then
    need not have the form of a tool. Arguments beyond plain JSON arrive unchanged, and so does the result. `exact`
    requests that for plain arguments too. With a `cassette`, calls are answered from it, as those of the execution
    `run`. `setup` is source to run before the code, which is then a notebook cell's. `withheld` are files whose reading
    ends it.
    """

    code: str
    arguments: Mapping[str, Any] = {}
    name: str = "trial"
    timeout_s: float | None = None
    call: str = ""
    exact: bool = False
    cassette: Cassette | None = None
    run: str = ""
    setup: str = ""
    withheld: Withheld = Withheld()


class TrialResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of one trial, at the same position as its trial in the list."""

    trace_id: str = ""
    duration_ms: float = 0.0
    value: Any = None
    failure: Failure | None = None
    printed: str = ""
    #: Time the code itself ran, as its worker claims (`ExecutionComplete.took_s`); 0 without a claim.
    took_s: float = 0.0
    #: What the value's JSON does not say of its types (`ExecutionComplete.outline`).
    outline: str = ""
    #: Calls that its cassette has answered, and those of them that had other arguments on record.
    answered: int = 0
    displaced: int = 0

    @property
    def ok(self) -> bool:
        """True when it returned."""
        return self.failure is None

    @property
    def lost(self) -> bool:
        """True if it has no result although it did not fail: its worker was lost, or never got it."""
        return self.failure is not None and self.failure.code == _LOST


#: Code of a trial without a result, through no fault of its own.
_LOST = "WORKER_LOST"
#: Room in a claim beyond the result: conversions, a traceback.
_CLAIM_EXTRA_BYTES = 1 << 20
_DETAIL_MAX_CHARS = 1000
_claim = msgspec.json.Decoder(ExecutionComplete).decode


async def result_of(
    done: TrialDone, init: Init, trace_id: str = ""
) -> tuple[TrialResult, ExecutionComplete | None]:
    """Return the result of a trial that has ended, and the report that it is based on."""
    outcome: Outcome = await read_claim(len(done.claim), outcome_of, done, init)
    (value, failure), claim = await conclude(outcome, init), outcome.complete
    result = TrialResult(trace_id, done.duration_ms, value, failure, outcome.last_output)
    if claim is not None:
        result = msgspec.structs.replace(
            result,
            took_s=min(claim.took_s, done.duration_ms / 1000),
            outline=outline_of(value, claim, init),
            answered=claim.answered,
            displaced=claim.displaced,
        )
    return result, claim


def outcome_of(done: TrialDone, init: Init) -> Outcome:
    """Return the end of a trial in the words of any other execution."""
    printed, crash_text = split_crash_text(done.printed.decode(errors="replace"))
    end = Outcome("complete", last_output=printed[-LAST_CHARS:], duration_ms=done.duration_ms)
    if done.ending:
        detail = done.detail[:_DETAIL_MAX_CHARS]
        return dataclasses.replace(end, ending=done.ending, crash_text=crash_text, detail=detail)
    if done.claim:
        try:
            claim = claims.decode(done.claim, _claim, max_bytes=init.result_max_bytes + _CLAIM_EXTRA_BYTES)
            return dataclasses.replace(end, complete=claim)
        except claims.BadClaim as error:
            return dataclasses.replace(end, ending="protocol", detail=str(error))
    return dataclasses.replace(end, ending="died", status=done.status, crash_text=crash_text)


#: A search's row that says RUNNING for longer may be taken for one of a dead host.
_DEADLINE_S = 3600.0


@dataclasses.dataclass
class Score:
    """Score of a search so far: how many candidates, how many passed every check, and each outcome's number.

    lost: How many were in a share that was lost with its worker, and were tried again.
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
    """Unverified report of a child on its run."""

    lines: list[_Line] = []
    failed_lines: list[_Line] = []
    types: dict[str, list[str]] = {}


_observation = msgspec.json.Decoder(_Observation | None).decode


@dataclasses.dataclass(frozen=True)
class Fixture:
    """Surroundings of tried code: a cassette that answers its calls, and folders that it may read.

    withheld: Folders that it may not read, although its tool may.
    """

    cassette: Cassette = _EMPTY
    read: tuple[str, ...] = ()
    withheld: Withheld = _NONE


@dataclasses.dataclass(frozen=True)
class Held:
    """Code with the checks that it must pass, each with its time limit in seconds; `entry` is its name on record."""

    entry: EntryRef
    code: str
    checks: Sequence[Check]
    limits_s: Sequence[float]
    fixture: Fixture = Fixture()

    def limited(self) -> Iterator[tuple[Check, float]]:
        """Yield each check with its limit."""
        return zip(self.checks, self.limits_s, strict=True)


class Trials:
    """Runs lists of variants on one database's record. All methods except `run_all` belong to healkit's event loop.

    All raise `IsolationUnavailable` and `WorkerStartFailed`, and `ConfigError` for an unusable executor.
    """

    def __init__(self, recorder: Recorder, config: Config) -> None:
        self._recorder = recorder
        self.config = config

    def run_all(
        self,
        trials: Iterable[Trial | tuple[str, Mapping[str, Any]]],
        *,
        parallel: int | None = None,
        executor: Executor | None = None,
    ) -> list[TrialResult]:
        """Try many pairs of code and arguments, each in a restricted child, and return their results.

        A trial has no kernel, no displays and nothing to call; it is restricted and recorded like any execution.

        parallel: How many at a time; by default as many as there are processors, or workers of the executor.
        executor: Any `concurrent.futures.Executor`; its workers then do the work, in shares of about a second. Trials
            that were lost with a worker are `lost` in their results; they do not run again.

        Raises `IsolationUnavailable`, also if a worker's machine cannot restrict trials as this one does,
        `WorkerStartFailed`, or `ConfigError` for an unusable executor. Errors of a trial are never raised.

        Example:
        >>> code = "def inverse(n): return 1 / n"
        >>> results = hk.trials([(code, {"n": 2}), (code, {"n": 0})])
        >>> [(result.ok, result.value) for result in results]
        [(True, 0.5), (False, None)]
        """
        chosen = [trial if isinstance(trial, Trial) else Trial(*trial) for trial in trials]
        results = background.loop.wait_for(self.run(chosen, parallel, executor))
        return [_cleaned_trial(trial, result) for trial, result in zip(chosen, results, strict=True)]

    async def run(
        self,
        trials: Iterable[Trial],
        parallel: int | None = None,
        executor: Executor | None = None,
        *,
        off_record: bool = False,
        read: tuple[str, ...] = (),
    ) -> list[TrialResult]:
        """Run all of them; results are in the order of the trials.

        off_record: Their rows contain no contents, as for a tool that is kept off the record.
        read: Folders and files of this machine that they may read; an executor does not have them.
        """
        chosen = list(trials)
        executor = None if read else executor
        count = min(await lane_count(parallel, executor), max(len(chosen), 1))
        tier = await asyncio.to_thread(achieved_tier, self.config)
        longest_s = sum(trial.timeout_s or self.config.timeout_s for trial in chosen)
        packed = [_packed(trial) for trial in chosen]
        cassettes = {id(trial.cassette): trial.cassette for trial in chosen}
        tapes = {place: raw(cassette) for place, cassette in cassettes.items()}
        inits = [
            _init(self.config, trial, sent, exact=exact, cassette=tapes[id(trial.cassette)])
            for trial, (sent, _, exact) in zip(chosen, packed, strict=True)
        ]
        recordings = [
            Recording(
                self._recorder,
                _started(trial, logged, self.config, tier, longest_s),
                contents=not off_record,
            )
            for trial, (_, logged, _) in zip(chosen, packed, strict=True)
        ]
        results: dict[int, TrialResult] = {}
        try:
            for recording in recordings:
                recording.begin()
            config = preloading(self.config, inits)
            lanes = self.lanes(TrialJob(inits), tier, config, count, executor=executor, read=read)
            async with contextlib.aclosing(tried(lanes)) as coming:
                async for ends in coming:
                    for position, done in ends:
                        results[position] = await self._end(recordings[position], done, inits[position])
        except HealkitError:
            raise
        except Exception as error:
            raise InternalError.of(error) from error
        finally:
            for position in sorted(set(range(len(chosen))) - set(results)):
                _give_up(recordings[position], sys.exception())
        return [results[position] for position in range(len(chosen))]

    async def _end(self, recording: Recording, done: TrialDone, init: Init) -> TrialResult:
        """Record the end of a trial, and return its result."""
        trace_id, result = recording.started.trace_id, TrialResult()
        try:
            result, _ = await result_of(done, init, trace_id)
            failure = self._recorder.without_secret_facts(result.failure)
            result = msgspec.structs.replace(result, failure=failure)
            finished = _finished(result)
        except Exception as error:  # noqa: BLE001 - our own error ends this trial only
            finished = fault_of(recording.started, error, done.duration_ms)
        recording.finish(finished)
        if (fault := recording.fault or finished.failure) is not result.failure:
            return TrialResult(trace_id, done.duration_ms, failure=fault)
        return result

    def lanes(
        self,
        job: Job[I, R],
        tier: Tier,
        config: Config,
        count: int,
        *,
        executor: Executor | None = None,
        read: tuple[str, ...] = (),
    ) -> list[Lane[I, R]]:
        """Return the lanes: trial servers of this process, which may read something, or slots of an executor."""
        if executor is not None:
            return Away(executor, count, Settings.of(config, tier)).lanes(job)
        servers = background.pool_for(self.config).companion(TrialServers)
        return Here(tier, config, servers, read).lanes(job, count)

    async def observe(self, held: Held, *, watch: bool = True) -> list[Observed]:
        """Run the code once for each check, each in its own process.

        watch: False for only the result and the duration of each check.
        """
        entry, fixture, tape = held.entry, held.fixture, raw(held.fixture.cassette)
        inits = [
            _init(
                self.config,
                Trial(
                    held.code, {}, entry.tool_name, limit_s, check.call, run=run_of(check), setup=check.setup,
                    withheld=fixture.withheld,
                ),
                msgspec.json.encode(_sent_arguments(check)),
                exact=is_exact(check),
                cassette=tape,
                entry=entry,
                watch=watch,
            )
            for check, limit_s in held.limited()
        ]  # fmt: skip
        observations: dict[int, Observed] = {}
        count = min(os.cpu_count() or 1, max(len(inits), 1))
        what = {"observed" if watch else "timed": len(inits)}
        async with self._recorded(entry, what, dict) as tier:
            config = preloading(self.config, inits)
            lanes = self.lanes(TrialJob(inits), tier, config, count, read=fixture.read)
            async with contextlib.aclosing(tried(lanes)) as coming:
                async for ends in coming:
                    for position, done in ends:
                        result, claim = await result_of(done, inits[position])
                        observations[position] = _observed(held.checks[position], result, claim)
        return [observations[position] for position in range(len(inits))]

    async def check(
        self,
        entry: EntryRef,
        codes: Sequence[str],
        checks: Sequence[Check],
        limits_s: Sequence[float],
        *,
        off_record: bool = False,
        fixture: Fixture = Fixture(),
    ) -> list[list[CheckResult]]:
        """Run each code with each check, every pair in its own process and on record as a trial."""
        trials = [
            Trial(
                code,
                values.remade(check.arguments),
                entry.tool_name,
                limit_s,
                check.call,
                is_exact(check),
                fixture.cassette,
                run_of(check),
                check.setup,
                fixture.withheld,
            )
            for code in codes
            for check, limit_s in zip(checks, limits_s, strict=True)
        ]
        results = iter(await self.run(trials, off_record=off_record, read=fixture.read))
        return [[_judged(check, next(results), calls=True) for check in checks] for _ in codes]

    async def score(
        self,
        held: Held,
        draw: Draw,
        on_scores: Callable[[Scores], None],
        *,
        every: bool = False,
        as_code: bool = False,
        parallel: int | None = None,
        executor: Executor | None = None,
    ) -> Score:
        """Try candidates, changes of the code, until there are no more; `on_scores` gets outcomes as they come.

        parallel: How many servers; by default as many as there are processors, or workers of the executor.
        executor: Any `concurrent.futures.Executor`, whose workers then do the work.

        Cancelling it stops running candidates; the outcomes until then are on record.
        """
        batch = Batch(
            entry=held.entry,
            code=held.code,
            checks=[_as_sent(check, limit_s) for check, limit_s in held.limited()],
            every=every,
            memory_bytes=self.config.memory_mb * MIB,
            result_max_bytes=self.config.result_max_bytes,
            output_max_bytes=self.config.result_max_bytes,
            as_code=as_code,
            cassette=held.fixture.cassette,
            withheld=held.fixture.withheld,
        )
        executor = None if held.fixture.read else executor  # other machines do not have those files
        count = await lane_count(parallel, executor)
        config = preloading(self.config, [batch])
        score = Score()
        async with self._recorded(held.entry, {"checks": len(held.checks)}, score.summary) as tier:
            job = BatchJob(batch, draw, score.lose)
            lanes = self.lanes(job, tier, config, count, executor=executor, read=held.fixture.read)
            async with contextlib.aclosing(tried(lanes)) as coming:
                async for scores in coming:
                    score.add(scores)
                    on_scores(scores)
        return score

    @contextlib.asynccontextmanager
    async def _recorded(
        self, entry: EntryRef, what: dict[str, Any], summary: Callable[[], dict[str, Any]]
    ) -> AsyncIterator[Tier]:
        """Keep a row of the log for the block: RUNNING before, with the result after."""
        tier = await asyncio.to_thread(achieved_tier, self.config)
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


def _started(trial: Trial, logged: bytes, config: Config, tier: Tier, ahead_s: float) -> Started:
    """Return the write-ahead record of a trial; it has no persona and no revision of its own.

    logged: Its arguments for the log.
    ahead_s: The longest time that it may wait for other trials.
    """
    now = utc_now()
    return Started(
        trace_id=new_trace_id(),
        timestamp=now,
        tool_name=trial.name,
        persona="default",
        arguments=logged.decode(),
        origin="trial",
        host=host_identity(),
        deadline=now + timedelta(seconds=ahead_s + config.start_timeout_s),
        isolation=tier,
    )


def _finished(result: TrialResult) -> Finished:
    """Return its end, for the log; without a fingerprint, because that groups a tool's own failures."""
    value = None if result.failure else shortened(values.readable_json(result.value).decode())
    last = result.printed if result.failure else ""
    return Finished(result.trace_id, utc_now(), result.duration_ms, value, result.failure, None, last)


def _give_up(recording: Recording, raised: BaseException | None) -> None:
    """Record the end of a trial that did not run, or not to its end."""
    if isinstance(raised, WorkerNotRestricted):
        recording.add(isolation=NO_ISOLATION)
        recording.begin()
    if isinstance(raised, InternalError) and raised.__cause__ is not None:
        recording.refuse(fault_of(recording.started, raised.__cause__, recording.elapsed_ms))
        return
    if isinstance(raised, HealkitError):
        recording.refuse(refusal_of(recording.started, raised, recording.elapsed_ms))
        return
    reason = "the trials were stopped"
    failure = Failure("TOOL_KILLED", "Stopped", reason, f"Stopped: {reason}")
    trace_id, duration_ms = recording.started.trace_id, recording.elapsed_ms
    recording.refuse(Finished(trace_id, utc_now(), duration_ms, None, failure))


def _packed(trial: Trial) -> tuple[bytes, bytes, bool]:
    """Return a trial's arguments for sending and for the log, and whether they cross unchanged.

    Raises `ArgumentsInvalid` for arguments that cannot cross.
    """
    if not trial.exact and values.is_plain(trial.arguments):
        plain = msgspec.json.encode(to_jsonable(trial.arguments)[0])
        return plain, plain, False
    packed = pack_arguments(trial.name, trial.arguments, inline=True)
    return packed.sent, packed.logged, True


def _init(
    config: Config,
    trial: Trial,
    arguments: bytes,
    *,
    exact: bool,
    cassette: msgspec.Raw = NO_CASSETTE,
    entry: EntryRef | None = None,
    watch: bool = False,
) -> Init:
    """Return the work of one trial, with the configuration's limits.

    arguments: In the form for sending.
    """
    return Init(
        entry=entry or EntryRef(trial.name, "default", 0, ""),
        code=trial.code,
        arguments=msgspec.Raw(arguments),
        definitions=[],
        timeout_s=trial.timeout_s or config.timeout_s,
        rpc_timeout_s=config.rpc_timeout_s,
        memory_bytes=config.memory_mb * MIB,
        cpu_s=config.cpu_s,
        result_max_bytes=config.result_max_bytes,
        output_max_bytes=config.result_max_bytes,
        data_max_bytes=regions.at_most(config.memory_mb * MIB),
        call=trial.call,
        watch=watch,
        exact=exact,
        cassette=cassette,
        run=trial.run,
        setup=trial.setup,
        withheld=trial.withheld,
    )


async def lane_count(parallel: int | None, executor: Executor | None) -> int:
    """Return the number of lanes: `parallel`, otherwise as many as there are processors or workers of the executor."""
    return parallel or os.cpu_count() or 1 if executor is None else await slots_of(executor, parallel)


def _as_sent(check: Check, limit_s: float) -> BatchCheck:
    return BatchCheck(
        arguments=raw(_sent_arguments(check)),
        exact=is_exact(check),
        typed=is_typed(check),
        call=check.call,
        known=check.known,
        expected=raw(check.expected),
        raises=check.raises,
        timeout_s=limit_s,
        run=run_of(check),
        setup=check.setup,
    )


def run_of(check: Check) -> str:
    """Return the execution whose calls a cassette answers first for a check; empty for a check without one."""
    return "" if check.log_id is None else str(check.log_id)


def _sent_arguments(check: Check) -> Any:
    return check.arguments if is_exact(check) else to_jsonable(check.arguments)[0]


def _judged(check: Check, result: TrialResult, *, calls: bool = False) -> CheckResult:
    """Return the check's result; its time is the worker's own number, if that is plausible.

    calls: Count them too.
    """
    took_s = result.took_s or result.duration_ms / 1000
    outcome = judged(check, result.value, result.failure, took_s, result.trace_id, result.outline)
    if not calls:
        return outcome
    return msgspec.structs.replace(outcome, answered=result.answered, displaced=result.displaced)


def _observed(check: Check, result: TrialResult, claim: ExecutionComplete | None) -> Observed:
    watched = observation_of(claim.watched if claim is not None else msgspec.Raw(b"null"))
    failed_lines: Sequence[int] = watched.failed_lines
    if not failed_lines and result.failure is not None:  # killed before it could tell
        failed_lines = [frame.lineno for frame in result.failure.frames if frame.in_tool]
    return Observed(
        result=_judged(check, result),
        lines=watched.lines,
        failed_lines=list(failed_lines),
        types=watched.types,
    )


def observation_of(claim: msgspec.Raw) -> _Observation:
    """Return a child's observations; empty if they cannot be read."""
    try:
        return claims.decode(claim, _observation, max_bytes=REPORT_EXTRA_BYTES) or _Observation()
    except claims.BadClaim:
        return _Observation()


def _cleaned_trial(trial: Trial, result: TrialResult) -> TrialResult:
    """Return a trial's result in a form that may be shown, with its exact value."""
    if result.failure is None and not result.printed:
        return result
    cleaner = cleaning.sanitizer().of_record()
    cleaning.arguments(trial.arguments, cleaner)
    failure = None if result.failure is None else cleaning.failure(result.failure, cleaner)
    return msgspec.structs.replace(result, failure=failure, printed=cleaner.text(result.printed).value)


# Library that trials need, imported ahead by their server.


_PANDAS_CODE, _NUMPY_CODE = (re.compile(rf"\b(?:import|from)\s+{name}\b") for name in ("pandas", "numpy"))
_NUMPY_TAG = re.compile(rb'"@":\["(?:numpy|dtype|ndarray|objects|texts)"')


def preloading(config: Config, work: Sequence[Init | Batch]) -> Config:
    """Return the settings, with the library that the work needs among the preloaded ones."""
    wanted = ""
    for task in work:
        if _PANDAS_CODE.search(_source(task)) or any(PANDAS_TAG.search(text) for text in _texts(task)):
            wanted = "pandas"
            break
        if _NUMPY_CODE.search(_source(task)) or any(_NUMPY_TAG.search(text) for text in _texts(task)):
            wanted = "numpy"
    if not wanted or wanted in config.preload:
        return config
    return dataclasses.replace(config, preload=(*config.preload, wanted))


def _source(work: Init | Batch) -> str:
    """Return the code of the work, with the code that runs before it."""
    setups = [work.setup] if isinstance(work, Init) else [check.setup for check in work.checks]
    return "\n".join([work.code, *setups])


def _texts(work: Init | Batch) -> list[bytes]:
    """Return the encoded values of the work that may contain frames or arrays."""
    if isinstance(work, Init):
        return [bytes(work.cassette), *([bytes(work.arguments)] if work.exact else [])]
    exact = [check for check in work.checks if check.exact]
    encoded_values = [bytes(text) for check in exact for text in (check.arguments, check.expected)]
    return [*encoded_values, *(bytes(call.result) for call in work.cassette.calls)]
