"""Fixtures of the store's tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from healkit.store.database import Database
from healkit.store.vault import Vault


@pytest.fixture
def database(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """Open a new database, with the user's folders in the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    opened = Database(shutil.copy(empty_database, tmp_path / "healkit.db"), wait_s=0.2)
    yield opened
    opened.close()


@pytest.fixture
def vault(database: Database) -> Vault:
    """Open an empty vault."""
    return Vault(database)
