"""Folders of workers on the host, and their removal.

Each host process has one folder, named after it, under one private folder for each user. Beside it waits a janitor, a
shell that holds one end of a pipe: when the host ends, in whatever way, the pipe ends and the folder is removed. If the
janitor is killed too, the next host that starts finds the folder by its dead owner.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import itertools
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from healkit.contracts.records import host_identity, process_start_ticks
from healkit.contracts.temporary import new_temporary_folder, temporary_folder

#: ZeroMQ's IPC paths fail at about 108 characters; what we append to the base takes up to 50 of them.
_BASE_MAX_CHARS = 55
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

    def create(self) -> RunFolder:
        """Make the folders, readable by this user only."""
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


class RunFolders:
    """Hands out one `RunFolder` for each worker; `close` removes them all."""

    def __init__(self, base: Path | None = None) -> None:
        base = base or private_base()
        identity = host_identity()
        self.root = base / f"{identity.pid}-{identity.started_ticks}-{next(_numbers)}"
        self._used = itertools.count(1)
        self._janitor: subprocess.Popen[bytes] | None = None
        #: Open and locked while this process lives, for those that cannot see it: other containers have other ids.
        self._held: int | None = None
        sweep(base)

    def next(self) -> RunFolder:
        """Return a folder that no worker has had; it is made when the worker starts."""
        if self._janitor is None:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        shutil.rmtree(self.root, ignore_errors=True)
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


def sweep(base: Path) -> int:
    """Remove the folders of hosts that are gone; returns how many there were."""
    swept = 0
    for folder in base.glob("*-*"):
        pid, ticks, *_ = [*folder.name.split("-"), ""]
        if (
            pid.isdigit()
            and ticks.isdigit()
            and process_start_ticks(int(pid)) != int(ticks)
            and not _is_held(folder)
        ):
            shutil.rmtree(folder, ignore_errors=True)
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
    """`<tmp>/healkit-<user id>`, ours alone; another folder where that name is taken by another user."""
    temporary = temporary_folder()
    if len(str(temporary)) > _BASE_MAX_CHARS - len("/healkit-4294967295"):
        temporary = Path("/tmp")  # noqa: S108 - a private folder is made in it, and checked
    base = temporary / f"healkit-{os.getuid()}"
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        found = base.lstat()
    except OSError:
        return new_temporary_folder("healkit-")
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return base if private else new_temporary_folder("healkit-")


def exceeds(folder: str, pid: int, max_bytes: int, max_files: int) -> bool:
    """Return whether the folder, and the files the process holds open without a name, exceed either limit.

    Stops counting at the limit. Counts the space really used: a sparse file takes little.
    """
    total = 0
    for files, size_bytes in enumerate(itertools.chain(_nameless(pid), _in(folder)), start=1):
        total += size_bytes
        if total > max_bytes or files > max_files:
            return True
    return False


def _in(folder: str) -> Iterator[int]:
    for parent, folders, names in os.walk(folder):
        yield from (0 for _ in folders)
        for name in names:
            try:
                yield os.lstat(os.path.join(parent, name)).st_blocks * 512
            except OSError:
                continue  # it is the worker's folder: files come and go


def _nameless(pid: int) -> Iterator[int]:
    """Yield the sizes of files that only an open descriptor still keeps."""
    seen = set()
    try:
        descriptors = list(os.scandir(f"/proc/{pid}/fd"))
    except OSError:  # it has ended, or there is no /proc
        return
    for descriptor in descriptors:
        try:
            found = descriptor.stat()
        except OSError:
            continue
        if found.st_nlink == 0 and stat.S_ISREG(found.st_mode) and (found.st_dev, found.st_ino) not in seen:
            seen.add((found.st_dev, found.st_ino))
            yield found.st_blocks * 512
