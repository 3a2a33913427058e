"""Cost of a bridged call: host idle or busy, recorded or not.

A tool in a restricted worker calls a host function and measures each call itself. `busy` means that the host's main
thread runs Python without a pause. The lower bound is a plain ping-pong of four bytes between two processes over a
socketpair, measured in the same run. Prints one JSON object; times in µs.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import CallRecord, Grants, new_trace_id
from healkit.core.contracts.rpc import Init
from healkit.core.contracts.tools import EntryRef
from healkit.core.runtime.calls import CallContext, CallRouter
from healkit.core.runtime.providers import HostFunctions
from healkit.core.runtime.recording import Recorder
from healkit.core.store.database import Database
from healkit.core.workers.kernel import KernelWorker
from healkit.core.workers.sandbox import RunFolder, Sandbox
from healkit.core.workers.tiers import achieved_tier

CALLS, WARM_UP = 5000, 500
TOOL = f"""
import time
def bench():
    times = []
    for _ in range({CALLS}):
        begun = time.perf_counter()
        mcp.host.answer(a=1)
        times.append((time.perf_counter() - begun) * 1e6)
    return times[{WARM_UP}:]
"""


def summary(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {"p50_us": round(times[len(times) // 2], 1), "p99_us": round(times[int(len(times) * 0.99)], 1)}


def floor() -> dict[str, float]:
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        while data := theirs.recv(4):
            theirs.sendall(data)
        os._exit(0)
    theirs.close()
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        ours.sendall(b"ping")
        ours.recv(4)
        times.append((time.perf_counter() - begun) * 1e6)
    ours.close()
    os.wait()
    return summary(times[WARM_UP:])


async def run(folder: Path, record: Callable[[CallRecord], None]) -> list[float]:
    config = Config(start_timeout_s=30)
    functions = HostFunctions()
    functions.provide(lambda a: {"a": a}, "answer")
    router = CallRouter(
        CallContext(new_trace_id(), "default", 0, 10), {"host": functions}, Grants(), record, 10**6
    )
    worker = KernelWorker(Sandbox(achieved_tier(config), RunFolder(folder / "run")), config, None)
    await worker.start()
    try:
        init = Init(
            EntryRef("bench", "default", 1, ""), TOOL, msgspec.Raw(b"{}"), router.definitions(), 60.0, 10.0,
            2**30, 60, 10**8, 10**8,
        )  # fmt: skip
        outcome = await worker.run(init, router)
    finally:
        await worker.close()
    assert outcome.complete is not None, outcome
    assert outcome.complete.failure is None, outcome.complete.failure
    return msgspec.json.decode(outcome.complete.value)


def measure(*, recorded: bool, busy: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = Database(folder / "healkit.db")
        recorder = Recorder(database)
        times: list[float] = []
        journal = recorder.journal(new_trace_id())
        record: Callable[[CallRecord], Any] = journal.append if recorded else lambda _: None
        thread = threading.Thread(target=lambda: times.extend(asyncio.run(run(folder, record))))
        thread.start()
        counted = 0
        while busy and thread.is_alive():
            counted += 1
        thread.join()
        journal.close()
        recorder.close()
        database.close()
    return summary(times)


def main() -> None:
    report = {
        "calls": CALLS - WARM_UP,
        "socketpair_ping_pong": floor(),
        "idle_recorded": measure(recorded=True, busy=False),
        "idle_not_recorded": measure(recorded=False, busy=False),
        "busy_recorded": measure(recorded=True, busy=True),
        "target": {"p50_us": 45, "p99_us": 500},
    }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
