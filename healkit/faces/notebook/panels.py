"""Live panels as the value of a cell.

`hk.browse()`, `hk.heal_panel(…)` and others.
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

#: Makes a panel from a Healkit and its subject.
MakePanel = Callable[..., Any]


class HasFolder(Protocol):
    """An open run, or the report of a healing, with its run folder."""

    @property
    def folder(self) -> Path: ...


class Panels:
    """Panels of one Healkit; each can also be opened by a magic.

    Example:
    >>> hk.panels.browse(tool="ratio")
    <...LogBrowser object at 0x...>
    """

    def __init__(self, healkit: Healkit) -> None:
        self._healkit = healkit

    def open(self, kind: str, /, *about: object, **more: object) -> Any:
        """Return a live panel by its name, also one of a plug-in, as a cell's value.

        Raises `UsageInvalid` for an unknown panel, and the errors of the panel.

        Example:
        >>> hk.panels.open("LogBrowser", tool="ratio")
        <...LogBrowser object at 0x...>
        """
        return panel_class(kind)(self._healkit, *about, **more)

    def browse(self, /, *, dock: bool = False, **filters: object) -> Any:
        """Return a live browser of the log, as a cell's value; filters as in `Log.query`, and since="2h" too.

        Trials and searches are left out, and counted, unless tried=True.

        dock: Open it at the right-hand side of JupyterLab's or Notebook 7's window, in place of the one there. If the
            page has no such side, it opens in its cell.

        Raises `UsageInvalid` for an unknown filter.

        Example:
        >>> hk.browse(tool="ratio", status="failure", since="2h")
        <...LogBrowser object at 0x...>
        """
        browser = panel_class("LogBrowser")(self._healkit, **filters)
        return browser.docked() if dock else browser

    def patch_editor(self, tool_name: str, persona: str = "default", *, log_id: int | None = None) -> Any:
        """Return a live editor of a tool, as a cell's value: change the code, try it, accept it.

        log_id: The execution whose arguments it tries; by default the newest failure.

        Raises the errors of `vault.get`.

        Example:
        >>> hk.patch_editor("ratio", log_id=failed.log_id)
        <...PatchEditor object at 0x...>
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

        It works like `heal`, in a separate thread, and does nothing before Start is pressed.

        advisors, budget_s: Preselected values; by default from the configuration.
        log_id: The failure to heal, instead of the newest.
        live, files: What checks may call and read, as in `heal`.
        dock: Open it at the right-hand side of the window, as in `browse`.

        Raises the errors of `vault.get`.

        Example:
        >>> hk.heal_panel("ratio", budget_s=10)
        <...HealPanel object at 0x...>
        """
        chosen = {"advisors": advisors, "budget_s": budget_s, "log_id": log_id, "live": live, "files": files}
        panel = panel_class("HealPanel")(self._healkit, tool_name, persona, **chosen)
        return panel.docked() if dock else panel

    def timeline(self, run: str | Path | HasFolder = "last", *, teach: bool = False) -> Any:
        """Return a run to step through, as a cell's value.

        run: Result of `hk.heal` or `hk.run`, or an id, a prefix of one, or a folder. The default is the last healing of
            this kernel, or its last run if there was no healing. Select runs of other notebooks by id.
        teach: Pause before each patch, ask what you would change there, and show your answer beside the patch.

        Raises `RunNotFound`.

        Example:
        >>> with hk.run("demo") as run:
        ...     _ = hk.execute("mean", arguments={"values": [1, 2]})
        >>> hk.timeline(run)
        <...HealTimeline object at 0x...>
        """
        from healkit.parts.runs.reader import (
            read_run,  # late, because the notebook's extension imports this module
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
        """Return the last healing of this process, or its last run; other processes have theirs in the same folder."""
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
        """Return whether this process made a run; None for one of another database."""
        for row in self._healkit.log.query(run=run_id, tried=True, limit=1).rows:
            return started_of(row).host == host_identity()
        return True if self._healkit.audit.get(run_id) else None

    def decide_panel(self, /, question: str, data: Mapping[str, Any], **more: object) -> Any:
        """Return a live panel in which you choose, as a cell's value; it shows only what a model would see.

        It works like `decide`, in a separate thread. The panel's `decision` is the result, None until it ends.

        more: Further arguments of `decide`, such as `tools`; not `chooser`, `ask` and `stop`.

        Raises `UsageInvalid` for an argument that the panel sets itself; the panel shows the errors of `decide`.

        Example:
        >>> scores = pd.DataFrame({"name": ["Ada", "Bo"], "points": [70, 40]})
        >>> panel = hk.decide_panel("Who has passed?", {"scores": scores})
        >>> panel.decision is None
        True
        """
        return panel_class("DecidePanel")(self._healkit, question, data, **more)

    def audit_panel(self, of: object) -> Any:
        """Return an audited execution as a live panel, as a cell's value: its steps, its data, its analysis.

        of: Result of `hk.decide` or `hk.heal`, or an execution's id. Only a decision has data and an analysis.

        Raises `UsageInvalid` for an execution that is not in the audit.

        Example:
        >>> scores = pd.DataFrame({"name": ["Ada", "Bo"], "points": [70, 40]})
        >>> plan = [{"type": "finalize", "finalViewName": "scores"}]
        >>> hk.audit_panel(hk.decide("Which scores?", {"scores": scores}, chooser=plan))
        <...AuditPanel object at 0x...>
        """
        return panel_class("AuditPanel")(self._healkit, of)


def panel_class(kind: str) -> MakePanel:
    """Return the class of a panel; anywidget is imported when the first one is opened. Raises `UsageInvalid`."""
    panels: dict[str, Callable[[], MakePanel]] = {}
    for added in hooks.every("panels"):  # the last registered first, so that healkit's own wins
        panels |= added
    if kind not in panels:
        raise UsageInvalid(f"There is no panel {kind!r}.", hint=f"There are {', '.join(sorted(panels))}.")
    return panels[kind]()
