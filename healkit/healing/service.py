"""Healing service of a Healkit.

The code that heals is loaded by the first healing: a plain execution has no use for it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from healkit.config import Config
from healkit.contracts.runs import PolicyDefaults
from healkit.contracts.vault import VaultEntry
from healkit.crossing import values
from healkit.runtime import background
from healkit.runtime.execution import Execution, arguments_of, nested_grants
from healkit.runtime.executor import ExecutionRequest
from healkit.runtime.recording import Recorder
from healkit.runtime.runner import Runner
from healkit.runtime.runs import Runs
from healkit.runtime.shares import slots_of
from healkit.workers.tiers import achieved_tier

if TYPE_CHECKING:
    from healkit.contracts.healing import Check, Patch
    from healkit.healing.advisor import Advisor, Case
    from healkit.healing.loop import Confirm, Healer, OnTried
    from healkit.healing.questions import AskPerson
    from healkit.healing.report import HealReport
    from healkit.healing.workbench import Bench
    from healkit.store.log_reader import Log
    from healkit.store.requests import Requests
    from healkit.store.vault import Vault


class Parts(Protocol):
    """Parts of a Healkit that a healing uses; each is asked for when it begins."""

    config: Config
    runs: Runs
    recorder: Recorder
    runner: Runner

    @property
    def vault(self) -> Vault: ...
    @property
    def log(self) -> Log: ...
    @property
    def requests(self) -> Requests: ...


class HealService:
    """Heals the tools of one Healkit."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def heal(
        self,
        tool_name: str,
        persona: str = "default",
        *,
        advisors: Sequence[str | Advisor] | None = None,
        auto: bool = False,
        budget_s: float | None = None,
        log_id: int | None = None,
        ask: AskPerson | None = None,
        confirm: Confirm | None = None,
        before_patch: Callable[[Case, Patch], None] | None = None,
        progress: Callable[[str], None] | None = None,
        on_tried: OnTried | None = None,
        stop: threading.Event | None = None,
        policy: PolicyDefaults | None = None,
        dry_run: bool = False,
        executor: concurrent.futures.Executor | None = None,
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

        Raises `HealError` where nothing says that the tool fails, `ConfigError` for an unknown advisor or an
        executor that cannot be used, and as `vault.lookup` does. An advisor's or a patch's error is never raised.
        """
        from healkit.healing.loop import HealRequest, Listeners

        config, stop = self._parts.config, stop or threading.Event()
        names = config.heal_advisors if advisors is None else tuple(advisors)
        budget_s = config.heal_budget_s if budget_s is None else budget_s
        request = HealRequest(
            tool_name, persona, names, budget_s, auto, log_id, policy, dry_run, named=advisors is not None
        )
        if executor is not None:
            background.loop.wait_for(slots_of(executor))
        listeners = Listeners(progress, ask, before_patch)
        return self._healer(executor).heal(request, listeners, confirm, stop, on_tried)

    async def aheal(self, *args: Any, **kwargs: Any) -> HealReport:
        """Do as `heal`, for async code, in a thread of its own; cancelling it stops the search."""
        stop = kwargs.setdefault("stop", threading.Event())
        try:
            return await asyncio.to_thread(functools.partial(self.heal, *args, **kwargs))
        except asyncio.CancelledError:
            stop.set()
            raise

    def _healer(self, executor: concurrent.futures.Executor | None) -> Healer:
        from healkit.healing.loop import Healer

        parts = self._parts
        return Healer(
            parts.config, parts.vault, parts.log, parts.runs, parts.requests,
            functools.partial(self._bench, executor), self._try, self._execute,
            lambda: achieved_tier(parts.config),
        )  # fmt: skip

    def _bench(
        self,
        executor: concurrent.futures.Executor | None,
        entry: VaultEntry,
        budget_s: float,
        stop: threading.Event,
        on_tried: Callable[[int], object],
    ) -> Bench:
        from healkit.healing.workbench import bench_for

        recorder, config, off_record = self._parts.recorder, self._parts.config, not entry.logged
        return bench_for(
            recorder, config, entry.ref, budget_s, stop, on_tried, executor=executor, off_record=off_record
        )

    def _try(self, entry: VaultEntry, code: str, check: Check) -> Execution:
        """Run a candidate as a trial: what it does is no failure of the tool's."""
        return self._perform(entry, check, "trial", code)

    def _execute(self, entry: VaultEntry, check: Check) -> Execution:
        return self._perform(entry, check, "heal")

    def _perform(self, entry: VaultEntry, check: Check, origin: str, code: str | None = None) -> Execution:
        """Run the tool with a check's arguments: those of an execution for its persona, and of a nested one as it was.

        For its persona, because the new row holds the same arguments; with the grants of a nested one, because its
        arguments were its caller's choice.
        """
        row = None if check.log_id is None else self._parts.log.get(check.log_id)
        persona = entry.persona if row is None else row.persona
        if self._parts.vault.get(entry.tool_name, persona).persona != entry.persona:
            persona = entry.persona  # it has a tool of its own by now
        arguments = values.remade(check.arguments)
        if row is not None and check.sampled and code is None:
            arguments = arguments_of(row)  # a revision that is kept is run on all rows, as the tool was
        return self._parts.runner.perform(
            ExecutionRequest(
                entry.tool_name,
                persona,
                arguments,
                mode="worker",
                origin=origin,
                on_output=_discard,
                code=code,
                within=nested_grants(row),
                record=False,
            )
        )


def _discard(_: dict[str, Any]) -> None:
    """Discard output of the healer's own runs."""
