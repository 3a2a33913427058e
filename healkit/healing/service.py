"""Healing service of a Healkit: `hk.heal` and its options.

The code that heals is loaded by the first healing: a plain execution has no use for it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from healkit.config import HEAL_BUDGET_S
from healkit.contracts.runs import PolicyDefaults

if TYPE_CHECKING:
    from healkit.app import Healkit  # a Protocol of the parts that are used would only repeat it
    from healkit.contracts.healing import Attempt, Patch
    from healkit.healing.advisor import Advisor, Case
    from healkit.healing.questions import Answer, Question
    from healkit.healing.report import HealReport


@dataclasses.dataclass(frozen=True, kw_only=True)
class HealOptions:
    """Options of one healing: what `HealService.heal` was given, with the settings where it was given nothing.

    advisors_named: the caller named the advisors; a default advisor that is not set up is not worth a note.
    """

    tool_name: str
    persona: str
    advisors: Sequence[str | Advisor]
    advisors_named: bool
    auto: bool
    budget_s: float
    log_id: int | None
    ask: Callable[[Question], Answer | None] | None
    confirm: Callable[[Attempt], bool | None] | None
    before_patch: Callable[[Case, Patch], None] | None
    progress: Callable[[str], None] | None
    on_tried: Callable[[str, int], object] | None
    stop: threading.Event
    policy: PolicyDefaults | None
    dry_run: bool
    executor: concurrent.futures.Executor | None
    live: tuple[str, ...]


class HealService:
    """Heals the tools of one Healkit."""

    def __init__(self, hk: Healkit) -> None:
        self._hk = hk

    def heal(
        self,
        tool_name: str,
        persona: str = "default",
        *,
        advisors: Sequence[str | Advisor] | None = None,
        auto: bool = False,
        budget_s: float | None = None,
        log_id: int | None = None,
        ask: Callable[[Question], Answer | None] | None = None,
        confirm: Callable[[Attempt], bool | None] | None = None,
        before_patch: Callable[[Case, Patch], None] | None = None,
        progress: Callable[[str], None] | None = None,
        on_tried: Callable[[str, int], object] | None = None,
        stop: threading.Event | None = None,
        policy: PolicyDefaults | None = None,
        dry_run: bool = False,
        executor: concurrent.futures.Executor | None = None,
        live: Sequence[str] = (),
    ) -> HealReport:
        """Look for patches of a failing tool, run its checks on each, and keep the best with your consent.

        advisors: names or objects, asked in this order; by default as `heal_advisors` says.
        auto: keep a patch that is *fixed, no regressions* without asking, unless the policy denies it. Without
            `auto` and without `confirm`, the patch waits as a request (`hk.requests`).
        budget_s: seconds of wall time for all of it. log_id: the failure that is meant, instead of the newest.
        ask: gets up to three questions where plausible patches disagree. confirm: gets the chosen patch; True, False,
            or None to leave it waiting. before_patch: is called before each patch is tried.
        progress: gets a sentence whenever something has happened. on_tried: gets the advisor that is asked and the
            number of candidates tried so far, whenever one of them changes. Time spent in `ask` and `confirm` does not
            count against `budget_s`. stop: set it, from any thread, to end the search.
        policy: the caps of the run; over one of them it ends. dry_run: show the best patch, and keep nothing.
        executor: any `concurrent.futures.Executor`; its workers then try the search's candidates.
        live: calls that checks may make where they are not on record, `["host.price"]`. All others are answered from
            the record of earlier executions, or not at all; a tool that its provider calls read-only needs no mention.

        Raises `HealError` where nothing says that the tool fails, `ConfigError` for an unknown advisor or an
        executor that cannot be used, and as `vault.lookup` does. An advisor's or a patch's error is never raised.
        """
        from healkit.healing.loop import Healing

        config = self._hk.config
        options = HealOptions(
            tool_name=tool_name,
            persona=persona,
            advisors=config.heal_advisors if advisors is None else tuple(advisors),
            advisors_named=advisors is not None,
            auto=auto,
            budget_s=HEAL_BUDGET_S if budget_s is None else budget_s,
            log_id=log_id,
            ask=ask,
            confirm=confirm,
            before_patch=before_patch,
            progress=progress,
            on_tried=on_tried,
            stop=stop or threading.Event(),
            policy=policy,
            dry_run=dry_run,
            executor=executor,
            live=tuple(live),
        )
        return Healing(self._hk, options).report()

    async def aheal(self, *args: Any, **kwargs: Any) -> HealReport:
        """Do as `heal`, for async code, in a thread of its own; cancelling it stops the search."""
        stop = kwargs.setdefault("stop", threading.Event())
        try:
            return await asyncio.to_thread(functools.partial(self.heal, *args, **kwargs))
        except asyncio.CancelledError:
            stop.set()
            raise
