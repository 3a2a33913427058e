"""Healing service of a Healkit: `hk.heal` and its options.

The code that heals is loaded by the first healing, because a plain execution does not need it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.config import HEAL_BUDGET_S
from healkit.core.runtime.background import show_parameters
from healkit.parts.runs.contract import PolicyDefaults

if TYPE_CHECKING:
    from healkit.parts.heal.advisor import Advisor, Case
    from healkit.parts.heal.notebook_check import NotebookReport
    from healkit.parts.heal.questions import Answer, Question
    from healkit.parts.heal.records import Attempt, Patch
    from healkit.parts.heal.report import CellReport, HealReport
    from healkit.services import Services


class HealService:
    """Heals the tools of one Healkit.

    Example:
    >>> right = {"arguments": {"text": "hi"}, "result": "HI"}
    >>> _ = hk.vault.add("loud", "def loud(text): return text.uper()", examples=[right])
    >>> hk.healing.heal("loud", dry_run=True).verdict
    'fixed, no regressions'
    """

    def __init__(self, hk: Services) -> None:
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
        files: Sequence[str | Path] = (),
    ) -> HealReport:
        """Look for patches of a failing tool, run its checks on each, and keep the best with your consent.

        advisors: Names or objects, asked in this order; by default as `heal_advisors` says.
        auto: Keep a patch that is *fixed, no regressions* without asking, unless the policy denies it. Without `auto`
            and without `confirm`, the patch waits as a request (`hk.requests`).
        budget_s: Seconds of wall time for all of it.
        log_id: The failure to heal, instead of the newest.
        ask: Gets up to three questions if plausible patches disagree.
        confirm: Gets the chosen patch; returns True, False, or None to leave it waiting.
        before_patch: Called before each patch is tried.
        progress: Gets a sentence whenever something has happened.
        on_tried: Gets the current advisor and the number of candidates tried so far, whenever one of them changes. Time
            spent in `ask` and `confirm` does not count against `budget_s`.
        stop: Set it, from any thread, to end the search.
        policy: The caps of the run; over one of them it ends.
        dry_run: Show the best patch, and keep nothing.
        executor: Any `concurrent.futures.Executor`; its workers then try the search's candidates.
        live: Calls that checks may make if they are not on record, `["host.price"]` for one call, `["host.price:5"]`
            for five. Each is reported before it is made, and equal ones are made once. Calls with declared effects are
            never made. All other calls are answered from the record of earlier executions, or not at all. You need not
            list a host function that was provided as read-only, or a vault tool that only calculates.
        files: Granted files and folders that patches may read while they are checked, `["/data/rates.csv"]`, or
            patterns of them, `["*"]`. Without it, only the tool's accepted code reads them, and a check in which a
            patch reads one is not decided.

        Raises `HealError` if nothing shows that the tool fails, `ConfigError` for an unknown advisor or an unusable
        executor, and as `vault.lookup` does. An advisor's or a patch's error is never raised.

        Example:
        >>> right = {"arguments": {"names": ["Bo", "Ada"]}, "result": "Ada"}
        >>> _ = hk.vault.add("longest", "def longest(names): return max(names, key=length)", examples=[right])
        >>> report = hk.heal("longest", auto=True)
        >>> report.outcome, report.verdict
        ('kept', 'fixed, no regressions')
        >>> hk.vault.lookup("longest").code
        'def longest(names): return max(names, key=len)'
        """
        from healkit.parts.heal.context import HealOptions
        from healkit.parts.heal.loop import run_healing

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
            files=tuple(map(str, files)),
        )
        return run_healing(self._hk, options)

    def heal_cell(
        self,
        number: int | None = None,
        *,
        advisors: Sequence[str | Advisor] | None = None,
        budget_s: float | None = None,
        progress: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
    ) -> CellReport:
        """Look for an edit of the notebook's own failing cell, and show it; nothing in the kernel or the cell changes.

        The cell runs in a restricted worker, with the values that its names had before it ran. It needs the extension
        (`%load_ext healkit`), which knows which cells failed.

        number: The prompt of the cell, 12 for `In [12]`; by default the newest failing one.
        advisors, budget_s, progress, stop: As in `heal`.

        Raises `HealError` if there is no such failure, and `ConfigError` for an unknown advisor.

        Example:
        >>> prices = [2, 3]
        >>> sum(price)
        Traceback (most recent call last):
            ...
        NameError: name 'price' is not defined
        >>> report = hk.heal_cell()
        >>> report.outcome, report.fix.code
        ('proposed', 'sum(prices)')
        """
        from healkit.parts.heal.cell_healing import heal_cell

        return heal_cell(
            self._hk,
            number,
            advisors=None if advisors is None else tuple(advisors),
            budget_s=HEAL_BUDGET_S if budget_s is None else budget_s,
            progress=progress,
            stop=stop or threading.Event(),
        )

    def check_notebook(
        self,
        path: str | Path,
        *,
        heal: bool = False,
        timeout: float = 600.0,
        read: Sequence[str | Path] = (),
        progress: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
    ) -> NotebookReport:
        """Run a notebook from top to bottom in a fresh restricted kernel, and report how it went; it does not change.

        heal: Look for a fix of each failing cell, and run the notebook again with it.
        timeout: Seconds for a cell.
        read: Paths that the cells may read besides the notebook's folder.
        progress: Gets a sentence now and then, on any thread.
        stop: Set it, from any thread, to end the check.

        Raises `UsageInvalid` for a file that is not a Python notebook, `ConfigError` for a path that cannot be granted,
        and `IsolationUnavailable` on a machine without a boundary. A failing cell is never raised.

        Example:
        >>> from nbformat import v4, write
        >>> cells = [v4.new_code_cell("n = 2"), v4.new_code_cell("n / 0")]
        >>> write(v4.new_notebook(cells=cells), "analysis.ipynb")
        >>> report = hk.check_notebook("analysis.ipynb")
        >>> report.outcome, [cell.state for cell in report.cells]
        ('failed', ['passed', 'failed'])
        """
        from healkit.parts.heal.notebook_check import check_notebook

        stop = stop or threading.Event()
        return check_notebook(
            self._hk, path, heal=heal, timeout=timeout, read=read, progress=progress, stop=stop
        )

    async def aheal(self, *args: Any, **kwargs: Any) -> HealReport:
        """Do the same as `heal`, for async code, in its own thread; cancelling it stops the search. Raises as `heal`.

        Example:
        >>> right = {"arguments": {"values": [1, 2]}, "result": 3}
        >>> _ = hk.vault.add("total", "def total(values): return sum(vales)", examples=[right])
        >>> asyncio.run(hk.aheal("total", dry_run=True)).outcome
        'shown'
        """
        stop = kwargs.setdefault("stop", threading.Event())
        try:
            return await asyncio.to_thread(functools.partial(self.heal, *args, **kwargs))
        except asyncio.CancelledError:
            stop.set()
            raise


show_parameters(HealService.aheal, HealService.heal)
