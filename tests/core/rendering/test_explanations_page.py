"""Page about explanations, run from top to bottom."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "explanations.md").read_text()


@pytest.mark.slow
@pytest.mark.requirement("FACE-7", "FACE-8", "LOG-13")
def test_the_page_runs_and_prints_what_it_shows(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        env={**os.environ, "HEALKIT_DB": str(tmp_path / "healkit.db"), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown
