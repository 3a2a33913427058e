"""Connections of the standalone collector, and their bound.

A connection costs a file descriptor before it has said anything. So there may be only so many, and a new one always
gets in: where there are too many, one is closed that is of least use. Strangers go first, which have sent no request
with the right token; then those that are idle; then those whose body is still arriving. Among these the oldest of the
address with the most connections goes. One whose request is being answered is never closed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import resource
from collections import Counter

from tornado.iostream import IOStream

#: Connections at once; fewer where the process may not open twice as many files.
MAX_CONNECTIONS = 512
#: How long the headers of the first request may take to arrive.
FIRST_HEADERS_S = 10.0


class Stage(enum.IntEnum):
    """Use of a connection; the least useful is closed first."""

    STRANGER = 0
    IDLE = 1
    SENDING = 2
    ANSWERED = 3


@dataclasses.dataclass
class _Connection:
    host: str
    deadline: asyncio.TimerHandle
    stage: Stage = Stage.STRANGER


class Connections:
    """Open connections, oldest first; used on one event loop."""

    def __init__(self, limit: int | None = None, first_headers_s: float = FIRST_HEADERS_S) -> None:
        self.limit = connection_limit() if limit is None else limit
        self._first_headers_s = first_headers_s
        self._open: dict[IOStream, _Connection] = {}

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, stream: IOStream, host: str) -> None:
        """Add a connection; close another one where there are too many."""
        deadline = asyncio.get_running_loop().call_later(self._first_headers_s, stream.close)
        self._open[stream] = _Connection(host, deadline)
        if len(self._open) > self.limit and (least := self._least_useful()) is not None:
            self.closed(least)
            least.close()

    def asks(self, stream: IOStream) -> None:
        """Note that the headers of a request have come."""
        if stream in self._open:
            self._open[stream].deadline.cancel()

    def reached(self, stream: IOStream, stage: Stage) -> None:
        """Note what a connection does now."""
        if stream in self._open:
            self._open[stream].stage = stage

    def closed(self, stream: IOStream) -> None:
        """Forget a connection."""
        if stream in self._open:
            self._open.pop(stream).deadline.cancel()

    def _least_useful(self) -> IOStream | None:
        stage = min(connection.stage for connection in self._open.values())
        if stage is Stage.ANSWERED:
            return None
        held = Counter(connection.host for connection in self._open.values())
        of_stage = [stream for stream, connection in self._open.items() if connection.stage is stage]
        return max(
            of_stage, key=lambda stream: held[self._open[stream].host]
        )  # the first, so the oldest, of equals


def connection_limit() -> int:
    """Return how many connections may be open: half of the files that this process may open, up to 512."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files < 0 else max(8, min(MAX_CONNECTIONS, files // 2))
