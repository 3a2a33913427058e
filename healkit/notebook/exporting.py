"""`%trace_last_error --notebook` and `--markdown`: a failure for somebody else."""

from __future__ import annotations

import dataclasses
import keyword
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from healkit import cells
from healkit.errors import UsageInvalid
from healkit.notebook.browsing import is_newest
from healkit.notebook.cell_output import CellOutput
from healkit.notebook.failed_cells import FailedCell
from healkit.rendering import html_of
from healkit.rendering.document import Card, Code
from healkit.runtime.execution import Execution

if TYPE_CHECKING:
    from healkit.app import Healkit


def export(
    healkit: Healkit, options: Namespace, cell: FailedCell | None, namespace: Mapping[str, Any]
) -> CellOutput:
    """Write the newest failure's notebook, or show its bug report."""
    logged = healkit.last_error(options.tool, options.persona)
    own = cell is not None and is_newest(cell, logged, options)
    failed = cell.execution if cell is not None and own else logged
    if failed is None:
        raise UsageInvalid("There is no failure on record to write about.")
    if options.markdown:
        text = failed.to_markdown()
        return CellOutput(text, html_of(Card(parts=(Code(text, 400),))))
    replay = None if own else healkit.replay_of(failed)
    file = (_with_arguments(failed, namespace) if own else failed).to_notebook(
        options.notebook, replay=replay
    )
    said = f"{file} written: it runs without healkit"
    return CellOutput.done(said)


def _with_arguments(cell: Execution, namespace: Mapping[str, Any]) -> Execution:
    """The cell as a function with what it read as arguments, so that it fails on its own too."""
    name = cell.tool_name.replace("[", "_").replace("]", "").replace("*", "x")
    assert name.isidentifier()
    assert not keyword.iskeyword(name)
    kept = cells.extract_function(name, cell.code or "", namespace)
    given = {one: namespace[one] for one in kept.arguments}
    return dataclasses.replace(cell, tool_name=name, code=kept.code, arguments=given)
