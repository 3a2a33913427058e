"""HTTP client of a collector, with a deadline for a request.

httpx limits each read, and a server that sends a byte a second never reaches that limit. So the request runs in an
event loop and is cancelled when its time is up. A failure is a `CollectorResponse` that says so, never an exception.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from healkit.contracts.traces import Waiting
from healkit.tracing.delivery import ANSWER_MAX_BYTES, CollectorResponse

if TYPE_CHECKING:
    import httpx

#: Path of a collector's traces, below its URL.
TRACES_PATH = "/api/traces"


class CollectorClient:
    """Client of one collector; used, and closed, in one event loop."""

    def __init__(self, url: str, token: str, timeout_s: float) -> None:
        self._url = traces_url(url)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # answers are short, and their size is known without unpacking
            "User-Agent": "healkit",
        }
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s
        self._client: httpx.AsyncClient | None = None

    async def post(self, batch: Sequence[Waiting]) -> CollectorResponse:
        """Send the traces in one request; raise only when cancelled."""
        import httpx  # late: without a collector, healkit loads no HTTP client

        body = b'{"traces": [%s]}' % b",".join(trace.wire.encode() for trace in batch)
        try:
            if self._client is None:
                limits = httpx.Limits(max_connections=1)
                self._client = httpx.AsyncClient(
                    timeout=self._timeout_s, limits=limits, follow_redirects=False
                )
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(self._client, body)
        except TimeoutError:
            return CollectorResponse(0, problem=f"the collector did not answer within {self._timeout_s:g} s")
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            OSError,
            ValueError,
            ImportError,
        ) as error:  # also for bad proxy settings
            said = str(error) or "the connection was lost"
            return CollectorResponse(
                0, problem=f"the collector cannot be reached: {type(error).__name__}: {said}"
            )

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _exchange(self, client: httpx.AsyncClient, body: bytes) -> CollectorResponse:
        async with client.stream("POST", self._url, content=body, headers=self._headers) as response:
            received = bytearray()
            async for chunk in response.aiter_raw():
                received += chunk
                if len(received) > ANSWER_MAX_BYTES:
                    break
            retry_after = response.headers.get("Retry-After", "")
            return CollectorResponse(response.status_code, bytes(received), retry_after)


def traces_url(url: str) -> str:
    """Return the URL to post to, from a collector's URL with or without the path of its traces."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    path = path if path.endswith(TRACES_PATH) else path + TRACES_PATH
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


class DaemonExecutor(ThreadPoolExecutor):
    """Executor with a daemon thread for each task, which Python does not join at exit.

    asyncio resolves host names in its default executor, whose threads are joined as Python ends. A dead name server
    would hold up the end of a program until it gives up.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn` on a new daemon thread."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the caller gets it from the future
                future.set_exception(error)

        threading.Thread(target=work, name="healkit-sync-lookup", daemon=True).start()
        return future
