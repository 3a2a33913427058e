"""Folders of workers on the host, and their removal.

Each host process has one folder, named after it, under one private folder for each user. Beside it waits a janitor, a
shell that holds one end of a pipe: when the host ends, in whatever way, the pipe ends and the folder is removed. If the
janitor is killed too, the next host that starts finds the folder by its dead owner.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import itertools
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from healkit.contracts.execution import host_identity, process_start_ticks
from healkit.errors import ConfigError
from healkit.plain_files import new_temporary_folder, temporary_folder
from healkit.workers.inside.scratch import remove_tree

#: The path of a socket has at most 107 bytes. A private base in the folder for temporary files takes up to 21 of them,
#: and what is appended to that up to 50.
_TEMPORARY_MAX_BYTES = 55 - len("/healkit-4294967295-9")
_SHORT = Path("/tmp")  # noqa: S108 - a private folder is made in it, and checked
#: Waits for the end of its input, gives dying workers a moment, and sweeps.
_JANITOR = 'cat >/dev/null; sleep 0.2; rm -rf -- "$1"'

_numbers = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Folders of one worker on the host: `ipc` for its sockets, `scratch` for its work."""

    root: Path

    @property
    def ipc(self) -> Path:
        """Folder in which the kernel binds its sockets, and in which its connection file lies."""
        return self.root / "ipc"

    @property
    def scratch(self) -> Path:
        """Working directory, home and temporary folder of the tool."""
        return self.root / "scratch"

    @property
    def code(self) -> Path:
        """Folder in which another interpreter finds this package, and nothing else."""
        return self.root / "code"

    @property
    def crash_file(self) -> Path:
        """Standard error of the process, outside of its view; `faulthandler` writes here when nothing else can."""
        return self.root / "stderr.log"

    def last_words(self, limit_bytes: int) -> str:
        """Return the end of what the process wrote to its crash file, at most so much; empty where there is none."""
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
        """Delete it all; what a tool made unreadable is made readable first. Raises nothing."""
        remove_tree(self.root)


class RunFolders:
    """Hands out one `RunFolder` for each worker; `close` removes them all.

    What dead hosts have left is removed first; `on_thread` leaves that to a thread, for a caller that may not wait.
    """

    def __init__(self, base: Path | None = None, *, on_thread: bool = False) -> None:
        base = base or private_base()
        identity = host_identity()
        self.root = base / f"{identity.pid}-{identity.started_ticks}-{next(_numbers)}"
        self._used = itertools.count(1)
        self._janitor: subprocess.Popen[bytes] | None = None
        #: Open and locked while this process lives, for those that cannot see it: other containers have other ids.
        self._held: int | None = None
        if on_thread:
            threading.Thread(target=sweep, args=(base,), name="healkit-sweep", daemon=True).start()
        else:
            sweep(base)

    def next(self) -> RunFolder:
        """Return a folder that no worker has had; it is made when the worker starts."""
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
        """Remove what is left of this host's folders."""
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
        """Forget the folders in a forked child: they, and their janitor, are the parent's."""
        self._let_go()
        if self._janitor is not None:
            assert self._janitor.stdin is not None
            self._janitor.stdin.close()
            self._janitor.returncode = 0  # not ours to wait for
            self._janitor = None


@contextlib.contextmanager
def passing_folder() -> Iterator[Path]:
    """Make a folder for a moment. Where this process is killed meanwhile, the next host that starts removes it."""
    owner = host_identity()
    root = new_temporary_folder(f"{owner.pid}-{owner.started_ticks}-", private_base())
    held = _hold(root)
    try:
        yield root
    finally:
        remove_tree(root)
        os.close(held)


def _hold(folder: Path) -> int:
    """Lock a folder for as long as the returned descriptor is open in this process."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def sweep(base: Path) -> int:
    """Remove the folders of hosts that are gone; returns how many there were. Raises nothing."""
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
    """Return whether a living process, of whatever container, holds the folder."""
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
    """Return `<tmp>/healkit-<user id>`, ours alone; where it is another user's, the next that is free or ours.

    All processes of a user come to the same one, so that what is left there is swept, and grants of it are refused.
    """
    temporary = folder_for_sockets()
    name = f"healkit-{os.getuid()}"
    for base in (temporary / name, *(temporary / f"{name}-{number}" for number in range(1, 10))):
        with contextlib.suppress(OSError):
            base.mkdir(mode=0o700, exist_ok=True)
            found = base.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
                return base
    return _own_base(temporary)


@functools.cache
def _own_base(temporary: Path) -> Path:
    return new_temporary_folder("healkit-", temporary)


def folder_for_sockets() -> Path:
    """Return the folder for temporary files, or /tmp where the path of a socket below it would be too long.

    Raises `ConfigError` where neither will do.
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
