"""Page on consent, executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "consent.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.requirement("HEAL-4")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    python = "".join(block for kind, block in BLOCKS if kind == "python")
    (console,) = (block for kind, block in BLOCKS if kind == "console")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONIOENCODING": "utf-8",
        "LC_ALL": "C.UTF-8",
        "HEALKIT_DB": str(tmp_path / "healkit.db"),
        "HOME": str(tmp_path),
    }

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "+    return total / parts" in run(sys.executable, "-W", "error", "-c", python)
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        said = run("bash", "-c", command)
        assert [line.rstrip() for line in said.splitlines()] == shown.splitlines(), command
