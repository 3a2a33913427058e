"""Fixtures of the tests of runs and of the audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from run_samples import BROKEN
from trusted import trusted_copy

from healkit import Healkit
from healkit.core.store.database import Database


@pytest.fixture
def divide(healkit: Healkit) -> Healkit:
    """Return a vault with a tool that fails for 0."""
    healkit.vault.add("divide", BROKEN)
    return healkit


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    """Open a new database, on SQLite and on PostgreSQL."""
    opened = Database(new_database("healkit"), wait_s=10.0)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_database(tmp_path: Path, empty_database: Path) -> Iterator[Database]:
    """Open a new database in a file."""
    opened = Database(trusted_copy(empty_database, tmp_path / "healkit.db"), wait_s=0.2)
    yield opened
    opened.close()
