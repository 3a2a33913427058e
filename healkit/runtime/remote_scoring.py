"""Scoring of candidates on the workers of any executor."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Executor

from healkit.contracts.claims import BadClaim
from healkit.contracts.execution import new_trace_id
from healkit.contracts.healing import DIED, LETTERS, NOT_RUN, Batch
from healkit.errors import WorkerError
from healkit.runtime.shares import Reply, Settings, Share, error_of, spread
from healkit.workers.scoring import Candidate, Draw, Scores

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
    coming = spread(executor, take, share_of, read, slots)
    async with contextlib.aclosing(coming) as answers:
        async for items, answer in answers:
            scores = [(number, row) for (number, _, _), row in zip(items, answer.results, strict=False)]
            left = items[len(scores) :]
            if answer.refusal is not None:
                raise error_of(answer.refusal, settings.isolation)
            if not answer.sent:
                raise WorkerError(f"The search ends: {answer.lost}")
            if answer.lost:
                on_lost(len(left))
                died = (DIED + NOT_RUN * checks)[:checks]
                scores += [(number, died) for number, _, before in left if before]
                left = [(number, candidate, True) for number, candidate, before in left if not before]
            again.extendleft(reversed(left))
            if scores:
                yield scores


def _read_letters(checks: int, items: Sequence[_Numbered], reply: Reply, _took_s: float) -> list[str]:
    """Return the outcomes of these candidates; raises `BadClaim`."""
    if reply.trials or len(reply.letters) > len(items):
        raise BadClaim("it is about candidates that were not sent")
    if not all(len(row) == checks and not row.strip(LETTERS) for row in reply.letters):
        raise BadClaim("it has outcomes that do not exist")
    return reply.letters
