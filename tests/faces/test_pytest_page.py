"""Page about pytest, executed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from programs import python
from test_pytest_plugin import FOUND
from test_readme import commands, environment, folded

from healkit.config import HEAL_BUDGET_S

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pytest.md").read_text()


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_every_block_of_the_page_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(python|console)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "console", "python", "console"]
    own = {"COLUMNS": "100", "PYTEST_ADDOPTS": " ".join(FOUND), "CI": "", "BUILD_NUMBER": ""}
    surroundings = environment(tmp_path) | own
    for kind, block in blocks:
        if kind == "python":
            done = python(block, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, "")
        for command, shown in commands(block) if kind == "console" else ():
            ran = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=surroundings,
                text=True,
                check=False,
                capture_output=True,
            )
            assert unpadded(ran.stdout.replace(str(tmp_path), "…")) == unpadded(shown), command


def unpadded(text: str) -> str:
    """Return it without durations, and each line without the spaces at its end."""
    return folded(re.sub(r" +$", "", re.sub(r" in \d+\.\d+s", "", text), flags=re.MULTILINE))


def test_the_page_tells_the_budget_of_healing() -> None:
    assert f"for up to {HEAL_BUDGET_S:g} seconds a failure" in PAGE
