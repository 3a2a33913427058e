"""Retention: rows deleted, protected and archived."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from processes import has_ended
from sqlalchemy import text
from store_samples import (
    as_ordinary_user,
    call,
    failed,
    fill,
    log_rows,
    open_folder,
    recorded,
    started,
    succeeded,
    tiny_disk,
)  # fmt: skip
from test_log_derived import kept, recounted
from waiting import wait_until

from healkit.core.contracts.execution import DecisionRecord, Filters, utc_now
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.models import TraceRow
from healkit.core.store.vault import Vault
from healkit.errors import ArchiveBusy, ConfigError, LogFileError
from healkit.parts.archive.log_files import digest_of, read_records, write_unfinished

LOG_12 = pytest.mark.requirement("LOG-12")


def write(
    writer: LogWriter, days_ago: float, *, fails: bool = False, tool: str = "fibonacci"
) -> tuple[int, str]:
    """Write a finished execution of that age, with a call and a decision; return its id and trace id."""
    begun = started(tool, timestamp=utc_now() - timedelta(days=days_ago))
    writer.call(call(begun))
    writer.decision(DecisionRecord(begun.trace_id, 1, "t1", "node", "yes", "a > b", utc_now()))
    return writer.insert_finished(begun, failed(begun) if fails else succeeded(begun)), begun.trace_id


def ids(database: Database) -> list[int]:
    return [row["id"] for row in log_rows(database)]


def orphaned_parts(database: Database) -> int:
    """Rows of other tables whose execution is gone."""
    with database.read() as session:
        return sum(
            session.execute(text(f"SELECT count(*) FROM {table} WHERE trace_id NOT IN (SELECT trace_id FROM executionlog)")).scalar_one()
            for table in ("executioncall", "executiondecision", "executiontrace")
        )  # fmt: skip


@LOG_12
def test_old_rows_are_deleted_with_their_parts(database: Database, writer: LogWriter) -> None:
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
@pytest.mark.requirement("SCALE-3")
@pytest.mark.dialect
@pytest.mark.parametrize("keep", range(13))
def test_the_newest_so_many_stay_however_they_lie_in_days(
    database: Database, writer: LogWriter, keep: int
) -> None:
    ended = {hours: write(writer, hours / 24)[0] for hours in range(100, 0, -10)}
    running = {
        hours: writer.begin(started(timestamp=utc_now() - timedelta(hours=hours))) for hours in (95, 25)
    }
    newest = sorted(ended | running)[:keep]
    Log(database).prune(keep=keep)
    assert set(ids(database)) == {(ended | running)[hours] for hours in {*newest, *running}}


@LOG_12
def test_protected_rows_stay(database: Database, writer: LogWriter) -> None:
    running = writer.begin(started(timestamp=utc_now() - timedelta(days=99)))
    motive, _ = write(writer, 98, fails=True)
    vault = Vault(database)
    vault.add("fibonacci", "def fibonacci(n): return 1 / 0")
    vault.patch("fibonacci", "def fibonacci(n): return 1", motivating_log_id=motive)
    waiting, waiting_trace = write(writer, 97)
    sent, sent_trace = write(writer, 96)
    newest, newest_trace = write(writer, 100)
    now = utc_now()
    with database.write() as session:
        for trace_id, state in ((waiting_trace, "pending"), (sent_trace, "sent"), (newest_trace, "sent")):
            session.add(
                TraceRow(trace_id=trace_id, wire="{}", state=state, reason="", created_at=now, queued_at=now)
            )
            session.flush()  # in this order
    assert Log(database).prune(older_than=0).deleted == 1
    assert ids(database) == [running, motive, waiting, newest]
    assert sent not in ids(database)
    assert orphaned_parts(database) == 0
    assert write(writer, 0)[0] > newest


@LOG_12
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_an_archive_can_be_imported(database: Database, writer: LogWriter, tmp_path: Path, form: Any) -> None:
    for days in range(30):
        write(writer, days, fails=days % 3 == 0)
    before = {row["trace_id"]: row for row in log_rows(database)}
    log = Log(database)
    report = log.prune(older_than=9.5, archive=tmp_path / "archive", format=form)
    (archive,) = report.archives
    # The newest row is the oldest day here.
    assert (report.deleted, report.resumed, archive.suffix) == (19, 0, f".{form}")
    assert sorted(file.name for file in archive.parent.iterdir()) == [".lock", archive.name]
    assert log.prune(older_than=9.5, archive=tmp_path / "archive", format=form).archives == []
    assert log.import_file(archive) == (19, 19)
    after = {row["trace_id"]: row for row in log_rows(database)}
    for row in (*before.values(), *after.values()):
        for name in ("id", "arguments", "host", "failure", "grants"):  # JSON is the same by value
            del row[name]
    assert before == after
    assert kept(database) == recounted(database)


@LOG_12
def test_a_failed_archive_deletes_no_row(database: Database, writer: LogWriter, tmp_path: Path) -> None:
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
        with (
            as_ordinary_user(),
            pytest.raises(LogFileError, match=r"Cannot write the archive .*: Permission denied"),
        ):
            Log(database).prune(older_than=1, archive=folder / "archive")
    (tmp_path / "file").write_text("")
    with pytest.raises(LogFileError, match="Cannot write the archive"):
        log.prune(older_than=1, archive=tmp_path / "file")
    assert log.count() == 200


@LOG_12
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_one_changed_byte_of_a_value_is_noticed_when_an_archive_is_read_back(
    database: Database, writer: LogWriter, tmp_path: Path, suffix: str
) -> None:
    for days in range(3):
        write(writer, days)
    file = tmp_path / "partial"
    written = write_unfinished(file, suffix, read_records(database, Filters()))
    assert digest_of(file, suffix) == written
    content = file.read_bytes()
    assert content.count(b"fibonacci") > 0
    file.write_bytes(content.replace(b"fibonacci", b"fibonacdi"))
    assert digest_of(file, suffix) != written


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
def test_pruning_without_a_bound_is_refused(database: Database, writer: LogWriter) -> None:
    for days in (50, 5, 0):
        write(writer, days)
    with pytest.raises(ConfigError, match="retention_days"):
        Log(database).prune()
    with pytest.raises(ConfigError, match="negative"):
        Log(database).prune(older_than=-1)
    assert Log(database, retention_days=30).prune().deleted == 1
    assert Log(database, retention_rows=1).prune().deleted == 1


@LOG_12
def test_an_execution_with_a_late_call_is_not_deleted(
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
        columns = (
            "server, tool, arguments, started_at, success, result_summary, error_code, error, duration_ms"
        )
        session.execute(
            text(f"INSERT INTO executioncall (trace_id, task_id, {columns}) SELECT trace_id, 't2', {columns} "
                 "FROM executioncall WHERE trace_id = :t"), {"t": late}
        )  # fmt: skip
    done.rename(done.with_name(done.name + ".verified"))  # as if it had been killed before the deletion
    report = log.prune(older_than=100, archive=tmp_path)
    assert (report.resumed, report.deleted) == (1, 1)
    assert log.by_trace(late) is not None


def traces_in(file: Path) -> list[str]:
    return [json.loads(line)["trace_id"] for line in file.read_text().splitlines()]


#: Forks a child that archives, for each line it reads; says the child's id and, after another line, how it ended. Until
#: then the id is the child's alone, so that nothing else can be killed.
ARCHIVING = """
import os, sys
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
database = Database(sys.argv[1])
Log(database).count()  # loads what a child would else load before it archives anything
database.close()
print("ready", flush=True)
while sys.stdin.readline():
    child = os.fork()
    if not child:
        Log(Database(sys.argv[1], wait_s=30)).prune(older_than=5, archive=sys.argv[2])
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.slow
@LOG_12
@pytest.mark.requirement("SCALE-1")
def test_kill_9_while_archiving_loses_and_doubles_nothing(
    database: Database, writer: LogWriter, tmp_path: Path
) -> None:
    for n in range(600):
        write(writer, 10 + n / 1000, fails=n % 3 == 0)
    write(writer, 0)
    everything = {row["trace_id"] for row in log_rows(database)}
    folder, rng, states = tmp_path / "archive", random.Random(7), Counter[str]()
    command = [sys.executable, "-c", ARCHIVING, database.url, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for attempt in range(100):
            process.stdin.write(b"\n")
            process.stdin.flush()
            child = int(process.stdout.readline())
            # Longer and longer, so that in the end it gets to the end, on however slow a machine.
            time.sleep(rng.random() * (0.02 * (attempt + 1) + 0.001 * attempt**2))
            # The copy is being written; or it is there and checked, and the rows are not deleted yet.
            if (awaited := {3: "*.partial", 7: "*.verified"}.get(attempt % 8)) is not None:
                wait_until(lambda: [*folder.glob(awaited)] or has_ended(child))  # noqa: B023 - in this round
            os.kill(child, signal.SIGKILL)
            process.stdin.write(b"\n")
            process.stdin.flush()
            if int(process.stdout.readline()) == 0:
                break
            here = {row["trace_id"] for row in log_rows(database)}
            kept_files = [file for file in folder.glob("*") if file.suffix in {".jsonl", ".verified"}]
            whole = [trace for file in kept_files for trace in traces_in(file)]
            states.update(file.suffix for file in folder.glob("*"))
            assert here | set(whole) == everything, "an execution is in neither"
            assert max(Counter(whole).values(), default=0) <= 1, "an execution is in two archives"
        else:
            pytest.fail("it never came to an end")
        process.stdin.close()
    assert states[".partial"] >= 2
    assert states[".verified"] >= 1
    here = {row["trace_id"] for row in log_rows(database)}
    archived = [trace for file in folder.glob("*.jsonl") for trace in traces_in(file)]
    assert len(archived) == 600
    assert set(archived) == everything - here
    assert sorted({file.suffix for file in folder.iterdir()} - {""}) == [".jsonl"]
    assert kept(database) == recounted(database)
    assert orphaned_parts(database) == 0


@pytest.mark.slow
@LOG_12
def test_writers_go_on_while_rows_are_deleted(database: Database, writer: LogWriter) -> None:
    for n in range(1500):
        recorded(writer, failed, timestamp=utc_now() - timedelta(days=2, seconds=n))
    written: list[str] = []
    done = threading.Event()

    def work() -> None:
        with contextlib.closing(LogWriter(database)) as mine:
            while not done.is_set():
                begun = started("during")
                mine.begin(begun, wait_s=5.0)
                mine.finish(succeeded(begun), wait_s=5.0)
                written.append(begun.trace_id)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: written)  # the newest row stays: it must not be one of the old ones
    try:
        before = len(written)
        with contextlib.closing(Database(database.url, wait_s=5.0)) as another:
            report = Log(another).prune(older_than=1)
        during = len(written) - before
    finally:
        done.set()
        thread.join(timeout=30)
    assert report.deleted == 1500
    assert during > 3
    assert Log(database).count(tool="during", status="SUCCESS") == len(written)
