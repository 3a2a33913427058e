"""Page on many inputs and machines, executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from site_pages import missing_from_shell
from test_readme import environment

PAGE = (Path(__file__).parents[3] / "docs" / "scale.md").read_text()


@pytest.mark.slow
@pytest.mark.requirement("SCALE-2", "SCALE-4")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    code = "def main():\n" + "".join(
        f"    {line}\n" for line in "\n".join([*blocks, "hk.close()"]).splitlines()
    )
    file = tmp_path / "page.py"  # Dask's workers import it
    file.write_text(f"{code}\nif __name__ == '__main__':\n    main()\n")
    done = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, env={**os.environ, "HEALKIT_DB": ""}, capture_output=True,
        text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "inverse v1: 2 inputs returned, 1 failed" in done.stdout


@pytest.mark.slow
def test_a_thousand_inputs_are_mapped_from_a_terminal(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert missing_from_shell(block, tmp_path, environment(tmp_path)) == []
