"""Trials and a healing on a Dask cluster, and on this machine.

The cluster has two single-thread worker processes. The same work is done on this machine alone.

Both take turns, so that a busy machine slows both; their ratio is the result. Trials here run one at a time, as they do
in each worker. A worker is killed once during 200 trials: each must be recorded once, with its result or as lost.
Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster

from healkit import Config, Healkit

CODE = "def double(n):\n    return 2 * n\n"
#: A trial that computes for about 50 ms, because most tools do more than double a number.
LONGER = "def longer(n):\n    total = 0\n    for i in range(500_000):\n        total += i % 7\n    return n\n"
SLOW = "import time\ndef slow(n):\n    time.sleep(0.02)\n    return n\n"
BROKEN = """def furthest(numbers):
    best = 0
    for number in numbers:
        best = max(best, number)
    return best
"""
EXAMPLES = [
    {"arguments": {"numbers": numbers}, "result": result}
    for numbers, result in ([[1, -3], 3], [[2], 2], [[-7, 3, 5], 7], [[], 0], [[4, -4, 9, -12], 12])
]


def trials_s(healkit: Healkit, code: str, count: int, executor: Executor | None) -> float:
    began = time.perf_counter()
    parallel = 1 if executor is None else None
    results = healkit.trials([(code, {"n": n}) for n in range(count)], parallel=parallel, executor=executor)
    took_s = time.perf_counter() - began
    assert all(result.ok for result in results)
    return took_s


def healing_s(healkit: Healkit, name: str, executor: Executor | None) -> float:
    healkit.vault.add(name, BROKEN, examples=EXAMPLES)
    healkit.execute(name, arguments={"numbers": [1, -3]})
    began = time.perf_counter()
    report = healkit.heal(name, advisors=["search"], budget_s=120, executor=executor)
    took_s = time.perf_counter() - began
    assert report.best is not None
    return took_s


def compared(rounds: int, measure: Callable[[Executor | None], float], executor: Executor) -> dict[str, Any]:
    """Return the medians on both, and the median of the rounds' ratios."""
    pairs = [(measure(None), measure(executor)) for _ in range(rounds)]
    here, there = zip(*pairs, strict=True)
    ratio = statistics.median(away / own for own, away in pairs)
    return {
        "here_s": round(statistics.median(here), 2),
        "dask_s": round(statistics.median(there), 2),
        "dask_over_here": round(ratio, 2),
    }


def killed(healkit: Healkit, client: Client) -> dict[str, int]:
    """Kill a worker one second after the start of 200 trials; count the recorded ones."""
    pids = list(client.run(os.getpid).values())
    timer = threading.Timer(1.0, os.kill, (pids[0], signal.SIGKILL))
    timer.start()
    results = healkit.trials([(SLOW, {"n": n}) for n in range(200)], executor=client.get_executor())
    timer.join()
    times = Counter(row.trace_id for row in healkit.log.query(limit=500, origin="trial").rows)
    on_record = [times[result.trace_id] for result in results]
    wrong = [n for n, result in enumerate(results) if not result.lost and result.value != n]
    again = [(SLOW, {"n": n}) for n, result in enumerate(results) if result.lost]
    assert all(result.ok for result in healkit.trials(again, executor=client.get_executor()))
    return {
        "trials": len(results),
        "failed_as_lost_and_run_again": len(again),
        "not_on_record": on_record.count(0),
        "on_record_twice": sum(count > 1 for count in on_record),
        "wrong_results": len(wrong),
    }


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    config = Config(start_timeout_s=60)
    with tempfile.TemporaryDirectory() as folder, cluster, Client(cluster) as client:
        executor = client.get_executor()
        with Healkit(Path(folder) / "x.db", config=config) as healkit:
            trials_s(healkit, CODE, 20, None)  # starts the trial servers
            trials_s(healkit, CODE, 20, executor)
            names = (f"furthest_{number}" for number in range(100))
            report = {
                "processors": os.cpu_count(),
                "trials_100": compared(rounds, lambda e: trials_s(healkit, CODE, 100, e), executor),
                "trials_1000": compared(rounds, lambda e: trials_s(healkit, CODE, 1000, e), executor),
                "longer_trials_100": compared(rounds, lambda e: trials_s(healkit, LONGER, 100, e), executor),
                "healing": compared(rounds, lambda e: healing_s(healkit, next(names), e), executor),
            }
        with Healkit(Path(folder) / "killed.db", config=config) as healkit:
            report["killed_worker"] = killed(healkit, client)
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
