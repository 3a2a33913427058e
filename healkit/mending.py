"""The mending face of Healkit: heal, try, run again, decide, undo.

A mixin, like the other faces; nothing here changes a tool without being told to. What heals is loaded by the first
healing: a plain execution has no use for it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from healkit.config import Config
from healkit.contracts.runs import PolicyDefaults
from healkit.runtime.execution import Execution
from healkit.runtime.recorder import Recorder
from healkit.runtime.repeats import arguments_of, ending_of, logged
from healkit.runtime.request import Mode, OnOutput, request_for
from healkit.runtime.runs import OpenRun, Runs
from healkit.store.entries import VaultEntry
from healkit.workers.probe import achieved_tier

if TYPE_CHECKING:
    from healkit.contracts.healing import Check, Patch
    from healkit.healing.advisor import Advisor, Case
    from healkit.healing.healer import Confirm, Healer, OnTried
    from healkit.healing.questions import AskPerson
    from healkit.healing.report import HealReport
    from healkit.healing.workbench import Bench
    from healkit.store.log import Log
    from healkit.store.requests import Requests
    from healkit.store.vault import Vault


class Mending:
    """What `Healkit` does about a tool's code beyond the vault itself."""

    config: Config
    _runs: Runs
    _recorder: Recorder
    _perform: Callable[..., Execution]

    @property
    def vault(self) -> Vault:
        """The tools and their revisions; `Healkit` has them."""
        raise NotImplementedError

    @property
    def log(self) -> Log:
        """Every execution on record; `Healkit` has it."""
        raise NotImplementedError

    @property
    def requests(self) -> Requests:
        """Patches that wait for the user's word: `.pending()`, `.get(id)`, `.accept(id)`, `.decline(id, reason)`."""
        raise NotImplementedError

    def rerun(
        self,
        log_id: int,
        *,
        timeout: float | None = None,
        mode: Mode = "worker",
        on_output: OnOutput | None = None,
        record: bool | OpenRun | None = None,
    ) -> Execution:
        """Run the tool of a logged execution again, at its active revision, with the same arguments.

        A run folder says whether it ended as it had then. Raises `UsageInvalid` where there is no such row,
        `ArgumentsInvalid` where the log does not hold its arguments whole, and as `execute` does.
        """
        row = logged(self.log, log_id)
        request = request_for(row.tool_name, row.persona, arguments_of(row), timeout, "rerun", mode)
        return self._perform(request, on_output, record, "rerun", ending_of(row))

    def try_code(
        self,
        tool_name: str,
        code: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        persona: str = "default",
        timeout: float | None = None,
        mode: Mode = "worker",
        on_output: OnOutput | None = None,
        record: bool | OpenRun | None = None,
    ) -> Execution:
        """Run other code in a tool's place, with its grants, before anything of it is saved.

        It is on record like any execution, under no revision. Raises `CodeDoesNotParse`, `ToolShapeError` or
        `SqlNotAllowed` for code that could not be saved either, and as `execute` does.
        """
        request = request_for(tool_name, persona, arguments, timeout, "try", mode)
        return self._perform(dataclasses.replace(request, code=code), on_output, record, "try")

    def undo(self, tool: str, persona: str = "default") -> VaultEntry:
        """Take back a tool's active revision: a new one with the code that it was made from.

        Once more brings the code back. Raises `RevisionNotFound` where there is nothing to undo, and as
        `vault.revert` does.
        """
        return self.vault.undo(tool, persona)

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
    ) -> HealReport:
        """Look for a patch of a failing tool, hold each against what is known, and keep the best with your consent.

        advisors: who is asked, in this order, by name or as they are; by default as `heal_advisors` says.
        auto: keep a patch that is *cured and regression-free* without asking, unless the policy denies it. Without
            `auto` and without `confirm`, the patch waits as a request (`hk.requests`).
        budget_s: seconds of wall time for all of it. log_id: the failure that is meant, instead of the newest.
        ask: is put up to three questions where plausible patches disagree. confirm: is shown the patch that was chosen;
            True, False, or None to leave it waiting. before_patch: is called before each patch is tried.
        progress: gets a sentence whenever something has happened. on_tried: gets the advisor that is asked and the
            number of candidates tried so far, whenever one of them changes. Thinking about an answer is on nobody's
            budget. stop: set it, from any thread, to end the search.
        policy: the caps of the run; over one of them it ends. dry_run: the best patch is shown, and nothing is kept.

        Raises `HealError` where nothing says that the tool fails, `ConfigError` for an advisor that there is not, and
        as `vault.lookup` does. What an advisor or a patch does never raises.
        """
        from healkit.healing.healer import Wish
        from healkit.healing.loop import Listeners

        wish = Wish(
            tool_name,
            persona,
            self.config.heal_advisors if advisors is None else tuple(advisors),
            self.config.heal_budget_s if budget_s is None else budget_s,
            auto,
            log_id,
            policy,
            dry_run,
            named=advisors is not None,
        )
        listeners = Listeners(progress, ask, before_patch)
        return self._healer.heal(wish, listeners, confirm, stop or threading.Event(), on_tried)

    async def aheal(self, *args: Any, **kwargs: Any) -> HealReport:
        """`heal` for async code, in a thread of its own; cancelling it stops the search."""
        stop = kwargs.setdefault("stop", threading.Event())
        try:
            return await asyncio.to_thread(functools.partial(self.heal, *args, **kwargs))
        except asyncio.CancelledError:
            stop.set()
            raise

    @property
    def _healer(self) -> Healer:
        """The parts that a healing needs."""
        from healkit.healing.healer import Healer
        from healkit.healing.workbench import bench_for

        def bench(
            entry: VaultEntry, budget_s: float, stop: threading.Event, on_tried: Callable[[int], object]
        ) -> Bench:
            return bench_for(
                self._recorder, self.config, entry.ref, budget_s, stop, on_tried, off_record=not entry.logged
            )

        def try_code(entry: VaultEntry, code: str, check: Check) -> Execution:
            # A trial, like those in the light mode: what a candidate does is no failure of the tool's.
            request = request_for(entry.tool_name, entry.persona, check.arguments, None, "trial", "worker")
            return self._perform(dataclasses.replace(request, code=code), _unheard, False)

        def execute(entry: VaultEntry, arguments: dict[str, Any]) -> Execution:
            request = request_for(entry.tool_name, entry.persona, arguments, None, "heal", "worker")
            return self._perform(request, _unheard, False)

        return Healer(
            self.config, self.vault, self.log, self._runs, self.requests, bench, try_code, execute,
            lambda: achieved_tier(self.config),
        )  # fmt: skip


def _unheard(_: dict[str, Any]) -> None:
    """What a healing's own executions display is nobody's cell's."""
