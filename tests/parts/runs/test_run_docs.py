"""Page on the run folder, executed; its tables and the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_samples import call

PAGE = (Path(__file__).parents[3] / "docs" / "run_folder.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.requirement("RUN-1", "RUN-6")
def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HEALKIT_DB": str(tmp_path / "healkit.db")}
    code = "\n".join(block for kind, block in BLOCKS if kind == "python") + "\nhk.close()\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "The same failing state was observed 2 times; 1 is allowed." in done.stdout
    runs = sorted(p.name for p in (tmp_path / "runs").iterdir() if p.name != ".new")
    assert len(runs) == 3
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "healkit.db"))
    monkeypatch.chdir(tmp_path)
    (console,) = (block for kind, block in BLOCKS if kind == "console")
    for line in console.splitlines():
        words = line.removeprefix("$ healkit ").split()
        words[2:] = runs[:2] if words[1] == "diff" else words[2:]
        told = call(*words)
        assert told.returncode == (1 if words[1] == "diff" else 0), told.stderr
        assert told.stdout
