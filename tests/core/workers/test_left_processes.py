"""Processes of workers that are killed as they start."""

from __future__ import annotations

import random
from pathlib import Path

import psutil
import pytest
from programs import python
from waiting import wait_until

#: Starts a worker's process that never ends by itself, and kills it when there are so many processes, or kills this host
#: after so many seconds.
STARTED = """
import asyncio, os, signal, sys, time
from pathlib import Path
from healkit.core.workers.process import family, spawn
from healkit.core.workers.sandbox import RunFolders, Sandbox

async def start(base, killed, when):
    folders = RunFolders(base)
    sandbox = Sandbox("namespaces", folders.next().create())
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    sandbox.command(command)  # what it looks up is kept
    process = spawn(sandbox, command, (), sandbox.environment(None))
    if killed == "host":
        time.sleep(when)
        os.kill(os.getpid(), signal.SIGKILL)
    while len(started := list(family(process.pid))) < when:
        pass
    os.kill(started[1], signal.SIGSTOP)
    process.kill()
    await process.exited
    folders.close()

asyncio.run(start(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
"""


def left(base: Path) -> list[int]:
    """List the processes whose home is below a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME", "").startswith(f"{base}/"):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.requirement("SAFE-3")
@pytest.mark.parametrize("processes", [2, 3])
def test_a_worker_that_is_killed_as_it_starts_leaves_no_process(processes: int, tmp_path: Path) -> None:
    """bubblewrap's own child waited forever for the one that was killed."""
    for _ in range(3):
        done = python(STARTED, tmp_path, "worker", processes)
        assert done.returncode == 0, done.stderr
    wait_until(lambda: not left(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.requirement("SAFE-3")
def test_a_host_that_is_killed_as_a_worker_starts_leaves_no_process(tmp_path: Path) -> None:
    """Of 60 hosts that were killed within 12 ms, 58 left a worker that had to notice it by itself."""
    for _ in range(10):
        assert python(STARTED, tmp_path, "host", random.uniform(0, 0.012)).returncode == -9
    wait_until(lambda: not left(tmp_path))
    wait_until(lambda: not list(tmp_path.iterdir()))
