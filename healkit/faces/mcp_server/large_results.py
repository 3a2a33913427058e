"""Results too large for one message, read in parts.

A tool's result is cleaned as a whole before it is shown in full. A secret in one place is hidden in all others too.
That takes up to a second per MB, nearly always with Python's interpreter lock held. A few such results would block
every other call. So an answer has a short preview, and a result is only cleaned when it is read. This happens in a
separate process, which ends at once when its call is cancelled. That process runs this module.

The files have no names, so they disappear with the server, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, Literal, NamedTuple

from healkit.config import MIB
from healkit.core.contracts.execution import RUN_CODE
from healkit.errors import UsageInvalid, WorkerError
from healkit.plain_text import visible

#: Size from which a result is large, and size of one part of it, in bytes.
LARGE_BYTES = PART_BYTES = 256 * 1024
#: Maximum number of concurrent heavy tasks: making large answers, cleaning large results.
HEAVY_MAX = 4
#: Longest wait of the first call of a tool for a place, in seconds.
_UNKNOWN_WAIT_S = 2.0
#: Niceness of the cleaning process compared to the server, as in nice(1).
_NICE = 5
#: Maximum size of all stored results, in bytes.
_KEPT_BYTES = 256 * MIB

#: `M_MMAP_THRESHOLD` of glibc's malloc.h.
_MMAP_THRESHOLD = -3

Kind = Literal["text", "json"]


class Part(NamedTuple):
    """Part of a result: its text, its number from 1, and the number of parts."""

    text: str
    number: int
    parts: int


class LargeResult:
    """One result in a file; `size_bytes` is its original size."""

    def __init__(self, text: str, kind: Kind, *, is_clean: bool) -> None:
        self.kind: Kind = kind
        self.is_clean = is_clean
        self._file = _written(text)
        self._cleaning = asyncio.Lock()
        self.size_bytes = os.fstat(self._file.fileno()).st_size

    async def clean(self) -> None:
        """Clean it, once; raise `WorkerError` if that is not possible."""
        async with self._cleaning:
            if not self.is_clean:
                raw = self._file
                self._file, self.is_clean = await _cleaned(raw, self.kind), True
                raw.close()  # not before: if this reader is cancelled, the next one needs it

    def close(self) -> None:
        """Remove its file."""
        self._file.close()

    def part(self, number: int) -> Part:
        """Return a part after cleaning; raise `UsageInvalid` if there are fewer parts."""
        assert self.is_clean
        file = self._file.fileno()
        size = os.fstat(file).st_size
        parts = max(1, -(-size // PART_BYTES))
        if not 1 <= number <= parts:
            raise UsageInvalid(f"There is no part {number:,}.", hint=f"There are the parts 1 to {parts:,}.")
        # A character belongs to the part in which it begins.
        start, end = (number - 1) * PART_BYTES, min(number * PART_BYTES, size)
        data = os.pread(file, end - start + 3, start)
        begin, finish = _to_character(data, 0), _to_character(data, end - start)
        return Part(data[begin:finish].decode(errors="replace"), number, parts)


class LargeResults:
    """Large results of one server, by address; the oldest are removed if all together are too large."""

    def __init__(self) -> None:
        #: Threads that make large answers; the other threads make quick ones.
        self.threads = ThreadPoolExecutor(HEAVY_MAX, "healkit-mcp-large")
        self._results: OrderedDict[str, LargeResult] = OrderedDict()
        self._keeping = threading.Lock()
        self._at_work = asyncio.Semaphore(HEAVY_MAX)
        #: Tool → whether its newest result was large; and the places for calls of such tools.
        self._large: dict[str, bool] = {RUN_CODE: False}
        self._places = asyncio.Semaphore(HEAVY_MAX)
        _give_back_large_blocks()

    def close(self) -> None:
        """Remove all results when the server ends."""
        self.threads.shutdown()
        for result in self._results.values():
            result.close()

    @contextlib.asynccontextmanager
    async def place(self, tool: str) -> AsyncIterator[None]:
        """Take one of few places for a call of a tool whose newest result was large; other calls have no limit.

        The first call of a tool also waits for a place, but not for long.
        """
        has_place = False
        try:
            while not has_place and self._large.get(tool, True):
                limit_s = None if tool in self._large else _UNKNOWN_WAIT_S
                with contextlib.suppress(TimeoutError):
                    has_place = await asyncio.wait_for(self._places.acquire(), limit_s)
                if tool not in self._large:
                    break
            yield
        finally:
            if has_place:
                self._places.release()

    def note(self, tool: str, *, is_large: bool) -> None:
        """Remember whether a tool's newest result was large."""
        self._large[tool] = is_large and tool != RUN_CODE  # because each call of it has other code

    def keep(self, address: str, text: str, kind: Kind, *, is_clean: bool = False) -> LargeResult:
        """Store a result. Works on any thread."""
        result = LargeResult(text, kind, is_clean=is_clean)
        with self._keeping:
            results = self._results
            results[address] = result
            while sum(entry.size_bytes for entry in results.values()) > _KEPT_BYTES and len(results) > 1:
                results.popitem(last=False)
        return result

    async def read(self, address: str) -> Part | None:
        """Return a part: `ADDRESS/3`, or `ADDRESS` for the first one; None for an unknown address."""
        whole, _, number = address.rpartition("/")
        if address in self._results:
            whole, number = address, "1"
        result = self._results.get(whole)
        if result is None or not number.isdecimal():
            return None
        if not result.is_clean:
            async with self._at_work:
                await result.clean()
        return await asyncio.to_thread(result.part, int(number[:9]))


def _give_back_large_blocks() -> None:
    """Make the C library return large freed blocks to the system; otherwise it keeps more and more."""
    with contextlib.suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, MIB)


def _written(text: str) -> BinaryIO:
    file = tempfile.TemporaryFile(prefix="healkit-")  # noqa: SIM115 - open as long as the result is stored
    file.write(text.encode(errors="replace"))
    file.flush()
    return file


def _to_character(data: bytes, place: int) -> int:
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


async def _cleaned(raw: BinaryIO, kind: Kind) -> BinaryIO:
    """Let another process clean a file, and return its output; on cancellation, that process is ended."""
    cleaned = tempfile.TemporaryFile(prefix="healkit-")  # noqa: SIM115 - as above
    os.lseek(raw.fileno(), 0, os.SEEK_SET)
    # -P: without the working directory, which may belong to anyone.
    words = [sys.executable, "-P", "-m", __name__, kind]
    process = await asyncio.create_subprocess_exec(
        *words, stdin=raw.fileno(), stdout=cleaned.fileno(), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        code = await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if code:
        raise WorkerError("The result could not be cleaned, and is not shown.", hint="Run the tool again.")
    return cleaned


def main(kind: str) -> None:
    """Clean standard input, and write it to standard output."""
    import msgspec

    from healkit.core.rendering import cleaning

    with contextlib.suppress(OSError):
        os.nice(_NICE)
    raw = sys.stdin.buffer.read()
    if kind == "json":
        data = msgspec.json.encode(cleaning.data(msgspec.json.decode(raw)))
    else:
        data = visible(cleaning.text(raw.decode())).encode(errors="replace")
    sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main(sys.argv[1])
