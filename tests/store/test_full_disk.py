"""A full disk: the real error, and a database that opens all the same (audit R6)."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import msgspec
import pytest
from store_samples import call, failed, fill, log_rows, started, succeeded, tiny_disk
from waiting import wait_until

from healkit import Healkit
from healkit.contracts.records import StoredTrace
from healkit.errors import DatabaseFull
from healkit.store.database import Database
from healkit.store.log_writer import LogWriter

LOG_7 = pytest.mark.requirement("LOG-7")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@LOG_7
@pytest.mark.parametrize("size", [100, 5_000, 60_000])
def test_each_refusal_of_a_full_disk_is_the_real_error(tmp_path: Path, size: int) -> None:
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
                succeeded(each), trace=StoredTrace("{}" + " " * size, send=False)
            )
            try:
                writer.finish(ending)
            except DatabaseFull as error:
                said.append(str(error))
            with contextlib.suppress(DatabaseFull):
                writer.steps([call(each, number) for number in range(1, 50)])
        assert size == 100 or said
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
            assert found is not None
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
