"""Removal of a worker's files and of its child processes.

Files are removed by descriptors and without recursion: a tool can nest folders deeper than Python can recurse, and
longer than a path may be. Each nested folder is moved up to the first level, so that only two descriptors are open at a
time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from typing import Literal

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: str | os.PathLike[str]) -> bool:
    """Remove a folder and everything in it, even unreadable folders; return whether it is gone. Never raises."""
    path = os.fspath(folder)
    if not os.path.islink(path):
        empty_folder(path)
        with contextlib.suppress(OSError):
            os.rmdir(path)
    return not os.path.lexists(path)


def empty_folder(folder: str) -> bool:
    """Remove everything in it; return whether nothing is left. Links are removed, not followed. Never raises."""
    try:
        if not os.listdir(folder):  # usually true, and checked after each of thousands of trials
            return True
    except OSError:
        pass  # handled below
    try:
        top = _opened(folder, None)
    except OSError:
        return not os.path.lexists(folder)
    try:
        _empty(top)
        return not os.listdir(top)
    except OSError:
        return False
    finally:
        os.close(top)


def _empty(top: int) -> None:
    fresh = (f".{os.urandom(8).hex()}-{number}" for number in itertools.count())
    waiting = _folders_left(top)
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            here = _opened(name, top)
            try:
                for child in _folders_left(here):
                    with contextlib.suppress(OSError):
                        waiting.append(_moved(child, here, next(fresh), top))
            finally:
                os.close(here)
            os.rmdir(name, dir_fd=top)


def _folders_left(folder: int) -> list[str]:
    """Remove the files of a folder; return the names of the folders in it."""
    names = []
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
                continue
            try:
                os.unlink(entry.name, dir_fd=folder)
            except PermissionError:
                with contextlib.suppress(OSError):
                    os.fchmod(folder, 0o700)
                    os.unlink(entry.name, dir_fd=folder)
            except OSError:
                continue
    return names


def _moved(name: str, source: int, new: str, target: int) -> str:
    """Move a folder; a read-only one is made writable first, because its `..` changes."""
    try:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:
        os.fchmod(source, 0o700)
        _make_own(name, source)
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
    return new


def _opened(name: str, parent: int | None) -> int:
    """Open a folder to list and empty it; change its mode if necessary. Raises `OSError`."""
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        _make_own(name, parent)
        return os.open(name, _FOLDER, dir_fd=parent)


def _make_own(name: str, parent: int | None) -> None:
    """Give the owner all rights to a folder, but never to the target of a link."""
    descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
    finally:
        os.close(descriptor)


def children_of(process: int | Literal["self"]) -> list[int]:
    """Return the processes that it has started or adopted; empty if the kernel does not list them."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{process}/task/{thread}/children") as file,
            ):
                children += map(int, file.read().split())
    return children


def end_children() -> None:
    """Kill the processes that this one has started or adopted, and their orphans; not those of other users."""
    tried: set[int] = set()
    while children := set(children_of("self")) - tried:
        tried |= children
        for pid in children:
            with contextlib.suppress(ProcessLookupError, ChildProcessError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
