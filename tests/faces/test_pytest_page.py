"""Page about pytest, executed."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from site_pages import folded, run_exactly
from test_pytest_plugin import FOUND
from test_readme import environment

from healkit.config import HEAL_BUDGET_S

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pytest.md").read_text()


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_every_block_of_the_page_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    own = {"COLUMNS": "100", "PYTEST_ADDOPTS": " ".join(FOUND), "CI": "", "BUILD_NUMBER": ""}
    shown_as = partial(unpadded, folder=tmp_path)
    run_exactly(
        PAGE, ["python", "console", "python", "console"], tmp_path, environment(tmp_path) | own, shown_as
    )


def unpadded(text: str, folder: Path) -> str:
    """Return it without the folder and durations, and each line without the spaces at its end."""
    text = text.replace(str(folder), "…")
    return folded(re.sub(r" +$", "", re.sub(r" in \d+\.\d+s", "", text), flags=re.MULTILINE))


def test_the_page_tells_the_budget_of_healing() -> None:
    assert f"for up to {HEAL_BUDGET_S:g} seconds a failure" in PAGE
