"""Retention that runs by itself."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

import pytest
from trusted import trusted_copy
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.contracts.execution import Finished, Started, new_trace_id, utc_now
from healkit.core.host import host_identity
from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter


@pytest.fixture
def database(tmp_path: Path, empty_database: Path) -> Path:
    """Return a database with twenty finished executions."""
    path = Path(trusted_copy(empty_database, tmp_path / "healkit.db"))
    opened = Database(str(path))
    writer = LogWriter(opened)
    for _ in range(20):
        begun = Started(
            new_trace_id(), utc_now(), "tool", "default", "{}", "python", host_identity(), utc_now()
        )
        writer.begin(begun)
        writer.finish(Finished(begun.trace_id, utc_now(), 1.0, "1"))
    writer.close()
    opened.close()
    return path


def threads() -> list[str]:
    """Name the threads that delete."""
    return [thread.name for thread in threading.enumerate() if thread.name == "healkit-retention"]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("healkit.parts.archive.auto_retention.INTERVAL_S", 0.05)


@pytest.mark.requirement("LOG-12")
def test_executions_beyond_a_limit_go_by_themselves(database: Path) -> None:
    """C5: a limit did nothing until a person called `log.prune`."""
    config = Config(retention_rows=5)
    with Healkit(database, config=config) as healkit:
        wait_until(lambda: healkit.log.count() == 5)
        assert healkit.status().settings == {"keeps of all runs the newest": "5"}
        assert len(threads()) == 1
    assert threads() == []


@pytest.mark.requirement("LOG-12")
def test_a_failed_round_is_reported_and_tried_again(database: Path) -> None:
    """C5: a locked database must not end retention."""
    config = Config(retention_rows=5, log_wait_s=0.05)
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute(
            "BEGIN IMMEDIATE"
        )  # before the first round, which a busy machine may have ended by the next line
        with Healkit(database, config=config) as healkit:
            wait_until(lambda: healkit.services.retention.problem)
            other.rollback()
            wait_until(lambda: healkit.log.count() == 5)
            wait_until(lambda: not healkit.services.retention.problem)
