"""Trials and searches: restricted code, on record.

A trial has a row of the log. A search is many variants of one code, and has one row for all: `score` runs thousands of
candidates in batches and tells one letter a check; `observe` runs a code with its lines and types watched; `run` gives
every pair a process of its own, through the same door as `hk.trials`, with a row for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from datetime import timedelta
from typing import Annotated, Any

import msgspec

from healkit.config import MIB, Config
from healkit.core.contracts.cassette import Cassette
from healkit.core.contracts.execution import Finished, Started, new_trace_id, utc_now
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import Check, CheckResult, Observed
from healkit.core.contracts.rpc import NO_CASSETTE, OUTLINE_MAX_CHARS, REPORT_EXTRA_BYTES, Init
from healkit.core.contracts.tools import EntryRef, Withheld
from healkit.core.crossing import values
from healkit.core.host import host_identity
from healkit.core.rendering import cleaning
from healkit.core.runtime import background
from healkit.core.runtime.calls import CALLS_MAX
from healkit.core.runtime.outcomes import (
    NO_ISOLATION,
    capped,
    conclude,
    fault_of,
    interruption_of,
    is_exact,
    is_played,
    is_typed,
    judged,
    outline_of,
    refusal_of,
    with_own_secrets,
)
from healkit.core.runtime.recording import Recorder, Recording
from healkit.core.store.arguments import pack_arguments
from healkit.core.wire import claims
from healkit.core.wire.claims import BadClaim
from healkit.core.wire.encoding import to_jsonable
from healkit.core.wire.framing import raw
from healkit.core.wire.record_text import summarize
from healkit.core.workers.sandbox import Tier
from healkit.core.workers.tiers import achieved_tier
from healkit.core.workers.worker import LAST_CHARS
from healkit.errors import CallNotOnRecord, HealkitError, InternalError, WorkerNotRestricted, is_refused
from healkit.parts.trials.messages import PASSED, Batch, BatchCheck
from healkit.parts.trials.preloading import preloading
from healkit.parts.trials.shares import (
    LOST,
    Answer,
    Reply,
    Settings,
    Share,
    TrialResult,
    decode_trial,
    result_of,
    run_batch_away,
    slots_of,
    spread,
)
from healkit.parts.trials.trialserver import Draw, Scores, TrialServers, run_batch, run_trials

_EMPTY, _NONE = Cassette(), Withheld()


class Trial(msgspec.Struct, frozen=True):
    """Code to try, as a vault entry would hold it, and the arguments to try it with.

    `name` is what a traceback calls it (`<name@0>`); it is also which function of several is meant. `call` is Python
    source to evaluate beside the code instead of calling its entry: statements and a last expression, whose value
    counts; the code need not have the shape of a tool then. Arguments that hold more than plain JSON arrive as they
    are, and so does the result then; `exact` asks for that too where they are plain. Where there is a `cassette`, its
    calls are answered from that, as those of the execution `run` were. `setup` is source to run before the code, which
    is that of a notebook's cell then. `withheld` are files whose reading ends it.
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


def _started(trial: Trial, logged: bytes, config: Config, tier: Tier, ahead_s: float) -> Started:
    """Return the write-ahead record of a trial; it has no persona and no revision of its own.

    logged: its arguments for the log. ahead_s: the longest that it may wait for other trials.
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
    """Return its end, for the log; without a fingerprint, by which a tool's own failures are grouped."""
    value = None if result.failure else summarize(values.readable_json(result.value).decode())
    last = result.printed if result.failure else ""
    return Finished(result.trace_id, utc_now(), result.duration_ms, value, result.failure, None, last)


async def run_here(
    inits: list[Init],
    records: list[Started],
    config: Config,
    parallel: int,
    servers: TrialServers,
    on_result: Callable[[int, TrialResult], None],
    read: tuple[str, ...] = (),
) -> None:
    """Run trials in servers of this process; `on_result` gets position and result as each ends."""
    tier = achieved_tier(config)
    coming = run_trials(inits, tier, config, servers, parallel, read=read)
    async for position, outcome, duration_ms in coming:
        record = records[position]
        try:
            result = await result_of(record.trace_id, outcome, inits[position], duration_ms)
        except Exception as error:  # noqa: BLE001 - an error of ours ends this trial, and none of the others
            fault = fault_of(record, error, duration_ms).failure
            result = TrialResult(record.trace_id, duration_ms, failure=fault, printed=outcome.last_output)
        on_result(position, result)


class Trials:
    """Runs lists of trials and records each; one for each `Healkit`."""

    def __init__(self, recorder: Recorder, config: Config) -> None:
        self._recorder = recorder
        self._config = config

    def run_all(
        self,
        trials: Iterable[Trial | tuple[str, Mapping[str, Any]]],
        *,
        parallel: int | None = None,
        executor: Executor | None = None,
    ) -> list[TrialResult]:
        """Try many pairs of code and arguments, each in a restricted child of its own, and return their results.

        A trial has no kernel, no displays and nothing to call; it is restricted and recorded like any execution.
        parallel: how many at a time; by default as many as there are processors, or workers of the executor.
        executor: any `concurrent.futures.Executor`; its workers then do the work, in shares of about a second. Trials
            that went down with a worker are `lost` in their results; they are not run again.

        Raises `IsolationUnavailable`, also where a worker's machine cannot restrict trials as this one does,
        `WorkerStartFailed`, or `ConfigError` for an executor that cannot be used; what a trial does never raises.
        """
        chosen = [trial if isinstance(trial, Trial) else Trial(*trial) for trial in trials]
        results = background.loop.wait_for(self.run(chosen, parallel, executor))
        return [_cleaned_trial(trial, result) for trial, result in zip(chosen, results, strict=True)]

    async def run(
        self,
        trials: Iterable[Trial],
        parallel: int | None,
        executor: Executor | None,
        *,
        off_record: bool = False,
        read: tuple[str, ...] = (),
    ) -> list[TrialResult]:
        """Run all of them; results are in the order of the trials.

        Raises `IsolationUnavailable` and `WorkerStartFailed`, and `ConfigError` for an executor that cannot be used.

        off_record: their rows hold no contents, as those of a tool that is kept off the record. read: folders and files
        of this machine that they may read; no executor has those.
        """
        chosen = list(trials)
        executor = None if read else executor
        slots = 0 if executor is None else await slots_of(executor, parallel)
        tier = await asyncio.to_thread(achieved_tier, self._config)
        longest_s = sum(trial.timeout_s or self._config.timeout_s for trial in chosen)
        packed = [_packed(trial) for trial in chosen]
        tapes = {
            id(cassette): raw(cassette)
            for cassette in {id(trial.cassette): trial.cassette for trial in chosen}.values()
        }
        records = [
            _started(trial, logged, self._config, tier, longest_s)
            for trial, (_, logged, _) in zip(chosen, packed, strict=True)
        ]
        inits = [
            _init(
                self._config,
                EntryRef(trial.name, "default", 0, ""),
                trial,
                sent,
                exact=exact,
                cassette=tapes[id(trial.cassette)],
                withheld=trial.withheld,
            )
            for trial, (sent, _, exact) in zip(chosen, packed, strict=True)
        ]
        config = preloading(self._config, inits)
        recordings = [Recording(self._recorder, record, contents=not off_record) for record in records]
        results: dict[int, TrialResult] = {}

        def take(position: int, result: TrialResult) -> None:
            recording = recordings[position]
            try:
                failure = self._recorder.without_secret_facts(result.failure)
                result = msgspec.structs.replace(result, failure=failure)
                finished = _finished(result)
            except Exception as error:  # noqa: BLE001 - an error of ours ends this trial, and none of the others
                finished = fault_of(recording.started, error, result.duration_ms)
            recording.finish(finished)
            if (fault := recording.fault or finished.failure) is not result.failure:
                result = TrialResult(result.trace_id, result.duration_ms, failure=fault)
            results[position] = result

        try:
            for recording in recordings:
                recording.begin()
            if executor is None:
                servers = background.pool_for(self._config).companion(TrialServers)
                parallel = max(1, min(parallel or os.cpu_count() or 1, len(chosen)))
                await run_here(inits, records, config, parallel, servers, take, read)
            else:
                settings = Settings.of(config, tier)
                await self._hand_out(executor, inits, recordings, slots, settings, take)
        except HealkitError:
            raise
        except Exception as error:
            raise InternalError.of(error) from error
        finally:
            for position in sorted(set(range(len(chosen))) - set(results)):
                _give_up(recordings[position], sys.exception())
        return [results[position] for position in range(len(chosen))]

    async def _hand_out(
        self,
        executor: Executor,
        inits: list[Init],
        recordings: list[Recording],
        slots: int,
        settings: Settings,
        take: Callable[[int, TrialResult], None],
    ) -> None:
        """Spread over an executor's workers; a trial whose share was lost fails, and is not run again."""
        records = [recording.started for recording in recordings]
        waiting = deque(range(len(inits)))

        async def draw(count: int) -> list[int]:
            fair = -(-len(waiting) // slots)
            return [waiting.popleft() for _ in range(min(count, fair))]

        def share_of(positions: Sequence[int]) -> Share:
            return Share(
                records[positions[0]].trace_id, settings, [inits[position] for position in positions]
            )

        def read(positions: Sequence[int], reply: Reply, took_s: float) -> list[TrialResult]:
            requests = [(records[position].trace_id, inits[position]) for position in positions]
            return _read_trials(requests, reply, took_s)

        coming = spread(executor, draw, share_of, read, slots, settings.isolation)
        async with contextlib.aclosing(coming) as answers:
            async for positions, answer in answers:
                for position, result in zip(positions, answer.results, strict=False):
                    take(position, result)
                for position in positions if answer.lost else ():
                    take(position, _lost(recordings[position], answer))


def _lost(recording: Recording, answer: Answer) -> TrialResult:
    """Return the result of a trial that has none, through no fault of its own."""
    evalue, hint = f"it was not run: {answer.lost}", "Run the trials that are `lost` again."
    if answer.sent:
        evalue, hint = answer.lost, f"{hint} This one may have run in part."
    failure = Failure(LOST, "WorkerLost", evalue, f"WorkerLost: {evalue}", hint=hint)
    return TrialResult(recording.started.trace_id, recording.elapsed_ms, failure=failure)


def _give_up(recording: Recording, raised: BaseException | None) -> None:
    """Record the end of a trial that was not run, or not to its end."""
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


def _read_trials(asked: Sequence[tuple[str, Init]], reply: Reply, took_s: float) -> list[TrialResult]:
    """Return the results of these trials, within the bounds of what was sent; raises `BadClaim`."""
    if reply.letters or len(reply.trials) > len(asked):
        raise BadClaim("it is about trials that were not sent")
    return [_bounded(*request, result, took_s) for request, result in zip(asked, reply.trials, strict=False)]


def _bounded(trace_id: str, init: Init, claim: bytes, took_s: float) -> TrialResult:
    decoded = decode_trial(claim, init)
    possible = {CallNotOnRecord.code} if is_played(init) else set()
    if (
        decoded.failure is not None
        and is_refused(decoded.failure.code)
        and decoded.failure.code not in possible
    ):
        raise BadClaim(f"no failure is of the kind {decoded.failure.code[:50]!r}")
    duration_ms = min(max(decoded.duration_ms, 0.0), took_s * 1000)
    failure = None if decoded.failure is None else with_own_secrets(capped(decoded.failure))
    value = None if failure is not None else decoded.value
    if init.exact:
        try:
            value = values.restore(value, limit_bytes=init.data_max_bytes)
        except values.BadValue as error:
            raise BadClaim(f"its value cannot be read: {error}") from None
    printed, own_s = decoded.printed[-LAST_CHARS:], min(max(decoded.took_s, 0.0), duration_ms / 1000)
    outline = decoded.outline[:OUTLINE_MAX_CHARS]
    answered, displaced = (min(max(number, 0), CALLS_MAX) for number in (decoded.answered, decoded.displaced))
    return TrialResult(trace_id, duration_ms, value, failure, printed, own_s, outline, answered, displaced)


def _packed(trial: Trial) -> tuple[bytes, bytes, bool]:
    """Return a trial's arguments as they are sent, as the log keeps them, and whether they cross as they are.

    Raises `ArgumentsInvalid` for what cannot cross.
    """
    if not trial.exact and values.is_plain(trial.arguments):
        plain = msgspec.json.encode(to_jsonable(trial.arguments)[0])
        return plain, plain, False
    packed = pack_arguments(trial.name, trial.arguments, inline=True)
    return packed.sent, packed.logged, True


def _init(
    config: Config,
    entry: EntryRef,
    trial: Trial,
    arguments: bytes,
    *,
    exact: bool,
    watch: bool = False,
    cassette: msgspec.Raw = NO_CASSETTE,
    withheld: Withheld = Withheld(),
) -> Init:
    """Return the work of one trial, with the configuration's limits; arguments: as they are sent."""
    return Init(
        entry=entry,
        code=trial.code,
        arguments=msgspec.Raw(arguments),
        definitions=[],
        timeout_s=trial.timeout_s or config.timeout_s,
        rpc_timeout_s=config.rpc_timeout_s,
        memory_bytes=config.memory_mb * MIB,
        cpu_s=config.cpu_s,
        result_max_bytes=config.result_max_bytes,
        output_max_bytes=config.result_max_bytes,
        data_max_bytes=config.memory_mb * MIB,
        call=trial.call,
        watch=watch,
        exact=exact,
        cassette=cassette,
        run=trial.run,
        setup=trial.setup,
        withheld=withheld,
    )


# Searches: many variants of one code, one row of the log.


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
    """Unverified report of a child on what it ran."""

    lines: list[_Line] = []
    failed_lines: list[_Line] = []
    types: dict[str, list[str]] = {}


_observation = msgspec.json.Decoder(_Observation | None).decode


@dataclasses.dataclass(frozen=True)
class Fixture:
    """Surroundings of tried code: a cassette that answers its calls, and folders that it may read.

    withheld: those that it may not, though its tool may.
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


class Searches:
    """Searches on one database's record; one for each `Healkit`. All methods belong to healkit's event loop.

    All raise `IsolationUnavailable` and `WorkerStartFailed`.
    """

    def __init__(self, recorder: Recorder, config: Config) -> None:
        self._recorder = recorder
        self._config = config
        self._trials = Trials(recorder, config)

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
        """Try candidates, splices of the code, until there are no more; `on_scores` gets outcomes as they come.

        parallel: how many servers; by default as many as there are processors, or workers of the executor. executor:
        any `concurrent.futures.Executor`, whose workers then do the work. Cancelling it ends what runs; what was
        counted until then is on record. Raises `ConfigError` for an executor that cannot be used.
        """
        batch = Batch(
            entry=held.entry,
            code=held.code,
            checks=[_as_sent(check, limit_s) for check, limit_s in held.limited()],
            every=every,
            memory_bytes=self._config.memory_mb * MIB,
            result_max_bytes=self._config.result_max_bytes,
            output_max_bytes=self._config.result_max_bytes,
            as_code=as_code,
            cassette=held.fixture.cassette,
            withheld=held.fixture.withheld,
        )
        executor = None if held.fixture.read else executor  # other machines do not have those files
        slots = 0 if executor is None else await slots_of(executor, parallel)
        config = preloading(self._config, [batch])
        score = Score()
        async with self._recorded(held.entry, {"checks": len(held.checks)}, score.summary) as tier:
            if executor is None:
                servers = background.pool_for(self._config).companion(TrialServers)
                parallel = parallel or os.cpu_count() or 1
                coming = run_batch(batch, draw, tier, config, servers, parallel, held.fixture.read)
            else:
                settings = Settings.of(config, tier)
                coming = run_batch_away(batch, draw, settings, executor, slots, score.lose)
            async with contextlib.aclosing(coming):
                async for scores in coming:
                    score.add(scores)
                    on_scores(scores)
        return score

    async def observe(self, held: Held, *, watch: bool = True) -> list[Observed]:
        """Run the code once for each check, each in a process of its own.

        watch: False for what each check gives and how long it takes, and nothing else.
        """
        config, entry, cassette = self._config, held.entry, raw(held.fixture.cassette)
        inits = [
            _init(
                config,
                entry,
                Trial(held.code, timeout_s=limit_s, call=check.call, run=run_of(check), setup=check.setup),
                msgspec.json.encode(_sent_arguments(check)),
                exact=is_exact(check),
                watch=watch,
                cassette=cassette,
                withheld=held.fixture.withheld,
            )
            for check, limit_s in held.limited()
        ]
        observations: dict[int, Observed] = {}
        servers = background.pool_for(config).companion(TrialServers)
        parallel = min(os.cpu_count() or 1, max(len(inits), 1))
        what = {"observed" if watch else "timed": len(inits)}
        async with self._recorded(entry, what, dict) as tier:
            coming = run_trials(
                inits, tier, preloading(config, inits), servers, parallel, read=held.fixture.read
            )
            async with contextlib.aclosing(coming):
                async for position, outcome, duration_ms in coming:
                    (value, failure), claim = await conclude(outcome, inits[position]), outcome.complete
                    took_s = _took_s(0.0 if claim is None else claim.took_s, duration_ms)
                    outline = outline_of(value, claim, inits[position])
                    result = judged(held.checks[position], value, failure, took_s, outline=outline)
                    watched = _seen(claim.watched if claim is not None else msgspec.Raw(b"null"))
                    failed_lines: Sequence[int] = watched.failed_lines
                    if not failed_lines and failure is not None:  # killed before it could tell
                        failed_lines = [frame.lineno for frame in failure.frames if frame.in_tool]
                    observations[position] = Observed(
                        result=result,
                        lines=watched.lines,
                        failed_lines=list(failed_lines),
                        types=watched.types,
                    )
        return [observations[position] for position in range(len(inits))]

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
        fixture: Fixture = Fixture(),
    ) -> list[list[CheckResult]]:
        """Run each code with each check, every pair in a process of its own and on record as a trial."""
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
        results = await self._trials.run(trials, parallel, executor, off_record=off_record, read=fixture.read)
        check_results = [
            msgspec.structs.replace(
                judged(
                    checks[i % len(checks)],
                    r.value,
                    r.failure,
                    _took_s(r.took_s, r.duration_ms),
                    r.trace_id,
                    r.outline,
                ),
                answered=r.answered,
                displaced=r.displaced,
            )
            for i, r in enumerate(results)
        ]
        return [check_results[i * len(checks) : (i + 1) * len(checks)] for i in range(len(codes))]

    @contextlib.asynccontextmanager
    async def _recorded(
        self, entry: EntryRef, what: dict[str, Any], summary: Callable[[], dict[str, Any]]
    ) -> AsyncIterator[Tier]:
        """Keep a row of the log for the block: RUNNING before, with the result after."""
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
    """Return which execution's calls a cassette answers a check with first; empty for one that was never run."""
    return "" if check.log_id is None else str(check.log_id)


def _sent_arguments(check: Check) -> Any:
    return check.arguments if is_exact(check) else to_jsonable(check.arguments)[0]


def _took_s(claimed_s: float, duration_ms: float) -> float:
    """Return how long a check took: the worker's own number, if it is plausible."""
    own_s = duration_ms / 1000
    return claimed_s if 0.0 < claimed_s < own_s else own_s


def _seen(claim: msgspec.Raw) -> _Observation:
    """Return what a child reports to have observed; empty if that cannot be read."""
    try:
        return claims.decode(claim, _observation, max_bytes=REPORT_EXTRA_BYTES) or _Observation()
    except claims.BadClaim:
        return _Observation()


def _cleaned_trial(trial: Trial, result: TrialResult) -> TrialResult:
    """Return a trial's result as it may be shown, with its value as it is."""
    if result.failure is None and not result.printed:
        return result
    cleaner = cleaning.sanitizer().of_record()
    cleaning.arguments(trial.arguments, cleaner)
    failure = None if result.failure is None else cleaning.failure(result.failure, cleaner)
    return msgspec.structs.replace(result, failure=failure, printed=cleaner.text(result.printed).value)
