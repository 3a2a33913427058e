"""Page on tools' names, executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "vault.md").read_text()


@pytest.mark.slow
@pytest.mark.requirement("VAULT-4")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    python = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", python],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "was removed on" in done.stdout
