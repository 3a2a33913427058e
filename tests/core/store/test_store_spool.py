"""Spool files lose no record."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from side_by_side import Meet, at_once
from store_samples import as_ordinary_user, call, failed, fill, open_folder, started, succeeded, tiny_disk

from healkit.core.contracts.execution import Record, Started
from healkit.core.store.spool import RecordRejected, Spool
from healkit.errors import DatabaseError, DatabaseLocked

pytestmark = pytest.mark.requirement("LOG-7")


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    """Make the spool of a database in its own folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    return Spool(tmp_path / "here" / "healkit.db")


def taken(into: list[Record]) -> Callable[[Record], object]:
    return into.append


def test_records_are_replayed_equal_and_in_order(spool: Spool) -> None:
    begun = started()
    records: list[Record] = [begun, call(begun), call(begun, success=True), failed(begun)]
    for record in records:
        spool.append(record)
    assert spool.pending() == 4
    found: list[Record] = []
    assert spool.drain(taken(found)) == 4
    assert found == records
    assert (spool.pending(), spool.drain(taken(found))) == (0, 0)
    spool.append(succeeded(begun, "lone \ud800 surrogate"))
    spool.drain(taken(found))
    assert found[-1].result_summary == "lone \\ud800 surrogate"


def test_the_spool_is_private_and_beside_the_database(spool: Spool, tmp_path: Path) -> None:
    spool.append(started())
    assert spool.folder == tmp_path / "here" / "healkit.db.spool"
    assert (spool.folder / "records.jsonl").stat().st_mode & 0o077 == 0
    assert spool.folder.stat().st_mode & 0o077 == 0


def test_a_failing_database_keeps_the_rest_in_order(spool: Spool) -> None:
    records = [started() for _ in range(3)]
    for record in records:
        spool.append(record)
    found: list[Record] = []

    def take_one(record: Record) -> None:
        if found:
            raise DatabaseLocked("locked")
        found.append(record)

    with pytest.raises(DatabaseLocked):
        spool.drain(take_one)
    assert spool.pending() == 2
    spool.drain(taken(found))
    assert found == records


def test_a_rejected_record_is_put_aside(spool: Spool) -> None:
    bad, good = started("bad"), started("good")
    spool.append(bad)
    spool.append(good)
    found: list[Record] = []

    def refuse_bad(record: Record) -> None:
        if isinstance(record, Started) and record.tool_name == "bad":
            raise RecordRejected
        found.append(record)

    assert spool.drain(refuse_bad) == 1
    assert found == [good]
    assert bad.trace_id in (spool.folder / "records.rejected").read_text()
    assert (spool.pending(), spool.put_aside) == (0, 1)


def test_a_torn_line_is_put_aside_and_the_records_around_it_survive(spool: Spool) -> None:
    first, second, found = started(), started(), []
    for record in (first, second):
        spool.append(record)
        with (spool.folder / "records.jsonl").open("ab") as file:
            file.write(b'{"type":"sta')
    assert spool.drain(taken(found)) == 2
    assert found == [first, second]
    assert (spool.folder / "records.rejected").read_bytes() == b'{"type":"sta\n'
    assert (spool.folder / "records.torn").read_bytes() == b'{"type":"sta\n'


def test_a_record_during_a_replay_stays_for_the_next(spool: Spool) -> None:
    first, second, found = started(), started(), []
    spool.append(first)

    def take_and_add(record: Record) -> None:
        found.append(record)
        spool.append(second)

    assert spool.drain(take_and_add) == 1
    assert spool.pending() == 1
    spool.drain(taken(found))
    assert found == [first, second]


def test_the_spool_falls_back_to_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_folder() as folder:
        (folder / "data").mkdir()
        (folder / "state").mkdir()
        (folder / "state").chmod(0o777)
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        (folder / "data").chmod(0o555)
        spool, found = Spool(folder / "data" / "healkit.db"), []
        with as_ordinary_user():
            spool.append(started())
            assert folder / "state" in spool.folder.parents
            assert spool.drain(taken(found)) == 1


def test_a_full_disk_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with tiny_disk(tmp_path / "disk") as disk:
        spool, found = Spool(disk / "healkit.db"), []
        first, second = started(), started(arguments='"' + "x" * 20_000 + '"')
        spool.append(first)
        fill(disk)
        spool.append(second)
        assert spool.folder == spool.folders[1]
        assert spool.pending() == 2
        assert spool.drain(taken(found)) == 2
        assert found == [first, second]


def test_an_end_waits_for_its_beginning_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    spool, begun, found = Spool(tmp_path / "healkit.db"), started(), []
    best, *others = spool.folders
    spool.folders = others
    spool.append(begun)
    spool.folders = [best, *others]
    spool.append(succeeded(begun))
    spool.drain(taken(found))
    assert [type(record).__name__ for record in found] == ["Started", "Finished"]


def test_a_spool_that_cannot_be_written_raises(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "healkit.db")
    blocker = tmp_path / "file"
    blocker.touch()
    spool.folders = [blocker / "a", blocker / "b"]
    with pytest.raises(DatabaseError, match="No spool file"):
        spool.append(started())
    assert (spool.pending(), spool.drain(taken([]))) == (0, 0)


def append_thirty(meet: Meet, path: Path) -> None:
    """Append as many records to the spool of that database."""
    spool = Spool(path)
    meet()
    for _ in range(30):
        spool.append(started())


def test_concurrent_appends_and_replays_lose_nothing(spool: Spool, tmp_path: Path) -> None:
    found: list[Record] = []
    with ThreadPoolExecutor() as pool:
        appending = pool.submit(at_once, append_thirty, *[(tmp_path / "here" / "healkit.db",)] * 4)
        while not appending.done():
            spool.drain(taken(found))
    appending.result()
    spool.drain(taken(found))
    assert len({record.trace_id for record in found}) == len(found) == 120
