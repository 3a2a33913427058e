"""Frames to a worker and back, compared to pyarrow.

pyarrow handles the same frame in one process.

Prints one JSON object. It measures the time from the call to the first line of the tool, and from its last line to the
caller. Both are compared to pyarrow's own writing and reading of an IPC stream. It measures the memory that a worker
needs to read two columns of a large frame, and the host's memory at that time. It also measures the caller's cost of
storing a frame as a view, and of plain JSON arguments.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import re
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from healkit import Config, Healkit

TIMES = """
import time
BEGAN = time.monotonic()
def times(df=None, rows=0, columns=0):
    began = time.monotonic()
    made = make(rows, columns) if rows else None
    return began, made, time.monotonic()
def make(rows, columns):
    import numpy as np, pandas as pd
    return pd.DataFrame(np.random.default_rng(1).random((rows, columns)), columns=[f"c{i}" for i in range(columns)])
"""
PRIVATE = """
import re
def private(df=None):
    total = 0.0 if df is None else float(df["c0"].sum() + df["c1"].sum())
    # What is its own: a page of the region that it has only read is still the region's.
    kept = re.findall(r"Anonymous: +(\\d+)", open("/proc/self/smaps_rollup").read())
    return sum(map(int, kept)) / 1024, total
"""


#: Time until the next worker is ready, in seconds: each Healkit has its own.
SPARE_S = 2.0


def frame(rows: int, columns: int) -> pd.DataFrame:
    """Return a frame of random numbers."""
    data = np.random.default_rng(1).random((rows, columns))
    return pd.DataFrame(data, columns=[f"c{i}" for i in range(columns)])


def by_pyarrow(given: pd.DataFrame) -> float:
    """Return how long pyarrow takes to write a frame and to read it again, in seconds."""
    began = time.monotonic()
    table = pa.Table.from_pandas(given)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    pa.ipc.open_stream(sink.getvalue()).read_all().to_pandas()
    return time.monotonic() - began


def there_and_back(hk: Healkit, given: pd.DataFrame, runs: int, pause_s: float) -> dict[str, float]:
    """Measure a frame as an argument and as a result, each compared to pyarrow's.

    pause_s: Pause before each measurement, also pyarrow's. Without one, a call waits for its worker, or runs while the
        next one starts.
    """
    there, back, peer, empty = [], [], [], []
    rows, columns = given.shape
    for _ in range(runs):
        time.sleep(pause_s)
        peer.append(by_pyarrow(given))
        time.sleep(pause_s)
        began = time.monotonic()
        value = hk.execute_tool("times", arguments={})
        empty.append(value[0] - began)
        time.sleep(pause_s)
        began = time.monotonic()
        there.append(hk.execute_tool("times", arguments={"df": given})[0] - began)
        value = hk.execute_tool("times", arguments={"rows": rows, "columns": columns}, timeout=120)
        back.append(time.monotonic() - value[2])
    middle = statistics.median
    return {
        "pyarrow_s": middle(peer), "empty_call_s": middle(empty), "argument_s": middle(there), "result_s": middle(back),
        "argument_over_pyarrow": middle(there) / middle(peer), "result_over_pyarrow": middle(back) / middle(peer),
    }  # fmt: skip


class HostMemory:
    """Memory of the host and its sealed regions, observed while a block runs."""

    def __init__(self) -> None:
        self.peak_bytes = self.last_bytes = taken_bytes()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> HostMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        gc.collect()
        self.last_bytes = taken_bytes()

    def _watch(self) -> None:
        while not self._ended.wait(0.002):
            self.peak_bytes = max(self.peak_bytes, taken_bytes())


def taken_bytes() -> int:
    """Return this process's own memory and the machine's shared memory, which includes sealed regions."""
    own = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
    shared = re.search(r"Shmem:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert own is not None
    assert shared is not None
    return (int(own[1]) + int(shared[1])) * 1024


def two_columns(hk: Healkit, gigabytes: float) -> dict[str, float]:
    """Measure the memory that a worker needs to read two of many columns, and the host's memory at that time."""
    columns = 20
    gc.collect()
    pa.default_memory_pool().release_unused()  # left over from earlier measurements
    before = taken_bytes()
    given = frame(int(gigabytes * 2**30 / 8 / columns), columns)
    size = int(given.memory_usage().sum())
    empty, _ = hk.execute_tool("private", timeout=120)
    with HostMemory() as host:
        full, _ = hk.execute_tool("private", arguments={"df": given}, timeout=120)
        if hk.config.views_mb:
            hk.view_keeper.wait()
    return {
        "frame_mb": size / 2**20, "private_mb_over_empty": full - empty,
        "host_peak_over_frame": (host.peak_bytes - before) / size,
        "host_after_over_frame": (host.last_bytes - before) / size,
    }  # fmt: skip


def views(hk: Healkit, without: Healkit, given: pd.DataFrame, runs: int) -> dict[str, float]:
    """Measure the caller's cost of storing a frame, and the time from its file to a tool's first line.

    Each run has other data, so that it is written anew; the two kinds of run alternate.
    """
    later, again, peer = [], [], []
    for run in range(runs):
        given.iloc[0, 0] = run
        took = {}
        for one in (without, hk):
            time.sleep(SPARE_S)
            began = time.perf_counter()
            execution = one.execute("times", arguments={"df": given})
            took[one] = time.perf_counter() - began
        later.append((took[hk] - took[without]) * 1000)
        (view,) = hk.views.used(execution.trace_id)["arguments"]
        time.sleep(SPARE_S)  # as below: memory that was just used is faster to allocate again
        began = time.monotonic()
        pq.read_table(view.file).to_pandas()
        peer.append(time.monotonic() - began)
        time.sleep(SPARE_S)
        began = time.monotonic()
        again.append(hk.rerun(execution.log_id).value[0] - began)
        hk.view_keeper.wait()
    middle = statistics.median
    return {
        "kept_ms_later": middle(later), "parquet_s": middle(peer), "rerun_s": middle(again),
        "rerun_over_parquet": middle(again) / middle(peer),
    }  # fmt: skip


def plain(hk: Healkit, runs: int) -> dict[str, float]:
    """Measure warm executions with plain JSON arguments, in milliseconds."""
    took = []
    for _ in range(runs):
        time.sleep(SPARE_S / 5)
        began = time.perf_counter()
        hk.execute_tool("echo", arguments={"x": {"items": [{"id": i, "name": f"n{i}"} for i in range(20)]}})
        took.append((time.perf_counter() - began) * 1000)
    return {"plain_execute_ms": statistics.median(took)}


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = Config(preload=("pandas", "pyarrow"), start_timeout_s=60)
        hk = Healkit(str(Path(folder) / "bench.db"), config=dataclasses.replace(config, views_mb=0))
        keeping = Healkit(hk.url, config=config)
        try:
            hk.vault.add("times", TIMES)
            hk.vault.add("private", PRIVATE)
            hk.vault.add("echo", "def echo(x):\n    return x\n")
            hk.execute_tool("echo", arguments={"x": 1})
            sample = frame(given.rows, given.columns)
            in_a_row = there_and_back(hk, sample, given.runs, 0)
            found: dict[str, Any] = {"in_a_row": in_a_row}
            found |= there_and_back(hk, sample, given.runs, SPARE_S)
            found |= views(keeping, hk, frame(given.rows, given.columns), given.runs)
            found |= two_columns(hk, given.gigabytes)
            found["keeping"] = two_columns(keeping, given.gigabytes)
            found |= plain(hk, 10 * given.runs)
        finally:
            keeping.close()
            hk.close()
    print(json.dumps({"processors": os.cpu_count(), **found}, indent=2))


if __name__ == "__main__":
    main()
