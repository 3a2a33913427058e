"""Identity of this process, and whether another one lives."""

from __future__ import annotations

import os
import socket
from functools import cache
from hashlib import blake2b
from pathlib import Path

from healkit.core.contracts.execution import HostIdentity


def host_identity() -> HostIdentity:
    """Return this process's identity; cheap after the first call, and correct after a fork."""
    return _identity_of(os.getpid())


@cache
def _identity_of(pid: int) -> HostIdentity:
    ticks = process_start_ticks(pid) or 0
    return HostIdentity(socket.gethostname(), boot_id(), pid, ticks, pid_namespace())


def process_of(host: HostIdentity) -> str:
    """Return a short name of that process: a hash that identifies it and reveals nothing else."""
    facts = (host.hostname, host.boot_id, host.pid_namespace, host.pid, host.started_ticks)
    return blake2b(repr(facts).encode(), digest_size=6).hexdigest()


@cache
def pid_namespace() -> str:
    """Return the kernel's name of this process's pid namespace; empty if it cannot be read."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


@cache
def boot_id() -> str:
    """Return the kernel's id of this boot; empty if it cannot be read."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_start_ticks(pid: int) -> int | None:
    """Return when that process started, in clock ticks since boot (field 22 of proc(5) stat); None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in field 2 may contain spaces and parentheses; the text after the last parenthesis is safe to
    # split.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def is_alive(host: HostIdentity) -> bool | None:
    """Return whether that process is still running; None if it ran on another machine or in another container."""
    if host.hostname != socket.gethostname():
        return None
    if host.boot_id != boot_id():
        return False
    if host.pid_namespace not in {"", pid_namespace()}:
        return None  # the same id here is another process
    if not Path("/proc/self/stat").exists():
        return _answers_signals(host.pid)
    return process_start_ticks(host.pid) == host.started_ticks


def _answers_signals(pid: int) -> bool:
    """Return True if a process with that id exists; without /proc, no more can be known."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
