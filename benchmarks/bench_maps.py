"""Cost of `hk.map`: over a loop, on Dask, and in memory.

Prints one JSON object with ratios of one run. 2,000 inputs of a trivial tool on local workers are compared to a loop of
`execute` (target: at least 1.8 times as fast). The same on a Dask cluster with two single-thread workers is compared to
local workers (at least 0.85). With --memory N, it reports the host's memory while it maps N inputs from a file. It does
so after a tenth of them and at the end (target: at most 300 MiB, constant).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from healkit import Healkit

TOOL = "def slugify(text: str):\n    return '-'.join(text.lower().split())\n"
#: Number of executions in the loop, each of which takes ten times as long.
LOOP = 200


def inputs(count: int) -> list[dict[str, str]]:
    """Return that many different inputs."""
    return [{"text": f"A title Number {number}"} for number in range(count)]


def seconds(work: Any) -> float:
    """Return the duration of a call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def speed(healkit: Healkit, count: int) -> dict[str, Any]:
    """Return the rates, in inputs per second."""
    import dask
    from distributed import Client, LocalCluster

    healkit.map("slugify", inputs(200), progress=False)  # warms everything up
    healkit.execute("slugify", arguments={"text": "a"})
    report: dict[str, Any] = {"loop": [], "map": [], "dask": []}
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        executor = client.get_executor()
        healkit.map("slugify", inputs(200), executor=executor, progress=False)
        for _ in range(3):
            loop = seconds(lambda: [healkit.execute("slugify", arguments=given) for given in inputs(LOOP)])
            here = seconds(lambda: healkit.map("slugify", inputs(count), progress=False))
            away = seconds(lambda: healkit.map("slugify", inputs(count), executor=executor, progress=False))
            for name, rate in (("loop", LOOP / loop), ("map", count / here), ("dask", count / away)):
                report[name].append(round(rate, 1))
    best = {name: max(rates) for name, rates in report.items()}
    return report | {"map_over_loop": best["map"] / best["loop"], "dask_over_map": best["dask"] / best["map"]}


def memory(healkit: Healkit, file: Path, count: int) -> dict[str, Any]:
    """Return the host's resident memory in MiB after a tenth and at the end, and the maximum."""
    with file.open("w") as lines:
        for given in inputs(count):
            lines.write(json.dumps(given) + "\n")
    process, seen = psutil.Process(), list[tuple[int, float]]()
    began = time.perf_counter()
    report = healkit.map(
        "slugify", file, progress=lambda now: seen.append((now.done, process.memory_info().rss / 2**20))
    )
    tenth = next(mib for done, mib in seen if done >= count // 10)
    assert report.ok, str(report)
    return {
        "inputs": count,
        "mib_at_a_tenth": round(tenth),
        "mib_at_the_end": round(seen[-1][1]),
        "mib_most": round(max(mib for _, mib in seen)),
        "a_second": round(count / (time.perf_counter() - began)),
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--memory", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Healkit(Path(folder) / "healkit.db") as healkit:
        healkit.vault.add("slugify", TOOL)
        if options.memory:
            print(json.dumps(memory(healkit, Path(folder) / "inputs.jsonl", options.memory)))
        else:
            print(json.dumps(speed(healkit, options.count)))


if __name__ == "__main__":
    main()
