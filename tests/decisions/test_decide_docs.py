"""docs/decisions.md says what happens."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "decisions.md"


@pytest.mark.requirement("DECIDE-1", "DECIDE-4", "DECIDE-5")
def test_the_examples_of_the_page_end_as_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    page = doctest.DocTestParser().get_doctest(PAGE.read_text(), names, "decisions.md", str(PAGE), 0)
    assert len(page.examples) == 26
    said: list[str] = []
    failed = doctest.DocTestRunner(verbose=False).run(page, out=said.append, clear_globs=False).failed
    assert not failed, "".join(said)
    page.globs["hk"].close()
