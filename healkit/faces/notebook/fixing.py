"""Card and panel of a failed cell, shown again on request.

JupyterLab's extension runs `show_fix` in a notebook's kernel when the user presses **Fix** on a failed cell without a
panel. Either its card was turned off or deleted, or the cell failed before healkit was loaded.
"""

from __future__ import annotations

import sys

from IPython import get_ipython
from IPython.core.error import UsageError
from IPython.display import display

from healkit.config import Config
from healkit.core.rendering.document import Card
from healkit.errors import HealkitError, ToolExecutionError
from healkit.faces.notebook import cards
from healkit.faces.notebook.cell_output import CellOutput, explain_limit, text_hash
from healkit.faces.notebook.magics import FailedTool, HealkitMagics


def show_fix(execution_count: int | None, source_hash: str = "") -> None:
    """Display the card and the panel of the cell with that prompt, or a sentence that says why there is none.

    It loads healkit if necessary. source_hash: `text_hash` of the cell's text, because in another kernel, another cell
    may have had that prompt; empty if the page does not know it.
    """
    shell = get_ipython()
    shell.extension_manager.load_extension("healkit")
    magics: HealkitMagics = shell.magics_manager.registry["HealkitMagics"]
    label = f"In [{' ' if execution_count is None else execution_count}]"
    output = None if execution_count is None else _shown(magics, execution_count, source_hash)
    if output is None:
        texts = shell.history_manager.input_hist_raw
        count = execution_count or 0
        ran = 0 < count < len(texts) and source_hash in ("", text_hash(texts[count]))
        sentence = "The kernel was restarted. Run the cells above, then this one."
        if ran:
            sentence = f"This kernel has no record of how {label} failed. Run the cell again, then press Fix."
        # The page shows it in place of the output, with a button.
        display(
            CellOutput.of(Card(tone="warn", parts=(sentence,))), metadata={"healkit": {"restarted": not ran}}
        )
    else:
        output.show()
    limit = explain_limit(Config.from_environment())
    if limit != "fix":
        sentence = f"No fixes are shown here, because explanations are limited to {limit!r}."
        CellOutput.of(Card(tone="warn", parts=(sentence,))).show()


def _shown(magics: HealkitMagics, number: int, source_hash: str) -> CellOutput | None:
    """Return the card of that failure; None if this kernel does not know it."""
    tool, cell = magics.of_tools.get(number), magics.cells.of(number)
    error = getattr(sys, "last_value", None)
    if tool is None and cell is None and error is not None and magics.cells.number_of(error) == number:
        if isinstance(error, ToolExecutionError):
            from healkit.faces.defaults import find_execution

            if (failed_run := find_execution(error.trace_id)) is not None:
                tool = FailedTool(*failed_run, magics.shell.history_manager.input_hist_raw[number])
        elif not isinstance(error, HealkitError | UsageError):
            cell = magics.cells.add_late(error, number)
    if tool is not None and source_hash in ("", text_hash(tool.source)):
        return magics.failure_card(tool.healkit, tool.execution, tool.source)
    if cell is not None and source_hash in ("", text_hash(cell.run.source)):
        return cards.of_cell(cell, magics.explain)
    return None
