"""Where workers' folders lie, and who sweeps them.

One folder for each host process, named after it, under one private folder for each user. Beside it waits a janitor, a
shell that holds one end of a pipe: when the host is gone, however it went, the pipe ends and the folder is removed.
Should the janitor be killed too, the next host that starts recognises the folder by its dead owner.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from healkit.contracts.records import host_identity, process_start_ticks
from healkit.workers.sandbox import RunFolder

#: ZeroMQ's IPC paths fail at about 108 characters; what we append to the base takes up to 50 of them.
_BASE_MAX_CHARS = 55
#: Waits for the end of its input, gives dying workers a moment, and sweeps.
_JANITOR = 'cat >/dev/null; sleep 0.2; rm -rf -- "$1"'

_numbers = itertools.count(1)


class RunFolders:
    """Hands out one `RunFolder` for each worker; `close` removes them all."""

    def __init__(self, base: Path | None = None) -> None:
        base = base or private_base()
        identity = host_identity()
        self.root = base / f"{identity.pid}-{identity.started_ticks}-{next(_numbers)}"
        self._used = itertools.count(1)
        self._janitor: subprocess.Popen[bytes] | None = None
        sweep(base)

    def next(self) -> RunFolder:
        """A folder that no worker has had; it is made when the worker starts."""
        if self._janitor is None:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
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
        if self._janitor is not None:
            self._janitor.kill()
            self._janitor.communicate()
            self._janitor = None

    def abandon(self) -> None:
        """Forget the folders in a forked child: they, and their janitor, are the parent's."""
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
        if pid.isdigit() and ticks.isdigit() and process_start_ticks(int(pid)) != int(ticks):
            shutil.rmtree(folder, ignore_errors=True)
            swept += 1
    return swept


def private_base() -> Path:
    """`<tmp>/healkit-<user id>`, ours alone; another folder where somebody else has taken that name."""
    temporary = Path(tempfile.gettempdir())
    if len(str(temporary)) > _BASE_MAX_CHARS - len("/healkit-4294967295"):
        temporary = Path("/tmp")  # noqa: S108 - a private folder is made in it, and checked
    base = temporary / f"healkit-{os.getuid()}"
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        found = base.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="healkit-"))
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return base if private else Path(tempfile.mkdtemp(prefix="healkit-"))
