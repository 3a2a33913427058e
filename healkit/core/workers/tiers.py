"""Isolation tiers: probes, checks of workers, disk limits.

To probe a tier, its sandbox is built, and a process in it tries what must be impossible. Feature flags and error texts
are not trusted. A tier counts if everything that it promises to stop was denied.

A worker's own report, made before it got any code, is not proof. What /proc shows of it is: the seccomp filter, the
capabilities, the namespaces and the limits. The Landlock domain is not shown anywhere. If a part cannot be read (a
hidden /proc, another user's process), only the report counts.

In the `namespaces` tier, the scratch folder is a mount with a limited size. In the other tiers, it is on the host's
disk, and the host counts its contents regularly. It walks the folders by descriptors, so neither a long path nor deep
folders end the count. What the host cannot read counts as too much. Between two counts, a worker can write more than
its limit, as fast as the disk is. The most is the limit of a file's size times its open files.
"""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import functools
import itertools
import os
import re
import resource
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from healkit.config import MIB, Config
from healkit.core.workers.inside.cleanup import children_of
from healkit.core.workers.inside.probe_main import Report, Targets
from healkit.core.workers.process import family
from healkit.core.workers.sandbox import SCRATCH_FILES, RunFolder, Sandbox, Tier, passing_folder
from healkit.errors import IsolationUnavailable, WorkerNotRestricted

_TIMEOUT_S = 20.0

_NEVER_STOPPED = (
    "a bug in the Linux kernel itself",
    "reading the installed Python packages and system libraries",
    "learning about the machine: its kernel, processors, memory and load",
    "using up to its limits of memory and processor time beside you",
    "leaving anything in a folder that you let it write: links to elsewhere, programs, files with any content",
    "locking a file that it may read or write, which other programs may wait for",
    "filling the kernel's memory with locks of a file that you let it read or write",
    "holding up to 16 MiB of the kernel's memory in pipes, and 64 MiB in socket pairs",
    "sending a misleading result: what a tool returns is its own claim",
)
#: What each tier does not stop, in plain words; `healkit doctor` and docs/isolation.md say the same.
NOT_STOPPED: dict[Tier, tuple[str, ...]] = {
    "namespaces": (*_NEVER_STOPPED,),
    "landlock": (
        *_NEVER_STOPPED,
        "learning whether a path exists, with its size, times and permissions (not its content), and the host's name",
        "writing more than its scratch folder may hold for the fifth of a second until the host counts again",
    ),
    "process": ("anything that your own user account may do: this tier is not a boundary",),
}


@dataclasses.dataclass(frozen=True)
class TierReport:
    """Tier on this machine: whether it works, what its process reported, and why it does not work."""

    tier: Tier
    holds: bool
    layers: dict[str, str]
    attempts: dict[str, str]
    problem: str = ""


@functools.cache
def probe(tier: Tier) -> TierReport:
    """Build that tier once and try it; takes about a tenth of a second, cached for this process."""
    if sys.platform != "linux":
        return TierReport(
            tier, tier == "process", {}, {}, "only Linux has what the isolating tiers are made of"
        )
    with passing_folder() as root:
        return _try_tier(tier, root)


def achieved_tier(config: Config) -> Tier:
    """Return the tier for executions; raise `IsolationUnavailable` if the requested one does not work."""
    if config.isolation == "process":
        return "process"
    wanted: tuple[Tier, ...] = (
        ("namespaces", "landlock") if config.isolation == "auto" else (config.isolation,)
    )
    reports = [probe(tier) for tier in wanted]
    for report in reports:
        if report.holds:
            return report.tier
    problems = "; ".join(f"{report.tier}: {report.problem}" for report in reports)
    raise IsolationUnavailable(
        f"This machine cannot restrict a worker ({problems}), so no tool is run.",
        hint="`healkit doctor` shows what is missing. To run tools without a boundary, set "
        "HEALKIT_ISOLATION=process; every result will say so.",
    )


#: Layers without which a tier does not hold.
_NEEDED: dict[Tier, tuple[str, ...]] = {
    "namespaces": ("seccomp", "rlimits"),
    "landlock": ("landlock", "seccomp", "rlimits"),
    "process": (),
}


def _missing(needed: Iterable[str], layers: dict[str, str]) -> list[str]:
    """Return those that were not reported to be in force, each with its report."""
    return [
        f"{name}: {layers.get(name, 'not reported')}"
        for name in needed
        if layers.get(name, "failed").startswith("failed")
    ]


def require_restricted(sandbox: Sandbox, layers: dict[str, str], pid: int) -> None:
    """Check a worker before any code is sent to it; raise `WorkerNotRestricted`.

    It must report every layer that the probe of its tier found in force, and the kernel must confirm what it shows.
    `pid` is that of the started process. Call it on a thread, because it blocks for about a millisecond.
    """
    if sandbox.tier == "process":
        return
    probed_layers = probe(sandbox.tier).layers
    promised = dict.fromkeys(
        [*_NEEDED[sandbox.tier], *[n for n, state in probed_layers.items() if not state.startswith("failed")]]
    )
    lacking = [*_missing(promised, layers), *not_in_force(sandbox, pid)]
    if lacking:
        raise WorkerNotRestricted(
            f"A worker was ended before it got any code: it lacked a part of the {sandbox.tier!r} tier "
            f"({'; '.join(lacking)}).",
            hint="`healkit doctor` tries each layer. A memory shortage can be the cause: try again.",
        )


def _try_tier(tier: Tier, root: Path) -> TierReport:
    secret = root / "host" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("a file of the host's")
    sandbox = Sandbox(tier, RunFolder(root / "run").create())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, socket.socket() as unused:
        listener.bind(str(root / "host" / "socket"))
        listener.listen(1)
        targets = Targets(str(secret), str(secret.parent), str(root / "host" / "socket"), os.getpid())
        argument = msgspec.json.encode(targets).decode()
        try:
            done = subprocess.run(
                sandbox.command([sys.executable, "-m", "healkit.core.workers.inside.probe_main", argument]),
                env=sandbox.environment(unused.fileno()),
                cwd=sandbox.folder.scratch,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            report = msgspec.json.decode(done.stdout, type=Report)
        except (OSError, subprocess.TimeoutExpired) as error:
            return TierReport(tier, False, {}, {}, str(error))
        except msgspec.DecodeError:
            error_lines = done.stderr.decode(errors="replace").strip().splitlines()
            return TierReport(
                tier,
                False,
                {},
                {},
                error_lines[-1] if error_lines else f"it ended with status {done.returncode}",
            )
    return _judge(tier, report)


def _judge(tier: Tier, report: Report) -> TierReport:
    """Decide whether a tier holds: its layers are in force, and nothing that it promises to stop was possible."""
    failed = _missing(_NEEDED[tier], report.layers)
    open_doors = (
        [] if tier == "process" else [name for name, got in report.attempts.items() if got != "denied"]
    )
    problem = "; ".join([*failed, *(f"a worker could {name}" for name in open_doors)])
    return TierReport(tier, not problem, report.layers, report.attempts, problem)


# Restrictions of a process, as the kernel shows them.


_SHOWN = re.compile(r"^(NoNewPrivs|Seccomp|Seccomp_filters|Cap\w+):\s*(\w+)$", re.MULTILINE)
#: Namespaces that bubblewrap always makes; it makes a cgroup namespace only if the kernel supports it.
_NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts")


def not_in_force(sandbox: Sandbox, pid: int) -> list[str]:
    """Return the restrictions that this worker lacks according to the kernel; the process may be its bubblewrap."""
    while children := children_of(pid):
        pid = children[0]
    return [
        *_status(pid),
        *_limits(pid, sandbox),
        *(_namespaces(pid) if sandbox.tier == "namespaces" else ()),
    ]


def _shown(process: str) -> dict[str, str]:
    with open(f"/proc/{process}/status") as file:
        return dict(_SHOWN.findall(file.read()))


def _status(pid: int) -> Iterator[str]:
    """Yield missing restrictions, by its status; filters of a container apply to the host too, and do not count."""
    try:
        worker_status, host_status = _shown(str(pid)), _shown("thread-self")
    except OSError:
        return
    if worker_status.get("NoNewPrivs", "1") != "1":
        yield "no_new_privs: not set"
    # The filters are counted since Linux 5.9.
    added = int(worker_status.get("Seccomp_filters", 1)) > int(host_status.get("Seccomp_filters", 0))
    if worker_status.get("Seccomp", "2") != "2" or not added:
        yield "seccomp: no filter is in force"
    sets = (
        worker_status.get("CapEff", ""),
        worker_status.get("CapPrm", ""),
        worker_status.get("CapInh", ""),
        worker_status.get("CapAmb", ""),
    )
    if "".join(sets).strip("0"):
        yield "capabilities: some are left"


def _limits(pid: int, sandbox: Sandbox) -> Iterator[str]:
    try:
        sizes = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        files = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    except (OSError, ValueError):
        return
    if min(sizes) < 0 or max(sizes) > sandbox.scratch_mb * MIB:
        yield "rlimits: the size of a file is not limited"
    if min(files) < 0 or max(files) > sandbox.open_files:
        yield "rlimits: the number of open files is not limited"


def _namespaces(pid: int) -> Iterator[str]:
    for name in _NAMESPACES:
        try:
            shared = os.stat(f"/proc/{pid}/ns/{name}").st_ino == os.stat(f"/proc/self/ns/{name}").st_ino
        except OSError:
            continue
        if shared:
            yield f"namespaces: {name} is the host's"


# Size limit of a scratch folder, checked by the host.


#: Pause between two checks, in seconds; longer if a check takes long, within limits.
LOOK_EVERY_S = 0.2
_PAUSE_PER_LOOK, _LONGEST_PAUSE_S = 3.0, 2.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Maximum number of counts that are interrupted because a folder was moved.
_COUNTS = 5
#: Errors for a folder that was removed, or replaced by a file or a link.
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
#: Shortages of the host, which are not a worker's fault.
_HOSTS_OWN = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class _CannotLook(Exception):
    """Raised for a file that takes space but whose size cannot be read."""


class _MovedElsewhere(Exception):
    """Raised if a folder has another parent than the one from which it was entered."""


async def until_over(
    sandbox: Sandbox, layers: dict[str, str], pid: int, work: Callable[[], object | None] = lambda: True
) -> None:
    """Return when a worker has written more than it may; never, if the kernel enforces the limit.

    work: Called before and after each check; returns the current work, None while nothing can be written. A check that
        began in one piece of work and ended in another is ignored.
    """
    if is_bounded(sandbox, layers):
        await asyncio.get_running_loop().create_future()
    pause_s = LOOK_EVERY_S
    while True:
        await asyncio.sleep(pause_s)
        if (current_work := work()) is not None:
            began = time.perf_counter()
            if await look(sandbox, pid) and work() is current_work:
                return
            pause_s = pause_after(time.perf_counter() - began)


async def look(sandbox: Sandbox, pid: int) -> bool:
    """Return `is_over`, from a thread only for checks: other work, such as removing folders, must not delay them."""
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads(), is_over, sandbox, pid)
    except RuntimeError:  # the interpreter is ending, and so are the workers
        return False


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2, "healkit-disk")


os.register_at_fork(after_in_child=_threads.cache_clear)  # its threads do not exist in the child


def pause_after(took_s: float) -> float:
    """Return how long to wait after a check of that duration, in seconds."""
    return min(max(LOOK_EVERY_S, _PAUSE_PER_LOOK * took_s), _LONGEST_PAUSE_S)


def is_bounded(sandbox: Sandbox, layers: dict[str, str]) -> bool:
    """Return whether the kernel limits all that the worker may write; without Landlock, the socket folder is open."""
    return sandbox.tier == "namespaces" and not layers.get("landlock", "failed").startswith("failed")


def is_over(sandbox: Sandbox, pid: int) -> bool:
    """Return whether the worker's folder contains more than it may, or cannot be read."""
    folder = sandbox.folder.ipc if sandbox.tier == "namespaces" else sandbox.folder.scratch
    # Without a filter, even an honest tool may close a folder or start another user's program.
    strict = sandbox.tier != "process"
    return exceeds(str(folder), pid, sandbox.scratch_mb * MIB, SCRATCH_FILES, strict=strict)


def exceeds(folder: str, pid: int, max_bytes: int, max_files: int, *, strict: bool = True) -> bool:
    """Return whether the folder, plus nameless files that the process and its children hold, is too large.

    It stops counting at the limit. It counts the space really used: a sparse file takes little. `strict`: what cannot
    be read counts as too much.
    """
    for _ in range(_COUNTS):
        try:
            total = 0
            for files, size_bytes in enumerate(itertools.chain(_nameless(pid, folder), _below(folder))):
                total += size_bytes
                if total > max_bytes or files > max_files:
                    return True
            return False
        except _MovedElsewhere:
            continue
        except _CannotLook:
            return strict
        except OSError as error:
            return strict and error.errno not in _HOSTS_OWN
    return strict


def _below(folder: str) -> Iterator[int]:
    """Yield the size of a folder and of each file and folder below it; raise `OSError` if one cannot be listed."""
    try:
        here = os.open(folder, _FOLDER)
    except FileNotFoundError:
        return
    #: The way back: for each level above, the folders not yet entered, and the identity of that folder.
    trail: list[tuple[list[str], tuple[int, int]]] = []
    linked: set[int] = set()
    try:
        waiting: list[str] = []
        yield from _entries(here, waiting, linked)
        while waiting or trail:
            if not waiting:
                waiting, identity = trail.pop()
                here = _stepped("..", here)
                if _identity(here) != identity:
                    raise _MovedElsewhere
                continue
            name, identity = waiting.pop(), _identity(here)
            try:
                here = _stepped(name, here)
            except OSError as error:
                if error.errno in _GONE:
                    continue  # the worker's folder changes while it is counted
                raise
            trail.append((waiting, identity))
            waiting = []
            yield from _entries(here, waiting, linked)
    finally:
        os.close(here)


def _entries(folder: int, folders: list[str], linked: set[int]) -> Iterator[int]:
    """Yield the sizes of a folder and its files; add the folders in it to `folders`."""
    yield os.fstat(folder).st_blocks * 512
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            again = status.st_nlink > 1 and status.st_ino in linked
            linked.add(status.st_ino)
            yield 0 if again else status.st_blocks * 512


def _stepped(name: str, here: int) -> int:
    """Open a folder below or above, and close the previous one; raise `OSError` before that."""
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def _nameless(pid: int, folder: str) -> Iterator[int]:
    """Yield the sizes of files that only exist through an open descriptor or a mapping.

    Raises `_CannotLook` for a mapped file whose size the host cannot read.
    """
    for member in family(pid):
        counted: set[int] = set()
        try:
            yield from _opened(member, counted)
            yield from _mapped(member, f"{folder}/", counted)
        except OSError:
            continue  # it has ended; or processes are hidden on this machine, as they were before it had code


def _opened(pid: int, seen: set[int]) -> Iterator[int]:
    with os.scandir(f"/proc/{pid}/fd") as descriptors:
        for descriptor in descriptors:
            try:
                status = descriptor.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_ino not in seen:
                seen.add(status.st_ino)
                if status.st_nlink == 0:
                    yield status.st_blocks * 512


def _mapped(pid: int, prefix: str, seen: set[int]) -> Iterator[int]:
    with open(f"/proc/{pid}/maps", errors="surrogateescape") as lines:
        for line in lines:
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) < 6 or not (fields[5].startswith(prefix) and fields[5].endswith(" (deleted)")):
                continue
            inode = int(fields[4])
            if inode not in seen:
                seen.add(inode)
                try:
                    yield os.stat(f"/proc/{pid}/map_files/{fields[0]}").st_blocks * 512
                except PermissionError:  # only root may follow this link
                    raise _CannotLook from None
                except FileNotFoundError:
                    continue
