"""Log at 10,000 and 1,000,000 rows, and under a crowd.

With --large also at 10,000,000 rows.

Prints one JSON object. Each question of docs/log.md is asked at both sizes; the target is a ratio of at most 2 (the
least of the processor's ms, since others use it too), or that it is refused with the reason. With --questions that is
all. Then what it costs to bring a database of the first version up to date, to prune, to export and import, and what
eight processes that write fifty executions a second each have to wait (target: no error, less than 1 s).
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from log_samples import BASE, SPAN, crowd, long_log

from healkit import Healkit
from healkit.core.contracts.execution import utc_now
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.errors import UsageInvalid

SMALL, BIG, LARGE = 10_000, 1_000_000, 10_000_000
ROUNDS, RATIO_MAX = 41, 2.0
MIDDLE = BASE + SPAN * 0.5

PAGE = Path(__file__).parents[1] / "docs" / "log.md"
#: Methods of `hk.log` that change something or read all of it, which is not asked at every size.
_NO_QUESTIONS = {"hk.log.prune", "hk.log.export", "hk.log.import_file"}


def questions() -> list[str]:
    """Every call of docs/log.md that reads the log, as an expression, in the order of the page."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    calls = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)]
    named = [(ast.unparse(call.func), ast.unparse(call)) for call in calls]
    asked = [
        text
        for name, text in named
        if (name.startswith("hk.log.") and name not in _NO_QUESTIONS)
        or name in {"hk.executions", "hk.last_error", "hk.status", "hk.vault.history", "hk.vault.blame"}
    ]
    return list(dict.fromkeys(asked))


def names_for(healkit: Healkit) -> dict[str, Any]:
    """Return the values that the page's questions name: `page` is one from the middle of the log."""
    page = healkit.log.query(until=MIDDLE, limit=50)
    return {"hk": healkit, "page": page, "group": SimpleNamespace(fingerprint="v1:0000000000000003")}


def asked(logs: dict[str, Healkit]) -> dict[str, Any]:
    """Return the least time of each question at each size; asked in turns, so that a busy machine slows both."""
    report: dict[str, Any] = {}
    names = {size: names_for(healkit) for size, healkit in logs.items()}
    for question in questions():
        code = compile(question, "docs/log.md", "eval")
        times: dict[str, list[float]] = {size: [] for size in logs}
        refused: dict[str, str] = {}
        for _ in range(ROUNDS):
            for size in logs:
                begun = time.thread_time()
                try:
                    eval(code, names[size])
                except UsageInvalid as error:
                    refused[size] = error.message
                times[size].append((time.thread_time() - begun) * 1000)
        least = {f"ms_at_{size}": round(min(taken), 3) for size, taken in times.items()}
        first, *_, last = least.values()
        report[question] = {**least, "ratio": round(last / first, 2)}
        if refused:
            report[question]["refused"] = refused
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
            made_s, _ = timed(lambda: long_log(path, size))  # noqa: B023 - called at once
            logs[str(size)] = stack.enter_context(Healkit(path))
            report[f"log_of_{size}"] = {
                "made_s": made_s,
                "size_mb": round(path.stat().st_size / 1e6),
            }
        report["questions"] = asked(logs)
        over = [
            question
            for question, found in report["questions"].items()
            if found["ratio"] > RATIO_MAX and "refused" not in found
        ]
        report["over_ratio_of_2"] = over
        if "--questions" in sys.argv:
            json.dump(report, sys.stdout, indent=2)
            return
        report.update(upkeep(folder, logs[str(sizes[-1])].log, logs[str(SMALL)].log))
        report["crowd"] = crowded(folder)
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
