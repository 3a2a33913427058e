"""Simulation of hosts on one database."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from bench_capacity import Model, simulated

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCALE_6 = pytest.mark.requirement("SCALE-6")


def model(
    own_s: float, commit: tuple[float, float], fork_s: float, worker_s: float, idle_s: float = 0.0
) -> Any:
    """Make a model whose times do not vary; own_s is with the two commits."""
    made = Model.__new__(Model)
    made.own, made.begin, made.finish, made.fork = [own_s], [commit], [commit], [fork_s]
    made.worker_s, made.idle_s, made.after_s, made.server_s = worker_s, idle_s, 0.0, 0.0
    made.crowding, made.share = 1.0, 1.0
    return made


@SCALE_6
def test_a_host_that_does_one_thing_after_another_is_as_quick_as_their_sum() -> None:
    serial = model(0.004, (0.001, 0.001), 0.0, 0.006, idle_s=0.010)
    assert simulated(serial, 1, 8, 0.0, one_writer=True) == pytest.approx(1 / 0.020, rel=0.02)


@SCALE_6
def test_hosts_that_fill_the_cores_share_them() -> None:
    busy = model(0.004, (0.001, 0.001), 0.010, 0.006)
    for many in (4, 8):
        assert simulated(busy, many, 2, 0.0, one_writer=False, seconds=5) == pytest.approx(
            2 / 0.020, rel=0.05
        )
    assert simulated(busy, 8, 4, 0.0, one_writer=False, seconds=5) == pytest.approx(4 / 0.020, rel=0.05)


@SCALE_6
def test_one_writer_bounds_any_number_of_hosts() -> None:
    writes = model(0.002, (0.003, 0.001), 0.0, 0.0)
    assert simulated(writes, 16, 64, 0.0, one_writer=True, seconds=1) == pytest.approx(1 / 0.006, rel=0.06)
    assert simulated(writes, 16, 64, 0.0, one_writer=False, seconds=1) > 5_000


@SCALE_6
def test_other_programs_take_their_share_of_a_core() -> None:
    work = model(0.010, (0.0, 0.0), 0.0, 0.010)
    alone = simulated(work, 1, 1, 0.0, one_writer=False, seconds=5)
    assert simulated(work, 1, 1, 1.0, one_writer=False, seconds=5) == pytest.approx(alone / 2, rel=0.05)
    assert simulated(work, 1, 1, 0.5, one_writer=False, seconds=5) == pytest.approx(alone / 1.5, rel=0.1)


@SCALE_6
def test_what_a_lone_host_waits_for_is_found_again() -> None:
    wanted = model(0.004, (0.001, 0.001), 0.010, 0.006, idle_s=0.007)
    rate = simulated(wanted, 1, 2, 0.0, one_writer=True, seconds=10)
    fitted = model(0.004, (0.001, 0.001), 0.010, 0.006)
    fitted.fit(rate, 2, 0.0, one_writer=True)
    assert fitted.idle_s == pytest.approx(0.007, abs=0.001)


@SCALE_6
@pytest.mark.slow  # it starts hosts
@pytest.mark.timeout(300)
def test_the_benchmark_measures_and_simulates_with_one_command() -> None:
    command = [sys.executable, str(BENCHMARKS / "bench_capacity.py"), "--seconds", "2", "--hosts", "1"]
    done = subprocess.run(
        [*command, "--databases", "sqlite"], capture_output=True, text=True, timeout=250, check=True
    )
    found = json.loads(done.stdout)
    (row,) = found["table"]
    assert row["measured_per_s"] > 1
    assert row["simulated_per_s"] > 0
    costs = found["costs"]["sqlite"]
    assert all(
        costs[name] > 0 for name in ("execution_cpu_ms", "fork_cpu_ms", "row_ms", "trace_cpu_ms", "bytes")
    )
