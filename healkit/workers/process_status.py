"""Restrictions of a process, as the kernel shows them.

A worker's own report is a claim, made before it got any code. What /proc shows of it is not: the seccomp filter, the
capabilities, the namespaces and the limits. The Landlock domain is shown nowhere. Where a part cannot be read (a hidden
/proc, another user's process), the report alone counts.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

from healkit.config import MIB
from healkit.workers.inside.lockdown import children_of
from healkit.workers.sandbox import Sandbox

#: bubblewrap makes these in any case; a cgroup namespace only where the kernel has it.
_NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts")


def not_in_force(sandbox: Sandbox, pid: int) -> list[str]:
    """Return what the kernel shows to be missing in the worker that this process is, or is bubblewrap of."""
    while children := children_of(pid):
        pid = children[0]
    return [
        *_status(pid),
        *_limits(pid, sandbox),
        *(_namespaces(pid) if sandbox.tier == "namespaces" else ()),
    ]


def family(pid: int) -> Iterator[int]:
    """Yield the process and all below it, as far as the kernel tells."""
    waiting, seen = [pid], set[int]()
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            yield number
            waiting += children_of(number)


def pid_of(pidfd: int) -> int | None:
    """Return the id, in our namespace, of the process behind a handle; None if it has gone."""
    try:
        found = _fields(f"/proc/self/fdinfo/{pidfd}").get("Pid", "-1")
    except OSError:
        return None
    return int(found) if int(found) > 0 else None


def _fields(path: str) -> dict[str, str]:
    with open(path) as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def _status(pid: int) -> Iterator[str]:
    """Yield what is missing by its status; the filters of a container are the host's too, and do not count."""
    try:
        found, own = _fields(f"/proc/{pid}/status"), _fields("/proc/thread-self/status")
    except OSError:
        return
    if int(found.get("NoNewPrivs", "1")) != 1:
        yield "no_new_privs: not set"
    if int(found.get("Seccomp", "2")) != 2 or _filters(found, 1) <= _filters(own, 0):
        yield "seccomp: no filter is in force"
    if any(int(found.get(name, "0"), 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")):
        yield "capabilities: some are left"


def _filters(status: dict[str, str], unknown: int) -> int:
    return int(status.get("Seccomp_filters", unknown))  # since Linux 5.9


def _limits(pid: int, sandbox: Sandbox) -> Iterator[str]:
    try:
        sizes = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        files = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    except (OSError, ValueError):
        return
    if not all(0 <= size <= sandbox.scratch_mb * MIB for size in sizes):
        yield "rlimits: the size of a file is not limited"
    if not all(0 <= count <= sandbox.open_files for count in files):
        yield "rlimits: the number of open files is not limited"


def _namespaces(pid: int) -> Iterator[str]:
    for name in _NAMESPACES:
        try:
            shared = os.stat(f"/proc/{pid}/ns/{name}").st_ino == os.stat(f"/proc/self/ns/{name}").st_ino
        except OSError:
            continue
        if shared:
            yield f"namespaces: {name} is the host's"
