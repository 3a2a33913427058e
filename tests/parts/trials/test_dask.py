"""Trials and searches on Dask's workers."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.contracts.patches import Check, Edit
from healkit.core.contracts.tools import EntryRef
from healkit.errors import ConfigError
from healkit.parts.heal.workbench import Bench, Conditions
from healkit.parts.trials.trials import Trials

pytestmark = [pytest.mark.slow, pytest.mark.requirement("SCALE-2"), pytest.mark.timeout(300)]

#: Keeps a note of each time that it runs, which only a tool without a boundary can. For 40 it waits to be killed, once.
NOTES = """import os, time
def f(n):
    open({path!r}, 'a').write(str(n) + ' ')
    return n if n != 40 else _wait()
def _wait():
    if not os.path.exists({path!r} + '.waits'):
        open({path!r} + '.new', 'w').write(str(os.getpid()))
        os.rename({path!r} + '.new', {path!r} + '.waits')
        time.sleep(60)
    return 40
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two single-thread worker processes; a task that was lost is not run again."""
    import dask
    from distributed import LocalCluster

    with dask.config.set(
        {"distributed.scheduler.allowed-failures": 0}
    ):  # the scheduler reads it as it starts
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster:
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    from distributed import Client

    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@contextmanager
def killed_at_work(client: Any, notes: Path) -> Iterator[None]:
    """Kill the worker whose trial waits for it."""
    workers = set(client.run(os.getpid).values())
    waits = notes.with_name(f"{notes.name}.waits")

    def kill() -> None:
        wait_until(waits.exists)
        above = [one.pid for one in psutil.Process(int(waits.read_text())).parents()]
        (worker,) = workers.intersection(above)
        os.kill(worker, signal.SIGKILL)

    with ThreadPoolExecutor() as killer:
        done = killer.submit(kill)
        yield
        done.result()


def test_results_come_in_order_and_the_same_trial_is_run_each_time(healkit: Healkit, client: Any) -> None:
    executor = client.get_executor()
    chance = "import random\ndef f():\n    return random.random()\n"
    results = healkit.trials([(chance, {})] * 20, executor=executor)
    assert len({result.value for result in results}) == 20
    same = healkit.trials([(chance, {})] * 4, executor=executor, parallel=4)  # four shares of one trial each
    assert len({result.value for result in same}) == 4
    numbers = healkit.trials([("def f(n): return n", {"n": n}) for n in range(100)], executor=executor)
    assert [result.value for result in numbers] == list(range(100))
    assert healkit.log.count(status="SUCCESS") == 124
    assert {row.isolation for row in healkit.log.query(limit=200).rows} <= {"namespaces", "landlock"}


def test_a_killed_worker_loses_only_what_it_had_and_doubles_nothing(tmp_path: Path, client: Any) -> None:
    notes = tmp_path / "notes.txt"
    code = NOTES.format(path=str(notes))
    work = [(code, {"n": n}) for n in range(200)]
    with Healkit(tmp_path / "x.db", config=Config(isolation="process", start_timeout_s=60)) as healkit:
        with killed_at_work(client, notes):
            results = healkit.trials(work, executor=client.get_executor())
        lost = [position for position, result in enumerate(results) if result.lost]
        assert 40 in lost
        assert len(lost) < 150
        assert "KilledWorker" in results[lost[0]].failure.evalue
        assert all(result.value == n for n, result in enumerate(results) if n not in lost)
        ran = Counter(map(int, notes.read_text().split()))
        assert set(ran.values()) == {1}
        assert set(range(200)) - set(ran) <= set(lost)
        rows = healkit.log.query(limit=500).rows
        assert Counter(row.trace_id for row in rows) == Counter(result.trace_id for result in results)
        assert Counter(row.error_code for row in rows) == {None: 200 - len(lost), "WORKER_LOST": len(lost)}

        again = healkit.trials([work[position] for position in lost], executor=client.get_executor())
        assert [result.value for result in again] == lost


def test_a_search_on_a_killed_worker_scores_every_candidate_and_its_row_counts_the_lost(
    tmp_path: Path, client: Any
) -> None:
    notes = tmp_path / "notes.txt"
    code = NOTES.format(path=str(notes)).replace("return n if n != 40 else _wait()", "return n + 0")
    at = code.index("+ 0") + 2
    candidates = [[Edit(at, at + 1, "_wait()" if number == 40 else str(number))] for number in range(1000)]
    checks = [Check(origin="declared", arguments={"n": 1}, known=True, expected=151)]
    with Healkit(tmp_path / "x.db", config=Config(isolation="process", start_timeout_s=60)) as healkit:
        bench = Bench(
            Trials(healkit.recorder, healkit.config), EntryRef("f", "default", 0, ""), 200.0, conditions=Conditions(client.get_executor())
        )  # fmt: skip
        scores = dict[int, str]()
        with killed_at_work(client, notes):  # the limit must not end the trial that waits
            for position, letters in bench.score(code, candidates, checks, limit_s=60.0):
                assert position not in scores
                scores[position] = letters
        assert sorted(scores) == list(range(1000))
        assert [position for position, letters in scores.items() if letters == "."] == [150]
        (row,) = healkit.log.query(origin="search").rows
        assert '"lost":' in row.result_summary


def test_a_cluster_that_is_closed_in_the_middle_ends_the_trials(healkit: Healkit) -> None:
    """Trials waited without an end for a share that was submitted while the cluster was being closed."""
    import dask
    from distributed import Client, LocalCluster

    slow = "import time\ndef f(n):\n    time.sleep(0.05)\n    return n\n"
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        closer = threading.Thread(
            target=lambda: wait_until(lambda: healkit.log.count(status="SUCCESS")) and cluster.close()
        )
        closer.start()
        results = healkit.trials([(slow, {"n": n}) for n in range(200)], executor=client.get_executor())
        closer.join()
    assert [result.value for result in results if not result.lost] == [n for n in range(200) if results[n].ok]
    assert results[0].ok
    assert "was not run" in results[-1].failure.evalue
    assert healkit.log.count() == 200
    assert not healkit.log.count(status="RUNNING")


def test_a_scheduler_that_runs_lost_tasks_again_is_refused_before_anything_is_recorded(
    healkit: Healkit,
) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        with pytest.raises(ConfigError, match="up to 4 times") as refused:
            healkit.trials([("def f(): return 1", {})], executor=client.get_executor())
        assert '"distributed.scheduler.allowed-failures": 0' in refused.value.hint
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        with pytest.raises(ConfigError, match="retries="):
            healkit.trials([("def f(): return 1", {})], executor=client.get_executor(retries=2))
        assert healkit.log.count() == 0
        (result,) = healkit.trials([("def f(): return 1", {})], executor=client.get_executor())
        assert result.value == 1
