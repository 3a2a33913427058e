"""Pages on decisions, operations and summaries, executed."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from healkit.parts.decide.operations import OPERATIONS

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [
    pytest.param("decisions.md", 18, marks=pytest.mark.requirement("DECIDE-1", "DECIDE-4", "DECIDE-5")),
    pytest.param("decision_metadata.md", 11, marks=pytest.mark.requirement("DECIDE-1")),
    pytest.param("operations.md", 18, marks=[pytest.mark.slow, pytest.mark.timeout(240)]),
    pytest.param("summaries.md", 11, marks=pytest.mark.requirement("DECIDE-7")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "examples"), PAGES)
def test_the_examples_of_the_page_end_as_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, examples: int
) -> None:
    monkeypatch.chdir(tmp_path)
    globs: dict[str, Any] = {}
    page = doctest.DocTestParser().get_doctest((DOCS / name).read_text(), globs, name, name, 0)
    assert len(page.examples) == examples
    said: list[str] = []
    try:
        failed = doctest.DocTestRunner(verbose=False).run(page, out=said.append, clear_globs=False).failed
    finally:
        if "hk" in page.globs:
            page.globs["hk"].close()
    assert not failed, "".join(said)


def test_the_page_lists_every_operation_with_its_parameters() -> None:
    page = (DOCS / "operations.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)\(([^)]*)\)` \|", page, re.MULTILINE))
    for one in OPERATIONS:
        if one.name.startswith("export_"):
            assert f"`{one.name}`" in page
        elif one.name != "view_sql":
            function = next(
                node
                for node in ast.parse(one.code).body
                if isinstance(node, ast.FunctionDef) and node.name == one.name
            )
            assert rows[one.name].split(", ") == [argument.arg for argument in function.args.args]
