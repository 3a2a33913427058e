"""Code of the docs page on more than one machine runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.requirement("SCALE-2")
def test_the_docs_page_runs(tmp_path: Path) -> None:
    program = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    words = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
