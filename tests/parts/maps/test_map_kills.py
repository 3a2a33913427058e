"""Maps with kills, and other executors."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import found_below

from healkit import Healkit

pytestmark = [pytest.mark.slow, pytest.mark.requirement("SCALE-4", "SCALE-2"), pytest.mark.timeout(600)]

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def test_no_input_is_lost_and_none_has_an_effect_twice() -> None:
    command = [sys.executable, str(BENCHMARKS / "soak_maps.py"), "--inputs", "150", "--kills", "3"]
    done = subprocess.run(
        [*command, "--seed", str(os.getpid())], capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["square"]["ends"] == {"SUCCESS": 150}
    assert (report["append"]["twice"], report["append"]["lost"]) == (0, 0)


def test_a_trial_server_that_is_killed_costs_nothing(healkit: Healkit) -> None:
    healkit.vault.add("slow", "import time\ndef slow(n: int):\n    time.sleep(0.02)\n    return n\n")
    killed: list[int] = []

    def kill(progress: Any) -> None:
        if progress.done > 45 * (len(killed) + 1) and len(killed) < 3:
            servers = found_below("trialserver")
            with contextlib.suppress(psutil.NoSuchProcess):  # one has just ended: the next time
                for outermost in [one for one in servers if one.parent() not in servers][:1]:
                    outermost.kill()
                    killed.append(outermost.pid)

    report = healkit.map("slow", range(200), progress=kill)
    assert len(killed) == 3
    assert not report.groups, str(report)
    assert (report.done, report.failed) == (200, 0)


def test_loky_does_the_same(healkit: Healkit) -> None:
    from joblib.externals.loky import get_reusable_executor

    healkit.vault.add("inverse", "def inverse(n: int):\n    return 1 / n\n")
    executor = get_reusable_executor(max_workers=2)
    try:
        report = healkit.map("inverse", range(200), executor=executor)
        assert (report.done, report.failed) == (200, 1)
    finally:
        executor.shutdown(kill_workers=True)


def test_a_process_of_a_pool_that_is_killed_ends_the_map_which_goes_on(healkit: Healkit) -> None:
    from concurrent.futures import ProcessPoolExecutor

    from healkit.errors import WorkerError

    healkit.vault.add("slow", "import time\ndef slow(n: int):\n    time.sleep(0.02)\n    return n\n")
    ids: list[str] = []
    with ProcessPoolExecutor(2) as executor:

        def kill(progress: Any) -> None:
            if progress.done > 20 and not ids:
                ids.append(progress.run_id)
                os.kill(next(iter(executor._processes)), signal.SIGKILL)

        with pytest.raises(WorkerError, match="executor"):
            healkit.map("slow", range(2000), executor=executor, progress=kill)
    assert not healkit.log.running()
    with ProcessPoolExecutor(2) as executor:
        report = healkit.map("slow", range(2000), executor=executor, run_id=ids[0], progress=False)
    assert (report.done, report.failed) == (2000, 0)
    assert report.earlier >= 20
    assert report.to_pandas()["result"].tolist() == list(range(2000))
