"""Many hosts that use one database.

Does a caller get an error about a locked database, and is any data lost?

Each host opens the same database at the same moment and works on it from several threads. It executes tools that return
frames, call other tools and fail; it also changes the vault, stores data views and reads the log. Prints one JSON
object: the calls, their durations, the warnings and errors for callers, and what is missing at the end. Ends with 1 if
there is any.

    python benchmarks/soak_hosts.py [--hosts 4] [--threads 8] [--seconds 120] [--database postgresql]
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from soak_kills import database

from healkit import Config, Healkit
from healkit.errors import HealkitError

TOOLS = {
    "double": "def double(n: int):\n    return 2 * n",
    "table": (
        "def table(n: int):\n    import pandas as pd\n"
        "    return pd.DataFrame({'n': range(n, n + 3000), 'text': [f'row {i}' for i in range(3000)]})"
    ),
    "twice": "def twice(n: int):\n    return mcp.vault.double(n=n) + mcp.vault.double(n=n)",
    "broken": "def broken(n: int):\n    return [][n]",
}
#: An execution that takes longer than this had a cold start, in milliseconds.
WARM_MS = 1000
#: Order in which a thread executes the tools; then it writes itself.
TURNS = ("table", "double", "table", "twice", "table", "broken")


def host(db: str, number: int, threads: int, seconds: float) -> None:
    """Work on the database for that time, once all hosts are ready; print the callers' results as JSON."""
    seen: list[str] = []
    times_ms: dict[str, list[float]] = collections.defaultdict(list)
    wanted: list[str] = []

    def timed(kind: str, work: Any) -> Any:
        began = time.monotonic()
        try:
            return work()
        except HealkitError as error:
            seen.append(f"{kind}: {error.message}")
        finally:
            times_ms[kind].append((time.monotonic() - began) * 1000)

    with Healkit(db, config=Config(start_timeout_s=300, preload=("pandas",))) as healkit:
        import pandas as pd

        def execute(name: str, n: int) -> None:
            execution = timed("execute", lambda: healkit.execute(name, arguments={"n": n}, timeout=300))
            if execution is not None:
                seen.extend(f"warning: {warning}" for warning in execution.warnings)
                if execution.failure is not None and name != "broken":
                    seen.append(f"failure: {execution.failure.summary}")
                if name == "table":
                    wanted.append(execution.trace_id)

        while times_ms["execute"][-1:] > [WARM_MS] or len(times_ms["execute"]) < 2:  # no fork server yet
            execute("table", number)
        print("ready", flush=True)
        sys.stdin.readline()
        until = time.monotonic() + seconds

        def work(thread: int) -> None:
            turn = 0
            while time.monotonic() < until:
                n = (number * threads + thread) * 1_000_000 + turn * 10_000
                name = TURNS[turn % len(TURNS)]
                execute(name, n)
                turn += 1
                if turn % len(TURNS) == 0:
                    write(f"{number}_{thread}", turn, pd.DataFrame({"n": range(n, n + 10)}))

        def write(mine: str, turn: int, frame: pd.DataFrame) -> None:
            code = f"def own_{mine}(n: int):\n    return n + {turn}"
            if turn == len(TURNS):
                timed("vault.add", lambda: healkit.vault.add(f"own_{mine}", code))
            else:
                timed("vault.patch", lambda: healkit.vault.patch(f"own_{mine}", code))
            timed("views.put", lambda: healkit.views.put(frame, f"view_{mine}_{turn}"))
            timed("log.query", lambda: healkit.log.query(status="FAILURE", limit=20))

        running = [threading.Thread(target=work, args=(one,)) for one in range(threads)]
        for one in running:
            one.start()
        for one in running:
            one.join()
        # All at once, after the waiting data is stored.
        healkit.view_keeper.wait()
        lost = sum(not healkit.views.used(trace_id)["result"] for trace_id in wanted)
        seen.extend(filter(None, [healkit.recorder.problem, healkit.view_keeper.problem]))
    json.dump({"seen": seen, "times_ms": times_ms, "tables": len(wanted), "tables_lost": lost}, sys.stdout)


def measured(db: str, hosts: int, threads: int, seconds: float) -> dict[str, Any]:
    """Run the hosts on a new database at `db`; return the calls, the callers' results, and what is missing."""
    with Healkit(db) as healkit:
        for name, code in TOOLS.items():
            healkit.vault.add(name, code)
    command = [sys.executable, __file__, "--host", db, str(threads), str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([*command, str(one)], **pipes) for one in range(hosts)]
    for one in started:
        one.stdout.readline()
    for one in started:
        one.stdin.write("go\n")
        one.stdin.flush()
    reports = [json.loads(one.communicate()[0] or "{}") for one in started]
    times_ms = collections.defaultdict(list)
    for report in reports:
        for kind, found in report.get("times_ms", {}).items():
            times_ms[kind] += found
    calls = len(times_ms["execute"])
    seen = collections.Counter(one[:180] for report in reports for one in report.get("seen", ()))
    with Healkit(db) as healkit:
        rows = sum(healkit.log.count(tool=name) for name in TOOLS)
        asked = calls + 2 * sum(1 for row in healkit.log.query(tool="twice", limit=100_000).rows)
        running = healkit.log.count(status="RUNNING")
    return {
        "hosts": hosts, "threads": threads, "seconds": seconds, "calls": calls,
        "hosts_that_failed": sum(one.returncode != 0 for one in started),
        "locked": sum(many for said, many in seen.items() if "lock" in said or "busy" in said),
        "not_kept": sum(many for said, many in seen.items() if "not kept" in said),
        "seen": sum(seen.values()), "said": dict(seen.most_common(8)),
        "tables": sum(one.get("tables", 0) for one in reports),
        "tables_lost": sum(one.get("tables_lost", 0) for one in reports),
        "rows": rows, "rows_missing": asked - rows, "rows_running": running,
        "ms": {kind: _spread(found) for kind, found in sorted(times_ms.items())},
    }  # fmt: skip


def _spread(times_ms: list[float]) -> dict[str, float]:
    ordered = sorted(times_ms) or [0.0]
    at = {"median": len(ordered) // 2, "p99": int(len(ordered) * 0.99), "max": len(ordered) - 1}
    return {"count": len(times_ms), **{name: round(ordered[index], 1) for name, index in at.items()}}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--host", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.host:
        db, threads, seconds, number = chosen.host
        host(db, int(number), int(threads), float(seconds))
        return 0
    with tempfile.TemporaryDirectory() as folder, database(chosen.database, Path(folder)) as url:
        report = measured(url, chosen.hosts, chosen.threads, chosen.seconds)
    json.dump(report, sys.stdout, indent=2)
    print()
    wrong = ("hosts_that_failed", "seen", "tables_lost", "rows_missing", "rows_running")
    return int(any(report[name] for name in wrong))


if __name__ == "__main__":
    sys.exit(main())
