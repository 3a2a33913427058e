"""Trial servers of this process, and what they run."""

from __future__ import annotations

import contextlib

import psutil
from processes import found_below, running

from healkit.core.runtime import background
from healkit.parts.trials.trialserver import TrialServers


def trial_servers() -> list[psutil.Process]:
    """Return the trial servers of this process and its children, whatever they were started through."""
    found = []
    for process in running(found_below("healkit.parts.trials.trialserver_main")):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() != "bwrap":
                found.append(process)
    return found


def end_trial_servers() -> None:
    """End those that wait for more; fork servers and spares stay, which cost more to start again."""

    async def close() -> None:
        for pool in background._pools.values():
            await pool.companion(TrialServers).close()

    background.loop.submit(close()).result(timeout=30)


def children_of_trial_servers() -> list[psutil.Process]:
    """Those that run code now."""
    found, children = trial_servers(), []
    pids = {process.pid for process in found}
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):  # a quick trial ends between the two looks
            if process.ppid() in pids:
                children.append(process)
    return children


def worker_processes() -> list[psutil.Process]:
    """Return every process of this one that holds a worker, a fork server or a trial server."""
    return found_below("healkit.core.workers")
