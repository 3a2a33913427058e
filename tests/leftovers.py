"""Processes that a run of the tests left behind.

Each process that a test starts inherits an environment variable with this run's name. A worker has a clean environment,
whose home is a folder that is named after its host; one whose host is gone should be gone too.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterable

import psutil

_VARIABLE = "HEALKIT_TEST_RUN"
_HOST = re.compile(r"/healkit-\d+/(\d+)-\d+-\d+/")
#: Python's own: a process that has used `multiprocessing` has one until its very end.
_TRACKER = "from multiprocessing.resource_tracker import main"
#: Time for the last test's processes to end: a busy machine takes a sandbox down slowly.
_GRACE_S = 30.0


def mark_this_run() -> None:
    """Name this run, unless a process that shares out the tests has done so."""
    os.environ.setdefault(_VARIABLE, uuid.uuid4().hex)


def leftovers() -> list[str]:
    """Describe each process of this run that is still there after a short grace."""
    until = time.monotonic() + _GRACE_S
    while found := list(_of_this_run()):
        if time.monotonic() > until:
            return [_described(process, command) for process, command in found]
        time.sleep(0.1)
    return []


def _described(process: psutil.Process, command: str) -> str:
    try:
        below = [f"{child.pid} {child.status()}" for child in process.children(recursive=True)]
        state, home = process.status(), process.environ().get("HOME", "")
    except psutil.Error:
        return f"{process.pid}, which has ended since: {command}"
    age_s = time.time() - process.create_time()
    return (
        f"{process.pid}, {state}, {age_s:.0f} s old, of {process.ppid()} ({home}), above {below}: {command}"
    )


def _of_this_run() -> Iterable[tuple[psutil.Process, str]]:
    here = psutil.Process()
    own = {here.pid, *(parent.pid for parent in here.parents())}
    for process in psutil.process_iter():
        if process.pid in own:
            continue
        try:
            environment = process.environ()
            host = _HOST.search(environment.get("HOME", ""))
            orphan = host is not None and (
                int(host[1]) == here.pid
                or (not psutil.pid_exists(int(host[1])) and process.create_time() >= here.create_time())
            )
            if orphan or environment.get(_VARIABLE) == os.environ[_VARIABLE]:
                command = " ".join(process.cmdline())
                if process.status() != psutil.STATUS_ZOMBIE and not (
                    _TRACKER in command and process.ppid() == here.pid
                ):
                    yield process, command[:300]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
