"""Page about panels, executed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "panels.md").read_text()


@pytest.mark.slow
def test_every_cell_of_the_page_runs_and_opens_its_panel(run: Any) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    cells = run(*[block.rstrip("\n") for block in blocks]).cells
    failed = [[o for o in cell.outputs if o.output_type == "error"] for cell in cells]
    assert [bool(errors) for errors in failed] == [False, False, True, False, False, False, False, False]
    assert failed[2][0].evalue.startswith("mean_of v1 failed [TOOL_EXCEPTION]") or "division by zero" in str(
        failed
    )
    widget = "application/vnd.jupyter.widget-view+json"
    opened = [any(widget in o.get("data", {}) for o in cell.outputs) for cell in cells]
    assert opened == [False, False, True, True, True, False, True, True]


def test_the_pictures_of_the_page_are_there() -> None:
    for name in re.findall(r"\]\((images/[^)]+)\)", PAGE):
        assert (DOCS / name).stat().st_size < 200_000, name
