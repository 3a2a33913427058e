"""Where workers' folders lie, and who sweeps them.

One folder for each host process, named after it, under one private folder for each user. What a killed host
left behind is recognised by its dead owner and swept by the next host that starts.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import tempfile
from pathlib import Path

from healkit.contracts.records import host_identity, process_start_ticks
from healkit.workers.limits import RunFolder

#: ZeroMQ's IPC paths fail at about 108 characters; what we append to the base takes up to 50 of them.
_BASE_MAX_CHARS = 55


class RunFolders:
    """Hands out one `RunFolder` for each worker; `close` removes them all."""

    def __init__(self, base: Path | None = None) -> None:
        base = base or _private_base()
        identity = host_identity()
        self.root = base / f"{identity.pid}-{identity.started_ticks}"
        self._numbers = itertools.count(1)
        sweep(base)

    def next(self) -> RunFolder:
        """A folder that no worker has had; it is made when the worker starts."""
        return RunFolder(self.root / str(next(self._numbers)))

    def close(self) -> None:
        """Remove what is left of this host's folders."""
        shutil.rmtree(self.root, ignore_errors=True)


def sweep(base: Path) -> int:
    """Remove the folders of hosts that are gone; returns how many there were."""
    swept = 0
    for folder in base.glob("*-*"):
        pid, _, ticks = folder.name.partition("-")
        if pid.isdigit() and ticks.isdigit() and process_start_ticks(int(pid)) != int(ticks):
            shutil.rmtree(folder, ignore_errors=True)
            swept += 1
    return swept


def _private_base() -> Path:
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
