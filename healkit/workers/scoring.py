"""Scoring of candidates: trial servers that share a cursor.

Each trial server gets small shares, as many candidates as take it about 80 milliseconds, drawn shortly before it needs
them: the source of the candidates can look at the results of earlier ones. A trial server that dies loses only the
candidate it was at; the rest of its share goes to another.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

from healkit.config import Config
from healkit.contracts.healing import (
    DIED,
    LETTERS,
    NOT_RUN,
    SHARE_MAX,
    SHARE_OUTCOMES_MAX,
    Batch,
    Edit,
    Outcomes,
    Share,
    ShareDone,
)  # fmt: skip
from healkit.errors import WorkerError, WorkerNotRestricted, WorkerStartFailed
from healkit.workers.sandbox import Tier
from healkit.workers.trialserver import TrialServer, TrialServers

Candidate = Sequence[Edit]
#: Draws up to so many candidates; none when there are no more.
Draw = Callable[[int], Awaitable[Sequence[Candidate]]]
#: Positions of candidates with their letters, as they come.
Scores = list[tuple[int, str]]

#: Time of one share; longer where a child needs long to get ready.
SHARE_S = 0.08
_SETUP_TIMES = 8
_FIRST_SHARE = 16
#: Wait for the end of a share whose outcomes are all there.
_LAST_WORD_S = 0.25
#: Silence allowed beyond what one candidate's checks may take together.
_SILENCE_S = 15.0
_CHECK_EXTRA_S = 1.0


class Cursor:
    """Source of candidates for all trial servers, numbered in the order in which they are drawn."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._lock = asyncio.Lock()
        self.drawn = 0
        self.ended = False

    async def take(self, count: int) -> tuple[int, Sequence[Candidate]]:
        """Return the number of the first, and at most so many candidates; none at the end."""
        async with self._lock:
            if self.ended:
                return self.drawn, ()
            candidates = await self._draw(count)
            first = self.drawn
            self.drawn += len(candidates)
            self.ended = not candidates
            return first, candidates


@dataclasses.dataclass
class Pace:
    """Size of the next share, by how long the last one took."""

    checks: int
    share_s: float = SHARE_S
    size: int = _FIRST_SHARE

    def learn(self, count: int, took_s: float, setup_s: float) -> None:
        """Take note of a share of so many."""
        wanted_s = max(self.share_s, _SETUP_TIMES * setup_s)
        # Fork and exit of a child take about as long as its setup.
        own_s = max(took_s - 2 * setup_s, took_s / 4, 1e-4)
        fitting = int(count * wanted_s / own_s)
        most = min(SHARE_MAX, SHARE_OUTCOMES_MAX // max(self.checks, 1))
        self.size = max(1, min(fitting, 4 * self.size, most))


async def run_batch(
    batch: Batch, draw: Draw, tier: Tier, config: Config, servers: TrialServers, parallel: int
) -> AsyncGenerator[Scores, None]:
    """Score all candidates that can be drawn; yields what comes, in no order. Raises `WorkerStartFailed`."""
    cursor = Cursor(draw)
    results: asyncio.Queue[Scores | BaseException | None] = asyncio.Queue()
    workers = [
        asyncio.create_task(_Worker(batch, cursor, results, tier, config, servers).run())
        for _ in range(parallel)
    ]
    told = 0
    try:
        while not (cursor.ended and told == cursor.drawn):
            scores = await results.get()
            if isinstance(scores, BaseException):
                raise scores
            if scores is not None:  # None: a worker has found the end
                told += len(scores)
                yield scores
        # Results are complete; let the trial server finish rather than start another one.
        await asyncio.wait(workers, timeout=_LAST_WORD_S)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


class _Worker:
    """Worker of a scoring: one trial server at a time, until the cursor is at its end."""

    def __init__(
        self,
        batch: Batch,
        cursor: Cursor,
        results: asyncio.Queue[Scores | BaseException | None],
        tier: Tier,
        config: Config,
        servers: TrialServers,
    ) -> None:
        self._batch, self._cursor, self._results = batch, cursor, results
        self._tier, self._config, self._servers = tier, config, servers
        self._server: TrialServer | None = None
        self._busy = False

    async def run(self) -> None:
        """Work, and leave the trial server to the next who asks, or end it where it is in the middle of something."""
        pace = Pace(len(self._batch.checks))
        next_share: asyncio.Task[tuple[int, Sequence[Candidate]]] | None = None
        try:
            await self._ready()
            first, candidates = await self._cursor.take(pace.size)
            while candidates:
                # Draw while this share runs, so that the trial server never waits for candidates.
                next_share = asyncio.create_task(self._cursor.take(pace.size))
                await self._share(first, candidates, pace)
                first, candidates = await next_share
            self._results.put_nowait(None)
        except BaseException as error:
            self._results.put_nowait(error)
            raise
        finally:
            if next_share is not None:
                next_share.cancel()
            if self._server is not None and self._busy:
                await self._server.close()
            elif self._server is not None:
                self._servers.give_back(self._server)

    async def _ready(self) -> TrialServer:
        """Return a trial server that knows the batch."""
        failed = 0
        while self._server is None:
            try:
                self._server = await self._servers.take(self._tier, self._config)
            except WorkerNotRestricted:
                raise
            except WorkerStartFailed:
                failed += 1
                if failed > 1:  # the first may have been killed while it started
                    raise
                continue
            self._busy = True
            try:
                await self._server.begin(self._batch)
                self._busy = False
            except WorkerError:  # it has died since it was checked
                await self._end()
        return self._server

    async def _end(self) -> None:
        assert self._server is not None
        server, self._server, self._busy = self._server, None, False
        await server.close()

    async def _share(self, first: int, candidates: Sequence[Candidate], pace: Pace) -> None:
        """Run a share to its end, with another trial server where one dies."""
        done = 0
        while done < len(candidates):
            server = await self._ready()
            self._busy = True
            try:
                async for letters in self._run(server, candidates[done:], pace):
                    numbered = enumerate(letters, first + done)
                    self._results.put_nowait(list(numbered))
                    done += len(letters)
                self._busy = False
            except WorkerNotRestricted:
                raise
            except WorkerError:
                await self._end()
                if done < len(candidates):
                    lost = (DIED + NOT_RUN * len(self._batch.checks))[: len(self._batch.checks)]
                    self._results.put_nowait([(first + done, lost)])
                    done += 1

    async def _run(
        self, server: TrialServer, candidates: Sequence[Candidate], pace: Pace
    ) -> AsyncIterator[list[str]]:
        """Yield a share's letters as they come; raises `WorkerError` for letters that cannot be."""
        began, told = time.perf_counter(), 0
        patience_s = sum(check.timeout_s + _CHECK_EXTRA_S for check in self._batch.checks) + _SILENCE_S
        async for message in server.share(Share([list(edits) for edits in candidates]), patience_s):
            if isinstance(message, ShareDone):
                pace.learn(len(candidates), time.perf_counter() - began, message.setup_s)
                continue
            if message.first != told or not self._sound(message, len(candidates) - told):
                raise WorkerError("the server told of candidates that it was not given")
            told += len(message.letters)
            yield message.letters
        if told != len(candidates):
            raise WorkerError("the server left candidates out")

    def _sound(self, message: Outcomes, left: int) -> bool:
        """Return whether these can be outcomes of this batch."""
        checks = len(self._batch.checks)
        return len(message.letters) <= left and all(
            len(row) == checks and not row.strip(LETTERS) for row in message.letters
        )
