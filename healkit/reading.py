"""The reading face of Healkit: what is on record, shown.

A mixin, because what is read needs only the log, the vault and the configuration, which `Healkit` owns.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from healkit.config import Config
from healkit.contracts.filters import Filters, takes_filters
from healkit.errors import VaultError
from healkit.rendering.plots import Plot
from healkit.runtime.execution import Execution, Executions
from healkit.runtime.history import execution_of
from healkit.runtime.plotting import plot_of
from healkit.runtime.reports import last_error_report
from healkit.runtime.runs import Runs
from healkit.store.newest import Newest
from healkit.tracing.reader import read_run
from healkit.tracing.run_folders import find_run

if TYPE_CHECKING:
    from healkit.store.log import Log
    from healkit.store.models import ExecutionLog
    from healkit.store.vault import Vault


class HasFolder(Protocol):
    """A run that goes on, or the report of a healing: it knows its run folder."""

    @property
    def folder(self) -> Path: ...


class Reading:
    """What `Healkit` answers from the log and the vault; nothing here runs a tool or changes one."""

    config: Config
    _runs: Runs
    _newest: Newest

    @property
    def vault(self) -> Vault:
        """The tools and their revisions; `Healkit` has them."""
        raise NotImplementedError

    @property
    def log(self) -> Log:
        """Every execution on record; `Healkit` has it."""
        raise NotImplementedError

    def last_error(self, tool_name: str | None = None, persona: str | None = None) -> Execution | None:
        """The newest failure on record, of one tool and persona where given; None when there is none."""
        row = self.log.last_error(tool_name, persona)
        return None if row is None else self._with_calls(row)

    def last_error_report(self, tool_name: str | None = None) -> str:
        """The same as a text, which says so when there is none."""
        return last_error_report(self.log, tool_name)

    def execution(self, log_id: int) -> Execution | None:
        """One row of the log with the calls it made; None when there is no such row."""
        row = self.log.get(log_id)
        return None if row is None else self._with_calls(row)

    @takes_filters(tried=False)
    def executions(
        self,
        *,
        filters: Filters,
        limit: int = 50,
        before_id: int | None = None,
        after_id: int | None = None,
    ) -> Executions:
        """Return one page of the log, newest first; the arguments are those of `Log.query`.

        tried: with the runs that only try code out, such as a healing's trials and searches. Without, the list's
        `left_out` says how many of them stand between its rows.
        """
        if filters == Filters(tried=False) and before_id is None and after_id is None:
            found, left_out = self._newest.page(limit)
        else:
            page = self.log.query(filters=filters, limit=limit, before_id=before_id, after_id=after_id)
            found, left_out = page.rows, page.left_out
        explained = self.config.explain
        rows = (dataclasses.replace(execution_of(row, []), explained=explained) for row in found)
        return Executions(rows, left_out)

    def replay_of(self, failed: Execution) -> Execution | None:
        """A later revision's execution with the same arguments that passed; None while there is none on record."""
        from healkit.runtime.exporting import passing_replay  # nbformat takes a second to load

        row = passing_replay(self.log, failed)
        return None if row is None else self._with_calls(row)

    def plot(
        self,
        tool: str | None = None,
        *,
        since: datetime | date | str | None = None,
        persona: str | None = None,
    ) -> Plot:
        """Failure rate and duration over time, as a figure: each run of one tool, else a point for each day.

        Raises `PlotUnavailable` without the extra `healkit[plot]`.
        """
        return plot_of(self.log, tool=tool, persona=persona, since=since)

    def browse(self, *, dock: bool = False, **filters: Any) -> Any:
        """A live browser of the log, as a cell's value; the filters are those of `Log.query`, and since="2h" too.

        Trials and searches are left out, and counted, unless tried=True.
        dock: open it at the right-hand side of JupyterLab's window instead, in place of the one that is there.

        Raises `UsageInvalid` for a filter that there is not, and `DockUnavailable` without the extra `healkit[dock]`.
        """
        browser = _panel("LogBrowser")(self, **filters)
        return browser.docked() if dock else browser

    def patch_editor(self, tool_name: str, persona: str = "default", *, log_id: int | None = None) -> Any:
        """A live editor of a tool, as a cell's value: change the code, try it, accept it.

        log_id: the run whose arguments it tries; by default the newest failure's. Raises as `vault.get` does.
        """
        return _panel("PatchEditor")(self, tool_name, persona, log_id=log_id)

    def heal_panel(
        self,
        tool_name: str,
        persona: str = "default",
        *,
        advisors: Sequence[Any] | None = None,
        budget_s: float | None = None,
        log_id: int | None = None,
        dock: bool = False,
    ) -> Any:
        """A live panel that heals a tool, as a cell's value: Start, Stop, questions, consent, the report, Undo.

        It heals as `heal` does, in a thread of its own, and nothing happens before Start is pressed.
        advisors, budget_s: what is chosen when it opens; by default as the configuration says. log_id: the failure that
            is meant, instead of the newest. dock: open it at the right-hand side of the window instead.

        Raises as `vault.get` does, and `DockUnavailable` without the extra `healkit[dock]`.
        """
        chosen = {"advisors": advisors, "budget_s": budget_s, "log_id": log_id}
        panel = _panel("HealPanel")(self, tool_name, persona, **chosen)
        return panel.docked() if dock else panel

    def timeline(self, run: str | Path | HasFolder = "last", *, teach: bool = False) -> Any:
        """A run to be stepped through, as a cell's value.

        run: what `hk.heal` or `hk.run` gave, else an id, the beginning of one, a folder or `last`.
        teach: pause before each patch, ask what one would change there, and show that beside the patch.

        Raises `RunNotFound`.
        """
        named = run if isinstance(run, str | Path) else run.folder
        return _panel("HealTimeline")(self, read_run(find_run(self._runs.runs_dir, str(named))), teach=teach)

    def _with_calls(self, row: ExecutionLog) -> Execution:
        execution = execution_of(row, self.log.calls(row.trace_id), self.log.decisions(row.trace_id))
        code = None
        if row.code_hash is not None:
            try:
                code = self.vault.code(row.code_hash)
            except VaultError:
                pass  # code that was only tried is nowhere kept, and a row may come from another database
        return dataclasses.replace(execution, code=code, explained=self.config.explain)


def _panel(kind: str) -> Any:
    """A panel's class, from the notebook face: that floor is above this one, so it is named and not imported."""
    return getattr(importlib.import_module("healkit.notebook.widgets"), kind)
