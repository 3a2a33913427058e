"""Card below a failing cell, drawn as it has just failed.

All that is shown of live values goes through the sanitiser first. The error output above the card is Python's own and
untouched.
"""

from __future__ import annotations

import dataclasses
import importlib
import threading
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from healkit.config import Config, ExplainLevel
from healkit.contracts.post_mortem import Local
from healkit.errors import HealkitError
from healkit.notebook import cell_advice
from healkit.notebook.cell_output import CellOutput
from healkit.notebook.failed_cells import FailedCell
from healkit.rendering import asides
from healkit.rendering import execution as rendered
from healkit.rendering.asides import Aside
from healkit.runtime.execution import Execution
from healkit.sanitizer.cleaner import Cleaner

if TYPE_CHECKING:
    from healkit.app import Healkit

TIP = "%healkit keep NAME makes a failing cell a tool; %healkit off hides these cards. (Said once.)"


@cache
def own_cleaner() -> Cleaner:
    """Return the sanitiser as the environment configures it; for cells, which belong to no database."""
    from healkit.sanitizer import Sanitizer

    return Sanitizer.from_config(Config.from_environment())


def warm() -> None:
    """Begin to load what the first card needs, the sanitiser's tables above all, which take half a second."""

    def load() -> None:
        own_cleaner()
        importlib.import_module("healkit.cells.run_order")

    threading.Thread(target=load, name="healkit-cards", daemon=True).start()


def of_tool(healkit: Healkit, execution: Execution, explained: ExplainLevel, tip: str = "") -> CellOutput:
    """Draw the card of a tool's failure that has just happened."""
    found, hidden = _cleaned(_kept_locals(execution), healkit.traces.tracer.cleaner)
    return _shown(execution, Aside(found, hidden, _history(healkit, execution), tip, explained))


def of_cell(cell: FailedCell, explained: ExplainLevel, tip: str = "") -> CellOutput:
    """Draw the card of a failing cell of the user's own."""
    found, hidden = _cleaned(cell.locals, own_cleaner())
    history = ""
    if cell.seen > 1:
        history = asides.history_line(cell.seen, cell.first_seen, None).partition(";")[0] + ", in this kernel"
    if cell.advice is None or cell.advice.kind == "near":  # the failure catalogue knows similar names too
        return _shown(cell.execution, Aside(found, hidden, history, tip, explained))
    told = own_cleaner().clean([cell.advice.sentence, cell.advice.todo]).value
    why, mend = told if isinstance(told, list) else ("", "")
    card = _shown(cell.execution, Aside(found, hidden, history, tip, explained, str(why), str(mend)))
    allowed = {explained, cell.execution.explained} == {"fix"}
    return dataclasses.replace(card, panel=cell_advice.panel(cell.advice) if allowed else None)


def _shown(execution: Execution, aside: Aside) -> CellOutput:
    return CellOutput.of(rendered.card(execution, aside=aside))


def _kept_locals(execution: Execution) -> Sequence[Local]:
    """List the variables of the tool's innermost frame, if its worker can still be asked."""
    try:
        return execution.post_mortem().previews()
    except HealkitError:
        return ()


def _cleaned(found: Sequence[Local], cleaner: Cleaner) -> tuple[tuple[Local, ...], int]:
    """Return the variables without secrets, and how many of them had one."""
    kept, hidden = [], 0
    for one in found:
        if one.name == "_":  # what a loop throws away
            continue
        cleaned = cleaner.clean({one.name: one.repr})
        value = cleaned.value.get(one.name, "") if isinstance(cleaned.value, dict) else ""
        hidden += bool(cleaned.hidden)
        kept.append(msgspec.structs.replace(one, repr=str(value)) if cleaned.hidden else one)
    return tuple(kept), hidden


def _history(healkit: Healkit, execution: Execution) -> str:
    """Say how often this failure is on record, since when, and what cured it last."""
    seen = healkit.history.recurrence(execution)
    return "" if seen is None else asides.history_line(seen.count, seen.first_seen, seen.cured_by)
