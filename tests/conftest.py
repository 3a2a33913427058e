"""What every test may use: a Healkit on a database of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests share two cores with each other's kernels; a start that takes six seconds there is not a failure.
os.environ.setdefault("HEALKIT_START_TIMEOUT_S", "30")

from healkit import Healkit


@pytest.fixture
def healkit(tmp_path: Path) -> Iterator[Healkit]:
    """An empty vault and log in a file of this test's own."""
    with Healkit(tmp_path / "healkit.db") as opened:
        yield opened
