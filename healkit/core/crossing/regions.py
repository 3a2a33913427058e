"""Memory regions that pass large contents to the other side.

A region is a file in memory with a fixed size. The host creates it and passes its descriptor. The region with arguments
is sealed before it is sent, so the worker cannot change it. The host seals the region for results before reading it;
the kernel refuses this while a process could still write to it. Each side maps the region copy-on-write: when a tool
writes to an array, it changes its own copy of that page only.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import resource
import weakref
from collections.abc import Sequence
from typing import Any

#: Start and length of each content in a region, in bytes.
Places = list[tuple[int, int]]

#: Contents start at multiples of this, which Arrow and numpy's fastest loops prefer.
_ALIGNED = 64
#: Size of the part of a region that is mapped at a time for writing.
_WINDOW_BYTES = 16 * 1024 * 1024
_FIXED_SIZE = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK


class BadRegion(ValueError):
    """Error for a region that does not match its places, or that could still be changed."""


def places_of(contents: Sequence[Any]) -> Places:
    """Return the places of these contents in a new region."""
    places: Places = []
    for content in contents:
        places.append(next_place(places, content))
    return places


def next_place(places: Places, content: Any) -> tuple[int, int]:
    """Return the place of one more content, after these places."""
    begin, size = places[-1] if places else (0, 0)
    return begin + -(-size // _ALIGNED) * _ALIGNED, memoryview(content).nbytes


def size_of(places: Places) -> int:
    """Return the size of a region with these places, in bytes."""
    return max((begin + size for begin, size in places), default=0)


def at_most(size: int) -> int:
    """Return that size, or the user's limit on file sizes if it is lower, since it applies to regions too."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return size if limit == resource.RLIM_INFINITY else min(size, limit)


def empty(size: int) -> int:
    """Return the descriptor of a new region of that size, which the other side will write."""
    descriptor = os.memfd_create("healkit-data", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _FIXED_SIZE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def filled(contents: Sequence[Any], places: Places) -> int:
    """Return the descriptor of a new, sealed region with these contents."""
    descriptor = empty(size_of(places))
    try:
        write(descriptor, contents, places)
        seal(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write(descriptor: int, contents: Sequence[Any], places: Places) -> None:
    """Write contents to their places.

    Data beyond the limit on file sizes is written through a mapped window, because that limit is meant for real files.
    The window is small, so that it hardly counts against the memory limit.
    """
    for content, (begin, size) in zip(contents, places, strict=True):
        data = memoryview(content).cast("B")
        put = _put if at_most(begin + size) == begin + size else _put_through_window
        for done in range(0, size, _WINDOW_BYTES):
            put(descriptor, data[done : done + _WINDOW_BYTES], begin + done)


def _put(descriptor: int, part: memoryview, begin: int) -> None:
    while part:
        done = os.pwrite(descriptor, part, begin)
        part, begin = part[done:], begin + done


def _put_through_window(descriptor: int, part: memoryview, begin: int) -> None:
    inside = begin % mmap.ALLOCATIONGRANULARITY
    with mmap.mmap(descriptor, inside + len(part), offset=begin - inside) as window:
        window[inside:] = part


def seal(descriptor: int) -> None:
    """Make a region read-only. Raises `BadRegion` while a process has it mapped for writing."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    except OSError as error:
        if not fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE:
            raise BadRegion(f"its data could still be changed: {error.strerror}") from None


def mapped(descriptor: int, places: Sequence[Sequence[int]]) -> list[memoryview]:
    """Return the contents of a sealed region; raise `BadRegion` for places outside of it, or for overlapping places."""
    size = os.fstat(descriptor).st_size
    end = 0
    for begin, length in places:
        if begin < end or begin + length > size:
            raise BadRegion("its data is not where it says")
        end = begin + length
    if not end:
        return [memoryview(b"")] * len(places)
    view = _own_copy(descriptor, end)
    return [view[begin : begin + length] for begin, length in places]


def _own_copy(descriptor: int, size: int) -> memoryview:
    """Map the beginning of a region copy-on-write.

    It calls mmap(2) directly. Before Python 3.13, Python's `mmap` keeps a descriptor open as long as the mapping lives,
    so each stored array would cost one.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, descriptor, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "a frame or an array cannot be mapped")
    memory = (ctypes.c_ubyte * size).from_address(address)
    # Runs when the last view is released. Not at exit, because arrays may still be in use then.
    weakref.finalize(memory, libc.munmap, address, size).atexit = False
    return memoryview(memory).cast("B")
