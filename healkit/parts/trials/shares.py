"""Shares of work for the workers of any executor.

Trials and candidates go out in small shares, as JSON: no pickled object of ours crosses in either direction, and of the
settings only those that a trial server needs. A worker of the executor builds its own restricted trial servers at the
tier that this machine has, or refuses; it keeps them for the next share. A share ends after about a second, however
much of it is left, so that little is lost with a worker, and little goes on after a Stop. What comes back is a claim:
it is bounded and checked before it is used. A share that is lost is never sent again by this module.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import itertools
import math
import os
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import new_trace_id
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import Edit
from healkit.core.contracts.rpc import REPORT_EXTRA_BYTES, Init
from healkit.core.crossing import values
from healkit.core.runtime import background
from healkit.core.runtime.outcomes import conclude, outline_of
from healkit.core.wire import claims
from healkit.core.wire.claims import BadClaim
from healkit.core.workers.sandbox import Tier
from healkit.core.workers.tiers import achieved_tier
from healkit.core.workers.worker import Outcome
from healkit.errors import (
    ConfigError,
    HealkitError,
    IsolationUnavailable,
    WorkerError,
    WorkerNotRestricted,
    WorkerStartFailed,
)
from healkit.parts.trials.messages import DIED, NOT_RUN, Batch
from healkit.parts.trials.trialserver import (
    Candidate,
    Draw,
    Scores,
    TrialServers,
    are_letters,
    run_batch,
    run_trials,
)

T = TypeVar("T")

#: Code of a trial without a result, through no fault of its own.
LOST = "WORKER_LOST"
#: Size of the first share, and the time after which a worker begins no more of one.
_FIRST, SHARE_S = 8, 1.0
#: Size of a reply after which a worker begins no more of a share.
_REPLY_BYTES = 8 << 20
#: Longest text of a foreign error that is shown.
_SAID_CHARS = 300
#: Longest wait for what a Dask scheduler says of itself, and the time between two looks at whether it is still there.
_ASK_S, _LOOK_S = 30.0, 1.0


class Settings(msgspec.Struct, frozen=True):
    """Settings of the trial servers, the same on every machine; the tier is the one to be had there."""

    isolation: Tier
    scratch_mb: int
    preload: tuple[str, ...]
    start_timeout_s: float

    @classmethod
    def of(cls, config: Config, tier: Tier) -> Settings:
        """Take them from the host's configuration, of which nothing else is sent."""
        return cls(tier, config.scratch_mb, config.preload, config.start_timeout_s)


class Share(msgspec.Struct, frozen=True, omit_defaults=True):
    """Work of one share: trials, or candidates of a batch. `key` is its own, or an executor may reuse a result."""

    key: str
    settings: Settings
    trials: list[Init] = []
    batch: Batch | None = None
    candidates: list[list[Edit]] = []


class TrialResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of one trial, in the place of its trial in the list; a worker of an executor knows no trace id."""

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
        """True when it has no result through no fault of its own: its worker was lost, or never got it."""
        return self.failure is not None and self.failure.code == LOST


async def result_of(trace_id: str, outcome: Outcome, init: Init, duration_ms: float) -> TrialResult:
    """Return the result of a trial that has ended."""
    (value, failure), claim = await conclude(outcome, init), outcome.complete
    took_s, answered, displaced = (
        (0.0, 0, 0) if claim is None else (claim.took_s, claim.answered, claim.displaced)
    )
    outline, last = outline_of(value, claim, init), outcome.last_output
    return TrialResult(trace_id, duration_ms, value, failure, last, took_s, outline, answered, displaced)


class Refusal(msgspec.Struct, frozen=True):
    """Reason why a worker of the executor runs nothing more."""

    code: str
    message: str
    host: str


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """Results of the first trials or candidates of a share, in order; the rest was not started.

    Each trial's is JSON of its own, so that its size and its elements are counted by themselves.
    """

    trials: list[bytes] = []
    letters: list[str] = []
    refusal: Refusal | None = None


@dataclasses.dataclass(frozen=True)
class Answer:
    """Answer to a share: results of its first items, or `lost`, the reason why there are none.

    refusal: why that worker runs no more. sent: False for a share that never went out.
    """

    results: Sequence[Any] = ()
    refusal: Refusal | None = None
    lost: str = ""
    sent: bool = True


_decode_share = msgspec.json.Decoder(Share).decode
_decode_reply = msgspec.json.Decoder(Reply).decode
_decode_trial = msgspec.json.Decoder(TrialResult).decode


def run_share(payload: bytes) -> bytes:
    """Run a share in whatever process an executor calls this in; the records are the host's to write."""
    share = _decode_share(payload)
    settings = share.settings
    try:
        config = Config(
            isolation=settings.isolation, scratch_mb=settings.scratch_mb,
            preload=settings.preload, start_timeout_s=settings.start_timeout_s,
        )  # fmt: skip
        tier = achieved_tier(config)
        reply = background.loop.wait_for(
            _scored(share, config, tier) if share.batch else _tried(share, config, tier)
        )
    except HealkitError as error:
        reply = Reply(refusal=_refusal(error))
    return msgspec.json.encode(reply)


async def _tried(share: Share, config: Config, tier: Tier) -> Reply:
    """Run trials one after the other, until none is left or the time of the share is up."""
    encoded_results: list[bytes] = []
    size, until = 0, math.inf

    def more() -> bool:
        nonlocal until
        until = min(until, time.monotonic() + SHARE_S)
        return time.monotonic() < until and size <= _REPLY_BYTES

    servers = background.pool_for(config).companion(TrialServers)
    coming = run_trials(share.trials, tier, config, servers, 1, more)
    try:
        async with contextlib.aclosing(coming):
            async for position, outcome, duration_ms in coming:
                init = share.trials[position]
                result = await result_of("", outcome, init, duration_ms)
                if init.exact:
                    result = msgspec.structs.replace(result, value=values.kept(result.value))
                encoded_results.append(msgspec.json.encode(result))
                size += len(encoded_results[-1])
    except HealkitError as error:
        return Reply(encoded_results, refusal=_refusal(error))
    return Reply(encoded_results)


async def _scored(share: Share, config: Config, tier: Tier) -> Reply:
    """Score candidates, until none is left or the time of the share is up."""
    assert share.batch is not None
    letters: dict[int, str] = {}
    drawn, began = 0, time.monotonic()

    async def draw(count: int) -> Sequence[Candidate]:
        nonlocal drawn
        if drawn and time.monotonic() - began > SHARE_S:
            return ()
        first, drawn = drawn, drawn + count
        return share.candidates[first:drawn]

    servers = background.pool_for(config).companion(TrialServers)
    async for scores in run_batch(share.batch, draw, tier, config, servers, 1):
        letters.update(scores)
    return Reply(letters=[letters[position] for position in range(len(letters))])


def decode_trial(claim: bytes, init: Init) -> TrialResult:
    """Return what a worker of the executor says of a trial; raises `BadClaim`."""
    return claims.decode(claim, _decode_trial, max_bytes=init.result_max_bytes + REPORT_EXTRA_BYTES)


def _refusal(error: HealkitError) -> Refusal:
    return Refusal(error.code, error.message, socket.gethostname())


async def spread(
    executor: Executor,
    draw: Callable[[int], Awaitable[Sequence[T]]],
    share_of: Callable[[Sequence[T]], Share],
    read: Callable[[Sequence[T], Reply, float], Sequence[Any]],
    slots: int,
    tier: Tier,
) -> AsyncGenerator[tuple[Sequence[T], Answer], None]:
    """Send shares of the items to the executor's workers, a limited number at a time; yield each with its answer.

    draw: returns up to so many items, none when there are no more at the moment; it is asked again after each answer.
    read: returns the results in a reply that took so many seconds; called in another thread; raises `BadClaim`.
    Items that a worker did not begin go out again; where a share was lost, its items are the caller's to deal with.
    Closing it cancels the shares that wait; those that run end by themselves.

    Raises `IsolationUnavailable`, `WorkerNotRestricted` or `WorkerStartFailed` for a worker that runs no more.
    """
    size = _FIRST
    again: deque[T] = deque()

    async def items_of_share() -> Sequence[T]:
        if not again:
            return await draw(size)
        return [again.popleft() for _ in range(min(size, -(-len(again) // slots)))]

    running: dict[asyncio.Future[bytes], tuple[Sequence[T], float, int]] = {}
    try:
        while True:
            while len(running) < slots and (items := await items_of_share()):
                try:  # in a thread: starting a process takes long, and some executors run it on the spot
                    share = share_of(items)
                    payload = msgspec.json.encode(share)
                    future = await asyncio.to_thread(executor.submit, run_share, payload)
                except Exception as error:  # noqa: BLE001 - each kind of executor has errors of its own
                    yield items, Answer(lost=f"the executor takes no more work: {_said(error)}", sent=False)
                else:
                    running[asyncio.wrap_future(future)] = items, time.perf_counter(), _reply_max_bytes(share)
            if not running:
                return
            done, _ = await asyncio.wait(running, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            if not done and _is_closed(executor):
                for ended in running:
                    ended.cancel()
                done = set(running)
            for ended in done:
                items, began, max_bytes = running.pop(ended)
                took_s = time.perf_counter() - began
                answer = await asyncio.to_thread(_answer, ended, max_bytes, items, read, took_s)
                if answer.results:
                    fitting = int(len(answer.results) * SHARE_S / max(took_s, 0.01))
                    size = max(_FIRST, min(4 * size, fitting))
                yield items, answer
                if answer.refusal is not None:
                    raise error_of(answer.refusal, tier)
                if not answer.lost:
                    again.extendleft(reversed(items[len(answer.results) :]))
    finally:
        for future_left in running:
            future_left.cancel()


def _answer(
    ended: asyncio.Future[bytes],
    max_bytes: int,
    items: Sequence[T],
    read: Callable[[Sequence[T], Reply, float], Sequence[Any]],
    took_s: float,
) -> Answer:
    """Return the answer to a share; a result that is no valid reply counts as lost."""
    if ended.cancelled():
        return Answer(lost="the executor cancelled it, or was closed")
    if (failed := ended.exception()) is not None:
        return Answer(lost=f"the executor gave no result: {_said(failed)}")
    try:
        if not isinstance(payload := ended.result(), bytes):
            raise claims.BadClaim(f"it is a {type(payload).__name__}")
        reply = claims.decode(payload, _decode_reply, max_bytes=max_bytes)
        results = read(items, reply, took_s)
        if not results and reply.refusal is None:
            raise claims.BadClaim("it is empty")
        return Answer(results, reply.refusal)
    except claims.BadClaim as error:
        return Answer(lost=f"the executor's result cannot be used: {error}")


def _reply_max_bytes(share: Share) -> int:
    """Return the size that no reply to it can have; JSON has a trial's bytes as text, a third longer."""
    last = max((init.result_max_bytes for init in share.trials), default=0) + REPORT_EXTRA_BYTES
    return 2 * (_REPLY_BYTES + last)


def error_of(refusal: Refusal, tier: Tier) -> HealkitError:
    """Return a worker's refusal as an error of this process, with its reason."""
    host, message = refusal.host[:_SAID_CHARS], refusal.message[:2000]
    if refusal.code == IsolationUnavailable.code:
        return IsolationUnavailable(
            f"A worker of the executor on {host!r} cannot restrict trials as this machine does ({tier}): {message}",
            hint="Run `healkit doctor` there, or set HEALKIT_ISOLATION to a tier that every machine has.",
        )
    kind = WorkerNotRestricted if refusal.code == WorkerNotRestricted.code else WorkerStartFailed
    return kind(
        f"A worker of the executor on {host!r} can run no trial: {message}",
        hint="Run `healkit doctor` there.",
    )


async def slots_of(executor: Executor, parallel: int | None = None) -> int:
    """Return how many shares to have under way: `parallel`, else as many as the executor has workers.

    Raises `ConfigError` for a Dask scheduler or executor that would run a share again: by default Dask runs a task that
    was lost with its worker on three others, and reports nothing.
    """
    client = getattr(executor, "_client", None)
    if client is None or not type(executor).__module__.startswith("distributed."):
        worker_count: int | None = getattr(executor, "_max_workers", None)
        return parallel or worker_count or os.cpu_count() or 1
    try:
        query = asyncio.to_thread(client.run_on_scheduler, _scheduler_question())
        allowed_failures, threads = map(int, await asyncio.wait_for(query, _ASK_S))
    except Exception as error:
        raise ConfigError(
            f"The Dask scheduler could not be asked for its settings: {_said(error)}"
        ) from error
    if getattr(executor, "_kwargs", {}).get("retries"):
        raise ConfigError(
            "An executor with retries= runs trials again without a record.", hint="Leave it out."
        )
    if allowed_failures:
        raise ConfigError(
            f"The Dask scheduler runs a task up to {allowed_failures + 1} times when its worker dies.",
            hint='Before the cluster starts: dask.config.set({"distributed.scheduler.allowed-failures": 0}).',
        )
    return parallel or max(1, threads)


def _is_closed(executor: Executor) -> bool:
    """Return True for a Dask executor that was closed: it drops the work that it was given."""
    return getattr(getattr(executor, "_client", None), "status", "") in {"closing", "closed"}


def _scheduler_question() -> Callable[[Any], tuple[Any, Any]]:
    """Return what the scheduler is asked; a nested function travels whole, so healkit need not be installed there."""

    def ask(dask_scheduler: Any) -> tuple[Any, Any]:
        return dask_scheduler.allowed_failures, dask_scheduler.total_nthreads

    return ask


def _said(error: BaseException) -> str:
    """Return the error of foreign code as one line of limited length."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}"[:_SAID_CHARS] if first else type(error).__name__


# Candidates, scored on the workers of an executor.


#: A candidate with its number, and whether a share with it was lost before.
_Numbered = tuple[int, Candidate, bool]


async def run_batch_away(
    batch: Batch,
    draw: Draw,
    settings: Settings,
    executor: Executor,
    slots: int,
    on_lost: Callable[[int], None],
) -> AsyncGenerator[Scores, None]:
    """Score candidates on an executor's workers; those of a lost share are tried once more, and then count as died.

    on_lost: gets the number of candidates whose share was lost. Yields what comes, in no order.

    Raises `IsolationUnavailable` and `WorkerStartFailed`, and `WorkerError` for an executor that takes no more work.
    """
    drawn, ended = 0, False
    again: deque[_Numbered] = deque()
    key, shares = new_trace_id(), itertools.count()

    async def take(count: int) -> list[_Numbered]:
        nonlocal drawn, ended
        if again:
            return [again.popleft() for _ in range(min(count, len(again)))]
        candidates = () if ended else await draw(count)
        ended = not candidates
        first, drawn = drawn, drawn + len(candidates)
        return [(number, candidate, False) for number, candidate in enumerate(candidates, first)]

    def share_of(items: Sequence[_Numbered]) -> Share:
        candidates = [list(candidate) for _, candidate, _ in items]
        return Share(f"{key}-{next(shares)}", settings, batch=batch, candidates=candidates)

    checks = len(batch.checks)
    read = functools.partial(_read_letters, checks)
    coming = spread(executor, take, share_of, read, slots, settings.isolation)
    async with contextlib.aclosing(coming) as answers:
        async for items, answer in answers:
            if not answer.sent:
                raise WorkerError(f"The search ends: {answer.lost}")
            scores = [(number, row) for (number, _, _), row in zip(items, answer.results, strict=False)]
            if answer.lost:
                on_lost(len(items))
                died = (DIED + NOT_RUN * checks)[:checks]
                scores = [(number, died) for number, _, before in items if before]
                again.extend((number, candidate, True) for number, candidate, before in items if not before)
            if scores:
                yield scores


def _read_letters(checks: int, items: Sequence[_Numbered], reply: Reply, _took_s: float) -> list[str]:
    """Return the outcomes of these candidates; raises `BadClaim`."""
    if reply.trials or len(reply.letters) > len(items):
        raise BadClaim("it is about candidates that were not sent")
    if not are_letters(reply.letters, checks):
        raise BadClaim("it has outcomes that do not exist")
    return reply.letters
