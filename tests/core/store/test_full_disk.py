"""Disk that is full: the real error, and it opens (audit R6)."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

import msgspec
import pytest
from store_samples import call, failed, fill, log_rows, started, succeeded, tiny_disk
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.contracts.execution import StoredTrace
from healkit.core.runtime.recording import Recorder
from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter
from healkit.errors import DatabaseFull
from healkit.parts.traces.outbox import Outbox
from healkit.parts.traces.trace_collector import Tracer

LOG_7 = pytest.mark.requirement("LOG-7")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.slow
@LOG_7
def test_each_refusal_of_a_full_disk_is_the_real_error(tmp_path: Path) -> None:
    with (
        tiny_disk(tmp_path / "disk", size_kib=12288) as disk,
        contextlib.closing(Database(disk / "healkit.db")) as database,
        contextlib.closing(LogWriter(database)) as writer,
    ):
        begun = [started() for _ in range(100)]
        for each in begun:
            writer.begin(each)
        filler = fill(disk)
        said = []
        for each in begun:
            ending = msgspec.structs.replace(
                succeeded(each), trace=StoredTrace("{}" + " " * 60_000, send=False)
            )
            try:
                writer.finish(ending)
            except DatabaseFull as error:
                said.append(str(error))
            with contextlib.suppress(DatabaseFull):
                writer.steps([call(each, number) for number in range(1, 50)])
        assert said
        assert not [text for text in said if re.search("rollback|transaction", text)]
        filler.unlink()
        for each in begun:
            writer.finish(failed(each))
        assert {row["status"] for row in log_rows(disk / "healkit.db")} <= {"SUCCESS", "FAILURE"}


@LOG_7
@pytest.mark.slow
def test_healkit_opens_on_a_full_disk_spools_elsewhere_and_brings_it_in(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", size_kib=2048) as disk:
        path = disk / "healkit.db"
        with Healkit(path) as healkit:
            healkit.vault.add("divide", "def divide(n): return 1 / n")
            healkit.execute("divide", arguments={"n": 0})
        filler = fill(disk)
        with Healkit(path) as healkit:
            found = healkit.last_error()
            assert found.tool_name == "divide"
            assert healkit.execute("divide", arguments={"n": 1}).value == 1.0
            assert "out of space" in healkit.recorder.problem
            assert str(tmp_path / "state") in healkit.recorder.problem
            with pytest.raises(DatabaseFull, match="out of space"):
                healkit.vault.add("other", "def other(): return 1")
            filler.unlink()
            wait_until(lambda: healkit.recorder.ingest() >= 0 and healkit.recorder.problem == "")
            assert [row.status for row in healkit.log.query()] == ["SUCCESS", "FAILURE"]
            healkit.vault.add("other", "def other(): return 1")


@LOG_7
def test_a_new_database_on_a_full_disk_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk") as disk:
        fill(disk)
        with pytest.raises(DatabaseFull, match="out of space") as caught:
            Healkit(disk / "healkit.db")
        assert "Free some space" in caught.value.hint
        assert [file.name for file in disk.iterdir()] == ["filler"]


def grown_wal(path: Path, size_bytes: int) -> Path:
    """Let SQLite's write-ahead file grow by rewriting one row under a reader's eyes; return the file."""
    wal = path.with_name(f"{path.name}-wal")
    with (
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader,
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer,
    ):
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM executionlog").fetchone()
        number = 0
        while wal.stat().st_size < size_bytes:
            number += 1
            writer.execute("UPDATE executionlog SET last_output = ?", (f"{number:09}",))
        reader.execute("ROLLBACK")
    return wal


@LOG_7
@pytest.mark.slow
def test_a_full_disk_has_room_again_once_the_write_ahead_file_is_emptied(tmp_path: Path) -> None:
    """R6: `_shrink` was skipped for the masked error, and had no test."""
    with (
        tiny_disk(tmp_path / "disk", size_kib=4096) as disk,
        contextlib.closing(Database(disk / "healkit.db")) as database,
        contextlib.closing(LogWriter(database)) as writer,
    ):
        begun = [started() for _ in range(3)]
        rows = [writer.begin(each) for each in begun]
        wal = grown_wal(disk / "healkit.db", 1_500_000)
        grown = wal.stat().st_size
        fill(disk)
        traced = msgspec.structs.replace(succeeded(begun[0]), trace=StoredTrace("{}", send=False))
        assert writer.finish(traced) == rows[0]
        assert wal.stat().st_size < grown
        assert [writer.finish(failed(each)) for each in begun[1:]] == rows[1:]
        assert [row["status"] for row in log_rows(database)] == ["SUCCESS", "FAILURE", "FAILURE"]


@LOG_7
def test_an_outbox_on_a_full_disk_says_so_and_lends_later_what_it_has(tmp_path: Path) -> None:
    """R6."""
    config = Config(sync_url="http://127.0.0.1:9", log_wait_s=0.2)
    with (
        tiny_disk(tmp_path / "disk", size_kib=2048) as disk,
        contextlib.closing(Database(disk / "healkit.db")) as database,
        contextlib.closing(Recorder(database, config, Tracer(config))) as recorder,
    ):
        begun = started()
        recorder.open_row(begun)
        assert recorder.close_row(succeeded(begun), recorder.collector(begun)) is not None
        filler = fill(disk)
        with pytest.raises(DatabaseFull, match="out of space"):
            Outbox(database).claim(10, 10**6, 60.0)
        filler.unlink()
        assert [waiting.trace_id for waiting in Outbox(database).claim(10, 10**6, 60.0)] == [begun.trace_id]
