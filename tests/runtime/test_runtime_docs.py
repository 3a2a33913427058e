"""Pages on calls, names, values and machines, executed."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("page", "blocks", "said"),
    [
        pytest.param("calls", 5, "", marks=pytest.mark.requirement("WORK-8", "WORK-10", "WORK-12")),
        pytest.param("scale", 4, "", marks=pytest.mark.requirement("SCALE-2")),
        pytest.param("vault", 2, "was removed on", marks=pytest.mark.requirement("VAULT-4")),
    ],
)
def test_the_page_does_what_it_says(tmp_path: Path, page: str, blocks: int, said: str) -> None:
    found = re.findall(r"^```python\n(.*?)^```$", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(found) == blocks
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(found)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "HEALKIT_START_TIMEOUT_S": "60"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.requirement("DATA-1", "DATA-2")
def test_the_examples_of_the_page_on_values_end_as_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    text, file = (DOCS / "values.md").read_text(), str(DOCS / "values.md")
    page = doctest.DocTestParser().get_doctest(text, names, "values.md", file, 0)
    assert len(page.examples) == 18
    said: list[str] = []
    try:
        failed = doctest.DocTestRunner(verbose=False).run(page, out=said.append, clear_globs=False).failed
    finally:
        page.globs["hk"].close()
    assert not failed, "".join(said)
