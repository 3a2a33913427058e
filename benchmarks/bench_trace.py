"""Cost of a trace for an execution, with tracing on and off.

It is measured on the whole execution path.

Prints one JSON object. An execution is measured with tracing and without, in turns in one process, so that a busy
machine slows both. The median difference of a turn must be below one millisecond. Then the parts are measured: making
and cleaning a trace of an execution with one call, and storing it with the ending. The latter is compared to storing
the ending alone.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from healkit import Config, Healkit
from healkit.core.contracts.execution import CallRecord, Finished, Started, new_trace_id, utc_now
from healkit.core.host import host_identity
from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter
from healkit.parts.sanitizer.sanitizer import Sanitizer
from healkit.parts.traces.trace_collector import Tracer

ROUNDS, WARM_UP, PART_ROUNDS = 100, 10, 1500
#: Time until the next spare worker is ready, in seconds; without it, a worker's start would be measured.
REFILL_S = 0.15
#: Typical arguments and result of a tool, and a tool that only returns.
ARGUMENTS = {"city": "Lisbon", "days": 3, "units": "metric", "notes": "leave the key with the porter"}
TOOL = "def answer(city, days, units, notes):\n    return {'city': city, 'forecast': [17.5, 18.25, 16.0], 'ok': True}\n"
SQL = "SELECT :city AS city, :days AS days, :units AS units, :notes AS notes"


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def compared(folder: Path) -> dict[str, dict[str, float]]:
    """Measure executions in ms, on and off, for a worker and for a SQL tool, which does the least besides."""
    config = {"start_timeout_s": 30.0}
    found: dict[str, dict[str, float]] = {}
    with (
        Healkit(folder / "on.db", config=Config(**config)) as on,
        Healkit(folder / "off.db", config=Config(tracing=False, **config)) as off,
    ):
        for healkit in (on, off):
            healkit.vault.add("worker", TOOL)
            healkit.vault.add("sql", SQL, type="sql")
        for tool, rounds in (("sql", ROUNDS * 4), ("worker", ROUNDS)):
            times: dict[str, list[float]] = {"on": [], "off": []}
            for turn in range(rounds + WARM_UP):
                for name, healkit in (("on", on), ("off", off))[:: 1 if turn % 2 else -1]:
                    time.sleep(REFILL_S if tool == "worker" else 0)
                    times[name].append(timed(lambda: healkit.execute(tool, arguments=ARGUMENTS)))  # noqa: B023 - called at once
            pairs = list(zip(times["on"], times["off"], strict=True))[WARM_UP:]
            found[tool] = {
                "on_ms": round(statistics.median(on_ms for on_ms, _ in pairs), 3),
                "off_ms": round(statistics.median(off_ms for _, off_ms in pairs), 3),
                "difference_ms": round(statistics.median(on_ms - off_ms for on_ms, off_ms in pairs), 3),
            }
    return found


def parts(folder: Path) -> dict[str, float]:
    """Return the microseconds of making a trace, and of storing an ending with it and without."""
    config = Config()
    tracer = Tracer(config, lambda: Sanitizer.from_config(config))
    database = Database(folder / "parts.db")
    writer = LogWriter(database)
    making, with_trace, without = [], [], []
    for _ in range(PART_ROUNDS):
        begun, call, finished = sample()
        collector = tracer.collector(begun)
        collector.add(call)
        started = time.perf_counter()
        whole = collector.conclude(finished)
        making.append((time.perf_counter() - started) * 1e6)
        writer.begin_in_order(begun)
        with_trace.append(timed(lambda: writer.finish(whole)) * 1000)  # noqa: B023 - called at once
        begun, _, finished = sample()
        writer.begin_in_order(begun)
        without.append(timed(lambda: writer.finish(finished)) * 1000)  # noqa: B023 - called at once
    writer.close()
    database.close()
    return {
        "making_us": round(statistics.median(making), 1),
        "ending_with_trace_us": round(statistics.median(with_trace), 1),
        "ending_alone_us": round(statistics.median(without), 1),
    }


def sample() -> tuple[Started, CallRecord, Finished]:
    now = utc_now()
    begun = Started(
        new_trace_id(), now, "answer", "default", json.dumps(ARGUMENTS), "python", host_identity(),
        now + timedelta(seconds=30), revision=1, code_hash="a" * 64, isolation="namespaces",
    )  # fmt: skip
    call = CallRecord(
        begun.trace_id, "t1", "host", "rate", '{"day":3}', now, True, '{"rate":1.5}', duration_ms=0.04
    )
    return begun, call, Finished(begun.trace_id, utc_now(), 41.5, result_summary='{"ok":true}')


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        report = {
            "rounds": ROUNDS,
            "execution": compared(Path(name)),
            "difference_target_ms": 1.0,
            "parts": parts(Path(name)),
        }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
