"""What every test may use: a Healkit on a database of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Tests share two cores with each other's kernels; a start that takes six seconds there is not a failure.
os.environ.setdefault("HEALKIT_START_TIMEOUT_S", "30")

from healkit import Healkit

# Nor does an example that a property is held against fail for being slow there.
settings.register_profile("healkit", deadline=None)
settings.load_profile("healkit")


@pytest.fixture
def healkit(tmp_path: Path) -> Iterator[Healkit]:
    """An empty vault and log in a file of this test's own."""
    with Healkit(tmp_path / "healkit.db") as opened:
        yield opened


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--claims", help="write which tests claim which requirement to this file, as JSON")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """For tests/test_requirements.py: requirement → tests, parameters folded."""
    if (out := config.getoption("--claims")) is None:
        return
    claimed: dict[str, dict[str, None]] = {}
    for item in items:
        name = item.nodeid.partition("[")[0].removeprefix("tests/")
        for marker in item.iter_markers("requirement"):
            for requirement in marker.args:
                claimed.setdefault(requirement, {})[name] = None
    Path(out).write_text(json.dumps({requirement: sorted(names) for requirement, names in claimed.items()}))
