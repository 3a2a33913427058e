"""Cell order: advice for the cell that has just failed.

`healkit.cells` decides, from what the kernel knows; this module shows the decision. Advice is one more line on a card;
where it fails, the card is drawn without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython import get_ipython

from healkit.config import Config
from healkit.notebook.cell_output import CellOutput, own_cleaner
from healkit.notebook.kernel_history import KernelRuns
from healkit.rendering.document import Card, Line, Section, Span

if TYPE_CHECKING:
    from healkit.cells import CellAdvice, CellRun
    from healkit.notebook.widgets.panel import Panel

_NONE_FAILED = "No cell of this notebook has failed since healkit was loaded."
_NOTHING = "No other cell needs to be run before In [{}]: none is known to change how it fails."
_NEXT = "To look for a fix, make it a tool with %healkit keep NAME, run that with %run_tool NAME, then %heal NAME."


def advice_for(
    shell: Any, runs: KernelRuns, error: BaseException, failed: CellRun, near: list[str]
) -> CellAdvice | None:
    """Find what to run, or what is wrong; None where nothing is known, and where finding out failed."""
    from healkit.cells import CellCase, advise, find_notebook  # most cells do not fail

    try:
        frames = runs.functions_in(error)
        if not failed.missing and not frames:
            return None
        history = runs.history()
        notebook = find_notebook(shell.user_ns, os.environ, [*history, failed])
        cells = notebook.cells if notebook is not None else ()
        case = CellCase(
            failed,
            history,
            notebook,
            frozenset(shell.user_ns),
            frames,
            runs.earlier([*(cell.source for cell in cells), failed.source]),
            tuple(near),
        )
        return advise(case)
    except Exception:  # noqa: BLE001 - a guess that fails is no guess
        return None


def advise_last_cell() -> CellOutput:
    """Give advice for the cell that failed last: text, HTML, and the panel that runs what it lacks.

    Says where there is none, with the next step; the extension need not be loaded.
    """
    shell = get_ipython()
    magics = None if shell is None else shell.magics_manager.registry.get("HealkitMagics")
    last = magics.cells.last if magics is not None else None
    if last is None:
        return CellOutput.of(Card(parts=(_NONE_FAILED,)))
    if last.advice is None:
        number = "*" if last.number is None else last.number
        return CellOutput.of(Card(parts=(Section((Line(_NOTHING.format(number)), Line(_NEXT))),)))
    return shown(last.advice)


def told(advice: CellAdvice) -> tuple[str, str]:
    """Return its sentence and what to do, both without secrets."""
    found = own_cleaner().clean([advice.sentence, advice.todo]).value
    sentence, todo = found if isinstance(found, list) else ("", "")
    return str(sentence), str(todo)


def shown(advice: CellAdvice) -> CellOutput:
    """Show the advice alone, without the failure's card."""
    lines = Section([Line(Span(line, "ticked")) for line in told(advice) if line])
    return CellOutput.of(Card(tone="warn", parts=(lines,), line="→ cell order"), panel(advice))


def panel(advice: CellAdvice | None) -> Callable[[], Panel] | None:
    """Return what makes the panel that runs the cells on a click; None without cells, or where no panels are wanted."""
    if advice is None or not advice.steps or not Config.from_environment().panels:
        return None

    def make() -> Panel:
        from healkit.notebook.widgets.cell_order import (
            CellOrder,
        )  # anywidget, which most notebooks never need

        made: Panel = CellOrder(advice)
        return made

    return make
