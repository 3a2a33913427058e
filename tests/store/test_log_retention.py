"""Retention: what goes, what never does, and that a kill in the middle loses nothing."""

from __future__ import annotations

import contextlib
import fcntl
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from store_samples import (
    as_ordinary_user,
    call,
    failed,
    fill,
    log_rows,
    open_folder,
    started,
    succeeded,
    tiny_disk,
)
from test_log_derived import kept, recounted

from healkit.contracts.records import DecisionRecord, utc_now
from healkit.errors import ArchiveBusy, ConfigError, LogFileError
from healkit.store.database import Database
from healkit.store.log import Log, LogWriter
from healkit.store.models import TraceRow
from healkit.store.vault import Vault

LOG_12 = pytest.mark.requirement("LOG-12")


@pytest.fixture
def writer(database: Database) -> Iterator[LogWriter]:
    """The log's own connection."""
    with contextlib.closing(LogWriter(database)) as opened:
        yield opened


def write(
    writer: LogWriter, days_ago: float, *, fails: bool = False, tool: str = "fibonacci"
) -> tuple[int, str]:
    """A finished execution of that age, with a call and a decision; its id and trace id."""
    begun = started(tool, timestamp=utc_now() - timedelta(days=days_ago))
    writer.call(call(begun))
    writer.decision(DecisionRecord(begun.trace_id, 1, "t1", "node", "yes", "a > b", utc_now()))
    return writer.insert_finished(begun, failed(begun) if fails else succeeded(begun)), begun.trace_id


def ids(database: Database) -> list[int]:
    assert database.path is not None
    return [row["id"] for row in log_rows(database.path)]


def orphaned_parts(database: Database) -> int:
    """Rows of other tables whose execution is gone."""
    with database.read() as session:
        return sum(
            session.execute(text(f"SELECT count(*) FROM {table} WHERE trace_id NOT IN (SELECT trace_id FROM executionlog)")).scalar_one()
            for table in ("executioncall", "executiondecision", "executiontrace")
        )  # fmt: skip


@LOG_12
def test_what_is_too_old_or_beyond_the_newest_so_many_is_deleted_with_all_that_belongs_to_it(
    database: Database, writer: LogWriter
) -> None:
    rows = [write(writer, days, fails=days % 2 == 0)[0] for days in (40, 30.5, 29.5, 20, 10, 0)]
    log = Log(database)
    assert log.prune(older_than=30).deleted == 2
    assert ids(database) == rows[2:]
    assert log.prune(older_than=timedelta(days=25), keep=10).deleted == 1
    assert log.prune(keep=2).deleted == 1
    assert ids(database) == rows[4:]
    assert log.prune(keep=2).deleted == 0
    assert orphaned_parts(database) == 0
    assert kept(database) == recounted(database)


@LOG_12
def test_what_runs_what_a_revision_refers_to_what_waits_to_be_sent_and_the_newest_row_stay(
    database: Database, writer: LogWriter
) -> None:
    running = writer.begin(started(timestamp=utc_now() - timedelta(days=99)))
    motive, _ = write(writer, 98, fails=True)
    vault = Vault(database)
    vault.add("fibonacci", "def fibonacci(n): return 1 / 0")
    vault.patch("fibonacci", "def fibonacci(n): return 1", motivating_log_id=motive)
    waiting, waiting_trace = write(writer, 97)
    sent, sent_trace = write(writer, 96)
    now = utc_now()
    with database.write() as session:
        for trace_id, state in ((waiting_trace, "pending"), (sent_trace, "sent")):
            session.add(
                TraceRow(trace_id=trace_id, wire="{}", state=state, reason="", created_at=now, queued_at=now)
            )
    newest, _ = write(writer, 100)
    assert Log(database).prune(older_than=0).deleted == 1
    assert ids(database) == [running, motive, waiting, newest]
    assert sent not in ids(database)
    assert orphaned_parts(database) == 0
    assert write(writer, 0)[0] > newest


@LOG_12
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_what_is_archived_comes_back_by_an_import(
    database: Database, writer: LogWriter, tmp_path: Path, form: Any
) -> None:
    for days in range(30):
        write(writer, days, fails=days % 3 == 0)
    assert database.path is not None
    before = {row["trace_id"]: row for row in log_rows(database.path)}
    log = Log(database)
    report = log.prune(older_than=9.5, archive=tmp_path / "archive", format=form)
    (archive,) = report.archives
    assert (report.deleted, report.resumed, archive.suffix) == (
        19,
        0,
        f".{form}",
    )  # the newest row is the oldest day here
    assert sorted(file.name for file in archive.parent.iterdir()) == [".lock", archive.name]
    assert log.prune(older_than=9.5, archive=tmp_path / "archive", format=form).archives == []
    assert log.import_file(archive) == (19, 19)
    after = {row["trace_id"]: row for row in log_rows(database.path)}
    without = {"id", "arguments", "host", "failure", "grants"}  # JSON is the same by value
    assert {t: {k: v for k, v in row.items() if k not in without} for t, row in before.items()} == {
        t: {k: v for k, v in row.items() if k not in without} for t, row in after.items()
    }
    assert kept(database) == recounted(database)


@LOG_12
def test_an_archive_that_cannot_be_written_or_does_not_read_back_costs_no_row(
    database: Database, writer: LogWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days in range(200):
        write(writer, days, fails=True)
    log = Log(database)
    with tiny_disk(tmp_path / "disk", 64) as disk:
        with pytest.raises(LogFileError, match="No space left"):
            log.prune(older_than=1, archive=disk)
        assert log.count() == 200
        fill(disk)
    with open_folder() as folder:
        folder.chmod(0o555)
        with as_ordinary_user(), pytest.raises(LogFileError, match="cannot be written: Permission denied"):
            Log(database).prune(older_than=1, archive=folder / "archive")
    (tmp_path / "file").write_text("")
    with pytest.raises(LogFileError, match="cannot be written"):
        log.prune(older_than=1, archive=tmp_path / "file")
    assert log.count() == 200


@LOG_12
def test_two_prunings_into_one_archive_do_not_mix(
    database: Database, writer: LogWriter, tmp_path: Path
) -> None:
    write(writer, 5)
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ArchiveBusy, match="Another process"):
            Log(database).prune(older_than=1, archive=tmp_path)


@LOG_12
def test_nobody_is_asked_to_delete_without_a_bound(database: Database, writer: LogWriter) -> None:
    write(writer, 50)
    write(writer, 5)
    write(writer, 0)
    with pytest.raises(ConfigError, match="retention_days"):
        Log(database).prune()
    with pytest.raises(ConfigError, match="negative"):
        Log(database).prune(older_than=-1)
    assert Log(database, retention_days=30).prune().deleted == 1
    assert Log(database, retention_rows=1).prune().deleted == 1


@LOG_12
def test_an_execution_that_got_a_late_call_after_it_was_archived_stays(
    database: Database, writer: LogWriter, tmp_path: Path
) -> None:
    _, late = write(writer, 9)
    write(writer, 8)
    write(writer, 0)
    log = Log(database)
    (done,) = log.prune(older_than=1, archive=tmp_path).archives
    assert log.import_file(done) == (2, 2)
    write(writer, 0)
    with database.write() as session:
        session.execute(text("INSERT INTO executioncall SELECT NULL, trace_id, 't2', server, tool, arguments, started_at, success, "
                             "result_summary, error_code, error, duration_ms FROM executioncall WHERE trace_id = :t"), {"t": late})  # fmt: skip
    done.rename(done.with_name(done.name + ".verified"))  # as if it had been killed before the deletion
    report = log.prune(older_than=100, archive=tmp_path)
    assert (report.resumed, report.deleted) == (1, 1)
    assert log.by_trace(late) is not None


def traces_in(file: Path) -> list[str]:
    return [json.loads(line)["trace_id"] for line in file.read_text().splitlines()]


@LOG_12
def test_kill_9_at_any_moment_of_archiving_loses_nothing_and_doubles_nothing(
    database: Database, writer: LogWriter, tmp_path: Path
) -> None:
    for n in range(1500):
        write(writer, 10 + n / 1000, fails=n % 3 == 0)
    write(writer, 0)
    assert database.path is not None
    everything = {row["trace_id"] for row in log_rows(database.path)}
    folder = tmp_path / "archive"
    program = (
        "import sys; from healkit.store.database import Database; from healkit.store.log import Log;"
        "log = Log(Database(sys.argv[1], wait_s=10)); print('ready', flush=True);"
        "log.prune(older_than=5, archive=sys.argv[2])"
    )
    rng, kills, states = random.Random(7), 0, set()
    for attempt in range(60):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(database.path), str(folder)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            # Longer and longer, so that every attempt gets further: the whole takes about two seconds.
            try:
                process.wait(timeout=rng.random() * (0.15 if attempt < 12 else 0.6))
                assert process.returncode == 0
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
        here = {row["trace_id"] for row in log_rows(database.path)}
        whole = [
            trace
            for file in folder.glob("*")
            if file.suffix in {".jsonl", ".verified"}
            for trace in traces_in(file)
        ]
        states |= {file.suffix for file in folder.glob("*")}
        assert here | set(whole) == everything, "an execution is in neither"
        assert max(Counter(whole).values(), default=0) <= 1, "an execution is in two archives"
    else:
        pytest.fail("it never came to an end")
    assert kills >= 5
    assert {".partial", ".verified"} <= states
    here = {row["trace_id"] for row in log_rows(database.path)}
    archived = [trace for file in folder.glob("*.jsonl") for trace in traces_in(file)]
    assert len(archived) == 1500
    assert set(archived) == everything - here
    assert sorted({file.suffix for file in folder.iterdir()} - {""}) == [".jsonl"]
    assert kept(database) == recounted(database)
    assert orphaned_parts(database) == 0


@LOG_12
def test_writers_go_on_while_rows_are_deleted(database: Database, writer: LogWriter) -> None:
    for n in range(3000):
        begun = started(timestamp=utc_now() - timedelta(days=2, seconds=n))
        writer.insert_finished(begun, failed(begun))
    waits: list[float] = []
    done = threading.Event()

    def work() -> None:
        with contextlib.closing(LogWriter(database)) as mine:
            while not done.is_set():
                begun, at = started("during"), time.monotonic()
                mine.begin(begun, wait_s=5.0)
                mine.finish(succeeded(begun), wait_s=5.0)
                waits.append(time.monotonic() - at)
                time.sleep(0.002)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        report = Log(Database(database.path, wait_s=5.0)).prune(older_than=1)  # type: ignore[arg-type]
    finally:
        done.set()
        thread.join(timeout=30)
    assert report.deleted == 3000
    assert len(waits) > 10
    assert max(waits) < 2.0
    assert Log(database).count(tool="during", status="SUCCESS") == len(waits)
