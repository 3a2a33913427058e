"""The traceback view: one failure, and all that can be done about it."""

from __future__ import annotations

from typing import Any

from healkit import rendering
from healkit.app import Healkit
from healkit.errors import UsageInvalid
from healkit.notebook.shown import Shown
from healkit.notebook.widgets.panel import Operation, Panel
from healkit.notebook.widgets.patch_editor import Patching
from healkit.notebook.widgets.post_mortem import PostMortems
from healkit.notebook.widgets.recorded import Recorded
from healkit.runtime.execution import Execution


class Looking:
    """One execution in full, as a page asks for it."""

    def __init__(self, healkit: Healkit, recorded: Recorded) -> None:
        self._healkit = healkit
        self._recorded = recorded

    @property
    def operations(self) -> dict[str, Operation]:
        """What a page may ask: of an execution, of its code, and of its worker."""
        patching = Patching(self._healkit, self._recorded)
        post_mortems = PostMortems(self._healkit, self._recorded)
        return {"execution": self.execution, **patching.operations, **post_mortems.operations}

    def execution(self, log_id: int) -> dict[str, Any]:
        """That row of the log; raises `UsageInvalid` where there is none."""
        found = self._healkit.execution(log_id)
        if found is None:
            raise UsageInvalid(f"There is no log row {log_id!r}.", hint="It may have been pruned.")
        return self._recorded.execution(found)


class TracebackView(Panel):
    """A failure: message first, other people's frames folded, and a fix to try right there."""

    KIND = "TracebackView"

    def __init__(self, healkit: Healkit, execution: Execution) -> None:
        super().__init__(healkit, {"log_id": execution.log_id})
        self._execution = execution
        self.operations |= Looking(healkit, self.recorded).operations

    def static_card(self) -> Shown | None:
        """The same failure as a card that needs no kernel."""
        return Shown(rendering.execution_text(self._execution), rendering.execution_html(self._execution))
