"""Panels on the log: the browser, a failure, its worker."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from healkit.app import Healkit
from healkit.commands.parsing import read_filters
from healkit.core.contracts.execution import FILTER_NAMES
from healkit.core.contracts.failure import Local
from healkit.core.contracts.tools import place_label
from healkit.core.rendering import execution_card as rendered
from healkit.core.rendering.cleaning import HIDDEN_MARK
from healkit.core.runtime.execution import Execution
from healkit.errors import PostMortemError, UsageInvalid
from healkit.faces.notebook.cell_output import CellOutput, listed
from healkit.faces.notebook.widgets.heal_panel import Healings, Send
from healkit.faces.notebook.widgets.panel import Panel
from healkit.faces.notebook.widgets.patch_editor import Patching
from healkit.faces.pages.log_reading import ExecutionReading, LogReading
from healkit.faces.pages.operations import Operation, Operations
from healkit.faces.pages.page_data import PageData
from healkit.parts.post_mortem.post_mortem import PostMortem
from healkit.plain_text import visible

#: Filters for which the panel has fields, or which it shows as chosen.
FILTERS = tuple(name for name in FILTER_NAMES if name != "refused")


class LogBrowser(Panel):
    """Log of one Healkit, newest first; `filters` are those of `Log.query`.

    Raises `UsageInvalid` for an unknown filter.
    """

    KIND = "LogBrowser"
    SAME_AS_CARD = True
    title = "Executions"

    def __init__(self, healkit: Healkit, **filters: object) -> None:
        for name in filters:
            if name not in FILTERS:
                raise UsageInvalid(f"There is no filter {name!r}.", hint=f"Filters are {', '.join(FILTERS)}.")
        filter_texts = {
            name: str(value) for name, value in filters.items() if value is not None and value is not False
        }
        self._filters = read_filters(filter_texts, whole_days=True)
        super().__init__(healkit, {"filters": filter_texts})
        operations = ExecutionOperations(healkit, self.recorded, self._reply)
        self.operations |= operations.operations
        self.endings = (operations.close,)
        self.operations |= LogReading(healkit, self.recorded).operations

    def static_card(self) -> CellOutput | None:
        """Draw the first page as a table."""
        return listed(self.healkit.executions(filters=self._filters, limit=20))


#: Maximum number of exports of one failure; more is probably a mistake.
_EXPORTS_MAX = 99


class ExecutionOperations(ExecutionReading):
    """Execution in full for a page: with its code, its worker, and the healing of its tool.

    send: Gets the news of a healing.
    """

    NAMES = ("execution", "active", "report", "export")

    def __init__(self, healkit: Healkit, recorded: PageData, send: Send) -> None:
        super().__init__(healkit, recorded)
        healings = Healings(healkit, recorded, send)
        self._others = (Patching(healkit, recorded), PostMortems(healkit, recorded), healings)
        self.close = healings.close

    @property
    def operations(self) -> dict[str, Operation]:
        """Operations that a page may call."""
        merged = super().operations
        for source in self._others:
            merged |= source.operations
        return merged

    def export(self, log_id: int) -> str:
        """Write that failure as a notebook into the kernel's folder; return the file's name. Raises `UsageInvalid`."""
        failed = self._row(log_id)
        for number in range(1, _EXPORTS_MAX + 1):
            again = "" if number == 1 else f"_{number}"
            file = Path(f"{failed.tool_name}_row_{log_id}{again}.ipynb")
            if not file.exists():
                return str(failed.to_notebook(file, replay=self._healkit.replay_of(failed)))
        raise UsageInvalid(f"{str(file)!r} is there already.", hint="Delete some of the earlier ones.")


class TracebackView(Panel):
    """A failure: message first, library frames folded, and a fix to try directly."""

    KIND = "TracebackView"

    def __init__(self, healkit: Healkit, execution: Execution) -> None:
        super().__init__(healkit, {"log_id": execution.log_id})
        self._execution = execution
        operations = ExecutionOperations(healkit, self.recorded, self._reply)
        self.operations |= operations.operations
        self.endings = (operations.close,)

    def static_card(self) -> CellOutput | None:
        """Draw the failure as a card that needs no kernel."""
        return CellOutput.of(rendered.card(self._execution))


#: Maximum length of an expression in characters, and its time limit in seconds.
_EXPRESSION_MAX_CHARS = 2000
_EVAL_TIMEOUT_S = 5.0


class PostMortems(Operations):
    """Questions to kept workers, by the log row of the execution."""

    PREFIX = "pm_"
    NAMES = ("frames", "locals", "eval")

    def __init__(self, healkit: Healkit, recorded: PageData) -> None:
        super().__init__(healkit, recorded)
        self._lock = threading.Lock()
        self._open: dict[int, PostMortem] = {}

    def frames(self, log_id: int) -> list[dict[str, Any]]:
        """List the frames, outermost first, and which belong to the tool."""
        frames = self._of(log_id, anew=True).frames(libraries=True)
        lines = self._recorded.shown([frame.line.strip() for frame in frames]).value
        return [
            {
                "number": frame.number,
                "where": visible(f"{place_label(frame.filename)}, line {frame.lineno}, in {frame.name}"),
                "line": line,
                "own": frame.in_tool,
            }
            for frame, line in zip(frames, lines, strict=True)
        ]

    def locals(self, log_id: int, frame: int) -> dict[str, Any]:
        """List a frame's locals; secrets, by name or value, are hidden and counted."""
        variables = self._of(log_id).locals(frame)
        # With its name, so that a rule for names applies; one at a time, so that each is counted.
        cleaned = [self._recorded.shown({variable.name: variable.repr}) for variable in variables]
        return {
            "locals": [
                {
                    "name": variable.name,
                    "type": _kind(variable),
                    "repr": str(clean.value.get(variable.name, "")),
                }
                for variable, clean in zip(variables, cleaned, strict=True)
            ],
            "hidden": sum(1 for clean in cleaned if clean.hidden or HIDDEN_MARK in str(clean.value)),
        }

    def eval(self, log_id: int, frame: int, expression: str) -> dict[str, Any]:
        """Return the value of an expression in that frame, or its exception."""
        if not expression.strip() or len(expression) > _EXPRESSION_MAX_CHARS:
            raise UsageInvalid(f"An expression has 1 to {_EXPRESSION_MAX_CHARS} characters.")
        done = self._of(log_id).eval(expression, frame, timeout=_EVAL_TIMEOUT_S)
        error = f"{done.ename}: {done.evalue}" if done.ename else ""
        payload = {"value": done.repr, "output": done.output, "error": error}
        cleaned: dict[str, Any] = self._recorded.shown(payload).value
        return {**cleaned, "ok": done.ok, "type": done.type}

    def _of(self, log_id: int, *, anew: bool = False) -> PostMortem:
        with self._lock:
            post_mortem = None if anew else self._open.get(log_id)
        if post_mortem is None:
            execution = self._healkit.execution(log_id)
            if execution is None:
                raise PostMortemError(f"There is no log row {log_id!r} to look into.")
            post_mortem = execution.post_mortem()
            with self._lock:
                self._open[log_id] = post_mortem
        return post_mortem


def _kind(one: Local) -> str:
    """Return the type, with its shape if any: `pandas.DataFrame (3, 2)`."""
    return one.type if one.shape is None else f"{one.type} {tuple(one.shape)}"
