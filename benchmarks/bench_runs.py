"""Cost of recording a run, added to an execution.

Prints one JSON object; times in µs.

`on_execution`: SQL tools on the whole execution path, recorded and not recorded, in turns; a step of a long run, and a
    separate run. They use no worker, whose start would hide the difference.
`writer`: One event, and one step's evidence, without the execution path.
`disk`: The same on a file system that has to be waited for (fsync), which is the end of each run.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from healkit import Config, Healkit
from healkit.parts.runs.contract import PolicyDefaults

ROUNDS = 300
ARGUMENTS = {"n": 3, "text": "a few words of an argument " * 8}


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e6


def summary(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {
        "median_us": round(statistics.median(times), 1),
        "p95_us": round(times[int(len(times) * 0.95)], 1),
    }


def on_execution(healkit: Healkit, tool: str) -> dict[str, Any]:
    """Run each round once unrecorded, once as a step, once as a separate run."""

    def execute(record: Any) -> None:
        healkit.execute(tool, arguments=ARGUMENTS, record=record)

    plain, step, alone = [], [], []
    run = healkit.run(policy=PolicyDefaults(hard_cap_steps=10 * ROUNDS, same_state_revisits=10 * ROUNDS))
    for record in (False, run, True):
        execute(record)  # warm up: tables of rules are read once
    for _ in range(ROUNDS):
        plain.append(timed(lambda: execute(False)))
        step.append(timed(lambda: execute(run)))
        alone.append(timed(lambda: execute(True)))
    run.finish()
    added = {
        "step_adds_us": round(statistics.median(step) - statistics.median(plain), 1),
        "own_run_adds_us": round(statistics.median(alone) - statistics.median(plain), 1),
    }
    return {"plain": summary(plain), "step": summary(step), "own_run": summary(alone), **added}


def fsync_us(folder: Path) -> dict[str, float]:
    """Measure how long this file system takes to write one small file to disk."""
    with (folder / "probe").open("wb", buffering=0) as file:
        return summary([timed(lambda: (file.write(b"x" * 300), os.fsync(file.fileno()))) for _ in range(100)])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Healkit(folder / "healkit.db", config=Config(start_timeout_s=30)) as healkit:
            healkit.vault.add("fine", "SELECT :n AS n, :text AS text", type="sql")
            healkit.vault.add("fails", "SELECT :n AS n, :text AS text FROM nowhere", type="sql", draft=False)
            result = {
                "success": on_execution(healkit, "fine"),
                "failure": on_execution(healkit, "fails"),
                "fsync": fsync_us(folder),
            }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
