"""Fixtures of healing's tests: a vault with a failing tool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from healing_samples import BROKEN, EXAMPLES
from model_server import ModelServer, model_server
from trusted import trusted_copy

from healkit import Config, Healkit


@pytest.fixture(scope="session")
def failing_database(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """Make a database with `ratio`, which has failed once and passed once; to be copied."""
    path = tmp_path_factory.mktemp("failing") / "healkit.db"
    with Healkit(trusted_copy(empty_database, path), config=Config.from_environment(os.environ)) as healkit:
        healkit.vault.add("ratio", BROKEN, examples=EXAMPLES)
        assert healkit.execute("ratio", arguments={"a": 8, "b": 2}).value == 4.0
        assert healkit.execute("ratio", arguments={"a": 1, "b": 0}).failure is not None
    return path


@pytest.fixture
def healing(tmp_path: Path, failing_database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Healkit]:
    """Lend a vault with `ratio`, which has failed once and passed once."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    database = trusted_copy(failing_database, tmp_path / "healkit.db")
    with Healkit(database, config=Config.from_environment(os.environ)) as healkit:
        yield healkit


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running
