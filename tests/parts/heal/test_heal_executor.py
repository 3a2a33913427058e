"""Healing with an executor."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from trusted import trusted_copy

from healkit import Healkit
from healkit.parts.heal.report import HealReport

#: One mistake, `abs` left out, and examples that show it.
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


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Executor]:
    # IPython, in a test before this one, may have left a __main__ that multiprocessing cannot do with.
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as started:
        yield started


@pytest.fixture
def cluster() -> Iterator[Executor]:
    """Start two workers of Dask."""
    import dask
    from distributed import Client, LocalCluster

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        yield client.get_executor()


def healed(database: Path, **more: Any) -> HealReport:
    with Healkit(database) as healkit:
        healkit.vault.add("furthest", BROKEN, examples=EXAMPLES)
        healkit.execute("furthest", arguments={"numbers": [1, -3]})
        return healkit.heal("furthest", advisors=["search"], budget_s=60, **more)


def told(report: HealReport) -> dict[str, Any]:
    """Return all that a report says, but for times and names of its own."""
    return {
        "outcome": report.outcome,
        "reason": report.reason.partition(" request ")[0],
        "diagnosis": report.diagnosis,
        "attempts": [
            (attempt.patch.code, attempt.patch.reason, attempt.verdict, [one.outcome for one in attempt.results])
            for attempt in report.attempts
        ],
        "best": report.best and report.best.patch.code,
        "checks": report.checks,
        "questions": report.questions,
        "notes": report.notes,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.requirement("SCALE-2")
def test_a_healing_reports_the_same_in_processes(
    tmp_path: Path, empty_database: Path, processes: Executor
) -> None:
    here = healed(trusted_copy(empty_database, tmp_path / "here.db"))
    away = healed(trusted_copy(empty_database, tmp_path / "away.db"), executor=processes)
    assert here.best is not None
    assert "abs(number)" in here.best.patch.code
    assert told(away) == told(here)
    with Healkit(tmp_path / "away.db") as healkit:
        assert healkit.log.count(status="RUNNING") == 0
        assert healkit.log.query(origin="search", limit=100).rows


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.requirement("SCALE-2")
def test_stop_and_budget_end_candidates_that_hang_elsewhere(healkit: Healkit, cluster: Executor) -> None:
    hangs = "def f(n):\n    while n != 3:\n        n = n + 0\n    return n\n"
    no_rule = enumerate([31, 4, 159, 26, 535])  # so that the search does not end by itself
    healkit.vault.add("f", hangs, examples=[{"arguments": {"n": n}, "result": r} for n, r in no_rule])
    healkit.execute("f", arguments={"n": 1}, timeout=1)
    began = time.monotonic()
    report = healkit.heal("f", advisors=["search"], budget_s=12, executor=cluster)
    assert time.monotonic() - began < 80  # the code itself never ends
    assert report.candidates_tried > 0
    stop = threading.Event()
    threading.Timer(1.0, stop.set).start()
    began = time.monotonic()
    healkit.heal("f", advisors=["search"], budget_s=200, executor=cluster, stop=stop)
    assert time.monotonic() - began < 100
    assert healkit.log.count(status="RUNNING") == 0
