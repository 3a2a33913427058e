"""Export and import: what goes out comes back as it was, once."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import select, text
from store_samples import call, failed, fill, log_rows, moment, recorded, started, succeeded, tiny_disk

from healkit.core.contracts.execution import DecisionRecord, Finished, Grants, new_trace_id, utc_now
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.models import CALLS, DAYS, DECISIONS, LOG, TraceRow
from healkit.errors import LogFileError

LOG_12 = pytest.mark.requirement("LOG-12")
FORMATS = pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])


@pytest.fixture
def other(new_database: Callable[[str], str]) -> Iterator[Database]:
    """Another database, to import into."""
    opened = Database(new_database("other"))
    yield opened
    opened.close()


def everything(database: Database) -> list[str]:
    """Read the whole log without row ids; NaN equals NaN here."""
    with database.read() as session:
        return [
            repr(tuple(row)[1:] if "id" in table.c else tuple(row))
            for table, key in (
                (LOG, "trace_id"), (CALLS, "trace_id"), (DECISIONS, "number"), (DAYS, "tool_name"),
            )
            for row in session.execute(select(table).order_by(table.c[key], *table.primary_key.columns))
        ]  # fmt: skip


def write_odd_rows(writer: LogWriter, database: Database) -> None:
    """Write a row of every kind, with values that are hard to serialise."""
    odd = started(
        "tool", persona="teacher", arguments='{"n": NaN, "big": 123456789012345678901234567890, "s": "\\ud800 ä 😀 \\u0000"}',
        grants=Grants(read=("/data",), memory_mb=5), parent_trace_id=new_trace_id(), run_id="run-1", revision=None, isolation=None,
        timestamp=moment("2026-01-02T03:04:05+02:00"),
    )  # fmt: skip
    writer.insert_finished(odd, failed(odd, "x = '\x01\x7f\u2028'"))
    for task in (1, 2):
        writer.call(
            call(odd, task, success=task == 1, result_summary="4\n", duration_ms=math.pi, error_code="X")
        )
    writer.call(call(odd, 3))
    writer.decision(DecisionRecord(odd.trace_id, 1, "t1", "node", "yes", "a > b", utc_now()))
    good = started(arguments="[1.5e300, null, true]")
    writer.begin(good)
    writer.finish(Finished(good.trace_id, utc_now(), 0.1 + 0.2, result_summary="5\x005", last_output="…"))
    bare = started(arguments="null")
    writer.insert_finished(bare, succeeded(bare))
    with database.write() as session:
        session.execute(
            text("UPDATE executionlog SET duration_ms=NULL, host=NULL, deadline=NULL WHERE trace_id=:t"),
            {"t": bare.trace_id},
        )


@LOG_12
@FORMATS
@pytest.mark.requirement("SCALE-1")
def test_an_export_is_imported_equal_in_every_column(
    database: Database, writer: LogWriter, other: Database, tmp_path: Path, suffix: str
) -> None:
    write_odd_rows(writer, database)
    file = tmp_path / f"log{suffix}"
    assert Log(database).export(file) == 3
    assert Log(other).import_file(file) == (3, 3)
    assert everything(other) == everything(database)
    again = tmp_path / f"again{suffix}"
    assert Log(other).export(again) == 3
    if suffix == ".jsonl":
        assert again.read_bytes() == file.read_bytes()
    else:
        frame = pd.read_parquet(file)
        assert str(frame["timestamp"].dtype).endswith("UTC]")
        assert set(frame["revision"].dropna()) == {1}
    assert not list(tmp_path.glob("*.partial"))


@LOG_12
@FORMATS
def test_importing_twice_or_overlapping_files_changes_nothing(
    database: Database, writer: LogWriter, other: Database, tmp_path: Path, suffix: str
) -> None:
    for tool in ("alpha", "beta", "alpha"):
        begun = started(tool)
        writer.insert_finished(begun, succeeded(begun))
        writer.call(call(begun))
    files = [tmp_path / f"all{suffix}", tmp_path / f"alpha{suffix}"]
    assert Log(database).export(files[0]) == 3
    assert Log(database).export(files[1], tool="alpha") == 2
    log = Log(other)
    assert [log.import_file(file) for file in (files[1], files[0], files[0])] == [(2, 2), (3, 1), (3, 0)]
    before = everything(database)
    assert everything(other) == before
    assert Log(database).import_file(files[0]) == (3, 0)
    assert everything(database) == before


@pytest.mark.slow
@LOG_12
def test_an_export_is_filtered_and_leaves_out_running_rows(
    database: Database, writer: LogWriter, tmp_path: Path
) -> None:
    for n in range(1203):
        recorded(
            writer,
            failed if n % 2 else succeeded,
            "many",
            timestamp=moment("2026-01-01T00:00:00+00:00") + timedelta(seconds=n % 7),
        )
    writer.begin(started("running"))
    log = Log(database)

    def exported(**filters: Any) -> list[dict[str, Any]]:
        log.export(tmp_path / "x.jsonl", overwrite=True, **filters)
        return [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]

    rows = exported()
    assert len({row["trace_id"] for row in rows}) == len(rows) == 1203
    assert [row["timestamp"] for row in rows] == sorted(row["timestamp"] for row in rows)
    assert rows[0]["timestamp"] == "2026-01-01T00:00:00+00:00"
    assert "id" not in rows[0]
    assert len(exported(text="ZeroDivisionError")) == len(exported(status="FAILURE")) == 601
    assert exported(tool="running") == []
    assert log.import_file(tmp_path / "x.jsonl") == (0, 0)


BAD_LINES = [
    (b'{"trace_id": "a', "line 3 is cut off"),
    (b"hello\n", "line 3 is not JSON"),
    (b'{"trace_id": "\xff"}\n', "line 3 is not JSON"),
    (b"[]\n", "line 3 is not an object"),
    (b'{"a": 1}\n', "line 3.*does not know the column 'a'"),
    (b'{"origin": "x"}\n', "line 3 is not an execution: it has no 'trace_id'"),
    (b'{"colour": 1}\n', "newer healkit"),
    (b'{"arguments": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "line 3 is nested too deep"),
    (b'{"revision": ' + b"9" * 5_000 + b"}\n", "line 3 is not JSON"),
]


BAD_VALUES: list[tuple[str, Any, str]] = [
    ("timestamp", "2026-01-01T00:00:00", "not a time with an offset"),
    ("timestamp", "yesterday", "not a time with an offset"),
    ("timestamp", None, "it has no 'timestamp'"),
    ("finished_at", 5, "not a time with an offset"),
    ("timestamp", "0001-01-01T00:00:00+14:00", "not a time with an offset"),
    ("revision", 2**70, "'revision' is out of range"),
    ("revision", -(2**31) - 1, "'revision' is out of range"),
    ("duration_ms", 10**400, "'duration_ms' is out of range"),
    ("arguments", json.loads('{"a":' * 600 + "1" + "}" * 600), "'arguments' is nested too deep"),
    ("status", "RUNNING", "'RUNNING' is not a valid status"),
    ("status", "DONE", "'DONE' is not a valid status"),
    ("tool_name", 7, "it has no 'tool_name'"),
    ("revision", "two", "'revision' cannot be 'two'"),
    ("revision", True, "'revision' cannot be True"),
    ("duration_ms", "fast", "'duration_ms' cannot be 'fast'"),
    ("calls", {"t1": {}}, "'calls' is not a list"),
    ("calls", [{"task_id": "t1"}], "line 3: 'started_at' has no value"),
    ("calls", [{"task_id": 1}], "'task_id' cannot be 1"),
]


@LOG_12
def test_a_line_that_cannot_be_imported_is_named_and_earlier_ones_are(
    database: Database, writer: LogWriter, other: Database, tmp_path: Path
) -> None:
    """S8: an import of 2**70, or of deep JSON, ended in a traceback."""
    for _ in range(3):
        recorded(writer, succeeded)
    file = tmp_path / "log.jsonl"
    Log(database).export(file)
    *lines, last = file.read_bytes().splitlines(keepends=True)
    values = [
        (json.dumps({**json.loads(last), name: value}).encode() + b"\n", said)
        for name, value, said in BAD_VALUES
    ]
    for bad, said in (*BAD_LINES, *values):
        file.write_bytes(b"".join([*lines, bad]))
        with pytest.raises(LogFileError, match=said):
            Log(other).import_file(file)
        assert Log(other).count() == 2, said
    file.write_bytes(b"".join([*lines, last]))
    assert Log(other).import_file(file) == (3, 1)


@LOG_12
def test_a_damaged_parquet_file_is_refused_by_name(
    database: Database, writer: LogWriter, other: Database, tmp_path: Path
) -> None:
    recorded(writer, succeeded)
    file = tmp_path / "log.parquet"
    Log(database).export(file)
    content = file.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"PAR1" + bytes(200) + b"PAR1"):
        file.write_bytes(damaged)
        with pytest.raises(LogFileError, match=r"log\.parquet"):
            Log(other).import_file(file)
    import pyarrow as pa
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"a": [1]}), file)
    with pytest.raises(LogFileError, match=r"row 1: this healkit does not know the column 'a'"):
        Log(other).import_file(file)


@LOG_12
def test_an_imported_trace_does_not_wait_to_be_sent(
    database: Database, writer: LogWriter, other: Database, tmp_path: Path
) -> None:
    begun, now = started(), utc_now()
    writer.insert_finished(begun, succeeded(begun))
    with database.write() as session:
        session.add(
            TraceRow(trace_id=begun.trace_id, wire="{}", state="pending", reason="", created_at=now, queued_at=now,
                     lease_owner="me")
        )  # fmt: skip
    Log(database).export(tmp_path / "log.jsonl")
    Log(other).import_file(tmp_path / "log.jsonl")
    with other.read() as session:
        row = session.scalars(select(TraceRow)).one()
    assert (row.wire, row.state, row.lease_owner, row.created_at) == ("{}", "local", None, now)


@LOG_12
def test_unknown_formats_and_existing_files_are_refused(database: Database, tmp_path: Path) -> None:
    log = Log(database)
    for work, said in (
        (lambda: log.export(tmp_path / "log.csv"), r"\.jsonl or \.parquet"),
        (lambda: log.import_file(tmp_path / "log"), r"\.jsonl or \.parquet"),
        (lambda: log.import_file(tmp_path / "log.jsonl"), "cannot be read: No such file"),
        (lambda: log.export(tmp_path / "nowhere" / "log.jsonl"), "cannot be written: No such file"),
    ):
        with pytest.raises(LogFileError, match=said):
            work()
    (tmp_path / "log.jsonl").write_text("mine")
    with pytest.raises(LogFileError, match="already exists"):
        log.export(tmp_path / "log.jsonl")
    assert (tmp_path / "log.jsonl").read_text() == "mine"


@LOG_12
def test_an_export_onto_a_full_disk_leaves_no_half_file(
    database: Database, writer: LogWriter, tmp_path: Path
) -> None:
    for _ in range(50):
        begun = started()
        writer.insert_finished(begun, succeeded(begun, "x" * 1900))
    with tiny_disk(tmp_path / "disk", 128) as disk:
        fill(disk).unlink()
        (disk / "filler").write_bytes(b"x" * 80 * 1024)
        with pytest.raises(LogFileError, match="No space left"):
            Log(database).export(disk / "log.jsonl")
        assert [file.name for file in disk.iterdir()] == ["filler"]


@pytest.mark.slow
@LOG_12
def test_export_and_import_use_little_memory(database: Database, other: Database, tmp_path: Path) -> None:
    with database.write() as session:
        session.execute(
            text(
                "INSERT INTO executionlog (timestamp, tool_name, persona, status, trace_id, origin, last_output, result_summary)"
                " VALUES ('2026-01-01 00:00:00.000000', 'f', 'default', 'SUCCESS', :trace, 'python', '', :result)"
            ),
            [{"trace": f"{n:036}", "result": "x" * 1900} for n in range(3_500)],
        )
    for work in (
        lambda: Log(database).export(tmp_path / "log.jsonl"),
        lambda: Log(other).import_file(tmp_path / "log.jsonl"),
    ):
        tracemalloc.start()
        work()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 6e6 < (tmp_path / "log.jsonl").stat().st_size
    assert len(log_rows(other)) == 3_500


@LOG_12
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_an_export_writes_to_nothing_that_a_planted_link_names(
    database: Database, writer: LogWriter, tmp_path: Path, suffix: str
) -> None:
    """S8: an export followed a link that another user had put in the place of its `.partial` file."""
    recorded(writer, succeeded)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    file = tmp_path / f"log{suffix}"
    file.with_name(f"{file.name}.partial").symlink_to(victim)
    assert Log(database).export(file) == 1
    assert victim.read_text() == "precious"
    assert not file.is_symlink()
    assert sorted(path.name for path in tmp_path.glob("log*")) == [file.name]
    file.unlink()
    file.symlink_to(victim)
    assert Log(database).export(file, overwrite=True) == 1
    assert victim.read_text() == "precious"
