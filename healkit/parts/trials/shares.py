"""Shares of work for the workers of any executor.

Trials and candidates are sent in small shares, as JSON. No pickled object of healkit crosses in either direction, and
only the settings that a trial server needs. A worker of the executor starts its own restricted trial servers at the
tier of this machine, or refuses; it keeps them for the next share. A share ends after about a second, even if work is
left. So little is lost with a worker, and little continues after a Stop. Results are not trusted, like those of a trial
server: their size is limited and they are checked before use. A trial of a lost share is never sent again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import math
import os
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import new_trace_id
from healkit.core.contracts.rpc import REPORT_EXTRA_BYTES
from healkit.core.runtime import background
from healkit.core.wire import claims
from healkit.core.workers.sandbox import Tier
from healkit.core.workers.tiers import achieved_tier
from healkit.errors import (
    ConfigError,
    HealkitError,
    IsolationUnavailable,
    WorkerNotRestricted,
    WorkerStartFailed,
)
from healkit.parts.trials.messages import Candidate, Results, Share, TrialDone
from healkit.parts.trials.trialserver import TrialServers
from healkit.parts.trials.variants import BatchJob, Here, Job, Lane, TrialJob, timed, tried

I = TypeVar("I")  # noqa: E741 - an item
R = TypeVar("R")

#: Size of the first share, and the time after which a worker begins no more of one.
_FIRST, SHARE_S = 8, 1.0
#: Size of a reply after which a worker begins no more of a share.
_REPLY_BYTES = 8 << 20
#: Longest text of a foreign error that is shown.
_SAID_CHARS = 300
#: Longest wait for what a Dask scheduler says of itself, and the time between two looks at whether it is still there.
_ASK_S, _LOOK_S = 30.0, 1.0


class Settings(msgspec.Struct, frozen=True):
    """Settings of the trial servers, the same on every machine; the tier is the local one."""

    isolation: Tier
    scratch_mb: int
    preload: tuple[str, ...]
    start_timeout_s: float

    @classmethod
    def of(cls, config: Config, tier: Tier) -> Settings:
        """Take them from the host's configuration; nothing else of it is sent."""
        return cls(tier, config.scratch_mb, config.preload, config.start_timeout_s)


class Parcel(msgspec.Struct, frozen=True):
    """Share in the form for sending. Its `key` is unique, because an executor may reuse a result."""

    key: str
    settings: Settings
    share: Share


class Refusal(msgspec.Struct, frozen=True):
    """Reason why a worker of the executor runs nothing more."""

    code: str
    message: str
    host: str


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """Results of the first items of a share; the rest did not start."""

    results: Results = Results()
    refusal: Refusal | None = None


_decode_parcel = msgspec.json.Decoder(Parcel).decode
_decode_reply = msgspec.json.Decoder(Reply).decode


def run_share(payload: bytes) -> bytes:
    """Run a share in the process in which an executor calls this; the host writes the records."""
    parcel = _decode_parcel(payload)
    settings = parcel.settings
    try:
        config = Config(
            isolation=settings.isolation, scratch_mb=settings.scratch_mb,
            preload=settings.preload, start_timeout_s=settings.start_timeout_s,
        )  # fmt: skip
        tier = achieved_tier(config)
        reply = background.loop.wait_for(_reply(parcel.share, config, tier))
    except HealkitError as error:
        reply = Reply(refusal=_refusal(error))
    return msgspec.json.encode(reply)


async def _reply(share: Share, config: Config, tier: Tier) -> Reply:
    """Run one item after the other, until none are left or the time of the share is up."""
    size, until = 0, math.inf
    trials, letters = list[TrialDone](), list[str]()
    candidates = iter(share.candidates)

    def more() -> bool:
        nonlocal until
        until = min(until, time.monotonic() + SHARE_S)
        return time.monotonic() < until and size <= _REPLY_BYTES

    async def draw(count: int) -> Sequence[Candidate]:
        return list(itertools.islice(candidates, count)) if more() else ()

    here = Here(tier, config, background.pool_for(config).companion(TrialServers))
    try:
        if share.batch is not None:
            async for scores in tried(here.lanes(BatchJob(share.batch, draw), 1)):
                letters += (row for _, row in scores)
        else:
            async for ends in tried(here.lanes(TrialJob(share.trials, more), 1)):
                trials += (done for _, done in ends)
                size += sum(len(done.claim) + len(done.printed) for _, done in ends)
    except HealkitError as error:
        return Reply(Results(trials, letters), _refusal(error))
    return Reply(Results(trials, letters))


def _refusal(error: HealkitError) -> Refusal:
    return Refusal(error.code, error.message, socket.gethostname())


@dataclasses.dataclass(frozen=True)
class Away:
    """Workers of an executor, and how many shares to send at a time."""

    executor: Executor
    slots: int
    settings: Settings

    def lanes(self, job: Job[I, R]) -> list[Lane[I, R]]:
        """Return the lanes for a job."""
        turn = asyncio.Lock()
        return [ExecutorLane(job, away=self, turn=turn) for _ in range(self.slots)]


@dataclasses.dataclass
class ExecutorLane(Lane[I, R]):
    """Sends one share after the other to the executor's workers, each sized by the time of the last one.

    Items that a worker did not start are sent again. Closing it cancels the waiting share; a running one ends by
    itself.
    """

    away: Away = dataclasses.field(kw_only=True)
    #: Some executors run what they are given on the spot, one share at a time.
    turn: asyncio.Lock = dataclasses.field(kw_only=True)

    async def run(self) -> None:
        """Run shares; raises `IsolationUnavailable` or `WorkerStartFailed` for a worker that runs nothing more."""
        size, job = _FIRST, self.job
        while items := await job.draw(size, self.lanes):
            share = job.share([item for _, item in items])
            payload = msgspec.json.encode(Parcel(new_trace_id(), self.away.settings, share))
            try:  # in a thread: starting a process takes long, and some executors run it on the spot
                async with self.turn:
                    future = await asyncio.to_thread(self.away.executor.submit, run_share, payload)
            except Exception as error:  # noqa: BLE001 - each kind of executor has errors of its own
                why = f"the executor accepts no more work: {_said(error)}"
                self.results.put_nowait(job.lost_share(items, why, sent=False))
                continue
            began = time.perf_counter()
            try:
                reply = await self._answer(asyncio.wrap_future(future), share)
                took_s = time.perf_counter() - began
                outcomes = [within(outcome, took_s) for outcome in job.read(reply.results)]
                if len(outcomes) > len(items):
                    raise claims.BadClaim("it contains items that were not sent")
                if not outcomes and reply.refusal is None:
                    raise claims.BadClaim("it is empty")
            except claims.BadClaim as error:
                why = f"the executor's result cannot be used: {error}"
                self.results.put_nowait(job.lost_share(items, why, sent=True))
                continue
            except _Lost as error:
                self.results.put_nowait(job.lost_share(items, str(error), sent=True))
                continue
            if outcomes:
                fitting = int(len(outcomes) * SHARE_S / max(took_s, 0.01))
                size = max(_FIRST, min(4 * size, fitting))
            job.back(items[len(outcomes) :])
            self.results.put_nowait(
                [(position, outcome) for (position, _), outcome in zip(items, outcomes, strict=False)]
            )
            if reply.refusal is not None:
                raise error_of(reply.refusal, self.away.settings.isolation)

    async def _answer(self, future: asyncio.Future[bytes], share: Share) -> Reply:
        """Return the answer to a share; raises `BadClaim` for an invalid one, and `_Lost`."""
        try:
            while not (await asyncio.wait([future], timeout=_LOOK_S))[0]:
                if _is_closed(self.away.executor):
                    future.cancel()
        finally:
            future.cancel()
        if future.cancelled():
            raise _Lost("the executor cancelled it, or was closed")
        if (failed := future.exception()) is not None:
            raise _Lost(f"the executor gave no result: {_said(failed)}")
        if not isinstance(payload := future.result(), bytes):
            raise claims.BadClaim(f"it is a {type(payload).__name__}")
        # JSON has a claim's bytes as text, a third longer.
        last = max((init.result_max_bytes for init in share.trials), default=0) + REPORT_EXTRA_BYTES
        max_bytes = 2 * (_REPLY_BYTES + last)
        return await asyncio.to_thread(claims.decode, payload, _decode_reply, max_bytes=max_bytes)


class _Lost(Exception):
    """A share has no answer."""


def within(outcome: R, took_s: float) -> R:
    """Return a trial's end with a plausible time."""
    if isinstance(outcome, TrialDone):
        return timed(outcome, min(max(outcome.duration_ms, 0.0), took_s * 1000))
    return outcome


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
    """Return how many shares to send at a time: `parallel`, otherwise as many as the executor has workers.

    Raises `ConfigError` for a Dask scheduler or executor that would repeat a share. By default, Dask runs a task that
    was lost with its worker on three other workers, and reports nothing.
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
            "An executor with retries= repeats trials without a record.", hint="Leave out retries=."
        )
    if allowed_failures:
        raise ConfigError(
            f"The Dask scheduler runs a task up to {allowed_failures + 1} times when its worker dies.",
            hint='Before the cluster starts: dask.config.set({"distributed.scheduler.allowed-failures": 0}).',
        )
    return parallel or max(1, threads)


def _is_closed(executor: Executor) -> bool:
    """Return True for a Dask executor that was closed: it drops its work."""
    return getattr(getattr(executor, "_client", None), "status", "") in {"closing", "closed"}


def _scheduler_question() -> Callable[[Any], tuple[Any, Any]]:
    """Return the function that the scheduler runs.

    The function is nested so that it is sent whole: healkit need not be installed there.
    """

    def ask(dask_scheduler: Any) -> tuple[Any, Any]:
        return dask_scheduler.allowed_failures, dask_scheduler.total_nthreads

    return ask


def _said(error: BaseException) -> str:
    """Return the error of foreign code as one line of limited length."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}"[:_SAID_CHARS] if first else type(error).__name__
