"""docs/operations.md says what happens."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from healkit.decisions.operations import OPERATIONS

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_examples_of_the_page_end_as_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    page = doctest.DocTestParser().get_doctest(PAGE.read_text(), names, "operations.md", str(PAGE), 0)
    assert len(page.examples) == 18
    said: list[str] = []
    try:
        failed = doctest.DocTestRunner(verbose=False).run(page, out=said.append, clear_globs=False).failed
    finally:
        page.globs["hk"].close()
    assert not failed, "".join(said)


def test_the_page_lists_every_operation_with_its_parameters() -> None:
    rows = dict(re.findall(r"^\| `(\w+)\(([^)]*)\)` \|", PAGE.read_text(), re.MULTILINE))
    for one in OPERATIONS:
        if one.name.startswith("export_"):
            assert f"`{one.name}`" in PAGE.read_text()
        elif one.name != "view_sql":
            function = next(
                node
                for node in ast.parse(one.code).body
                if isinstance(node, ast.FunctionDef) and node.name == one.name
            )
            assert rows[one.name].split(", ") == [argument.arg for argument in function.args.args]
