"""Limit of a scratch folder, counted by the host.

In the `namespaces` tier the folder is a mount that holds no more than it may. Elsewhere it lies on the host's disk, and
the host counts what is in it, again and again. It goes through the folders by descriptors: neither the length of a path
nor the depth of the folders ends the count. What the host may not look at counts as more than is allowed.

Between two looks a worker can write more than it may: as fast as the disk takes it, and at most the limit of a file's
size times its open files.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from healkit.config import MIB
from healkit.workers.process_status import family
from healkit.workers.sandbox import SCRATCH_FILES, Sandbox

#: Pause between two looks; longer where a look takes long, within bounds.
LOOK_EVERY_S = 0.2
_PAUSE_PER_LOOK, _LONGEST_PAUSE_S = 3.0, 2.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Number of counts that may meet a folder which is moved elsewhere meanwhile.
_COUNTS = 5
#: A folder that has been removed, or that a file or a link has taken the place of.
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
#: The host's own shortage, which is no worker's fault.
_HOSTS_OWN = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class _CannotLook(Exception):
    """Raised for a file that takes room, and whose size cannot be seen."""


class _MovedElsewhere(Exception):
    """Raised when a folder has another parent than the one it was entered from."""


async def until_over(
    sandbox: Sandbox, layers: dict[str, str], pid: int, work: Callable[[], object | None] = lambda: True
) -> None:
    """Return when a worker has written more than it may; never, where the kernel sees to that.

    work: asked before and after each look, what is under way; None while nothing can be written. A look that was begun
    in one piece of work and ended in the next says nothing of either.
    """
    if is_bounded(sandbox, layers):
        await asyncio.get_running_loop().create_future()
    pause_s = LOOK_EVERY_S
    while True:
        await asyncio.sleep(pause_s)
        if (seen := work()) is not None:
            began = time.perf_counter()
            if await look(sandbox, pid) and work() is seen:
                return
            pause_s = pause_after(time.perf_counter() - began)


async def look(sandbox: Sandbox, pid: int) -> bool:
    """Return `is_over`, from a thread for looks only: other work, such as removing folders, must not delay them."""
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads(), is_over, sandbox, pid)
    except RuntimeError:  # the interpreter ends and takes no more work; so do the workers
        return False


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2, "healkit-disk")


os.register_at_fork(after_in_child=_threads.cache_clear)  # its threads stay behind


def pause_after(took_s: float) -> float:
    """Return how long to wait after a look that took so long."""
    return min(max(LOOK_EVERY_S, _PAUSE_PER_LOOK * took_s), _LONGEST_PAUSE_S)


def is_bounded(sandbox: Sandbox, layers: dict[str, str]) -> bool:
    """Return whether the kernel bounds all that the worker may write; without Landlock, the sockets' folder is open."""
    return sandbox.tier == "namespaces" and not layers.get("landlock", "failed").startswith("failed")


def is_over(sandbox: Sandbox, pid: int) -> bool:
    """Return whether the worker's folder holds more than it may, or cannot be looked at."""
    folder = sandbox.folder.ipc if sandbox.tier == "namespaces" else sandbox.folder.scratch
    # Without a filter a tool may shut a folder or start another user's program, and still be an honest one.
    strict = sandbox.tier != "process"
    return exceeds(str(folder), pid, sandbox.scratch_mb * MIB, SCRATCH_FILES, strict=strict)


def exceeds(folder: str, pid: int, max_bytes: int, max_files: int, *, strict: bool = True) -> bool:
    """Return whether the folder, and the files without a name that the process and its children hold, are too much.

    Stops counting at the limit. Counts the space really used: a sparse file takes little. `strict`: what cannot be
    looked at is too much.
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
    """Yield the size of a folder and of each file and folder below it; raises `OSError` for what cannot be listed."""
    try:
        here = os.open(folder, _FOLDER)
    except FileNotFoundError:
        return
    #: The way back: the folders yet to be entered at each level above, and which folder that was.
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
                    continue  # it is the worker's folder: what is in it comes and goes
                raise
            trail.append((waiting, identity))
            waiting = []
            yield from _entries(here, waiting, linked)
    finally:
        os.close(here)


def _entries(folder: int, folders: list[str], linked: set[int]) -> Iterator[int]:
    """Yield the sizes of a folder and its files; adds the folders in it to `folders`."""
    yield os.fstat(folder).st_blocks * 512
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            again = found.st_nlink > 1 and found.st_ino in linked
            linked.add(found.st_ino)
            yield 0 if again else found.st_blocks * 512


def _stepped(name: str, here: int) -> int:
    """Open a folder below or above, and close the one it was opened from; raises `OSError` before that."""
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def _identity(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino


def _nameless(pid: int, folder: str) -> Iterator[int]:
    """Yield the sizes of files that only an open descriptor or a mapping still keeps.

    Raises `_CannotLook` for a mapped file whose size the host may not see.
    """
    for each in family(pid):
        seen: set[int] = set()
        try:
            yield from _opened(each, seen)
            yield from _mapped(each, f"{folder}/", seen)
        except OSError:
            continue  # it has ended, or this machine shows no process to another, and did not before it had code


def _opened(pid: int, seen: set[int]) -> Iterator[int]:
    with os.scandir(f"/proc/{pid}/fd") as descriptors:
        for descriptor in descriptors:
            try:
                found = descriptor.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(found.st_mode) and found.st_ino not in seen:
                seen.add(found.st_ino)
                if found.st_nlink == 0:
                    yield found.st_blocks * 512


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
