"""Between an advisor's thread and healkit's event loop: work goes one way, and candidates are drawn the other."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

from healkit.workers.batches import Candidate, Draw

#: How long the end of what was cancelled is waited for.
_SETTLE_S = 5.0


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A template wants so many candidates; `answer` may be called from any thread."""

    count: int
    answer: Callable[[Sequence[Candidate]], object]


def drawing(put: Callable[[Wanted], object]) -> Draw:
    """Draws candidates from whoever answers what is put there."""

    async def draw(count: int) -> Sequence[Candidate]:
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Sequence[Candidate]] = loop.create_future()

        def answer(drawn: Sequence[Candidate]) -> None:
            if not reply.done():
                reply.set_result(drawn)

        put(Wanted(count, lambda drawn: loop.call_soon_threadsafe(answer, drawn)))
        return await reply

    return draw


class Work:
    """A coroutine in healkit's loop that another thread can wait for, and end."""

    def __init__(
        self,
        submit: Callable[[Coroutine[Any, Any, Any]], Future[Any]],
        coroutine: Coroutine[Any, Any, Any],
        ended: Callable[[], None],
    ) -> None:
        self._over = threading.Event()
        self._coroutine, self._ended = coroutine, ended
        self._future = submit(self._run())

    def result(self) -> Any:
        """What it returned, or raises what it raised; to be called when it has ended."""
        return self._future.result(timeout=_SETTLE_S)

    def end(self) -> None:
        """Cancel it if it still runs, and wait until it has ended."""
        if not self._over.is_set():
            self._future.cancel()
            self._over.wait(_SETTLE_S)

    async def _run(self) -> Any:
        try:
            return await self._coroutine
        finally:
            self._over.set()
            self._ended()
