"""Post-mortem panel: frames, locals, expressions."""

from __future__ import annotations

import threading
from typing import Any

from healkit.app import Healkit
from healkit.contracts.post_mortem import Local
from healkit.contracts.tools import place_label
from healkit.errors import PostMortemError, UsageInvalid
from healkit.notebook.cell_output import CellOutput
from healkit.notebook.widgets.page_data import HIDDEN_MARK, PageData
from healkit.notebook.widgets.panel import Operation, Panel
from healkit.plain_text import visible
from healkit.rendering import execution as rendered
from healkit.runtime.execution import Execution
from healkit.runtime.post_mortem import PostMortem

#: What an expression may be, in characters, and take, in seconds.
_EXPRESSION_MAX_CHARS = 2000
_EVAL_TIMEOUT_S = 5.0


class PostMortems:
    """Questions to kept workers, by the log row of the run."""

    def __init__(self, healkit: Healkit, recorded: PageData) -> None:
        self._healkit = healkit
        self._recorded = recorded
        self._lock = threading.Lock()
        self._open: dict[int, PostMortem] = {}

    @property
    def operations(self) -> dict[str, Operation]:
        """Operations that a page may ask for."""
        return {"pm_frames": self.frames, "pm_locals": self.locals, "pm_eval": self.eval}

    def frames(self, log_id: int) -> list[dict[str, Any]]:
        """List the frames, outermost first, and which are the tool's own."""
        found = self._of(log_id, anew=True).frames(libraries=True)
        lines = self._recorded.shown([frame.line.strip() for frame in found]).value
        return [
            {
                "number": frame.number,
                "where": visible(f"{place_label(frame.filename)}, line {frame.lineno}, in {frame.name}"),
                "line": line,
                "own": frame.in_tool,
            }
            for frame, line in zip(found, lines, strict=True)
        ]

    def locals(self, log_id: int, frame: int) -> dict[str, Any]:
        """List a frame's locals; what looks like a secret, by its name or its value, is hidden and counted."""
        found = self._of(log_id).locals(frame)
        # Beside its name, so that a rule for names applies; one at a time, so that each is counted.
        cleaned = [self._recorded.shown({one.name: one.repr}) for one in found]
        return {
            "locals": [
                {"name": one.name, "type": _kind(one), "repr": str(clean.value.get(one.name, ""))}
                for one, clean in zip(found, cleaned, strict=True)
            ],
            "hidden": sum(1 for clean in cleaned if clean.hidden or HIDDEN_MARK in str(clean.value)),
        }

    def eval(self, log_id: int, frame: int, expression: str) -> dict[str, Any]:
        """Return the value of an expression in that frame, or what it raised."""
        if not expression.strip() or len(expression) > _EXPRESSION_MAX_CHARS:
            raise UsageInvalid(f"An expression has 1 to {_EXPRESSION_MAX_CHARS} characters.")
        done = self._of(log_id).eval(expression, frame, timeout=_EVAL_TIMEOUT_S)
        error = f"{done.ename}: {done.evalue}" if done.ename else ""
        payload = {"value": done.repr, "output": done.output, "error": error}
        cleaned: dict[str, Any] = self._recorded.shown(payload).value
        return {**cleaned, "ok": done.ok, "type": done.type}

    def _of(self, log_id: int, *, anew: bool = False) -> PostMortem:
        with self._lock:
            found = None if anew else self._open.get(log_id)
        if found is None:
            execution = self._healkit.execution(log_id)
            if execution is None:
                raise PostMortemError(f"There is no log row {log_id!r} to look into.")
            found = execution.post_mortem()
            with self._lock:
                self._open[log_id] = found
        return found


class PostMortemPanel(Panel):
    """Failed execution, to be asked as long as its worker is kept."""

    KIND = "PostMortem"

    def __init__(self, healkit: Healkit, execution: Execution) -> None:
        super().__init__(healkit, {"log_id": execution.log_id, "label": execution.label})
        self._execution = execution
        self.operations |= PostMortems(healkit, self.recorded).operations

    def static_card(self) -> CellOutput | None:
        """Draw the failure as a card."""
        return CellOutput.of(rendered.card(self._execution))


def _kind(one: Local) -> str:
    """Return the type, with a shape where there is one: `pandas.DataFrame (3, 2)`."""
    return one.type if one.shape is None else f"{one.type} {tuple(one.shape)}"
