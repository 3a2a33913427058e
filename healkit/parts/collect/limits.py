"""Limits of the collector: connections, rate and size.

**Connections** of the standalone server. A connection costs a file descriptor before it has sent anything, so their
number is limited. A new connection is always accepted. If there are too many, the least useful one is closed. First
come connections that have sent no request with the right token, then idle ones, then those whose body is still
arriving. Among these, the oldest one of the address with the most connections is closed. A connection whose request is
being answered is never closed.

**Rate.** Each client has a token bucket that holds up to `burst` tokens and gets `rate_per_s` of them back each second.
A request takes one token. A new bucket is full. So a bucket that has become full again may be forgotten. If there are
too many buckets, the least recently used one is forgotten.

**Size.** A body is limited twice: while it arrives, by the handler that reads it, and while it is uncompressed, here. A
few kilobytes of gzip can become gigabytes of zeros, so uncompressing stops one byte beyond the limit.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import resource
import time
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from healkit.errors import RequestRefused

if TYPE_CHECKING:
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
        """Add a connection; close another one if there are too many."""
        deadline = asyncio.get_running_loop().call_later(self._first_headers_s, stream.close)
        self._open[stream] = _Connection(host, deadline)
        if len(self._open) > self.limit and (least := self._least_useful()) is not None:
            self.closed(least)
            least.close()

    def asks(self, stream: IOStream) -> None:
        """Record that the headers of a request have arrived."""
        if stream in self._open:
            self._open[stream].deadline.cancel()

    def reached(self, stream: IOStream, stage: Stage) -> None:
        """Record the current use of a connection."""
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
        per_host = Counter(connection.host for connection in self._open.values())
        of_stage = [stream for stream, connection in self._open.items() if connection.stage is stage]
        return max(
            of_stage, key=lambda stream: per_host[self._open[stream].host]
        )  # the first, so the oldest, of equals


def connection_limit() -> int:
    """Return how many connections may be open: half of the process's limit of open files, up to 512."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files < 0 else max(8, min(MAX_CONNECTIONS, files // 2))


#: The number of buckets that are kept.
MAX_CLIENTS = 10_000
#: zlib's window bits for a gzip header and trailer (zlib's manual, inflateInit2).
_GZIP = 16 + zlib.MAX_WBITS


class RateLimiter:
    """Token buckets by client; used by one thread. `clock` counts seconds."""

    def __init__(self, rate_per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate_per_s = rate_per_s
        self.burst = burst
        self._clock = clock
        #: Client → tokens left, and the time of that count.
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, client: Hashable) -> float:
        """Take one token; return 0.0, or the seconds until the client gets one."""
        now = self._clock()
        tokens, then = self._buckets.pop(client, (float(self.burst), now))
        tokens = min(float(self.burst), tokens + max(0.0, now - then) * self.rate_per_s)
        allowed = tokens >= 1.0
        self._buckets[client] = (tokens - 1.0 if allowed else tokens, now)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - tokens) / self.rate_per_s


def check_content_type(value: str) -> None:
    """Refuse any type except JSON in UTF-8, the meaning of an empty value; raise `RequestRefused`."""
    kind, *parameters = (part.strip().lower() for part in value.split(";"))
    if kind and kind != "application/json":
        raise RequestRefused(
            "CONTENT_TYPE",
            f"The server does not read a body of type {kind[:100]!r}.",
            hint="Send JSON, with Content-Type: application/json.",
        )
    for parameter in parameters:
        name, _, charset = parameter.partition("=")
        if name.strip() == "charset" and charset.strip(" \"'") not in {"utf-8", "utf8"}:
            raise RequestRefused(
                "CONTENT_TYPE",
                f"The server does not read a body in {charset.strip()[:100]!r}.",
                hint="Send JSON in UTF-8 (RFC 8259, section 8.1).",
            )


def too_large(limit: int) -> RequestRefused:
    """Make the refusal of a body with more bytes than the limit."""
    return RequestRefused(
        "BODY_TOO_LARGE",
        f"The body has more than {limit:,} bytes.",
        hint="Send fewer traces at once.",
    )


def unpacked(data: bytes, encoding: str, limit: int) -> bytes:
    """Undo the body's Content-Encoding, up to `limit` bytes; raise `RequestRefused`."""
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        return data
    if encoding not in {"gzip", "x-gzip"}:
        raise RequestRefused(
            "CONTENT_ENCODING",
            f"The server does not read a body with Content-Encoding {encoding[:100]!r}.",
            hint="Send it uncompressed or with gzip.",
        )
    unzip = zlib.decompressobj(_GZIP)
    try:
        body = unzip.decompress(data, limit + 1)
    except zlib.error as error:
        raise RequestRefused("BODY_INVALID", f"The body is not gzip: {error}.") from None
    if len(body) > limit:
        raise too_large(limit)
    if not unzip.eof:
        raise RequestRefused("BODY_INVALID", "The gzip data of the body is cut off.")
    return body
