"""Pages on calls, names, values and machines, executed."""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path
from typing import Any

import pytest
from programs import python

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("page", "said"),
    [
        pytest.param("calls", "", marks=pytest.mark.requirement("WORK-8", "WORK-10", "WORK-12")),
        pytest.param("post_mortem", "[0, 0, 0] 3\n", marks=pytest.mark.requirement("WORK-5")),
        pytest.param("scale", "", marks=pytest.mark.requirement("SCALE-2")),
        pytest.param("vault", "was removed on", marks=pytest.mark.requirement("VAULT-4")),
    ],
)
def test_the_page_does_what_it_says(tmp_path: Path, page: str, said: str) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    example = "\n".join(block for kind, block in blocks if kind == "python")
    environ = {**os.environ, "HOME": str(tmp_path), "HEALKIT_START_TIMEOUT_S": "60"}
    done = python(example, warnings="error", timeout=280, cwd=tmp_path, env=environ)
    assert done.returncode == 0, done.stderr
    for shown in (said, *(block for kind, block in blocks if kind == "text")):
        assert shown in done.stdout


@pytest.mark.slow
@pytest.mark.requirement("DATA-1", "DATA-2")
def test_the_examples_of_the_page_on_values_end_as_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    text, file = (DOCS / "values.md").read_text(), str(DOCS / "values.md")
    page = doctest.DocTestParser().get_doctest(text, names, "values.md", file, 0)
    assert len(page.examples) == 19
    said: list[str] = []
    try:
        failed = doctest.DocTestRunner(verbose=False).run(page, out=said.append, clear_globs=False).failed
    finally:
        page.globs["hk"].close()
    assert not failed, "".join(said)
