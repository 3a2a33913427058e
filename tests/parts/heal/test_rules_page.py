"""Page about the rules: it runs, and it lists every row."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from healkit.parts.explain.catalogue import subjects

PATH = Path(__file__).parents[3] / "docs" / "rules.md"
#: A bar in a cell of a table.
BAR = r"\|"


def rows() -> str:
    """Build the table of the page: a line for each fix."""
    lines = ["| about | mistake |", "| --- | --- |"]
    for subject, rows in subjects().items():
        about = subject.replace("_", " ")
        lines += [f"| {about} | {fix.mistake.replace('|', BAR)} |" for fix in rows.fix.values()]
    return "\n".join(lines)


def test_the_page_lists_every_fix():
    page = PATH.read_text()
    if os.environ.get("HEALKIT_REGENERATE"):
        page = re.sub(
            r"<!-- rows -->\n.*?(?=\n## |\Z)", lambda _: f"<!-- rows -->\n\n{rows()}\n", page, flags=re.DOTALL
        )
        PATH.write_text(page)
    assert rows() in page, "run with HEALKIT_REGENERATE=1 and review the diff"


@pytest.mark.slow
@pytest.mark.requirement("HEAL-2")
def test_the_page_runs_and_prints_what_it_shows(tmp_path: Path):
    page = PATH.read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        env={**os.environ, "HEALKIT_DB": str(tmp_path / "healkit.db"), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown
