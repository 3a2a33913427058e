"""Streams between healkit and an MCP server, watched."""

from __future__ import annotations

import asyncio
import os
from typing import Any

_LAST_WORDS_BYTES = 4000


class Watched:
    """A stream of messages that sets `end` when there will be no more; the SDK keeps the end of a stream to itself."""

    def __init__(self, stream: Any, end: asyncio.Event) -> None:
        self._stream = stream
        self._end = end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._end.set()
            raise

    async def __aenter__(self) -> Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> Any:
        return await self._stream.__aexit__(*exc)


class LastWords:
    """A pipe for a server's stderr, read as it fills, so that it never blocks, and kept by its end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._read, write = os.pipe()
        self._bytes = b""
        os.set_blocking(self._read, False)
        self.file = open(write, "w", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        self._loop.add_reader(self._read, self._more)

    @property
    def text(self) -> str:
        """Text so far, in whole lines where it was cut."""
        return self._bytes.decode(errors="replace").strip()

    def close(self) -> None:
        """Read what is left, and let go of the pipe."""
        self._more()
        self._loop.remove_reader(self._read)
        os.close(self._read)
        self.file.close()

    def _more(self) -> None:
        try:
            while chunk := os.read(self._read, 64 * 1024):
                self._bytes = (self._bytes + chunk)[-_LAST_WORDS_BYTES:]
        except BlockingIOError:
            pass
