"""Page about failing cells, executed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from notebook_samples import text_of

from healkit.plain_text import untick

PAGE = (Path(__file__).parents[3] / "docs" / "cells.md").read_text()


@pytest.mark.slow
def test_every_cell_of_the_page_runs_and_the_card_says_what_the_page_shows(
    run: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    blocks = [
        block.rstrip("\n") for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    ]
    load, _misspelt, heal, failing, program = blocks  # tests/test_site.py runs the first example
    cells = [load, "base = 3", 'prices = {"apple": base}', failing]
    path = tmp_path / "book.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    executed = run(load, failing, program, heal).cells
    quoted = " ".join(re.findall(r"^> (.*)$", PAGE, re.MULTILINE)).replace(" Run cells", "\nRun cells")
    for sentence in untick(quoted).split("\n"):  # a terminal's text has no backticks
        assert sentence in text_of(executed[1])
        assert sentence in text_of(executed[3])
    assert executed[2].outputs == []
    assert [output.output_type for output in executed[3].outputs] == ["display_data", "display_data"]
