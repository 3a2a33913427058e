"""Magics on the log: executions and failures."""

from __future__ import annotations

import keyword
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from healkit.commands.parsing import check_tallied, read_filters
from healkit.config import ExplainLevel
from healkit.core.contracts.execution import Filters
from healkit.core.rendering import execution_card as rendered
from healkit.core.rendering.document import Card, Code
from healkit.core.rendering.execution_card import Aside
from healkit.core.rendering.to_html import html_of
from healkit.core.runtime.execution import Execution
from healkit.errors import PostMortemError, UsageInvalid
from healkit.faces.commands import log as commands
from healkit.faces.notebook import cards
from healkit.faces.notebook.cell_output import CellOutput, listed, panel_of
from healkit.faces.notebook.magic_words import refuse
from healkit.parts.cells.own_cells import FailedCell

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.parts.post_mortem.post_mortem import PostMortem

_RUN_ONE = "Run a tool first: %run_tool NAME key=value …"


def is_newest(cell: FailedCell, logged: Execution | None, options: Namespace) -> bool:
    """Tell if the notebook's failed cell is meant: it is the newest failure, and no tool is named."""
    if options.tool is not None or options.persona is not None:
        return False
    return logged is None or logged.timestamp < cell.execution.timestamp


def last_error(
    healkit: Healkit, options: Namespace, cell: FailedCell | None = None, explained: ExplainLevel = "fix"
) -> CellOutput:
    """Show the newest failure's card, or a report that says there is none.

    Unless a tool or persona is named, a failed cell of the notebook counts too.
    """
    if options.frames is not None and options.frames < 1:
        raise UsageInvalid(f"--frames must be 1 or more, got {options.frames}.")
    execution = healkit.last_error(options.tool, options.persona)
    if cell is not None and is_newest(cell, execution, options):
        return cards.of_cell(cell, explained)
    if execution is None:
        text = healkit.last_error_report(options.tool)
        if options.persona is not None and not text.startswith("No errors found"):
            text = f"No errors found for persona {options.persona!r}."
        return CellOutput.of(Card(parts=(text,)))
    note, frame_locals = "", None
    if options.locals:
        from healkit.parts.post_mortem.post_mortem import SHOWN_FRAMES

        try:
            frame_locals = execution.post_mortem().all_locals(options.frames or SHOWN_FRAMES)
        except PostMortemError as error:
            note = f"Local variables cannot be shown. {error}"
    aside = Aside(explained=explained)
    clean_execution, _, _ = cards.without_secrets(execution, (), cards.cleaner_of(healkit))
    card = rendered.card(clean_execution, frames=options.frames, note=note, aside=aside)
    cards_shown = (card,) if frame_locals is None else (card, rendered.locals_card(frame_locals))
    return CellOutput.of(cards_shown, panel_of(healkit, "TracebackView", execution))


def post_mortem(healkit: Healkit, options: Namespace) -> PostMortem:
    """Return the newest failure's worker, for questions."""
    execution = healkit.last_error(options.tool, options.persona)
    if execution is None:
        raise PostMortemError("There is no failure on record to look into.", hint=_RUN_ONE)
    asked: PostMortem = execution.post_mortem()
    return asked


def executions(healkit: Healkit, options: Namespace) -> CellOutput:
    """Show one page of the log, its groups of failures, or each tool's summary."""
    if options.limit < 1:
        raise UsageInvalid(f"--limit must be 1 or more, got {options.limit}.")
    filters = read_filters(vars(options))
    if options.dock:
        refuse(
            options,
            ("group", "summary", "before"),
            "cannot be combined with --dock",
            "Choose it in the panel.",
        )
    if options.group or options.summary:
        return _stats(healkit, options, filters)
    rows = healkit.executions(filters=filters, before_id=options.before, limit=options.limit)
    if not healkit.config.panels:
        return listed(rows)
    return listed(rows, lambda: healkit.browse(dock=options.dock, **filters.given, tried=filters.tried))


def _stats(healkit: Healkit, options: Namespace, filters: Filters) -> CellOutput:
    before = options.before is not None
    check_tallied(filters, group=options.group, summary=options.summary, before=before)
    if options.summary:
        return CellOutput.answered(commands.tallied(healkit, filters), healkit)
    answer = commands.grouped(healkit, filters, options.limit, "%executions --status refused")
    return CellOutput.answered(answer, healkit)


def export(
    healkit: Healkit, options: Namespace, cell: FailedCell | None, namespace: Mapping[str, Any]
) -> CellOutput:
    """Save the newest failure as a notebook, or show its bug report."""
    logged = healkit.last_error(options.tool, options.persona)
    is_cell_failure = cell is not None and is_newest(cell, logged, options)
    failed = cell.execution if cell is not None and is_cell_failure else logged
    if failed is None:
        raise UsageInvalid("There is no failure on record to write about.", hint=_RUN_ONE)
    if options.markdown:
        text = failed.to_markdown()
        return CellOutput(text, html_of(Card(parts=(Code(text, 400),))))
    replay = None if is_cell_failure else healkit.replay_of(failed)
    file = (_with_arguments(failed, namespace) if is_cell_failure else failed).to_notebook(
        options.notebook, replay=replay
    )
    return CellOutput.done(f"{file} written: it runs without healkit")


def _with_arguments(cell: Execution, namespace: Mapping[str, Any]) -> Execution:
    """Return the cell as a function whose arguments are the values that it read, so that it also fails on its own."""
    name = "cell_" + cell.tool_name.removeprefix("In [").removesuffix("]").replace("*", "x")
    assert name.isidentifier()
    assert not keyword.iskeyword(name)
    from healkit.parts.cells.cell_program import extract_function  # late, because few cells are saved

    extracted = extract_function(name, cell.code or "", namespace)
    arguments = {argument: namespace[argument] for argument in extracted.arguments}
    return cell.but(tool_name=name, code=extracted.code, arguments=arguments)
