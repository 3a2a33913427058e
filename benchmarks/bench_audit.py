"""Cost of an audit entry, and speed of checking the chain.

The entry is compared with a plain insert into the same table.

Prints one JSON object. The first is an entry that was already checked and cleaned, like the plain insert's row. It is
measured from its number to its commit (target: at most 3 times the plain insert). The second is an entry with checking
and sanitising, alone and in a batch of 20, as a healing appends them. The third is the number of entries that `verify`
checks per second (target: at least 50,000). Times are processor time in µs. They are measured in turns in one run, so
that a busy machine slows all of them equally.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from healkit.config import Config
from healkit.core.store.database import Database
from healkit.parts.runs.audit import COLUMNS, Audit, columns_of
from healkit.parts.runs.audit_records import AuditMetadata, AuditStep
from healkit.parts.sanitizer.sanitizer import Sanitizer

ROUNDS, BATCH = 1500, 20
VERIFIED = 100_000
INSERT = f"INSERT INTO traceauditentry ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"


def step(place: int) -> AuditStep:
    metadata = AuditMetadata(row_count=place, column_count=12, duration_ms=3.25, success=True)
    params = {"view": "sales_by_region", "columns": ["region", "amount"], "limit": place}
    return AuditStep(
        "run-1", "decide", "execute_data_op", "group_by", params, metadata, run_id="run-1", event_seq=7
    )


def timed(work: Callable[[], object]) -> float:
    begun = time.process_time_ns()
    work()
    return (time.process_time_ns() - begun) / 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sanitizer = Sanitizer.from_config(Config())
        database, other = (Database(Path(folder) / name) for name in ("audit.db", "bare.db"))
        audit = Audit(database, lambda: sanitizer)
        bare = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        bare.execute("PRAGMA synchronous = NORMAL")

        def write(*rows: dict[str, Any]) -> None:
            audit._writer.transaction(lambda cursor: audit._write(cursor, list(rows)))

        audit.extend([step(0)])
        row: tuple[Any, ...] = stored_row(Path(folder) / "audit.db")
        floor, chained, whole, batched = (list[float]() for _ in range(4))
        for place in range(1, ROUNDS + 1):
            values = (place, *row[1:3], place, *row[4:])
            ready = columns_of(step(place), lambda: sanitizer)
            one, many = step(place), [step(n) for n in range(BATCH)]
            floor.append(timed(lambda: bare.execute(INSERT, values)))  # noqa: B023 - called at once
            chained.append(timed(lambda: write(ready)))  # noqa: B023 - called at once
            whole.append(timed(lambda: audit.extend([one])))  # noqa: B023 - called at once
            batched.append(timed(lambda: audit.extend(many)) / BATCH)  # noqa: B023 - called at once
        ready = columns_of(step(1), lambda: sanitizer)
        missing = VERIFIED - audit.head().entries
        write(*(dict(ready) for _ in range(missing)))
        found = []
        seconds = min(timed(lambda: found.append(audit.verify())) for _ in range(3)) / 1e6
        assert all(one.ok and one.entries == VERIFIED for one in found)
        for opened in (audit, bare, database, other):
            opened.close()
    base = statistics.median(floor)
    report = {
        "rounds": ROUNDS,
        "bare_insert_us": round(base, 1),
        "chained_insert_us": round(statistics.median(chained), 1),
        "chained_ratio": round(statistics.median(chained) / base, 2),
        "chained_ratio_target": 3.0,
        "append_us": round(statistics.median(whole), 1),
        "append_ratio": round(statistics.median(whole) / base, 2),
        "batched_us": round(statistics.median(batched), 1),
        "batched_ratio": round(statistics.median(batched) / base, 2),
        "verified_entries": VERIFIED,
        "verified_per_s": round(VERIFIED / seconds),
        "verified_per_s_target": 50_000,
    }
    json.dump(report, sys.stdout, indent=2)
    print()


def stored_row(path: Path) -> tuple[Any, ...]:
    """Return the entry's columns in their stored form."""
    connection = sqlite3.connect(path)
    found: tuple[Any, ...] = connection.execute(
        f"SELECT {', '.join(COLUMNS)} FROM traceauditentry"
    ).fetchone()
    connection.close()
    return found


if __name__ == "__main__":
    main()
