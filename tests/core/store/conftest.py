"""Fixtures of the store's tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trusted import trusted_copy

from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.vault import Vault

#: How long a test waits for a lock. Writers of two connections to a server meet more often than those of a file.
WAIT_S = {"sqlite": 0.2, "postgresql": 10.0}


@pytest.fixture
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the user's folders in the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def database(_own_folders: None, new_database: Callable[[str], str]) -> Iterator[Database]:
    """Open a new database, on SQLite and on PostgreSQL."""
    url = new_database("healkit")
    opened = Database(url, wait_s=WAIT_S[url.partition(":")[0].partition("+")[0]])
    yield opened
    opened.close()


@pytest.fixture
def sqlite_database(_own_folders: None, tmp_path: Path, empty_database: Path) -> Iterator[Database]:
    """Open a new database in a file, for what is about that file or about SQLite."""
    opened = Database(trusted_copy(empty_database, tmp_path / "healkit.db"), wait_s=0.2)
    yield opened
    opened.close()


@pytest.fixture
def writer(database: Database) -> Iterator[LogWriter]:
    """Open a log writer on the database."""
    with contextlib.closing(LogWriter(database)) as opened:
        yield opened


@pytest.fixture
def sqlite_writer(sqlite_database: Database) -> Iterator[LogWriter]:
    """Open a log writer on the file."""
    with contextlib.closing(LogWriter(sqlite_database)) as opened:
        yield opened


@pytest.fixture
def vault(database: Database) -> Vault:
    """Open an empty vault."""
    return Vault(database)
