"""Cell order panel: run what the failed cell lacks.

The page only names one of the cells that it was sent; their texts stay here, as they were shown.
"""

from __future__ import annotations

from typing import Any

from IPython import get_ipython

from healkit.cells import CellAdvice
from healkit.errors import UsageInvalid
from healkit.notebook.cell_rerun import rerun
from healkit.notebook.widgets.panel import Panel

_SHOWN_MAX_CHARS = 5000


class CellOrder(Panel):
    """Cells that give what a failing cell of the user's own lacks."""

    KIND = "CellOrder"

    def __init__(self, advice: CellAdvice) -> None:
        super().__init__(None)
        self._advice = advice
        self.operations |= {"advice": self._told, "run_cell": self._run}

    def _told(self) -> dict[str, Any]:
        """Return the advice, without what looks like a secret in a cell's text."""
        steps = [
            {"label": step.label, "why": step.why, "source": _cut(step.source)} for step in self._advice.steps
        ]
        told: dict[str, Any] = self.recorded.clean({"sentence": self._advice.sentence, "steps": steps}).value
        return told

    def _run(self, step: int) -> dict[str, Any]:
        """Run one of the cells in the user's kernel; raises `UsageInvalid` for one that there is not."""
        if not 0 <= step < len(self._advice.steps):
            raise UsageInvalid(f"There is no step {step!r}.")
        chosen = self._advice.steps[step]
        done = rerun(get_ipython(), chosen.source, chosen.cell_id)
        return {
            "ok": done.ok,
            "count": done.count,
            "failure": self.recorded.clean(done.failure).value,
            "outputs": self.recorded.outputs(done.outputs),
        }


def _cut(source: str) -> str:
    """Cut a cell's text to what a person reads before a click."""
    return source if len(source) <= _SHOWN_MAX_CHARS else f"{source[:_SHOWN_MAX_CHARS]}\n…"
