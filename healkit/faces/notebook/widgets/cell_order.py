"""Panels of failed cells: run missing cells, or fix the cell.

The page only names one of the cells that it received; their texts remain here, as they were shown.

A thread answers a panel's request. But a notebook's code must run on the kernel's main thread, after the running cell.
So the main thread's event loop runs it, under the lock by which the kernel serves one request after the other. Its
output is captured and returned to the panel, since a page does not show output of runs that it did not start.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from IPython import get_ipython
from IPython.core.displaypub import CapturingDisplayPublisher

from healkit.config import Config
from healkit.core.runtime.background import heard_stop
from healkit.errors import UsageInvalid
from healkit.faces.defaults import default_healkit
from healkit.faces.notebook.widgets.panel import Panel
from healkit.parts.cells.advice import CellAdvice
from healkit.parts.cells.own_cells import notebook_cells
from healkit.parts.heal.records import CellFix as Fix
from healkit.parts.heal.records import CellPlace
from healkit.parts.models.model_endpoint import find_endpoint

if TYPE_CHECKING:
    from ipykernel.ipkernel import IPythonKernel
    from IPython.core.interactiveshell import InteractiveShell


_SHOWN_MAX_CHARS = 5000


class CellOrder(Panel):
    """Cells that define the names that a failed cell of the user lacks."""

    KIND = "CellOrder"

    def __init__(self, advice: CellAdvice) -> None:
        super().__init__(None)
        self._advice = advice
        self.operations |= {"advice": self._advice_data, "run_cell": self._run}

    def _advice_data(self) -> dict[str, Any]:
        """Return the advice, without secrets in the texts of cells."""
        steps = [
            {"label": step.label, "why": step.why, "source": _cut(step.source), "cell_id": step.cell_id}
            for step in self._advice.steps
        ]
        advice: dict[str, Any] = self.recorded.clean(
            {"sentence": self._advice.sentence, "steps": steps}
        ).value
        move = [place for place, step in enumerate(self._advice.steps) if step in self._advice.moves]
        return {**advice, "move": move}

    def _run(self, step: int) -> dict[str, Any]:
        """Run one of the cells in the user's kernel; raise `UsageInvalid` for an unknown one."""
        if not 0 <= step < len(self._advice.steps):
            raise UsageInvalid(f"There is no step {step!r}.")
        chosen = self._advice.steps[step]
        done = rerun(get_ipython(), chosen.source, chosen.cell_id)
        return {
            "ok": done.ok,
            "count": done.count,
            "failure": self.recorded.shown(done.failure).value,
            "outputs": self.recorded.outputs(done.outputs),
        }


class CellFix(Panel):
    """Failed cell of the user, and its fixes; card: its card as HTML, number: its prompt."""

    KIND = "CellFix"

    def __init__(self, card: str, number: int | None) -> None:
        super().__init__(None)
        self._card, self._number = card, number
        self._looking = threading.Lock()
        self._found: dict[str, Any] | None = None
        self.operations |= {"about": self._about, "heal": self._heal}

    def _about(self) -> dict[str, Any]:
        """Return the card, and whether a search has begun or ended, so that a reloaded page can show it again."""
        config = Config.from_environment()
        model = config.heal_model if find_endpoint(config, os.environ)[0] is not None else ""
        begun = self._looking.locked() or self._found is not None
        return {"card": self._card, "begun": begun, "model": model}

    def _heal(self, *, join: bool = False, ask: bool = False) -> dict[str, Any]:
        """Search for fixes; return each as an edit, or as HTML the reason why there is none.

        join: Use the result of an earlier or a running search. ask: Ask only the model.
        """
        with self._looking:
            if self._found is None or not join:
                stop = threading.Event()
                if (stop_request := heard_stop()) is not None:
                    stop_request.tell(stop.set)
                more: dict[str, Any] = {}
                if ask:
                    more = {"advisors": ["model"], "budget_s": self.recorded.config.heal_model_timeout_s}
                report = default_healkit().heal_cell(self._number, stop=stop, **more)
                fixes = report.others if report.fix is None else (report.fix, *report.others)
                html = report._repr_html_() if not fixes else ""
                self._found = {"label": report.label, "html": html, "notes": report.notes}
                self._found["refutes"] = report.refutes
                self._found["fixes"] = [_told(fix) for fix in fixes]
                self._found["not_fixes"] = [_told(rejected) for rejected in report.not_fixes]
                cell = notebook_cells.find(self._number)
                parses = cell is not None and cell.failure.ename not in (
                    "SyntaxError",
                    "IndentationError",
                    "TabError",
                )
                self._found["askable"] = report.outcome == "not_cured" and parses
            return self._found


def _told(fix: Fix) -> dict[str, Any]:
    """Return an edit for the page; sure: it keeps the meaning of the cell, and it ran."""
    sure = fix.ran and fix.kind not in ("assumes", "invents", "discards")
    details = {"cell": fix.cell, "reason": fix.reason, "said": fix.said, "ran": fix.ran, "sure": sure}
    unknown = [name for name in fix.unknown if name != fix.rerun]
    return {**details, "lost": fix.lost, "unknown": unknown, "edit": _edit(fix)}


def _edit(fix: Fix) -> dict[str, Any]:
    """Return the edit in the form for cells, with the cells to run before and after it."""
    place = CellPlace(fix.cell, fix.before, fix.cell_id)
    return {
        **dataclasses.asdict(place),
        "code": fix.code,
        "hunks": fix.hunks,
        "first": [dataclasses.asdict(cell) for cell in fix.first],
        "then": [dataclasses.asdict(cell) for cell in fix.then],
    }


def _cut(source: str) -> str:
    """Cut a cell's text to the part that a person reads before a click."""
    return source if len(source) <= _SHOWN_MAX_CHARS else f"{source[:_SHOWN_MAX_CHARS]}\n…"


_TEXT_MAX_CHARS = 200_000


@dataclass(frozen=True)
class Rerun:
    """Result of a cell's run: the number of its prompt, its outputs (in nbformat), and its failure."""

    count: int | None
    ok: bool
    failure: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)


class _Publisher(CapturingDisplayPublisher):
    """Stores displayed output, in order."""

    def __init__(self, kept: list[dict[str, Any]]) -> None:
        super().__init__()
        self._kept = kept

    def publish(
        self, data: dict[str, Any], metadata: dict[str, Any] | None = None, *_: object, **__: object
    ) -> None:
        """Store displayed output; called by IPython's `display`."""
        self._kept.append({"output_type": "display_data", "data": data, "metadata": metadata or {}})

    def clear_output(self, *_: object, **__: object) -> None:
        """Drop the displayed output; called by IPython's `clear_output`."""
        self._kept.clear()

    def set_parent(self, parent: object) -> None:
        """Do nothing; called by ipykernel for each message, sometimes from another thread."""


class _Stream(io.TextIOBase):
    """Stores printed output, in order with the displayed output."""

    def __init__(self, name: str, kept: list[dict[str, Any]]) -> None:
        self._name, self._kept, self._left = name, kept, _TEXT_MAX_CHARS

    def write(self, text: str) -> int:
        """Store printed output; called by `print`."""
        chunk, self._left = text[: self._left], max(self._left - len(text), 0)
        last = self._kept[-1] if self._kept else {}
        if last.get("name") == self._name:
            last["text"] += chunk
        elif chunk:
            self._kept.append({"output_type": "stream", "name": self._name, "text": chunk})
        return len(text)


def rerun(shell: InteractiveShell, source: str, cell_id: str = "") -> Rerun:
    """Run a cell's text on the kernel's main thread, as if it had been typed there; works on any other thread.

    It waits for the running cell. A `Stop` of the caller interrupts it, like the notebook's own button. Raises
    `UsageInvalid` for a cell that awaits, which the kernel can only run from its page, and if there is no kernel.
    """
    kernel = getattr(shell, "kernel", None)
    loop = getattr(getattr(kernel, "io_loop", None), "asyncio_loop", None)
    if loop is None or threading.current_thread() is threading.main_thread():
        raise UsageInvalid("There is no kernel here to run a cell in.", hint="Run the cell itself.")
    if shell.should_run_async(source, transformed_cell=_transformed(shell, source)):
        raise UsageInvalid(
            "This cell awaits; it can only be run in its own place.", hint="Run the cell itself."
        )
    begun = threading.Event()
    future = asyncio.run_coroutine_threadsafe(_on_main(shell, kernel, source, cell_id, begun), loop)

    def end() -> None:
        if not begun.is_set():
            future.cancel()
        elif not future.done():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    if (stop := heard_stop()) is not None:
        stop.tell(end)
    try:
        return future.result()
    except CancelledError:
        return Rerun(None, ok=False, failure="It was stopped before it began.")


def _transformed(shell: InteractiveShell, source: str) -> str:
    try:
        return str(shell.transform_cell(source))
    except Exception:  # noqa: BLE001 - the run itself will report the problem
        return source


async def _on_main(
    shell: InteractiveShell, kernel: IPythonKernel, source: str, cell_id: str, begun: threading.Event
) -> Rerun:
    lock = getattr(kernel, "_main_asyncio_lock", None)  # ipykernel 7 holds it while it serves a request
    async with lock if lock is not None else contextlib.nullcontext():
        begun.set()
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored between cells
        try:
            return _run(shell, source, cell_id)
        except KeyboardInterrupt:
            return Rerun(None, ok=False, failure="KeyboardInterrupt")
        finally:
            signal.signal(signal.SIGINT, before)


def _run(shell: InteractiveShell, source: str, cell_id: str) -> Rerun:
    outputs: list[dict[str, Any]] = []
    with _kept_in(shell, outputs):
        result = shell.run_cell(source, store_history=True, cell_id=cell_id or None)
    error = result.error_in_exec or result.error_before_exec
    failure = "" if error is None else "".join(traceback.format_exception_only(error)).strip()
    return Rerun(result.execution_count, error is None, failure, outputs)


@contextlib.contextmanager
def _kept_in(shell: InteractiveShell, kept: list[dict[str, Any]]) -> Iterator[None]:
    """Store all output of the block, and show it nowhere else."""
    publisher, streams = shell.display_pub, (sys.stdout, sys.stderr)

    def hook(value: object) -> None:
        if value is not None and not shell.displayhook.quiet():
            data, metadata = shell.display_formatter.format(value)
            shell.display_pub.publish(data, metadata)
            shell.displayhook.update_user_ns(value)

    with shell.display_trap:  # else IPython would replace this hook by its own
        own_hook, sys.displayhook = sys.displayhook, hook
        shell.display_pub = _Publisher(kept)
        sys.stdout, sys.stderr = _Stream("stdout", kept), _Stream("stderr", kept)
        try:
            yield
        finally:
            shell.display_pub, sys.displayhook = publisher, own_hook
            sys.stdout, sys.stderr = streams
