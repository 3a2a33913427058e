"""Page on MCP servers, executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.requirement("WORK-9")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    server, notebook = (block for kind, block in BLOCKS if kind == "python")
    (config,) = (block for kind, block in BLOCKS if kind == "json")
    (console,) = (block for kind, block in BLOCKS if kind == "console")
    (tmp_path / "notes.py").write_text(server)
    (tmp_path / "servers.json").write_text(config)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HEALKIT_DB": str(tmp_path / "healkit.db")}
    command, _, shown = console.removeprefix("$ ").partition("\n")
    for words in ([sys.executable, "-W", "error", "-c", notebook], ["bash", "-c", command]):
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout == shown
