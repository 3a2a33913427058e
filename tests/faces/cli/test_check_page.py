"""Page about checks of notebooks, executed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from programs import python
from test_readme import commands, environment, folded

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "check.md").read_text()


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_every_block_of_the_page_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(python|console)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "console", "console", "python"]
    for kind, block in blocks:
        if kind == "python":
            done = python(block, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, "")
        for command, shown in commands(block) if kind == "console" else ():
            ran = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=environment(tmp_path),
                text=True,
                check=False,
                capture_output=True,
            )
            assert folded(ran.stdout) == folded(shown), command


def test_the_hook_of_the_page_is_the_one_that_is_there() -> None:
    (hook,) = re.findall(r"^- id: (.+)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.MULTILINE)
    assert f"      - id: {hook}\n" in PAGE


def test_the_page_has_each_option_of_the_command() -> None:
    command = [sys.executable, "-m", "healkit", "check", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    options = set(re.findall(r"--[a-z]+", done.stdout)) - {"--help"}
    assert options <= set(re.findall(r"--[a-z]+", PAGE))
