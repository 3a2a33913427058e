"""Page on security, executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.requirement("TRUST-2")
def test_the_commands_of_the_page_print_what_it_shows(environment: dict[str, str], tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**environment, "PATH": path}
    del environment["HEALKIT_DB"]
    steps = [
        part.partition("\n") for block in BLOCKS for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]
    assert steps
    for command, _, shown in steps:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )  # fmt: skip
        assert done.stdout.replace(str(tmp_path), "/home/you").strip() == shown.strip(), done.stderr
