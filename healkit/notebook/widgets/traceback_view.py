"""Traceback view: one failure, and what can be done about it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from healkit.app import Healkit
from healkit.errors import UsageInvalid, VaultError
from healkit.notebook.cell_output import CellOutput
from healkit.notebook.widgets.heal_panel import Healings
from healkit.notebook.widgets.page_data import PageData
from healkit.notebook.widgets.panel import Operation, Panel
from healkit.notebook.widgets.patch_editor import Patching
from healkit.notebook.widgets.post_mortem import PostMortems
from healkit.rendering import execution as rendered
from healkit.runtime.execution import Execution

#: How often the same failure is written before that is called a mistake.
_EXPORTS_MAX = 99


class ExecutionOperations:
    """Execution in full, as a page asks for it."""

    def __init__(self, healkit: Healkit, recorded: PageData) -> None:
        self._healkit = healkit
        self._recorded = recorded

    @property
    def operations(self) -> dict[str, Operation]:
        """Operations that a page may ask for: on an execution, its code, and its worker."""
        patching = Patching(self._healkit, self._recorded)
        post_mortems = PostMortems(self._healkit, self._recorded)
        own = {
            "execution": self.execution, "active": self.active, "report": self.report, "export": self.export,
        }  # fmt: skip
        return {**own, **patching.operations, **post_mortems.operations}

    def execution(self, log_id: int) -> dict[str, Any]:
        """Return that row of the log; raise `UsageInvalid` where there is none."""
        return self._recorded.execution(self._row(log_id))

    def active(self, log_id: int) -> int | None:
        """Return the revision of that row's tool that is active by now; None where the tool is gone."""
        row = self._row(log_id)
        with contextlib.suppress(VaultError):
            return self._healkit.vault.get(row.tool_name, row.persona).revision
        return None

    def report(self, log_id: int) -> str:
        """Return that failure as a bug report in Markdown, secrets hidden; raise `UsageInvalid`."""
        return self._row(log_id).to_markdown()

    def export(self, log_id: int) -> str:
        """Write that failure as a notebook into the kernel's folder; its name, which no file had. Raises likewise."""
        failed = self._row(log_id)
        for number in range(1, _EXPORTS_MAX + 1):
            again = "" if number == 1 else f"_{number}"
            file = Path(f"{failed.tool_name}_row_{log_id}{again}.ipynb")
            if not file.exists():
                return str(failed.to_notebook(file, replay=self._healkit.replay_of(failed)))
        raise UsageInvalid(f"{str(file)!r} is there already.", hint="Delete some of the earlier ones.")

    def _row(self, log_id: int) -> Execution:
        found = self._healkit.execution(log_id)
        if found is None:
            raise UsageInvalid(f"There is no log row {log_id!r}.", hint="It may have been pruned.")
        return found


class TracebackView(Panel):
    """A failure: message first, other people's frames folded, and a fix to try right there."""

    KIND = "TracebackView"

    def __init__(self, healkit: Healkit, execution: Execution) -> None:
        super().__init__(healkit, {"log_id": execution.log_id})
        self._execution = execution
        self.operations |= ExecutionOperations(healkit, self.recorded).operations
        healings = Healings(healkit, self.recorded, self._reply)
        self.operations |= healings.operations
        self.endings = (healings.close,)

    def static_card(self) -> CellOutput | None:
        """Draw the failure as a card that needs no kernel."""
        return CellOutput.of(rendered.card(self._execution))
