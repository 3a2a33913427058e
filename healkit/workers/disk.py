"""What a worker holds on disk, where no mount counts it.

Counted from outside, twice a second, because neither Landlock nor a resource limit bounds a folder as a whole.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator


def exceeds(folder: str, pid: int, max_bytes: int, max_files: int) -> bool:
    """Whether the folder, and the files that process has open and has taken the names from, hold more than that.

    Stops counting as soon as they do. Sizes are what is really taken up: a sparse file takes up little.
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
    """The files that only an open descriptor still keeps."""
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
