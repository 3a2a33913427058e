"""Cost of a decision beyond its tools.

It also compares the metadata of a long view with DuckDB's SUMMARIZE.

Prints one JSON object. A step: a tool makes a view of 100,000 rows and 6 columns from another. The step's own cost is
its time beyond the execution (`execute_request`) and storing the data (`views.put`). It includes choice, comparison
with the intended state, metadata, audit, the next turn. Columns are counted while the data is written; the time of that
alone is reported too. Target: at most 10 ms.

Metadata: everything that a decision determines about a view of 20 columns before its first turn. It is compared to
    `SUMMARIZE` on the same table in memory and on the view's Parquet file. Target: at most 1.5 times the former.

`python benchmarks/bench_decide.py [--full]`; --full: 10,000,000 rows instead of 1,000,000.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from healkit import Healkit
from healkit.config import Config
from healkit.core.runtime.runner import Runner
from healkit.parts.decide import Turn
from healkit.parts.decide.telling import KnownNames, counts_of, values_among, view_facts
from healkit.parts.sanitizer.sanitizer import Sanitizer
from healkit.parts.views.views import Views

STEP_ROWS, STEPS, ROUNDS = 100_000, 20, 3
TOOL = """import pandas as pd


def scaled(df: pd.DataFrame, by: int):
    return df.assign(amount=df['amount'] * by)
"""


def small_frame(rng: np.random.Generator) -> pd.DataFrame:
    words = np.array([f"word {number}" for number in range(1000)])
    return pd.DataFrame(
        {
            "region": words[rng.integers(0, 10, STEP_ROWS)],
            "customer": words[rng.integers(0, 1000, STEP_ROWS)],
            "amount": rng.normal(size=STEP_ROWS),
            "price": rng.integers(0, 1000, STEP_ROWS),
            "number": rng.integers(0, 1_000_000, STEP_ROWS),
            "sold": pd.to_datetime(rng.integers(0, 10**9, STEP_ROWS), unit="s"),
        }
    )


def long_frame(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Return 6 columns of ints, 6 of floats, 4 of text, 2 of times, 2 of truth values; few and many distinct values."""
    words = np.array([f"word {number}" for number in range(1000)])
    columns: dict[str, Any] = {}
    for letter, most in zip("abcdef", (10, 1000, 100_000, rows, 10 * rows, 50), strict=True):
        columns[f"whole_{letter}"] = rng.integers(0, most, rows)
    for place, letter in enumerate("abcdef"):
        value = rng.normal(size=rows)
        value = np.round(value * 100) if place % 2 else value
        value[rng.random(rows) < 0.05] = np.nan
        columns[f"real_{letter}"] = value
    columns["text_a"] = words[rng.integers(0, 10, rows)]
    columns["text_b"] = words[rng.integers(0, 1000, rows)]
    columns["text_c"] = np.char.add("id ", rng.integers(0, rows, rows).astype(str))
    columns["text_d"] = pd.Categorical(words[rng.integers(0, 50, rows)])
    columns["time_a"] = pd.to_datetime(rng.integers(0, 10**9, rows), unit="s")
    columns["time_b"] = pd.to_datetime(rng.integers(0, 3000, rows), unit="D")
    columns["truth_a"], columns["truth_b"] = rng.random(rows) < 0.5, rng.random(rows) < 0.1
    return pd.DataFrame(columns)


class Stepping:
    """Chooser that makes a view each turn, and measures the loop between two choices."""

    name = "stepping"

    def __init__(self) -> None:
        self.steps_ms: list[float] = []
        self._left = 0.0

    def choose(self, turn: Turn) -> dict[str, Any]:
        if turn.number > 1:
            self.steps_ms.append((time.perf_counter() - self._left) * 1000)
        self._left = time.perf_counter()
        if turn.number > STEPS:
            return {"type": "finalize", "finalViewName": "v1"}
        params = {"df": "sales", "by": turn.number}
        intended = {"rows": STEP_ROWS, "columns": ["amount"]}
        op = {"type": "execute_data_op", "tool": "scaled", "params": params, "viewName": f"v{turn.number}"}
        return {**op, "intended": intended}


@contextlib.contextmanager
def timed(owner: type, name: str) -> Iterator[list[float]]:
    """Measure each call of a method, in ms."""
    method, times_ms = getattr(owner, name), []

    def call(*args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            times_ms.append((time.perf_counter() - begun) * 1000)

    setattr(owner, name, call)
    try:
        yield times_ms
    finally:
        setattr(owner, name, method)


def step_costs(rng: np.random.Generator) -> dict[str, float]:
    frame = small_frame(rng)
    own_ms, tools_ms, kept_ms, counting_ms = [], [], [], []
    with tempfile.TemporaryDirectory() as folder, Healkit(Path(folder) / "a.db") as healkit:
        healkit.vault.add("scaled", TOOL)
        healkit.execute("scaled", arguments={"df": frame, "by": 0})
        for _ in range(ROUNDS):
            chooser = Stepping()
            with timed(Runner, "execute_request") as ran, timed(Views, "put") as put:
                decision = healkit.decide("?", {"sales": frame}, tools=["scaled"], chooser=chooser)
            assert decision.ok, decision
            kept = put[1:]  # the first is the caller's frame
            spent = zip(chooser.steps_ms, ran, kept, strict=True)
            own_ms += [step - tool - keep for step, tool, keep in spent]
            tools_ms += ran
            kept_ms += kept
    for _ in range(STEPS):
        begun = time.perf_counter()
        counts_of(frame)
        counting_ms.append((time.perf_counter() - begun) * 1000)
    return {
        "execution_ms": round(statistics.median(tools_ms), 2),
        "keeping_ms": round(statistics.median(kept_ms), 2),
        "counting_beside_ms": round(statistics.median(counting_ms), 2),
        "own_ms": round(statistics.median(own_ms), 2),
        "own_p90_ms": round(statistics.quantiles(own_ms, n=10)[-1], 2),
        "bound_ms": 10,
    }


def metadata_costs(rng: np.random.Generator, rows: int) -> dict[str, float]:
    import duckdb

    frame = long_frame(rng, rows)
    table = pa.Table.from_pandas(frame)  # DuckDB finds it by this name
    sanitizer = Sanitizer.from_config(Config())
    names = KnownNames(sanitizer)

    def ours() -> None:
        names.admit(frame.columns, values_among([frame], list(frame.columns)))
        view_facts("sales", frame, names)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "view.parquet"
        frame.to_parquet(file)
        queries = {"table": "SUMMARIZE SELECT * FROM table_", "file": f"SUMMARIZE SELECT * FROM '{file}'"}
        times: dict[str, list[float]] = {"ours": [], "table": [], "file": []}
        connection = duckdb.connect()
        connection.register("table_", table)
        for _ in range(3):
            begun = time.perf_counter()
            ours()
            times["ours"].append(time.perf_counter() - begun)
            for name, query in queries.items():
                begun = time.perf_counter()
                connection.execute(query).fetchall()
                times[name].append(time.perf_counter() - begun)
    ours_s, table_s, file_s = (statistics.median(times[name]) for name in ("ours", "table", "file"))
    return {
        "rows": rows,
        "columns": len(frame.columns),
        "metadata_s": round(ours_s, 3),
        "summarize_table_s": round(table_s, 3),
        "summarize_file_s": round(file_s, 3),
        "ratio": round(ours_s / table_s, 2),
        "bound": 1.5,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    rows = 10_000_000 if parser.parse_args().full else 1_000_000
    rng = np.random.default_rng(1)
    print(json.dumps({"step": step_costs(rng), "metadata": metadata_costs(rng, rows)}, indent=2))


if __name__ == "__main__":
    main()
