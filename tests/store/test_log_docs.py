"""The page on the log, executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "log.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.requirement("LOG-10", "LOG-11", "LOG-12")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    *python, last = (block for kind, block in BLOCKS if kind == "python")
    (console,) = (block for kind, block in BLOCKS if kind == "console")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        **os.environ,
        "PATH": path,
        "HEALKIT_DB": str(tmp_path / "healkit.db"),
        "HOME": str(tmp_path),
    }

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(sys.executable, "-W", "error", "-c", "".join(python))
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        assert run("bash", "-c", command) == shown, command
    run(sys.executable, "-W", "error", "-c", python[0].partition("hk.vault")[0] + last)
