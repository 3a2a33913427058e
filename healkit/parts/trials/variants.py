"""Lists of variants, tried on several lanes at a time.

A list is a `Job`: trials, or candidates of a batch. A lane runs one share of it after the other, on a trial server
(`ServerLane`) or a worker of an executor (`shares.ExecutorLane`). `tried` yields the results, in no order. Shares are
small, and drawn shortly before they are needed, because the source of candidates can look at earlier results. A trial
server that dies loses only its current item; the rest of its share goes to another.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from healkit.config import Config
from healkit.core.contracts import rpc
from healkit.core.wire.claims import BadClaim
from healkit.core.workers.sandbox import Tier
from healkit.errors import WorkerError, WorkerNotRestricted, WorkerStartFailed
from healkit.parts.trials.messages import (
    DIED,
    LETTERS,
    NOT_RUN,
    SHARE_MAX,
    SHARE_OUTCOMES_MAX,
    Batch,
    Candidate,
    Results,
    Share,
    TrialDone,
)
from healkit.parts.trials.pure_code import may_share
from healkit.parts.trials.trialserver import TrialServer, TrialServers

I = TypeVar("I")  # noqa: E741 - an item
R = TypeVar("R")


class Job(Protocol[I, R]):
    """List of items to try; each has a position, and gets one result."""

    #: Sizes of a trial server's shares, the first and the largest; whether drawing takes time, so that it begins early.
    first: int
    most: int
    draws_ahead: bool

    async def draw(self, count: int, lanes: int, *, ahead: bool = False) -> Sequence[tuple[int, I]]:
        """Return at most that many items, a fair part for one of the lanes; none when there are no more.

        ahead: Only if there are enough for all lanes.
        """

    def back(self, items: Sequence[tuple[int, I]]) -> None:
        """Take back items that were not started."""

    def share(self, items: Sequence[I], *, begun: bool = False) -> Share:
        """Return them as one message.

        begun: The receiver already has items of this job.
        """

    def patience_s(self, item: I) -> float:
        """Return the time limit of a trial server for an item."""

    def read(self, results: Results) -> Sequence[R]:
        """Return the results of the next items; raises `BadClaim`."""

    def lost(self, why: str, *, full: bool = False) -> R:
        """Return the result of an item that ended with its trial server.

        full: It wrote too much.
        """

    def lost_share(self, items: Sequence[tuple[int, I]], why: str, *, sent: bool) -> list[tuple[int, R]]:
        """Return the results of items that an executor has lost; raises `WorkerError` to end the job."""

    def is_complete(self, count: int) -> bool:
        """Return whether that many results are all."""


class TrialJob:
    """Trials; those of one pure code are drawn together.

    more: Called before each; if it returns False, the rest does not run.
    """

    first, most, draws_ahead = 1, 64, False

    def __init__(self, inits: Sequence[rpc.Init], more: Callable[[], bool] = lambda: True) -> None:
        self._waiting, self._count, self._more = deque(enumerate(inits)), len(inits), more

    async def draw(self, count: int, lanes: int, *, ahead: bool = False) -> Sequence[tuple[int, rpc.Init]]:
        """Return the next trials: one, or some that may share a child."""
        waiting = self._waiting
        fair = 0 if ahead and len(waiting) < lanes else min(count, -(-len(waiting) // lanes))
        items = list[tuple[int, rpc.Init]]()
        while len(items) < fair and (not items or may_share(items[0][1], waiting[0][1])) and self._more():
            items.append(waiting.popleft())
        return items

    def back(self, items: Sequence[tuple[int, rpc.Init]]) -> None:
        """Put them before the others."""
        self._waiting.extendleft(reversed(items))

    def share(self, items: Sequence[rpc.Init], *, begun: bool = False) -> Share:
        """Return the trials."""
        return Share(list(items))

    def patience_s(self, item: rpc.Init) -> float:
        """Return its own limit, plus some time for its trial server to report its end."""
        return item.timeout_s + _MARGIN_S

    def read(self, results: Results) -> Sequence[TrialDone]:
        """Return their ends."""
        if results.letters:
            raise BadClaim("it contains candidates that were not sent")
        return results.trials

    def lost(self, why: str, *, full: bool = False) -> TrialDone:
        """Return an end that only the host knows."""
        return TrialDone(ending="disk_limit" if full else "lost", detail=why)

    def lost_share(
        self, items: Sequence[tuple[int, rpc.Init]], why: str, *, sent: bool
    ) -> list[tuple[int, TrialDone]]:
        """Return them as lost: a trial does not run again."""
        why = f"{why}. It may have run in part." if sent else f"it was not run: {why}"
        return [(position, self.lost(why)) for position, _ in items]

    def is_complete(self, count: int) -> bool:
        """Return whether all have ended."""
        return count == self._count


#: Draws up to so many candidates; none when there are no more.
Draw = Callable[[int], Awaitable[Sequence[Candidate]]]
#: Positions of candidates with their letters, as they come.
Scores = list[tuple[int, str]]


class BatchJob:
    """Candidates of one batch, numbered in the order in which they are drawn.

    on_lost: Gets the number of candidates whose share an executor has lost. They are tried once more, and then count as
        died.
    """

    first, draws_ahead = 16, True

    def __init__(self, batch: Batch, draw: Draw, on_lost: Callable[[int], None] = lambda _: None) -> None:
        self._batch, self._draw, self._on_lost = batch, draw, on_lost
        self._checks = len(batch.checks)
        self._patience_s = sum(check.timeout_s + _CHECK_EXTRA_S for check in batch.checks) + _SILENCE_S
        self._lock = asyncio.Lock()
        self._again: deque[tuple[int, Candidate]] = deque()
        self._tried_again: set[int] = set()
        self._drawn, self._ended = 0, False
        self.most = min(SHARE_MAX, SHARE_OUTCOMES_MAX // max(self._checks, 1))

    async def draw(self, count: int, lanes: int, *, ahead: bool = False) -> Sequence[tuple[int, Candidate]]:
        """Return the next candidates, first those to try again."""
        async with self._lock:
            if self._again:
                fair = min(count, -(-len(self._again) // lanes))
                return [self._again.popleft() for _ in range(fair)]
            candidates = () if self._ended else await self._draw(count)
            self._ended = not candidates
            numbered = list(enumerate(candidates, self._drawn))
            self._drawn += len(numbered)
            return numbered

    def back(self, items: Sequence[tuple[int, Candidate]]) -> None:
        """Put them before the others."""
        self._again.extendleft(reversed(items))

    def share(self, items: Sequence[Candidate], *, begun: bool = False) -> Share:
        """Return the candidates; the first share brings the batch."""
        return Share(candidates=list(items), batch=None if begun else self._batch)

    def patience_s(self, item: Candidate) -> float:
        """Return the time limit for all checks of one candidate, and the additional silence allowed."""
        return self._patience_s

    def read(self, results: Results) -> Sequence[str]:
        """Return their letters."""
        letters = results.letters
        if results.trials or any(len(row) != self._checks or row.strip(LETTERS) for row in letters):
            raise BadClaim("it has outcomes that do not exist")
        return letters

    def lost(self, why: str, *, full: bool = False) -> str:
        """Return the letters of a candidate that has died in its first check."""
        return (DIED + NOT_RUN * self._checks)[: self._checks]

    def lost_share(
        self, items: Sequence[tuple[int, Candidate]], why: str, *, sent: bool
    ) -> list[tuple[int, str]]:
        """Take back candidates that were lost for the first time."""
        if not sent:
            raise WorkerError(f"The search was stopped: {why}")
        self._on_lost(len(items))
        before = set(self._tried_again)
        self._again.extend(item for item in items if item[0] not in before)
        self._tried_again.update(position for position, _ in items)
        return [(position, self.lost(why)) for position, _ in items if position in before]

    def is_complete(self, count: int) -> bool:
        """Return whether no more can be drawn, and all have letters."""
        return self._ended and count == self._drawn


@dataclasses.dataclass
class Lane(Generic[I, R]):
    """One of several lanes that run a job side by side; `tried` sets their number, and takes the results."""

    job: Job[I, R]
    lanes: int = 1
    results: asyncio.Queue[list[tuple[int, R]] | BaseException | None] = dataclasses.field(
        default_factory=asyncio.Queue
    )
    #: Whether it waits for what would run its shares.
    starting: bool = False

    async def run(self) -> None:
        """Draw, run and report, until nothing is left; called by `tried`."""
        raise NotImplementedError


#: Wait for lanes that are about to end, once all results are there.
_LAST_WORD_S = 0.25


async def tried(lanes: Sequence[Lane[I, R]]) -> AsyncGenerator[list[tuple[int, R]], None]:
    """Run the lanes of one job; yield positions and results as they come, in no order.

    Raises `WorkerStartFailed` and `IsolationUnavailable`. Close it to end what runs.
    """
    job = lanes[0].job
    results: asyncio.Queue[list[tuple[int, R]] | BaseException | None] = asyncio.Queue()

    async def run(lane: Lane[I, R]) -> None:
        lane.lanes, lane.results = len(lanes), results
        try:
            await lane.run()
            results.put_nowait(None)
        except BaseException as error:
            results.put_nowait(error)
            raise

    tasks = [asyncio.create_task(run(lane)) for lane in lanes]
    count, running_count = 0, len(tasks)
    try:
        while running_count and not job.is_complete(count):
            message = await results.get()
            if isinstance(message, BaseException):
                raise message
            if message is None:
                running_count -= 1
            else:
                count += len(message)
                yield message
        for lane, task in zip(lanes, tasks, strict=True):
            if lane.starting:
                task.cancel()
        # Results are complete; let the trial servers finish rather than start others.
        await asyncio.wait(tasks, timeout=_LAST_WORD_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


#: The next trial is drawn and sent ahead behind trials faster than this only: it stays with that trial server.
_QUICK_S = 0.05
#: Time of one share on a trial server; longer where a child needs long to get ready.
_SHARE_S, _SETUP_TIMES = 0.08, 8
#: Time beyond a trial's own deadline for its trial server to answer.
_MARGIN_S = 2.0
#: Silence allowed beyond what one candidate's checks may take together.
_SILENCE_S, _CHECK_EXTRA_S = 15.0, 1.0


@dataclasses.dataclass(frozen=True)
class Here:
    """Trial servers of this process.

    read: Folders and files that the trials may read.
    """

    tier: Tier
    config: Config
    servers: TrialServers
    read: tuple[str, ...] = ()

    def lanes(self, job: Job[I, R], parallel: int) -> list[Lane[I, R]]:
        """Return the lanes for a job."""
        return [ServerLane(job, here=self) for _ in range(parallel)]


@dataclasses.dataclass
class ServerLane(Lane[I, R]):
    """Runs shares on one trial server at a time, each sized by the time of the last one."""

    here: Here = dataclasses.field(kw_only=True)
    server: TrialServer | None = None
    #: Whether its trial server is in the middle of something, and whether it has had items of this job.
    busy: bool = False
    begun: bool = False

    def __post_init__(self) -> None:
        self._size, self._took_s = self.job.first, math.inf

    async def run(self) -> None:
        """Run shares; then leave the trial server to the next caller, unless it is in the middle of something."""
        try:
            await self._ready()  # draw only then, so that no item waits for another server's start
            while items := await self.job.draw(self._size, self.lanes):
                while items:
                    items = await self._serve(await self._ready(), items)
                await self._ready()
        finally:
            if self.server is not None and self.busy:
                await self.server.close()
            elif self.server is not None:
                self.here.servers.give_back(self.server)

    async def _serve(self, server: TrialServer, items: Sequence[tuple[int, I]]) -> Sequence[tuple[int, I]]:
        """Run items, and those that are drawn in the meantime; return the rest if the trial server ends earlier."""
        job, pending, shares = self.job, deque[tuple[int, I]](), deque[list[int]]()
        following: asyncio.Task[Sequence[tuple[int, I]]] | None = None

        def put(more: Sequence[tuple[int, I]]) -> None:
            if more:
                server.put(job.share([item for _, item in more], begun=self.begun))
                self.begun = True
                pending.extend(more)
                shares.append([len(more), len(more)])

        self.busy = True
        put(items)
        began = before = time.perf_counter()
        try:
            while pending:
                if (
                    following is None and len(shares) == 1
                ):  # then the trial server need not wait for this loop
                    if job.draws_ahead:
                        following = asyncio.create_task(job.draw(self._size, self.lanes))
                    elif self._took_s < _QUICK_S and shares[0][1] == 1:
                        put(await job.draw(self._size, self.lanes, ahead=True))
                results = await server.results(job.patience_s(pending[0][1]))
                outcomes, now = job.read(results), time.perf_counter()
                took_ms = (now - before) * 1000
                self.results.put_nowait(
                    [(pending.popleft()[0], timed(outcome, took_ms)) for outcome in outcomes]
                )
                self._took_s, before = now - before, now
                if results.back:  # nothing was sent after a share of several trials
                    job.back([pending.pop() for _ in range(results.back)][::-1])
                    shares[0][1] -= results.back
                shares[0][0] -= len(outcomes) + results.back
                if not shares[0][0]:
                    self._learn(shares.popleft()[1], now - began, results.setup_s)
                    began = now
                if results.last:
                    await self._end()
                    break
                if following is not None and (following.done() or not pending):
                    put(await following)
                    following = None
            else:
                self.busy = False
        except WorkerNotRestricted:
            raise
        except (WorkerError, BadClaim) as error:
            took_ms, full = (time.perf_counter() - before) * 1000, server.scratch_is_full
            await self._end()
            position, _ = pending.popleft()
            self.results.put_nowait([(position, timed(job.lost(str(error), full=full), took_ms))])
            if following is not None:
                pending.extend(await following)
        finally:
            if following is not None:
                following.cancel()
        return pending

    def _learn(self, count: int, took_s: float, setup_s: float) -> None:
        """Take the size of the next share from a share of so many."""
        wanted_s = max(_SHARE_S, _SETUP_TIMES * setup_s)
        # Fork and exit of a child take about as long as its setup.
        own_s = max(took_s - 2 * setup_s, took_s / 4, 1e-4)
        self._size = max(1, min(int(count * wanted_s / own_s), 4 * self._size, self.job.most))

    async def _ready(self) -> TrialServer:
        """Return its trial server, a new one if that has died."""
        if self.server is not None:
            if self.server.alive:
                return self.server
            await self._end()
        failed = 0
        while self.server is None:
            self.starting = True
            try:
                self.server = await self.here.servers.take(self.here.tier, self.here.config, self.here.read)
            except WorkerNotRestricted:
                raise
            except WorkerStartFailed:
                failed += 1
                if failed > 1:  # the first may have been killed while it started
                    raise
            finally:
                self.starting = False
        return self.server

    async def _end(self) -> None:
        """End its trial server."""
        assert self.server is not None
        server, self.server, self.busy, self.begun = self.server, None, False, False
        await server.close()


def timed(outcome: R, duration_ms: float) -> R:
    """Return a trial's end with its time: its trial server's number, or the host's measurement if that is less."""
    if isinstance(outcome, TrialDone):
        own_ms = outcome.duration_ms or duration_ms
        return msgspec.structs.replace(outcome, duration_ms=max(0.0, min(own_ms, duration_ms)))
    return outcome
