"""Databases for agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from trusted import trusted_copy

from healkit import Healkit


@pytest.fixture
def db(tmp_path: Path, empty_database: Path) -> Path:
    """Copy an empty database into a folder of the test's own."""
    return Path(trusted_copy(empty_database, tmp_path / "healkit.db"))


@pytest.fixture
def beside(db: Path) -> Iterator[Healkit]:
    """Open the same database in this process, as a person at a notebook has it."""
    with Healkit(db) as healkit:
        yield healkit
