"""Cost of learning.

    python benchmarks/learn/cost.py [--traces 1000000] [--tools 1000]

Traces are written to the table as an execution writes them, with three calls in each; the rest is healkit's own code.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import insert

from healkit import Healkit
from healkit.core.store.models import TRACES
from healkit.parts.traces.contract import ExecutionTrace, TaskResult, capability_id_of, encode_trace

_CHUNK = 5000
_START = datetime(2026, 1, 1, tzinfo=UTC)


def main(argv: list[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--tools", type=int, default=1000)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, Healkit(Path(folder) / "healkit.db") as healkit:
        print(f"an execution with the thread at work over one without: {execution_ratio(healkit):.2f}x")
        healkit.learning_thread.close()  # what it learns now is not what is measured
        fill(healkit, given.traces, given.tools)
        began = time.perf_counter()
        many = healkit.learning.rebuild()
        took_s = time.perf_counter() - began
        print(f"{many:,} traces rebuilt in {took_s:.0f} s, {1000 * took_s / many:.3f} ms each")
        fill(healkit, 2000, given.tools, seed=1)
        began = time.perf_counter()
        more = healkit.learning.catch_up()
        print(f"{more:,} more consumed in {1000 * (time.perf_counter() - began) / more:.3f} ms each")
        for name, ask in questions(healkit).items():
            print(f"{name}: {median_ms(ask):.1f} ms (first {once_ms(ask):.1f})")


def questions(healkit: Healkit) -> dict[str, Callable[[int], object]]:
    """Return what is asked, each with a number that differs from time to time."""
    return {
        "a sample of 1,000": lambda n: healkit.learning.sample(1000, seed=n),
        "a sample of 1,000 of one tool": lambda n: healkit.learning.sample(1000, seed=n, tool=f"tool_{n}"),
        "a suggestion among the tools": lambda n: healkit.suggest(after=[f"shop:call_{n}"], k=5),
        "a suggestion for an intent": lambda n: healkit.suggest(
            f"total of order {n}", after=[f"shop:call_{n}"]
        ),
        "the ten most surprising": lambda _: healkit.learning.surprising(10),
    }


def execution_ratio(healkit: Healkit) -> float:
    """Return the median ratio of pairs of 50 executions: with a consumer that is called all the time, and without."""
    healkit.vault.add("adds", "def adds(n):\n    return n + 1\n")
    healkit.execute("adds", arguments={"n": 0})

    def run(*, learning: bool) -> float:
        began = time.perf_counter()
        for n in range(50):
            healkit.execute("adds", arguments={"n": n})
        took_s = time.perf_counter() - began
        if learning:
            healkit.learning.catch_up()
        return took_s

    return statistics.median(run(learning=True) / run(learning=False) for _ in range(10))


def fill(healkit: Healkit, count: int, tools: int, seed: int = 0) -> None:
    """Write traces as executions write them."""
    dice = random.Random(seed)
    made = traces(dice, count, tools)
    while chunk := [row for _, row in zip(range(_CHUNK), made, strict=False)]:
        with healkit.database.write() as session:
            session.execute(insert(TRACES), chunk)


def traces(dice: random.Random, count: int, tools: int) -> Iterator[dict[str, object]]:
    """Yield rows: tools that fail at their own rates and make three calls; each is followed by one of four, mostly."""
    tool = 0
    for number in range(count):
        follows = dice.random() < 0.95
        tool = (31 * tool + dice.randrange(4)) % tools if follows else dice.randrange(tools)
        when = _START + timedelta(seconds=number)
        failed = dice.random() < (tool % 10) / 12
        first = (7 * tool + dice.randrange(4)) % tools
        trace_id = str(uuid.UUID(int=dice.getrandbits(128), version=4))
        calls = [
            TaskResult(
                f"t{step + 1}", f"shop:call_{(first + step * step) % tools}",
                {"order": f"order-{number}-{step}"}, {"order": f"order-{number}-{step + 1}", "total": number},
                1.0, not (failed and step == 2), when + timedelta(milliseconds=2 * step),
            )
            for step in range(3)
        ]  # fmt: skip
        capability = capability_id_of("local", "bench", "default", f"tool_{tool}", f"{tool:064x}"[::-1])
        metadata = {
            "tool": f"tool_{tool}",
            "persona": "default",
            "origin": "python",
            "arguments": {"n": number},
        }
        trace = ExecutionTrace(
            trace_id, None, capability, not failed, "ValueError: 3" if failed else None, 9.0, when, calls, [],
            metadata | ({"errorCode": "TOOL_EXCEPTION"} if failed else {}),
        )  # fmt: skip
        yield {
            "trace_id": trace_id, "wire": encode_trace(trace).decode(), "state": "local", "attempts": 0,
            "reason": "", "created_at": when, "queued_at": when,
        }  # fmt: skip


def median_ms(ask: Callable[[int], object], times: int = 30) -> float:
    """Return the median time of a question."""
    return statistics.median(once_ms(ask, n + 1) for n in range(times))


def once_ms(ask: Callable[[int], object], number: int = 0) -> float:
    """Return the time of a question."""
    began = time.perf_counter()
    ask(number)
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    main()
