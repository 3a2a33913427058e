"""Collectors that tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from collector_samples import Collecting, collecting

from healkit.core.store.database import Database
from healkit.parts.traces.outbox import CollectedTraces


@pytest.fixture(scope="session")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collecting]:
    """`healkit collect`, asked as often as the tests like."""
    db = tmp_path_factory.mktemp("collector") / "healkit.db"
    environ = {"HEALKIT_COLLECT_RATE_PER_S": "100000"}
    with collecting(db, **environ) as server:
        yield server


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    """Open a new database, on SQLite and on PostgreSQL."""
    opened = Database(new_database("healkit"), wait_s=0.2)
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> CollectedTraces:
    """Open the store of collected traces."""
    return CollectedTraces(database)
