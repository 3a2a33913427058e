"""Log at 10,000 and 1,000,000 rows, and under a crowd.

With --large also at 10,000,000 rows. With --postgresql on its own server, in PostgreSQL's usual set-up with 1 GB of
shared buffers.

Prints one JSON object. Each query of docs/log.md and docs/log_costs.md, and those of the side panel, run at all
sizes in turns. The targets are a ratio of at most 2 warm and 4 cold, or a refusal with the reason. Warm is the
minimum of up to 41 times: processor time in ms, or on a server wall time. Cold is the minimum of 3 times: wall time
of the query with a new `Healkit`. The file has left the system's cache, and a server was restarted.

`--questions` runs only them. `--folder PATH` makes the databases there, and reuses them.

Then it measures the cost to prune, to export and to import. It also measures the waits of eight processes that write
fifty executions per second each (target: no error, less than 1 s). These parts use SQLite.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from log_samples import BASE, SPAN, crowd, long_log
from postgres_samples import Cluster

from healkit import Healkit
from healkit.core.contracts.execution import utc_now
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.errors import UsageInvalid
from healkit.faces.pages.side_panel import SidePanelPages

SMALL, BIG, LARGE = 10_000, 1_000_000, 10_000_000
ROUNDS, RATIO_MAX = 41, 2.0
COLD_ROUNDS, COLD_RATIO_MAX = 3, 4.0
#: Requests of a side panel with their arguments, as `SidePanelPages` takes them.
PANEL = [
    ("news", {}), ("status", {}), ("waiting", {}), ("names", {}), ("tools", {}), ("history", {"tool": "share"}),
    ("page", {"filters": {}}), ("page", {"filters": {"status": "FAILURE", "tried": False}}),
    ("groups", {"filters": {}}),
]  # fmt: skip
#: Time limit for one query at one size, in seconds.
_ASKED_S = 3.0
MIDDLE = BASE + SPAN * 0.5

PAGES = [Path(__file__).parents[1] / "docs" / name for name in ("log.md", "log_costs.md")]
#: Methods of `hk.log` that change something or read everything, which do not run at every size.
_NO_QUESTIONS = {"hk.log.prune", "hk.log.export", "hk.log.import_file"}


def questions() -> list[str]:
    """Return every call of the pages that reads the log, as an expression, in their order."""
    pages = "\n".join(page.read_text() for page in PAGES)
    blocks = re.findall(r"^```python\n(.*?)^```$", pages, re.MULTILINE | re.DOTALL)
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
    """Return the values of the names in the page's queries; `page` is one from the middle of the log."""
    page = healkit.log.query(until=MIDDLE, limit=50)
    group = SimpleNamespace(fingerprint="v1:0000000000000003")
    return {"hk": healkit, "page": page, "group": group, "panel": SidePanelPages(healkit)}


def asked(urls: dict[str, str], drop: Callable[[str], None]) -> dict[str, Any]:
    """Return the minimum time of each query at each size; run in turns, so that a busy machine slows both.

    drop: Removes a database from all caches.
    """
    clock = time.perf_counter if "postgresql" in next(iter(urls.values())) else time.thread_time
    logs = {size: Healkit(url) for size, url in urls.items()}
    names = {size: names_for(healkit) for size, healkit in logs.items()}
    everything = [*questions(), *(f"panel.answer({name!r}, {given!r})" for name, given in PANEL)]
    warm: dict[str, Any] = {}
    for question in everything:
        times: dict[str, list[float]] = {size: [] for size in logs}
        refused: dict[str, str] = {}
        begun = time.perf_counter()
        while len(times[min(times)]) < 3 or (
            len(times[min(times)]) < ROUNDS and time.perf_counter() - begun < _ASKED_S
        ):
            for size in logs:
                took_s, refused[size] = _ask(question, names[size], clock)
                times[size].append(took_s * 1000)
        warm[question] = _compared({size: min(taken) for size, taken in times.items()}, RATIO_MAX, refused)
    cold: dict[str, Any] = {}
    for question in everything:
        times = {size: [] for size in logs}
        for _ in range(COLD_ROUNDS):
            for size, url in urls.items():
                logs[size].close()
                drop(url)
                healkit = logs[size] = Healkit(url)
                fresh = {**names[size], "hk": healkit, "panel": SidePanelPages(healkit)}
                took_s, refused[size] = _ask(question, fresh, time.perf_counter)
                times[size].append(took_s * 1000)
        cold[question] = _compared(
            {size: min(taken) for size, taken in times.items()}, COLD_RATIO_MAX, refused
        )
    for healkit in logs.values():
        healkit.close()
    return {"warm": warm, "cold": cold}


def _ask(question: str, names: dict[str, Any], clock: Callable[[], float]) -> tuple[float, str]:
    """Return the time in seconds, and the reason of a refusal."""
    refused = ""
    begun = clock()
    try:
        eval(question, names)
    except UsageInvalid as error:
        refused = error.message
    return clock() - begun, refused


def _compared(least: dict[str, float], most: float, refused: dict[str, str]) -> dict[str, Any]:
    first, *_, last = least.values()
    found: dict[str, Any] = {f"ms_at_{size}": round(took, 3) for size, took in least.items()}
    found["ratio"] = round(last / first, 2)
    found |= {"refused": refused} if any(refused.values()) else {}
    return {**found, "over": found["ratio"] > most and not any(refused.values())}


def drop_file(url: str) -> None:
    """Remove a SQLite database from the system's cache."""
    for beside in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError), open(f"{url}{beside}", "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def drop_server(cluster: Cluster, folder: Path) -> Callable[[str], None]:
    """Return a function that restarts the server and removes its files from the system's cache."""

    def drop(_url: str) -> None:
        cluster.stop()
        for file in folder.rglob("data/base/*/*"):
            drop_file(str(file))
        cluster.start()

    return drop


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return round(time.perf_counter() - begun, 2), result


def upkeep(folder: Path, log: Log, small: Log) -> dict[str, Any]:
    """Archive a twentieth of the rows, archive all rows of the small log, and import them into another database."""
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
    """Run eight processes with fifty executions per second each, for four seconds."""
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
    options = argparse.ArgumentParser(description=__doc__)
    for name in ("--large", "--postgresql", "--questions"):
        options.add_argument(name, action="store_true")
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    sizes = [SMALL, BIG, *([LARGE] if given.large else [])]
    report: dict[str, Any] = {"rounds": ROUNDS}
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls, drop = {str(size): str(folder / f"{size}.db") for size in sizes}, drop_file
        if given.postgresql:
            cluster = Cluster(folder)
            with (folder / "data/postgresql.conf").open("a") as settings:
                settings.write("shared_buffers = 1GB\nmaintenance_work_mem = 512MB\nmax_wal_size = 8GB\n")
            cluster.start()
            stack.callback(cluster.stop)
            drop = drop_server(cluster, folder)
            for size in sizes:
                with psycopg.connect(cluster.url.replace("+psycopg", ""), autocommit=True) as server:
                    server.execute(f"CREATE DATABASE log{size}")  # type: ignore[arg-type]  # our name
            urls = {str(size): cluster.url.replace("/postgres?", f"/log{size}?") for size in sizes}
        for size, url in urls.items():
            if given.postgresql or not Path(url).exists():
                made_s, _ = timed(lambda: long_log(url, int(size)))  # noqa: B023 - called at once
                report[f"log_of_{size}"] = {"made_s": made_s}
        report |= asked(urls, drop)
        report["over"] = {
            kind: [name for name, found in report[kind].items() if found["over"]] for kind in ("warm", "cold")
        }
        if not (given.questions or given.postgresql):
            logs = [stack.enter_context(Healkit(url)).log for url in urls.values()]
            report.update(upkeep(folder, logs[-1], logs[0]))
            report["crowd"] = crowded(folder)
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
