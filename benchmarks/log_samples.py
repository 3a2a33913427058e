"""Databases with a long log, and processes that crowd one log.

The databases are made quickly.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from healkit.core.store.database import Database
from healkit.core.store.vault import Vault

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=30)
WORDS = [f"word{n}" for n in range(5000)]
_TOOLS = ["share", *(f"tool_{n}" for n in range(1, 10))]

_COLUMNS = (
    "timestamp, tool_name, persona, arguments, status, result_summary, error_traceback, trace_id, origin, revision,"
    " duration_ms, fingerprint, last_output, ename, evalue, failure, host, isolation"
)

#: One process of a crowd: `count` executions at a rate per second, and the waits of each for its two commits.
_CROWD = """
import json, sys, time
from bench_log import finished, started
from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter
path, count, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
writer, waits, errors = LogWriter(Database(path)), [], 0
print("ready", flush=True)
sys.stdin.readline()
begun_at = time.perf_counter()
for n in range(count):
    time.sleep(max(0.0, begun_at + n / rate - time.perf_counter()))
    begun = started()
    for write in (lambda: writer.begin_in_order(begun, 5.0), lambda: writer.finish(finished(begun.trace_id), 5.0)):
        at = time.perf_counter()
        try:
            write()
        except Exception as error:
            errors += 1
        waits.append(time.perf_counter() - at)
print(json.dumps({"errors": errors, "waits_s": waits}))
"""


def long_log(url: str | Path, rows: int) -> None:
    """Make a database with that many executions, one in ten failed, and a trace of each.

    Four in ten belong to a tool that never fails, and one in five is a trial. Ten failures, evenly spread, contain the
    word `needle`. Each traceback contains every hundredth word on average, whatever the number of rows, so answers are
    equally long at every size. `share` is in the vault, with the four revisions that the rows name; some failures of
    the first did not come back.

    Indexes and triggers are removed during this, and the triggers' data is counted at the end: row by row, ten million
    take an hour.
    """
    database = Database(url)
    vault = Vault(database)
    vault.add("share", "def share(n): return 0")
    for number in (1, 2, 3):
        vault.patch("share", f"def share(n): return {number}", reason="")
    path, server = database.path, database.url.replace("+psycopg", "")
    database.close()
    if path is None:
        with psycopg.connect(server, autocommit=True) as connection:
            _fill_server(connection, rows)
        return
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # A journal of millions of rows would be as large as the database.
        for setting in ("synchronous = OFF", "journal_mode = OFF", "cache_size = -1000000"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("BEGIN")
        taken_off = connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL"
            " AND tbl_name IN ('executionlog', 'executiontrace') ORDER BY rowid"
        ).fetchall()
        for kind, name, _ in taken_off:
            connection.execute(f"DROP {kind} {name}")
        marks = ", ".join("?" * (_COLUMNS.count(",") + 1))
        connection.executemany(f"INSERT INTO executionlog ({_COLUMNS}) VALUES ({marks})", _rows(rows))
        for statement in (*_derived(on_sqlite=True), *(sql for _, _, sql in taken_off), "COMMIT"):
            connection.execute(statement)
        connection.execute("PRAGMA journal_mode = WAL")


def _fill_server(connection: psycopg.Connection[Any], rows: int) -> None:
    execute = connection.execute
    indexes = execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('executionlog', 'executiontrace')"
        " AND indexname NOT LIKE 'uq%' AND indexname NOT LIKE '%pkey'"
    ).fetchall()
    for name, _ in indexes:
        execute(f"DROP INDEX {name}")  # type: ignore[arg-type]  # names from the server itself
    execute("ALTER TABLE executionlog DISABLE TRIGGER USER")
    with connection.cursor() as cursor, cursor.copy(f"COPY executionlog ({_COLUMNS}) FROM STDIN") as copy:
        for row in _rows(rows):
            copy.write_row((f"{row[0]}+00", *row[1:]))
    for statement in (*_derived(on_sqlite=False), *(sql for _, sql in indexes)):
        execute(statement)
    execute("ALTER TABLE executionlog ENABLE TRIGGER USER")
    execute("VACUUM ANALYZE")


def _derived(*, on_sqlite: bool) -> list[str]:
    """Return statements that fill the triggers' tables, from the expressions of the triggers themselves."""
    first = importlib.import_module("healkit.core.store.migrations.versions.r0001_first")
    log = "executionlog"
    day = first._day_of(log, on_sqlite=on_sqlite)
    sums = ", ".join(
        f"sum({part})"
        for part in (
            "1",
            first._ONE_FAILED.format(row=log),
            first._ONE_REFUSED.format(row=log),
            first._microseconds(log, on_sqlite=on_sqlite),
        )
    )
    key, facts = first._KEY.format(row=log), first._FACTS.format(row=log)
    words = [
        f"INSERT INTO executionlog_fts_rows SELECT {key}, id FROM {log} WHERE error_traceback IS NOT NULL",
        (
            f"INSERT INTO executionlog_fts (rowid, facts, traceback) SELECT {key}, {facts}, error_traceback FROM {log}"
            " WHERE error_traceback IS NOT NULL"
        ),
    ]
    return [
        f"INSERT INTO executionday SELECT {day}, {sums} FROM {log} GROUP BY 1, 2, 3, 4, 5",
        (
            "INSERT INTO failuregroup SELECT fingerprint, tool_name, persona, count(*), min(timestamp), min(id),"
            f" max(timestamp), max(id) FROM {log} WHERE fingerprint IS NOT NULL GROUP BY 1, 2, 3"
        ),
        (
            "INSERT INTO executiontrace (trace_id, wire, state, attempts, reason, created_at, queued_at) SELECT"
            f" trace_id, '{{}}', CASE WHEN id % 2 = 0 THEN 'sent' ELSE 'local' END, 0, '', timestamp, timestamp"
            f" FROM {log}"
        ),
        *(words if on_sqlite else ()),
    ]


def crowd(path: Path, processes: int, count: int, rate_per_s: float) -> list[dict[str, Any]]:
    """Run a crowd of processes; return the waits of each, and its number of errors."""
    command = [sys.executable, "-c", _CROWD, str(path), str(count), str(rate_per_s)]
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parent
                )
            )
            for _ in range(processes)
        ]
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        for process in running:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=120)[0]) for process in running]


def _rows(count: int) -> Iterator[tuple[Any, ...]]:
    rng = random.Random(1)
    host = json.dumps({"hostname": "host", "boot_id": "b", "pid": 1, "started_ticks": 2})
    for n in range(count):
        failed = n % 10 == 0
        tool = _TOOLS[rng.randrange(10)] if failed or n % 2 else "healthy"
        origin, persona = "python", "default"
        if failed and n % (count // 10) == 0:
            tool = "seldom"
        elif n % 5 == 3:  # a fifth are trials: of a tool that is hardly used otherwise, and of one that is
            tool, origin = "share" if n % 40 == 3 else "healed", "trial" if n % 10 == 3 else "search"
            failed = n % 20 < 18
        elif n % (count // 20) == 7:
            tool = "healed"
        elif n % (count // 50) == 9:
            persona, origin = "teacher", "magic"
        at = (BASE + SPAN * (n / count)).strftime("%Y-%m-%d %H:%M:%S.%f")
        common = (at, tool, persona, '{"n":10}')
        rest = (f"{n:036d}", origin, 1 + n * 4 // count, rng.expovariate(1 / 50))
        if not failed:
            yield (*common, "SUCCESS", "55", None, *rest, None, "", None, None, None, host, "namespaces")
            continue
        needle = "needle " if n % (count // 10) == 0 else ""
        said = f"{needle}{' '.join(rng.sample(WORDS, 50))} => same"
        frame = f'  File "<{tool}@3>", line 2, in {tool}\n    return {said}'
        traceback = f"Traceback (most recent call last):\n{frame}\nValueError: no"
        failure = json.dumps(
            {"code": "TOOL_EXCEPTION", "ename": "ValueError", "evalue": "no", "traceback": traceback}
        )
        mark = None if origin in {"trial", "search"} else f"v1:{rng.randrange(20):016x}"
        if mark and tool == "share" and n * 4 < count:
            mark = f"v1:cured{n // 10 % 20}"
        yield (
            *common,
            "FAILURE",
            None,
            traceback,
            *rest,
            mark,
            "",
            "ValueError",
            "no",
            failure,
            host,
            "namespaces",
        )
