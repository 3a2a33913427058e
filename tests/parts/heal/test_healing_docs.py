"""Pages on healing and on consent, executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.slow
@pytest.mark.requirement("HEAL-1", "HEAL-2", "HEAL-4")
@pytest.mark.parametrize("name", ["healing.md", "healing_calls.md", "fix_evidence.md", "consent.md"])
def test_the_page_does_what_it_says(tmp_path: Path, name: str) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (DOCS / name).read_text(), re.MULTILINE | re.DOTALL)
    python = "".join(block for kind, block in blocks if kind == "python")
    console = "".join(block for kind, block in blocks if kind == "console")
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
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = run(sys.executable, "-W", "error", "-c", python)
    assert ("+    return total / parts" in said) is (name == "consent.md")
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        assert [line.rstrip() for line in run("bash", "-c", command).splitlines()] == shown.splitlines(), (
            command
        )
