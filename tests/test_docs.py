"""What the pages say is what the program says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from healkit import errors
from healkit.workers.probe import NOT_STOPPED

ROOT = Path(__file__).parent.parent


@pytest.mark.requirement("WORK-3")
def test_the_isolation_page_names_all_that_each_tier_does_not_stop() -> None:
    page = (ROOT / "docs" / "isolation.md").read_text()
    for tier, sentences in NOT_STOPPED.items():
        assert f"`{tier}`" in page
        for sentence in sentences:
            assert f"- {sentence}" in page, sentence


def test_the_catalogue_of_errors_is_the_tree_drawn_at_its_top() -> None:
    drawn = dict(re.findall(r"[├└]── (\w+)\s+([A-Z_]+)", errors.__doc__ or ""))
    classes = {
        name: kind.code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.HealkitError)
    }
    del classes["HealkitError"], classes["ToolExecutionError"]
    assert drawn == classes


def test_every_dependency_has_its_reason_on_the_dependencies_page() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text().lower()
    wanted = project["dependencies"] + [
        d for extra in project["optional-dependencies"].values() for d in extra
    ]
    for requirement in wanted:
        name = re.split(r"[<>=;\[ ]", requirement)[0].lower()
        assert name in page, name
