"""Trials by the hundred: several trial servers at a time.

Each is given one trial after the other, and a second one ahead while trials are quick.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable

from healkit.config import Config
from healkit.contracts import rpc
from healkit.workers.sandbox import Tier
from healkit.workers.trialserver import TrialServer, TrialServers
from healkit.workers.worker import Outcome

#: Send ahead only behind trials faster than this, because what was sent stays with that trial server.
_QUICK_S = 0.05


async def run_trials(
    inits: Iterable[rpc.Init], tier: Tier, config: Config, servers: TrialServers, parallel: int
) -> AsyncGenerator[tuple[int, Outcome, float], None]:
    """Run them all, so many at a time; yields position, outcome and milliseconds as they end, in no order."""
    chosen = list(inits)
    run = _Run(chosen, tier, config, servers, parallel)
    workers = [asyncio.create_task(run.work()) for _ in range(parallel)]
    unneeded: Iterable[asyncio.Task[None] | None] = workers
    try:
        for _ in chosen:
            result = await run.results.get()
            if isinstance(result, BaseException):
                raise result
            yield result
        unneeded = run.starting
    finally:
        for worker in filter(None, list(unneeded)):
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


class _Run:
    """Trials to run, shared by several workers; `starting` are those that wait for a trial server."""

    def __init__(
        self, inits: list[rpc.Init], tier: Tier, config: Config, servers: TrialServers, parallel: int
    ) -> None:
        self.results: asyncio.Queue[tuple[int, Outcome, float] | BaseException] = asyncio.Queue()
        self.starting: set[asyncio.Task[None] | None] = set()
        self._waiting = deque(enumerate(inits))
        self._tier, self._config, self._servers, self._parallel = tier, config, servers, parallel

    async def work(self) -> None:
        """Run trials on one trial server, until none waits."""
        server: TrialServer | None = None
        drawn: tuple[int, rpc.Init] | None = None
        took_s, waiting, task = math.inf, self._waiting, asyncio.current_task()
        try:
            while True:
                self.starting.add(task)
                server = await self._servers.keep_or_take(server, self._tier, self._config)
                self.starting.discard(task)
                # Draw only once ready, so that no trial waits for another trial server's start.
                if drawn is None and not waiting:
                    self._servers.give_back(server)
                    return
                position, init = drawn or waiting.popleft()
                # Draw one more while there are enough for all: then the trial server need not wait for this loop.
                drawn = waiting.popleft() if took_s < _QUICK_S and len(waiting) >= self._parallel else None
                started = time.perf_counter()
                outcome = await server.run(init, drawn and drawn[1])
                took_s = time.perf_counter() - started
                self.results.put_nowait((position, outcome, took_s * 1000))
        except BaseException as error:
            if server is not None:  # perhaps in the middle of a trial
                await server.close()
            self.results.put_nowait(error)
            raise
