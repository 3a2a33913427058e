"""Page on healing, executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "healing.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.requirement("HEAL-1", "HEAL-2", "HEAL-4")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    python = "".join(block for kind, block in BLOCKS if kind == "python")
    (console,) = (block for kind, block in BLOCKS if kind == "console")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HEALKIT_DB": str(tmp_path / "healkit.db"),
        "HOME": str(tmp_path),
    }

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(sys.executable, "-W", "error", "-c", python)
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        assert run("bash", "-c", command) == shown, command
