"""The log at 10,000 and at 1,000,000 rows (10,000,000 with --large), and under a crowd.

Prints one JSON object. Each question is asked at both sizes; the target is a ratio of at most 2 for the first five
(medians, ms). Then what it costs to bring a database of the first version up to date, to prune, to export and import,
and what eight processes that write fifty executions a second each have to wait (target: no error, less than 1 s).
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from log_samples import BASE, SPAN, crowd, old_log

from healkit.contracts.records import utc_now
from healkit.store.database import Database
from healkit.store.log_reader import Log

SMALL, BIG, LARGE = 10_000, 1_000_000, 10_000_000
ROUNDS = 41
MIDDLE = (BASE + SPAN * 0.4, BASE + SPAN * 0.6)

#: What is asked → how. The first five are those with a target.
QUESTIONS: dict[str, Callable[[Log], Any]] = {
    "last_failure": lambda log: log.last_error(),
    "last_failure_of_a_tool": lambda log: log.last_error("tool_3"),
    "first_page": lambda log: log.query(),
    "text_common_word": lambda log: log.query(text="ValueError"),
    "text_rare_word": lambda log: log.query(text="needle"),
    "last_failure_of_a_tool_without": lambda log: log.last_error("healthy"),
    "page_of_failures": lambda log: log.query(status="FAILURE"),
    "page_of_a_tool": lambda log: log.query(tool="tool_3"),
    "page_in_the_middle": lambda log: log.query(until=MIDDLE[1]),
    "page_of_a_fingerprint": lambda log: log.query(fingerprint="v1:0000000000000003"),
    "text_word_and_tool": lambda log: log.query(text="ValueError", tool="tool_3"),
    "text_word_and_seldom_tool": lambda log: log.query(text="ValueError", tool="seldom"),
    "text_word_and_dates": lambda log: log.query(text="ValueError", since=MIDDLE[0], until=MIDDLE[1]),
    "text_phrase": lambda log: log.query(text='"most recent call last"'),
    "text_two_words": lambda log: log.query(text="ValueError needle"),
    "text_beginning": lambda log: log.query(text="needl"),
    "groups": lambda log: log.groups(),
    "summary": lambda log: log.summary(),
}


def asked(logs: dict[str, Log]) -> dict[str, Any]:
    """The median of each question at each size, asked in turns, so that a busy machine slows both."""
    report: dict[str, Any] = {}
    for name, ask in QUESTIONS.items():
        times: dict[str, list[float]] = {size: [] for size in logs}
        for _ in range(ROUNDS):
            for size, log in logs.items():
                begun = time.perf_counter()
                ask(log)
                times[size].append((time.perf_counter() - begun) * 1000)
        medians = {f"ms_at_{size}": round(statistics.median(taken), 3) for size, taken in times.items()}
        first, *_, last = medians.values()
        report[name] = {**medians, "ratio": round(last / first, 2)}
    return report


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return round(time.perf_counter() - begun, 2), result


def upkeep(folder: Path, log: Log, small: Log) -> dict[str, Any]:
    """Moving a twentieth of the rows out, all of the small log's rows out, and back into another database."""
    age = utc_now() - (BASE + SPAN * 0.05)
    pruned_s, report = timed(lambda: log.prune(older_than=age, archive=folder / "archive"))
    exported_s, rows = timed(lambda: small.export(folder / "small.jsonl"))
    other = Database(folder / "other.db")
    imported_s, _ = timed(lambda: Log(other).import_file(folder / "small.jsonl"))
    other.close()
    return {
        "archived_and_deleted": {
            "rows": report.deleted,
            "rows_per_s": round(report.deleted / pruned_s),
            "longest_hold_ms": round(report.longest_hold_ms, 1),
        },
        "exported": {"rows": rows, "rows_per_s": round(rows / exported_s)},
        "imported": {"rows": rows, "rows_per_s": round(rows / imported_s)},
    }


def crowded(folder: Path) -> dict[str, Any]:
    """Eight processes, fifty executions a second each, for four seconds."""
    Database(folder / "crowd.db").close()
    found = crowd(folder / "crowd.db", 8, 200, 50.0)
    waits = sorted(wait for process in found for wait in process["waits_s"])
    database = Database(folder / "crowd.db")
    rows = Log(database).count(status="SUCCESS")
    database.close()
    return {
        "executions": rows,
        "errors": sum(process["errors"] for process in found),
        "wait_ms": {
            "median": round(statistics.median(waits) * 1000, 3),
            "p99": round(waits[int(len(waits) * 0.99)] * 1000, 2),
            "worst": round(waits[-1] * 1000, 1),
        },
        "worst_target_ms": 1000,
    }


def main() -> None:
    sizes = [SMALL, BIG, *([LARGE] if "--large" in sys.argv else [])]
    report: dict[str, Any] = {"rounds": ROUNDS}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, logs = Path(name), {}
        for size in sizes:
            path = folder / f"{size}.db"
            made_s, _ = timed(lambda: old_log(path, size))  # noqa: B023 - called at once
            migrated_s, database = timed(lambda: Database(path))  # noqa: B023 - called at once
            stack.callback(database.close)
            logs[str(size)] = Log(database)
            report[f"log_of_{size}"] = {
                "made_s": made_s,
                "migrated_s": migrated_s,
                "size_mb": round(path.stat().st_size / 1e6),
            }
        report["questions"] = asked(logs)
        report["ratio_target"] = 2.0
        report.update(upkeep(folder, logs[str(sizes[-1])], logs[str(SMALL)]))
        report["crowd"] = crowded(folder)
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
