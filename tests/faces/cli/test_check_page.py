"""Page about checks of notebooks, executed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from site_pages import run_exactly
from test_readme import environment

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "check.md").read_text()


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_every_block_of_the_page_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    run_exactly(PAGE, ["python", "console", "console", "python"], tmp_path, environment(tmp_path))


def test_the_hook_of_the_page_is_the_one_that_is_there() -> None:
    (hook,) = re.findall(r"^- id: (.+)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.MULTILINE)
    assert f"      - id: {hook}\n" in PAGE


def test_the_page_has_each_option_of_the_command() -> None:
    command = [sys.executable, "-m", "healkit", "check", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    options = set(re.findall(r"--[a-z]+", done.stdout)) - {"--help"}
    assert options <= set(re.findall(r"--[a-z]+", PAGE))
