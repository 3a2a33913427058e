"""Cost of a cold run, compared to a plain Jupyter kernel.

Both start a kernel, run one trivial piece of work to its reply and end the kernel, in turns. The plain kernel uses
`jupyter_client`'s own manager and client. healkit uses `Healkit.execute`, everything included (vault, hash, schema,
log, isolation, bridge). Prints one JSON object; times in ms. Target: a ratio of at most 1.2.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_client.manager import KernelManager

from healkit import Config, Healkit

ROUNDS = 12


def bare(folder: str) -> None:
    manager = KernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/kernel")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=30)
    client.execute_interactive("55", timeout=30, output_hook=lambda _: None)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    config = Config(fork_server=False, spares=0)  # nothing is kept warm; bench_workers.py measures that
    with tempfile.TemporaryDirectory() as folder, Healkit(Path(folder) / "x.db", config=config) as healkit:
        healkit.vault.add("trivial", "def trivial():\n    return 55\n")
        healkit.execute("trivial")  # the first execution of a process determines the tier
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(timed(lambda: bare(folder)))
            ours.append(timed(lambda: healkit.execute("trivial")))
    report = {
        "rounds": ROUNDS,
        "bare_kernel_ms": round(statistics.median(theirs), 1),
        "healkit_execute_ms": round(statistics.median(ours), 1),
        "ratio": round(statistics.median(ours) / statistics.median(theirs), 2),
        "ratio_target": 1.2,
    }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
