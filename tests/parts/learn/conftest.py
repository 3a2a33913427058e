"""Fixtures of the tests of learning."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from healkit.core.store.database import Database


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    """Open a new database, on SQLite and on PostgreSQL."""
    opened = Database(new_database("healkit"), wait_s=10.0)
    yield opened
    opened.close()
