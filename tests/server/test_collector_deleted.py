"""Database whose file was removed or replaced (audit R4).

That happens while it is in use.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from collector_samples import collecting, trace

from healkit import Healkit


def remove(path: Path) -> None:
    """Remove the file and what lies beside it."""
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_file():
            file.unlink()


def copy_of(path: Path, copy: Path) -> None:
    """Write a whole copy of a database in use."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))


@pytest.mark.slow
@pytest.mark.requirement("TRACE-4")
def test_a_collector_notices_that_its_file_is_gone_and_that_it_is_back(tmp_path: Path) -> None:
    path, copy = tmp_path / "collected.db", tmp_path / "copy"
    kept, lost, late = trace(), trace(), trace()
    with collecting(path) as collector:
        assert collector.post(kept).json()["stored"] == 1
        copy_of(path, copy)
        remove(path)
        answer, health = collector.post(lost), collector.client.get("/api/health")
        assert (answer.status_code, health.status_code) == (503, 503)
        assert "stored" not in answer.json()
        assert "Nothing of this request was stored" in answer.text
        assert not path.exists(), "a lost database is not made anew in silence"
        shutil.copy(copy, path)
        assert collector.client.get("/api/health").json() == {"status": "ok"}
        assert collector.post(late).json()["stored"] == 1
        assert set(collector.stored()) == {kept["id"], late["id"]}


def test_an_execution_whose_log_was_removed_waits_and_is_brought_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path, copy = tmp_path / "healkit.db", tmp_path / "copy"
    with Healkit(path) as healkit:
        healkit.vault.add("one", "def one(): return 1")
        healkit.execute("one")
        copy_of(path, copy)
        remove(path)
        (result,) = healkit.trials([("def two(): return 2", {})])
        assert result.value == 2
        assert "was removed" in healkit.recorder.problem or "cannot be opened" in healkit.recorder.problem
        shutil.copy(copy, path)
        healkit.recorder.ingest()
        assert healkit.log.by_trace(result.trace_id) is not None
        assert healkit.recorder.problem == ""
