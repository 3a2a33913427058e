"""Page on calls, executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "calls.md").read_text()


@pytest.mark.slow
@pytest.mark.requirement("WORK-8", "WORK-10", "WORK-12")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    program = [sys.executable, "-W", "error", "-c", "\n".join(blocks)]
    environment = {**os.environ, "HEALKIT_START_TIMEOUT_S": "60"}
    done = subprocess.run(
        program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
