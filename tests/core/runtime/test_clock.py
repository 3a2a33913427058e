"""Clock that was set back (audit R5)."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(
    0, str(Path(__file__).parents[2] / "core" / "store")
)  # the store's samples are these tests' too
from store_samples import failed, started, succeeded
from trusted import trusted_copy

from healkit import Config, Healkit
from healkit.core.contracts.execution import utc_now
from healkit.core.runtime.recording import Recorder
from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter


@pytest.fixture
def healkit(new_database: Callable[[str], str]) -> Iterator[Healkit]:
    """Open an empty vault and log, on SQLite and on PostgreSQL."""
    with Healkit(new_database("healkit")) as opened:
        yield opened


BEFORE = [timedelta(seconds=1), timedelta(days=3650)]


def written_before_the_clock_was_set_back(healkit: Healkit, by: timedelta) -> int:
    """Insert a failure and a success as the clock had them that is behind by that much now; return the failure's id."""
    with contextlib.closing(LogWriter(healkit.database)) as writer:
        begun, later = (started(timestamp=utc_now() + by + timedelta(seconds=second)) for second in (0, 1))
        log_id = writer.insert_finished(begun, failed(begun))
        writer.insert_finished(later, succeeded(later))
    return log_id


@pytest.mark.parametrize("by", BEFORE, ids=str)
def test_the_newest_failure_is_the_one_inserted_last(healkit: Healkit, by: timedelta) -> None:
    healkit.vault.add("divide", "def divide(n):\n    return 1 / n")
    healkit.vault.add("other", "def other():\n    return [][0]")
    written_before_the_clock_was_set_back(healkit, by)
    first = healkit.execute("divide", arguments={"n": 0})
    last, other = healkit.execute("divide", arguments={"n": 0}), healkit.execute("other")
    newest = [execution.log_id for execution in healkit.executions()]
    assert newest[:3] == [other.log_id, last.log_id, first.log_id]
    assert newest == [execution.log_id for execution in healkit.executions(tried=True)]
    assert newest == [row.id for row in healkit.log.query()]
    found, of_tool = healkit.last_error(), healkit.last_error("divide")
    assert (found.log_id, of_tool.log_id) == (other.log_id, last.log_id)
    (group,) = healkit.log.groups(tool="divide")
    assert group.last_log_id == last.log_id
    assert [row.id for row in healkit.log.query(text="ZeroDivisionError", tool="divide")] == [
        last.log_id,
        first.log_id,
    ]
    row = healkit.log.get(last.log_id or 0)
    assert last.timestamp == row.timestamp
    if by > timedelta(minutes=5):  # a second has gone by in the meantime
        said = datetime.fromisoformat(row.host["clock"])
        assert abs(said - utc_now()) < timedelta(minutes=5) < row.timestamp - said


def begun_in_turns(
    recorder: Recorder, by: timedelta, together: threading.Barrier
) -> list[tuple[float, int, float]]:
    """Begin executions by a clock that is set back; for each when that began, its row's id, and when it was there."""
    together.wait(30)
    rows = []
    for _ in range(100):
        asked = time.perf_counter()
        log_id, _ = recorder.open_row(started(timestamp=utc_now() - by))
        assert log_id is not None
        rows.append((asked, log_id, time.perf_counter()))
    return rows


def test_two_writers_of_which_one_has_its_clock_set_back_write_in_one_order(
    new_database: Callable[[str], str],
) -> None:
    """R5: a row whose writing began after another was there is listed as newer, whichever process wrote it.

    On SQLite, where writers take turns, the order of times is that of the ids.
    """
    url, together = new_database("healkit"), threading.Barrier(2)
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        databases = [stack.enter_context(contextlib.closing(Database(url, wait_s=20))) for _ in range(2)]
        config = Config(log_wait_s=20)
        writers = [stack.enter_context(contextlib.closing(Recorder(each, config))) for each in databases]
        first, _ = writers[0].open_row(started())
        found = threads.map(begun_in_turns, writers, (timedelta(0), timedelta(hours=1)), [together] * 2)
        rows = list(itertools.chain.from_iterable(found))
        listed = databases[0].fetch("SELECT id, timestamp, host FROM executionlog ORDER BY timestamp, id")
    place = {row["id"]: number for number, row in enumerate(listed)}
    assert (len(place), place[first]) == (len(rows) + 1, 0)
    there = sorted(rows, key=lambda row: row[2])
    for asked, log_id, _ in rows:
        before = itertools.takewhile(lambda row: row[2] < asked, there)  # noqa: B023 - used at once
        assert all(place[other] < place[log_id] for _, other, _ in before)
    if url.startswith("sqlite"):
        assert list(place) == sorted(place)
    said = [
        row["timestamp"] - datetime.fromisoformat(row["host"]["clock"])
        for row in listed
        if "clock" in row["host"]
    ]
    assert sum(timedelta(minutes=59) < moved < timedelta(minutes=61) for moved in said) == 100


def test_a_row_that_waits_for_its_database_has_its_place_in_the_order(
    tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R5: an execution that began while the log was locked is newer than the rows of then, also by a late clock."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = trusted_copy(empty_database, tmp_path / "healkit.db")
    with (
        contextlib.closing(Database(path)) as database,
        contextlib.closing(Recorder(database, Config(log_wait_s=0.05))) as recorder,
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        first, first_time = recorder.open_row(started())
        other.execute("BEGIN IMMEDIATE")
        late = started(timestamp=utc_now() - timedelta(hours=1))
        log_id, time = recorder.open_row(late)
        assert (log_id, time > first_time) == (None, True)
        other.execute("ROLLBACK")
        recorder.ingest()
        rows = database.fetch("SELECT id, timestamp, host FROM executionlog ORDER BY timestamp, id")
    assert rows[0]["id"] == first
    assert (rows[1]["timestamp"], rows[1]["host"]["clock"]) == (time, late.timestamp.isoformat())


@pytest.mark.requirement("LOG-10")
def test_what_was_inserted_last_stays_the_newest_when_the_clock_is_right_again(healkit: Healkit) -> None:
    """B8: a year back, and forward again; pages, groups and cures go by the order of insertion."""
    healkit.vault.add("divide", "def divide(n):\n    return 1 / n")
    with contextlib.closing(LogWriter(healkit.database)) as writer:
        ids = []
        for behind in (0, 400, 400, 399, 0):
            begun = started(tool_name="divide", timestamp=utc_now() - timedelta(days=behind))
            log_id, time = writer.begin_in_order(begun)
            writer.finish(failed(replace(begun, timestamp=time)))
            ids.append(log_id)
    newest = ids[::-1]
    last = healkit.last_error("divide")
    assert last.log_id == newest[0]
    assert [execution.log_id for execution in healkit.executions()] == newest
    assert [row.id for row in healkit.log.query(text="ZeroDivisionError")] == newest
    (group,) = healkit.log.groups()
    assert (group.last_log_id, group.first_log_id, group.count) == (newest[0], ids[0], 5)
    seen, before = [], None
    while True:
        page = healkit.log.query(limit=2, before_id=before)
        seen += [row.id for row in page]
        if (before := page.next_before_id) is None:
            break
    assert seen == newest
    healkit.vault.patch("divide", "def divide(n):\n    return 0")
    cure = healkit.execute("divide", arguments={"n": 0})
    assert healkit.executions()[0].log_id == cure.log_id
