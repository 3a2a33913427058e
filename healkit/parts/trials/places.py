"""Executions in children of trial servers.

They may also run on the workers of an executor. The executor's path gives an execution's work to `Places.run`, which
is a `core.runtime.executor.Place`: it waits in a queue for one of the lanes, like a trial.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from typing import Self

from healkit.core.contracts.rpc import Init
from healkit.core.runtime import background
from healkit.core.workers.sandbox import Tier
from healkit.core.workers.worker import Outcome
from healkit.errors import HealkitError, InternalError, WorkerError
from healkit.parts.trials.messages import TrialDone
from healkit.parts.trials.trials import Trials, lane_count, outcome_of, preloading
from healkit.parts.trials.trialserver import read_claim
from healkit.parts.trials.variants import TrialJob, tried


class QueuedJob(TrialJob):
    """Trials that come one by one, until it is closed; for healkit's event loop only."""

    def __init__(self) -> None:
        super().__init__([])
        self._put = 0
        self._closed = False
        self._news = asyncio.Event()

    def put(self, init: Init) -> int:
        """Take one more, and return its position."""
        self._waiting.append((self._put, init))
        self._put += 1
        self._news.set()
        return self._put - 1

    def close(self) -> None:
        """End the job after all its trials are done."""
        self._closed = True
        self._news.set()

    async def draw(self, count: int, lanes: int, *, ahead: bool = False) -> Sequence[tuple[int, Init]]:
        """Return the next trials; wait for one, unless `ahead`."""
        while not self._waiting and not self._closed and not ahead:
            self._news.clear()
            await self._news.wait()
        return await super().draw(count, lanes, ahead=ahead)

    def lost_share(
        self, items: Sequence[tuple[int, Init]], why: str, *, sent: bool
    ) -> list[tuple[int, TrialDone]]:
        """Return them as lost; raises `WorkerError` if the executor accepts no more work."""
        if not sent:
            raise WorkerError(
                f"The executions were stopped: {why}", hint="Run again the executions that have not ended."
            )
        return super().lost_share(items, why, sent=sent)

    def is_complete(self, count: int) -> bool:
        """Return whether all have ended, and none can come."""
        return self._closed and count == self._put


class Places:
    """Trial servers of this machine, or workers of an executor, for executions; to be opened and closed.

    parallel: How many at a time; by default as many as there are processors, or workers of the executor.
    """

    def __init__(
        self, trials: Trials, *, parallel: int | None = None, executor: Executor | None = None
    ) -> None:
        self._trials, self._parallel, self._executor = trials, parallel, executor
        self._ends: dict[int, asyncio.Future[TrialDone]] = {}
        self._serving: asyncio.Task[None] | None = None

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls, trials: Trials, *, parallel: int | None = None, executor: Executor | None = None
    ) -> Iterator[Self]:
        """Open them for a block of a thread other than the event loop's; raises as `open`."""
        places = cls(trials, parallel=parallel, executor=executor)
        background.loop.wait_for(places.open())
        try:
            yield places
        finally:
            background.loop.wait_for(places.close())

    async def open(self) -> None:
        """Find out how many lanes there are; raises `ConfigError` for an unusable executor."""
        self.count = await lane_count(self._parallel, self._executor)
        self._job = QueuedJob()

    async def close(self) -> None:
        """End the lanes; those of this machine stay for the next caller."""
        self._job.close()
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)

    async def run(self, init: Init, tier: Tier) -> Outcome:
        """Run one execution's code, and return its end.

        Raises `IsolationUnavailable` or `WorkerStartFailed` if no lane can run any.
        """
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve(init, tier))
        elif self._serving.done():
            self._serving.result()  # the reason why no lane runs
        position, end = self._job.put(init), asyncio.get_running_loop().create_future()
        self._ends[position] = end
        try:
            done: TrialDone = await end
        finally:
            self._ends.pop(position, None)
        return await read_claim(len(done.claim), outcome_of, done, init)

    async def _serve(self, first: Init, tier: Tier) -> None:
        """Run what comes on all lanes, prepared for work as the first is."""
        try:
            config = preloading(self._trials.config, [first])
            lanes = self._trials.lanes(self._job, tier, config, self.count, executor=self._executor)
            async with contextlib.aclosing(tried(lanes)) as coming:
                async for ends in coming:
                    for position, done in ends:
                        if (end := self._ends.get(position)) is not None and not end.done():
                            end.set_result(done)
        except BaseException as error:
            failure = error if isinstance(error, HealkitError) else InternalError.of(error)
            for end in self._ends.values():
                if not end.done():
                    end.set_exception(failure)
            raise
