"""Lockdown of a worker, from the inside.

It has two steps. `enter` runs first, while the process has one thread: capabilities, Landlock and the fixed limits.
`seal` runs after ZeroMQ has bound its sockets; from then on, no socket can be made. Each returns what it really did,
and the host compares that with the promise of the tier before it sends any code.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
import types
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from healkit.core.workers.inside import seccomp

if TYPE_CHECKING:
    from landlockpy import AccessFS


class Restrictions(msgspec.Struct, frozen=True):
    """Restrictions that the host asks a worker to apply; passed in its environment, as JSON.

    read, write: Folders and files.
    listed: Folders whose names are visible, but not their files.
    socket_dir: Folder in which only sockets can be created.
    scratch_files: Maximum number of files in the scratch folder, if a mount can count them.
    shares_files: Whether it was granted files, which other processes may lock.
    """

    tier: str
    bridge_fd: int
    scratch: str
    socket_dir: str
    read: list[str]
    write: list[str]
    scratch_bytes: int
    scratch_files: int
    open_files: int
    listed: list[str] = []
    shares_files: bool = False


RESTRICTIONS_VARIABLE = "HEALKIT_WORKER_POLICY"

#: Memory above a tool's limit, for the report that the limit was reached, in bytes.
_REPORT_BYTES = 64 * 1024 * 1024
#: Maximum number of timers and queued signals of a worker.
_SIGNALS_PENDING = 128
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_CAPABILITY_VERSION_3 = 0x20080522
_CLONE_NEWNS, _MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 0x20000, 2, 4, 1 << 14, 1 << 18


_own_size_fd = -1


def enter(restrictions: Restrictions) -> dict[str, str]:
    """Apply the first half of the restrictions, with only one thread; return layer → what was done, or `failed: …`."""
    if os.getpgrp() == 0:  # a group outside this namespace: bubblewrap's, which a tool must not signal
        os.setsid()
    _open_own_size()
    if restrictions.listed:
        show_only(restrictions.read, restrictions.listed)
    if restrictions.tier == "process":
        adopt_orphans()
        return {
            "parent": done_or_failed(die_with_parent),
            "rlimits": done_or_failed(lambda: _limit_resources(restrictions)),
        }
    return {
        "parent": done_or_failed(die_with_parent),
        **(
            {"scratch": done_or_failed(lambda: _mount_scratch(restrictions))}
            if restrictions.tier == "namespaces"
            else {}
        ),
        "capabilities": done_or_failed(_drop_capabilities),
        "landlock": done_or_failed(lambda: _landlock(restrictions)),
        "rlimits": done_or_failed(lambda: _limit_resources(restrictions)),
    }


def seal(restrictions: Restrictions) -> dict[str, str]:
    """Apply the second half of the restrictions, after the sockets are bound; on all threads."""
    if restrictions.tier == "process":
        return {}
    return {"seccomp": done_or_failed(lambda: _load_seccomp(restrictions))}


def limit_tool(memory_bytes: int, cpu_s: int) -> None:
    """Limit memory and processor time for the tool, in addition to what the bare worker has used until now.

    The memory limit is on address space. For this limit alone, Python reports an excess as a MemoryError at the line
    that requested the memory. The hard limit leaves room for that report.
    """
    if sys.platform != "linux":  # no effective limit exists there
        return
    used = int(os.pread(_own_size_fd, 100, 0).split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, used + memory_bytes + _REPORT_BYTES))
    spent = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + cpu_s, spent + cpu_s + 1))


def lift_for_report() -> None:
    """Use the room that `limit_tool` left, so that a MemoryError can be reported."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def limit_again() -> None:
    """Restore the memory limit that `lift_for_report` has lifted."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_AS, (hard - _REPORT_BYTES, hard))


def _open_own_size() -> None:
    """Open /proc/self/statm now, since it may not be readable after the lockdown.

    A Landlock rule would not work, because it belongs to the file's inode, which the kernel may drop for a file of
    /proc.
    """
    global _own_size_fd
    if sys.platform == "linux":
        _own_size_fd = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


def done_or_failed(step: Callable[[], str]) -> str:
    """Run one step and return what was done, or `failed: …` with the reason."""
    try:
        return step()
    except (OSError, ImportError, ValueError) as error:
        return f"failed: {error}"


def die_with_parent() -> str:
    """Ask the kernel to kill this process when its parent ends: host, fork server, or init of the namespace."""
    parent = os.getppid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended between the two calls
        os._exit(1)
    return "pdeathsig"


def adopt_orphans() -> None:
    """Become the parent of every process below this one that loses its own, so that daemons can be found."""
    with contextlib.suppress(OSError):
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _mount_scratch(restrictions: Restrictions) -> str:
    """Mount a private scratch folder in memory, with a limited size and number of files."""
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={restrictions.scratch_bytes},nr_inodes={restrictions.scratch_files},mode=0700"

    def check(result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    check(libc.unshare(_CLONE_NEWNS))
    check(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    check(
        libc.mount(
            b"tmpfs", restrictions.scratch.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, options.encode()
        )
    )
    os.chdir(restrictions.scratch)  # the working directory was still the folder under the mount
    return f"{restrictions.scratch_bytes:,} bytes, {restrictions.scratch_files:,} files"


def _drop_capabilities() -> str:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(64):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # unknown to the kernel like all later ones, or nothing to drop
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    empty = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(header, empty) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "none left"


def _landlock(restrictions: Restrictions) -> str:
    """Enter a Landlock domain, without the modules that `ctypes.util` imports.

    landlockpy asks that module for the location of the C library. It would import twenty modules to search the disk for
    a library that is already loaded. One of them is `threading`, which would cost a tenth of a trial in each child of a
    trial server. In a kernel, it would start `ldconfig` and a linker in each worker, a tenth of a fresh execution.
    """
    loaded = sys.modules.get("ctypes.util")
    module = loaded or types.ModuleType("ctypes.util")
    find = vars(module).get("find_library")
    vars(module)["find_library"] = lambda _name: None  # and `CDLL(None)` is this process
    if loaded is None:
        sys.modules[module.__name__] = vars(ctypes)["util"] = module
    try:
        return _enter_landlock(restrictions)
    finally:
        if loaded is None:
            del sys.modules[module.__name__], vars(ctypes)["util"]
        else:
            vars(module)["find_library"] = find


def _enter_landlock(restrictions: Restrictions) -> str:
    from landlockpy import AccessFS, AccessNet, Ruleset, Scope, abi_version

    abi = abi_version()
    if abi < 1:
        raise OSError("the kernel has no Landlock")
    read = AccessFS.READ_FILE | AccessFS.READ_DIR
    special = (
        AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK | AccessFS.MAKE_SOCK | AccessFS.EXECUTE | AccessFS.IOCTL_DEV
    )
    network = AccessNet.BIND_TCP | AccessNet.CONNECT_TCP  # no rule opens a port
    scopes = Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL
    with Ruleset(handled_net=network, scoped=scopes) as ruleset:
        for path in filter(os.path.exists, restrictions.read):
            ruleset.allow_path(path, read if os.path.isdir(path) else AccessFS.READ_FILE)
        for path in filter(os.path.isdir, restrictions.listed):
            ruleset.allow_path(path, AccessFS.READ_DIR)
        for path in filter(os.path.exists, [restrictions.scratch, *restrictions.write]):
            writable = ruleset.handled_fs & ~special
            ruleset.allow_path(path, writable if os.path.isdir(path) else _file_rights(writable))
        ruleset.allow_path(restrictions.socket_dir, AccessFS.MAKE_SOCK)
        for device in ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"):
            ruleset.allow_path(device, AccessFS.READ_FILE | AccessFS.WRITE_FILE)
        denied = ["TCP"] if ruleset.handled_net else []
        denied += ["signals", "abstract sockets"] if ruleset.scoped else []
        ruleset.restrict()
    return ", ".join([f"ABI {abi}", *(f"no {what}" for what in denied)])


def _file_rights(rights: AccessFS) -> AccessFS:
    from landlockpy import AccessFS

    return rights & (AccessFS.READ_FILE | AccessFS.WRITE_FILE | AccessFS.TRUNCATE)


def _limit_resources(restrictions: Restrictions) -> str:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size_bytes = _limit(resource.RLIMIT_FSIZE, restrictions.scratch_bytes)
    files = _limit(resource.RLIMIT_NOFILE, restrictions.open_files)
    # They count for the user in all processes together: a worker must not use them up. Python itself needs
    # none.
    pending = min(_SIGNALS_PENDING, *(n for n in resource.getrlimit(resource.RLIMIT_SIGPENDING) if n >= 0))
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (pending, pending))
    return f"files {files}, file size {size_bytes:,} bytes"


def _limit(kind: int, most: int) -> int:
    """Set a limit permanently, and return it; the user's own limit if that is lower."""
    hard = resource.getrlimit(kind)[1]
    limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (limit, limit))
    return limit


def _load_seccomp(restrictions: Restrictions) -> str:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    seccomp.load_filter(seccomp.filter_for(os.getpid(), shares_files=restrictions.shares_files))
    return "filter"


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        raise OSError("prctl exists on Linux only")
    if seccomp.libc().prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# Imports that only find readable modules.


class VisibleFinder(FileFinder):
    """Finder in one folder for some of its modules."""

    def __init__(self, folder: str, names: Iterable[str]) -> None:
        super().__init__(
            folder,
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (SourceFileLoader, SOURCE_SUFFIXES),
            (SourcelessFileLoader, BYTECODE_SUFFIXES),
        )
        self._names = frozenset(names)

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return None for a hidden module; called by the import system."""
        return super().find_spec(fullname, target) if fullname.rpartition(".")[2] in self._names else None


def show_only(read: Sequence[str], listed: Sequence[str]) -> None:
    """In the listed folders and below them, find only modules on a readable path."""
    sys.path_hooks.insert(0, _hook(tuple(read), tuple(listed)))
    sys.path_importer_cache.clear()


def _hook(read: tuple[str, ...], listed: tuple[str, ...]) -> Callable[[str], VisibleFinder]:
    def finder(entry: str) -> VisibleFinder:
        folder = entry if _is_within(entry, listed) else os.path.realpath(entry)
        if _is_within(folder, read) or not _is_within(folder, listed):
            raise ImportError  # leave it to the ordinary finder
        paths = (path[len(folder) + 1 :] for path in read if path.startswith(f"{folder}/"))
        return VisibleFinder(folder, {path.partition("/")[0].partition(".")[0] for path in paths})

    return finder


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
