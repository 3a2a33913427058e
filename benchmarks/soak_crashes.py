"""Trivial executions on busy processors.

Is any of them mistaken for a crash?

5,000 run from four threads of a process that has two cores. Then 2,000 run while twice as many busy processes as cores
compete for them. Prints one JSON object with the failures by code; ends with 1 if there is any. The seed chooses the
arguments.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from healkit import Config, Healkit

CORES, THREADS = 2, 4


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep that many processes busy on the cores of this one."""
    with contextlib.ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


def executed(count: int, rng: random.Random) -> dict[str, Any]:
    """Execute a trivial tool that often, from all threads; return failures by code."""
    found: Counter[str] = Counter()
    said: list[str] = []
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as name,
        Healkit(Path(name) / "healkit.db", config=Config(start_timeout_s=120)) as healkit,
    ):
        healkit.vault.add("double", "def double(n: int):\n    return 2 * n")
        turns = itertools.count()
        numbers = [rng.randrange(10**6) for _ in range(count)]

        def work() -> None:
            while (turn := next(turns)) < count:
                execution = healkit.execute("double", arguments={"n": numbers[turn]}, timeout=300)
                if execution.failure is not None:
                    found[execution.failure.code] += 1
                    said.append(execution.failure.summary[:200])
                elif execution.value != 2 * numbers[turn]:
                    found["WRONG_VALUE"] += 1

        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = healkit.log.count(status="SUCCESS")
    took_s = time.monotonic() - began
    return {
        "executions": count,
        "took_s": round(took_s),
        "failures": dict(found),
        "said": said[:5],
        "rows_of_success": rows,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinned", type=int, default=5000)
    parser.add_argument("--loaded", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", file=sys.stderr, flush=True)
    rng = random.Random(chosen.seed)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:CORES])
    report: dict[str, Any] = {"seed": chosen.seed, "pinned_to": len(cores[:CORES]), "threads": THREADS}
    if chosen.pinned:
        report["pinned"] = executed(chosen.pinned, rng)
    if chosen.loaded:
        os.sched_setaffinity(0, cores)
        with busy(2 * len(cores)):
            report["oversubscribed"] = {"busy_processes": 2 * len(cores), **executed(chosen.loaded, rng)}
    json.dump(report, sys.stdout, indent=2)
    print()
    parts = [report[name] for name in ("pinned", "oversubscribed") if name in report]
    return int(any(part["failures"] or part["rows_of_success"] != part["executions"] for part in parts))


if __name__ == "__main__":
    sys.exit(main())
