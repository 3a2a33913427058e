"""Card below a failed cell, drawn right after the failure.

Live values, and the failure with its explanation, are sanitised before they are shown. The error output above the card
is Python's own and is not changed. Advice on the order of the cells is one more line on a card; if the advice fails,
the card is drawn without it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from healkit.config import Config, ExplainLevel
from healkit.core.contracts.execution import ExecutionData
from healkit.core.contracts.failure import Local
from healkit.core.contracts.tools import revision_label
from healkit.core.rendering import cleaning, execution_card
from healkit.core.rendering import execution_card as rendered
from healkit.core.rendering.document import Card, Line, Section, Span
from healkit.core.rendering.execution_card import Aside
from healkit.core.runtime.execution import Execution
from healkit.core.secrets.cleaner import Cleaner, RecordCleaner, Verbatim
from healkit.errors import HealkitError
from healkit.faces.notebook import panels
from healkit.faces.notebook.cell_output import CellOutput, MakePanel
from healkit.parts.cells.own_cells import FailedCell

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.parts.cells.advice import CellAdvice


TIP = "%healkit keep NAME makes a failing cell a tool; %healkit off hides these cards. (Said once.)"


def of_tool(
    healkit: Healkit, execution: Execution, explained: ExplainLevel, tip: str = "", source: str = ""
) -> CellOutput:
    """Draw the card of a tool's failure that has just happened; source: text of the cell that ran it."""
    previews: Sequence[Local] = ()
    with contextlib.suppress(HealkitError):  # the tool's worker can no longer answer
        previews = execution.post_mortem().previews()
    clean_execution, variables, hidden = without_secrets(execution, previews, cleaner_of(healkit))
    aside = Aside(variables, hidden, _history(healkit, execution), tip, explained)
    fixable = {explained, execution.explained} == {"fix"}
    return CellOutput.of_failure(rendered.card(clean_execution, aside=aside), source, fixable=fixable)


def of_cell(cell: FailedCell, explained: ExplainLevel, tip: str = "") -> CellOutput:
    """Draw the card of a failed cell of the user."""
    execution, variables, hidden = without_secrets(cell.execution, cell.locals, cleaning.sanitizer())
    history = ""
    if cell.seen > 1:
        history = (
            execution_card.history_line(cell.seen, cell.first_seen, "").partition(";")[0] + ", in this kernel"
        )
    allowed = {explained, cell.execution.explained} == {"fix"}
    if cell.advice is None or cell.advice.kind == "near":  # the failure catalogue suggests similar names too
        aside = Aside(
            variables, hidden, history, tip, explained, defined=cell.defined, made=_clean(cell.made)[0]
        )
        card = rendered.card(execution, aside=aside)
        output = CellOutput.of_failure(card, cell.run.source, fixable=allowed)
        return dataclasses.replace(
            output, panel=_panel("CellFix", output.html, cell.number) if allowed else None
        )
    why, fix = told(cell.advice)
    aside = Aside(variables, hidden, history, tip, explained, why, fix)
    panel = _advice_panel(cell.advice) if allowed else None
    card = rendered.card(execution, aside=aside)
    return CellOutput.of_failure(card, cell.run.source, fixable=allowed, panel=panel)


def cleaner_of(healkit: Healkit) -> Cleaner:
    """Return the sanitiser with a Healkit's own rules and allowed patterns."""
    sanitizer: Cleaner = healkit.traces.tracer.sanitizer
    return cleaning.sanitizer() if isinstance(sanitizer, Verbatim) else sanitizer


def without_secrets(
    execution: Execution, found: Sequence[Local], cleaner: Cleaner
) -> tuple[ExecutionData, tuple[Local, ...], int]:
    """Return the execution and its variables in a form for cards, and the number of hidden variables.

    They form one record, because a secret has other names in other frames. The explanation only uses what is left.
    """
    record = cleaner.of_record()
    _cleaned(found, record)
    clean_execution = cleaning.execution(execution, record)
    return (clean_execution, *_cleaned(found, record))


def _cleaned(found: Sequence[Local], cleaner: RecordCleaner) -> tuple[tuple[Local, ...], int]:
    """Return the variables without secrets, and the number of those that contained one."""
    variables, hidden = [], 0
    for variable in found:
        if variable.name == "_":  # a value that a loop discards
            continue
        cleaned = cleaner.clean({variable.name: variable.repr})
        value = cleaned.value.get(variable.name, "") if isinstance(cleaned.value, dict) else ""
        hidden += bool(cleaned.hidden)
        variables.append(msgspec.structs.replace(variable, repr=str(value)) if cleaned.hidden else variable)
    return tuple(variables), hidden


def _history(healkit: Healkit, execution: Execution) -> str:
    """Return how often this failure was recorded, since when, and what last resolved it."""
    recurrence = healkit.trends.recurrence(execution)
    if recurrence is None:
        return ""
    tool, persona, number = execution.tool_name, execution.persona, recurrence.cured_by
    resolved_by = "" if number is None else revision_label(tool, persona, number)
    return execution_card.history_line(recurrence.count, recurrence.first_seen, resolved_by)


# Cell order. `healkit.parts.cells` decides, from the kernel's state.


def told(advice: CellAdvice) -> tuple[str, str]:
    """Return its sentence and the next step, both without secrets."""
    sentence, todo = _clean(advice.sentence, advice.todo)
    return sentence, todo


def _clean(*texts: str) -> list[str]:
    cleaned = cleaning.sanitizer().clean([*texts]).value
    return [*map(str, cleaned)] if isinstance(cleaned, list) else [""] * len(texts)


def shown(advice: CellAdvice) -> CellOutput:
    """Show only the advice, without the failure's card."""
    lines = Section([Line(Span(line, "ticked")) for line in told(advice) if line])
    return CellOutput.of(Card(tone="warn", parts=(lines,), line="→ cell order"), _advice_panel(advice))


def _panel(kind: str, *about: object) -> MakePanel | None:
    """Return a function that makes the panel of a cell, which imports anywidget; None if panels are off."""
    return (lambda: panels.panel_class(kind)(*about)) if Config.from_environment().panels else None


def _advice_panel(advice: CellAdvice) -> MakePanel | None:
    """Return a function that makes the panel that runs the cells on a click; None without cells."""
    return _panel("CellOrder", advice) if advice.steps else None
