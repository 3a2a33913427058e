"""Live panels as a cell's value.

`hk.browse()`, `hk.heal_panel(…)` and the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from healkit import hooks
from healkit.core.host import host_identity
from healkit.core.runtime.execution import started_of
from healkit.errors import RunNotFound, UsageInvalid

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.parts.runs.contract import Run

#: Makes a panel of a Healkit and what it is about.
MakePanel = Callable[..., Any]


class HasFolder(Protocol):
    """A run that goes on, or the report of a healing: it knows its run folder."""

    @property
    def folder(self) -> Path: ...


class Panels:
    """Panels of one Healkit; each can also be opened by a magic."""

    def __init__(self, healkit: Healkit) -> None:
        self._healkit = healkit

    def open(self, kind: str, /, *about: object, **more: object) -> Any:
        """Return a live panel by its name, a plug-in's too, as a cell's value.

        Raises `UsageInvalid` where there is no such panel, and as the panel does.
        """
        return panel_class(kind)(self._healkit, *about, **more)

    def browse(self, /, *, dock: bool = False, **filters: object) -> Any:
        """Return a live browser of the log, as a cell's value; filters as in `Log.query`, and since="2h" too.

        Trials and searches are left out, and counted, unless tried=True.
        dock: open it at the right-hand side of JupyterLab's or Notebook 7's window, in place of the one that is there;
            in its cell where the page has no such side.

        Raises `UsageInvalid` for a filter that there is not.
        """
        browser = panel_class("LogBrowser")(self._healkit, **filters)
        return browser.docked() if dock else browser

    def patch_editor(self, tool_name: str, persona: str = "default", *, log_id: int | None = None) -> Any:
        """Return a live editor of a tool, as a cell's value: change the code, try it, accept it.

        log_id: the run whose arguments it tries; by default the newest failure's. Raises as `vault.get` does.
        """
        return panel_class("PatchEditor")(self._healkit, tool_name, persona, log_id=log_id)

    def heal_panel(
        self,
        tool_name: str,
        persona: str = "default",
        *,
        advisors: Sequence[Any] | None = None,
        budget_s: float | None = None,
        log_id: int | None = None,
        live: Sequence[str] = (),
        files: Sequence[str | Path] = (),
        dock: bool = False,
    ) -> Any:
        """Return a live panel that heals a tool: Start, Stop, questions, consent, the report, Undo.

        It heals as `heal` does, in a thread of its own, and nothing happens before Start is pressed.
        advisors, budget_s: what is chosen when it opens; by default as the configuration says. log_id: the failure that
            is meant, instead of the newest. live, files: what checks may call and read, as in `heal`. dock: open it at
            the right-hand side of the window, as `browse` does.

        Raises as `vault.get` does.
        """
        chosen = {"advisors": advisors, "budget_s": budget_s, "log_id": log_id, "live": live, "files": files}
        panel = panel_class("HealPanel")(self._healkit, tool_name, persona, **chosen)
        return panel.docked() if dock else panel

    def timeline(self, run: str | Path | HasFolder = "last", *, teach: bool = False) -> Any:
        """Return a run to be stepped through, as a cell's value.

        run: what `hk.heal` or `hk.run` gave, else an id, the beginning of one or a folder. By default the last healing
            of this kernel, or its last run where nothing was healed; those of other notebooks are asked for by id.
        teach: pause before each patch, ask what one would change there, and show that beside the patch.

        Raises `RunNotFound`.
        """
        from healkit.parts.runs.reader import (
            read_run,  # not above: the notebook's extension loads this module
        )
        from healkit.parts.runs.run_folders import LAST, find_run

        named: Any = getattr(run, "folder", run)
        named = str(named) if isinstance(named, Path) else named
        selected_run = (
            self._last_run()
            if isinstance(named, str) and named == LAST
            else read_run(find_run(self._healkit.runs_dir, named))
        )
        return panel_class("HealTimeline")(self._healkit, selected_run, teach=teach)

    def _last_run(self) -> Run:
        """Return the last healing of this process, or its last run; others have theirs beside it."""
        from healkit.parts.runs.reader import read_run
        from healkit.parts.runs.run_folders import run_folders

        last, foreign_name = None, ""
        for folder in reversed(run_folders(self._healkit.runs_dir)):
            ours = self._is_ours(folder.name)
            foreign_name = foreign_name or ("" if ours is None else folder.name)
            if not ours:
                continue
            run = read_run(folder)
            if run.manifest is not None and run.manifest.execution_profile.name == "heal":
                return run
            last = last or run
        if last is None:
            there = f"hk.timeline({foreign_name!r}) plays the newest one of this database, from another notebook. "
            raise RunNotFound(
                f"{'This notebook' if foreign_name else 'This database'} has no run yet.",
                hint=f"{there if foreign_name else ''}A healing makes one, and so does hk.execute(…, record=True).",
            )
        return last

    def _is_ours(self, run_id: str) -> bool | None:
        """Return whether a run was made by this process; None for one of another database."""
        for row in self._healkit.log.query(run=run_id, tried=True, limit=1).rows:
            return started_of(row).host == host_identity()
        return True if self._healkit.audit.get(run_id) else None

    def decide_panel(self, /, question: str, data: Mapping[str, Any], **more: object) -> Any:
        """Return a live panel in which you choose, as a cell's value; it shows what a model would be told, no more.

        It decides as `decide` does, in a thread of its own. The panel's `decision` is the result, None until it ends.
        more: further arguments of `decide`, such as `tools`; not `chooser`, `ask` and `stop`.

        Raises `UsageInvalid` for an argument that is the panel's own; what `decide` raises is shown in the panel.
        """
        return panel_class("DecidePanel")(self._healkit, question, data, **more)

    def audit_panel(self, of: object) -> Any:
        """Return an execution on the audit as a live panel, as a cell's value: its steps, its data, its analysis.

        of: what `hk.decide` or `hk.heal` returned, else an execution's id. Only a decision has data and an analysis.

        Raises `UsageInvalid` for what is not on the audit.
        """
        return panel_class("AuditPanel")(self._healkit, of)


def panel_class(kind: str) -> MakePanel:
    """Return the class of a panel; anywidget is loaded when the first one is opened. Raises `UsageInvalid`."""
    panels: dict[str, Callable[[], MakePanel]] = {}
    for added in hooks.every("panels"):  # the last registered first: of two with one name, healkit's own
        panels |= added
    if kind not in panels:
        raise UsageInvalid(f"There is no panel {kind!r}.", hint=f"There are {', '.join(sorted(panels))}.")
    return panels[kind]()
