"""Fixtures that the tests of tracing share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from misbehaving import Collector, collecting
from tracing_samples import QUICK, Sender
from trip_samples import opened
from trusted import trusted_copy

from healkit import Healkit
from healkit.config import Config


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as serving:
        yield serving


@pytest.fixture
def sender(
    tmp_path: Path, empty_database: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sender]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Sender(
        trusted_copy(empty_database, tmp_path / "healkit.db"), Config(sync_url=collector.url, **QUICK)
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def hk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Healkit]:
    """Open a Healkit with a tool that calls and decides, for the tests of one file."""
    with opened(tmp_path_factory.mktemp("hk") / "healkit.db") as healkit:
        yield healkit
