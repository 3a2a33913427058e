"""Cost of a log row, compared to plain sqlite3 commits.

Both write the same bytes.

Prints one JSON object. It measures RUNNING + finish through the log's writer, called as by the recorder, so that the
row gets its place in time. It compares them with the same two commits by plain sqlite3 on a table without indexes
(target: a ratio of at most 3). It also measures a failed execution, whose traceback is indexed and counted too, and the
record of one bridged call. Times are processor time in µs. They are measured in turns in one run, so that a busy
machine slows all of them equally.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec

from healkit.core.contracts.execution import CallRecord, Finished, Started, new_trace_id, utc_now
from healkit.core.contracts.failure import Failure, Frame
from healkit.core.host import host_identity
from healkit.core.pysource.tracebacks import fingerprint, format_frames
from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.statements import finished_values, started_values

ROUNDS = 3000


def started() -> Started:
    now = utc_now()
    return Started(
        new_trace_id(), now, "fibonacci", "default", '{"n":10}', "python",
        host_identity(), now + timedelta(seconds=30), revision=1, code_hash="a" * 64, isolation="namespaces",
    )  # fmt: skip


def finished(trace_id: str) -> Finished:
    return Finished(trace_id, utc_now(), 41.5, result_summary="55")


def failed(trace_id: str) -> Finished:
    """Make a failure with a traceback of ten frames."""
    frames = [
        Frame("<fibonacci@1>", n, "fibonacci", f"return fibonacci(n - {n})", in_tool=True) for n in range(10)
    ]
    text = format_frames(frames, "ZeroDivisionError: division by zero")
    failure = Failure("TOOL_EXCEPTION", "ZeroDivisionError", "division by zero", text, frames)
    return Finished(trace_id, utc_now(), 41.5, failure=failure, fingerprint=fingerprint(failure))


def call(trace_id: str, task: int) -> CallRecord:
    return CallRecord(
        trace_id,
        f"t{task}",
        "vault",
        "square",
        '{"x":3}',
        utc_now(),
        success=True,
        result_summary="9",
        duration_ms=0.04,
    )


def timed(work: Callable[[], object]) -> float:
    begun = time.process_time_ns()
    work()
    return (time.process_time_ns() - begun) / 1000


def summary(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {
        "median_us": round(statistics.median(times), 1),
        "p99_us": round(times[int(len(times) * 0.99)], 1),
    }


def texts(values: dict[str, object]) -> list[object]:
    """Convert the values to plain sqlite3's types, before the clock starts."""
    return [
        v if isinstance(v, str | int | float | None) else msgspec.json.encode(v).decode()
        for v in values.values()
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "healkit.db")
        writer = LogWriter(database)
        bare = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = NORMAL")
        begin_names, finish_names = list(started_values(started())), list(finished_values(finished("x")))
        columns = dict.fromkeys(begin_names + finish_names)
        bare.execute(f"CREATE TABLE log (id INTEGER PRIMARY KEY, {', '.join(columns)})")
        insert = f"INSERT INTO log ({', '.join(begin_names)}) VALUES ({', '.join('?' * len(begin_names))})"
        update = f"UPDATE log SET {', '.join(f'{name} = ?' for name in finish_names)} WHERE id = ?"
        ours: list[float] = []
        floor: list[float] = []
        failures: list[float] = []
        calls: list[float] = []
        for _ in range(ROUNDS):
            begun = started()
            ended = finished(begun.trace_id)
            first, second = texts(started_values(begun)), texts(finished_values(ended))
            ours.append(timed(lambda: (writer.begin_in_order(begun), writer.finish(ended))))  # noqa: B023 - called at once
            floor.append(
                timed(lambda: bare.execute(update, [*second, bare.execute(insert, first).lastrowid]))  # noqa: B023 - called at once
            )
            bad = started()
            worse = failed(bad.trace_id)
            failures.append(timed(lambda: (writer.begin_in_order(bad), writer.finish(worse))))  # noqa: B023 - called at once
            record = call(begun.trace_id, 1)
            calls.append(timed(lambda: writer.call(record)))  # noqa: B023 - called at once
        writer.close()
        database.close()
        bare.close()
    ratio = statistics.median(ours) / statistics.median(floor)
    report = {
        "rounds": ROUNDS,
        "log_running_and_finish": summary(ours),
        "bare_sqlite3_two_commits": summary(floor),
        "ratio": round(ratio, 2),
        "ratio_target": 3.0,
        "log_running_and_failure": summary(failures),
        "bridged_call": summary(calls),
    }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
