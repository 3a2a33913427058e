"""Fixtures of the tests of learning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trusted import trusted_copy

from healkit import Healkit
from healkit.core.store.database import Database
from healkit.parts.learn.service import LearningService


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    """Open a new database, on SQLite and on PostgreSQL."""
    opened = Database(new_database("healkit"), wait_s=10.0)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Healkit]:
    """Lend one vault and log to the tests of a file, which add tools of their own names."""
    path = tmp_path_factory.mktemp("shared") / "healkit.db"
    with Healkit(trusted_copy(empty_database, path)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a question wait for the newest traces for as long as a busy machine takes."""
    monkeypatch.setattr(LearningService, "_SOON_S", 30.0)
