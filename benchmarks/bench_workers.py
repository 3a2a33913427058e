"""Workers compared to a plain Jupyter kernel.

It measures fresh and warm workers, hundreds of them, and workers at their limits.

Everything is measured in one run, in turns if two things are compared, so that a busy machine slows both. Prints one
JSON object; compare the ratios. The bounds are the project's own targets.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from jupyter_client.manager import KernelManager

from healkit import Config, Healkit
from healkit.core.contracts.execution import Grants
from healkit.core.runtime import background
from healkit.core.workers.kernel import KernelWorker
from healkit.core.workers.process import ForkServer
from healkit.core.workers.sandbox import RunFolders, Sandbox
from healkit.core.workers.tiers import achieved_tier
from healkit.core.workers.worker import GRACE_S

TOOL = "def trivial(n: int):\n    return n + 1\n"
PAUSE_S = 0.15


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def summary(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {"p50_ms": round(statistics.median(times), 2), "p95_ms": round(times[int(len(times) * 0.95)], 2)}


class BareKernel:
    """jupyter_client's own kernel, started in the usual way."""

    def __init__(self) -> None:
        self.manager = KernelManager(kernel_name="python3", transport="ipc")
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=30)

    def execute(self) -> None:
        self.client.execute_interactive(f"{TOOL}trivial(1)", timeout=30, output_hook=lambda _: None)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def cold_kernel() -> None:
    kernel = BareKernel()
    kernel.execute()
    kernel.close()


async def fresh_workers(config: Config, rounds: int) -> tuple[list[float], float]:
    """Measure from the fork to the end of a first run, and the private memory of a waiting worker (MiB)."""
    from healkit.core.contracts.rpc import Init
    from healkit.core.contracts.tools import EntryRef
    from healkit.core.wire.framing import raw

    class NoCalls:
        def handle(self, call: object) -> object:
            raise AssertionError("the tool makes no calls")

        def ended(self, call: object, result: object, *, late: bool) -> None:
            raise AssertionError("the tool makes no calls")

        def timed_out(self, call: object, error: object) -> None:
            raise AssertionError("the tool makes no calls")

    tier, folders = achieved_tier(config), RunFolders()
    fork_server = await ForkServer.start(tier, folders.root, folders.next(), Grants(), ())
    times, memory = [], []
    try:
        for _ in range(rounds):
            begun = time.perf_counter()
            worker = KernelWorker(Sandbox(tier, folders.next()), config, fork_server)
            await worker.start()
            memory.append(psutil.Process(worker_pid(worker)).memory_full_info().uss / 2**20)
            init = Init(
                EntryRef("trivial", "default", 1, ""),
                TOOL,
                raw({"n": 1}),
                [],
                30,
                10,
                2**30,
                60,
                10**7,
                10**7,
            )
            await worker.run(init, NoCalls())  # type: ignore[arg-type]  # it makes no calls
            times.append((time.perf_counter() - begun) * 1000)
            await worker.close()
    finally:
        await fork_server.close()
        folders.close()
    return times, statistics.median(memory)


def worker_pid(worker: KernelWorker) -> int:
    """Return the worker's process id on the host, read from its pidfd."""
    assert worker.process is not None
    fdinfo = Path(f"/proc/self/fdinfo/{worker.process.pidfd}").read_text()
    return next(int(line.split()[1]) for line in fdinfo.splitlines() if line.startswith("Pid:"))


def warm(healkit: Healkit, bare: BareKernel, rounds: int) -> dict[str, object]:
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(timed(bare.execute))
        time.sleep(PAUSE_S)
        ours.append(timed(lambda: healkit.execute("trivial", arguments={"n": 1})))
        time.sleep(PAUSE_S)  # the spare is replaced in this time
    ratio = statistics.median(ours) / statistics.median(theirs)
    return {"healkit": summary(ours), "bare_warm_kernel": summary(theirs), "ratio": round(ratio, 2),
            "bound": "ratio <= 1.0, p95 <= 15 ms"}  # fmt: skip


def sustained(healkit: Healkit, seconds: float) -> float:
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        healkit.execute("trivial", arguments={"n": 1})
        count += 1
    return count / (time.perf_counter() - begun)


def processor_ms(healkit: Healkit, count: int) -> dict[str, float]:
    """Measure the processor time of one fresh execution: of this process, and of all its children."""

    def used() -> tuple[float, float]:
        own, started = psutil.Process(), 0.0
        for process in own.children(recursive=True):
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            started += times.user + times.system + times.children_user + times.children_system
        times = own.cpu_times()
        return times.user + times.system, started

    before = used()
    for _ in range(count):
        healkit.execute("trivial", arguments={"n": 1})
    host, worker = ((b - a) / count * 1000 for a, b in zip(before, used(), strict=True))
    return {"host": round(host, 1), "worker": round(worker, 1), "both": round(host + worker, 1)}


def trials(healkit: Healkit, count: int) -> dict[str, object]:
    """Measure the sustained rate, and separately the first use, which starts a trial server for each processor."""

    def run(number: int) -> float:
        begun = time.perf_counter()
        results = healkit.trials([(TOOL, {"n": n}) for n in range(number)])
        assert all(result.ok for result in results)
        return time.perf_counter() - begun

    first_s = run(os.cpu_count() or 1)
    return {"value": round(count / run(count)), "first_use_s": round(first_s, 2), "bound": ">= 400"}


def overshoot(healkit: Healkit) -> float:
    """Measure how long a hang in C code survives after deadline and grace, in ms."""
    healkit.vault.add("hang", "def hang():\n    return sum(range(10**11))\n")
    past = []
    for _ in range(3):
        time.sleep(1)  # until there is a spare, so that its start does not count
        took_ms = timed(lambda: healkit.execute("hang", timeout=1.0))
        past.append(took_ms - 1000 - GRACE_S * 1000)
    return statistics.median(past)


def growth(healkit: Healkit, count: int) -> dict[str, float]:
    """Measure what many executions leave behind in the host."""

    def now() -> tuple[int, int, int, float]:
        asyncio.run_coroutine_threadsafe(
            background.pool_for(healkit.config).warm_up(achieved_tier(healkit.config)),
            background.loop._running(),
        ).result()
        gc.collect()
        process = psutil.Process()
        base = Path(tempfile.gettempdir()) / f"healkit-{os.getuid()}"
        folders = sum(1 for _ in base.glob(f"{os.getpid()}-*/*"))
        return process.num_fds(), threading.active_count(), folders, process.memory_info().rss / 2**20

    for _ in range(50):
        healkit.execute("trivial", arguments={"n": 1})
    before = now()
    for _ in range(count):
        healkit.execute("trivial", arguments={"n": 1})
    after = now()
    names = ("descriptors", "threads", "folders", "host_memory_mib")
    return {name: round(b - a, 1) for name, a, b in zip(names, before, after, strict=True)}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    config = Config(start_timeout_s=30)
    cold = [timed(cold_kernel) for _ in range(5)]
    fresh, spare_mib = asyncio.run(fresh_workers(config, 20))
    report: dict[str, object] = {
        "cold_bare_kernel": summary(cold),
        "fresh_through_fork_server": summary(fresh)
        | {
            "ratio_to_cold": round(statistics.median(fresh) / statistics.median(cold), 3),
            "bound": "<= 60 ms and <= 1/8",
        },
        "spare_private_mib": {"value": round(spare_mib, 1), "bound": "<= 25"},
    }
    bare = BareKernel()
    with (
        tempfile.TemporaryDirectory() as folder,
        Healkit(Path(folder) / "healkit.db", config=config) as healkit,
    ):
        healkit.vault.add("trivial", TOOL)
        healkit.execute("trivial", arguments={"n": 1})
        time.sleep(2)  # until the fork server is ready
        report["warm_execute"] = warm(healkit, bare, 40)
        report["processor_ms"] = processor_ms(healkit, 150) | {"bound": "both <= 38"}  # type: ignore[operator]  # a dict
        report["sustained_per_s"] = {"value": round(sustained(healkit, 5), 1), "bound": ">= 45"}
        report["trials_per_s"] = trials(healkit, 1000)
        report["overshoot_of_a_c_level_hang_ms"] = {
            "value": round(overshoot(healkit), 1),
            "bound": "<= 100",
        }
        report[f"growth_over_{count}"] = growth(healkit, count) | {"bound": "none, 10 MiB"}  # type: ignore[operator]  # a dict
    bare.close()
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
