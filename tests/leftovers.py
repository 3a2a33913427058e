"""Processes that a run of the tests left behind.

Each process that a test starts inherits an environment variable with this run's name. A worker that was forked from
another keeps the environment of its parent in `/proc`, so it is found too.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable

import psutil

_VARIABLE = "HEALKIT_TEST_RUN"
#: What was told to end as the last test ended may take this long.
_GRACE_S = 5.0


def mark_this_run() -> None:
    """Name this run, unless a process that shares out the tests has done so."""
    os.environ.setdefault(_VARIABLE, uuid.uuid4().hex)


def leftovers() -> list[str]:
    """Describe each process of this run that is still there after a short grace."""
    until = time.monotonic() + _GRACE_S
    while found := list(_of_this_run()):
        if time.monotonic() > until:
            return [f"{process.pid}: {command}" for process, command in found]
        time.sleep(0.1)
    return []


def _of_this_run() -> Iterable[tuple[psutil.Process, str]]:
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        if process.pid in own:
            continue
        try:
            if process.environ().get(_VARIABLE) == os.environ[_VARIABLE]:
                command = " ".join(process.cmdline())
                if process.status() != psutil.STATUS_ZOMBIE:
                    yield process, command[:300]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
