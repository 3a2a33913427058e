"""One request to a collector, with a deadline for the whole of it.

httpx limits each read, and a server that sends a byte a second never reaches that limit; so the request runs in an
event loop and is cancelled when its time is up. Whatever goes wrong is a `Response` that says what, never an
exception.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from healkit.contracts.outbox import Waiting
from healkit.tracing.delivery import ANSWER_MAX_BYTES, Response

if TYPE_CHECKING:
    import httpx

#: Where a collector takes traces, below its URL.
TRACES_PATH = "/api/traces"


class Poster:
    """Posts batches to one collector; used, and closed, in one event loop."""

    def __init__(self, url: str, token: str, timeout_s: float) -> None:
        self._url = traces_url(url)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # an answer is short, and nothing has to be unpacked to know how long
            "User-Agent": "healkit",
        }
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s
        self._client: httpx.AsyncClient | None = None

    async def post(self, batch: Sequence[Waiting]) -> Response:
        """Send them in one request; never raises but when it is cancelled."""
        import httpx  # here, not above: without a collector, healkit loads no HTTP client

        body = b"[%s]" % b",".join(trace.wire.encode() for trace in batch)
        try:
            if self._client is None:
                limits = httpx.Limits(max_connections=1)
                self._client = httpx.AsyncClient(
                    timeout=self._timeout_s, limits=limits, follow_redirects=False
                )
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(self._client, body)
        except TimeoutError:
            return Response(0, problem=f"the collector did not answer within {self._timeout_s:g} s")
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            OSError,
            ValueError,
            ImportError,
        ) as error:  # or proxies' settings
            said = str(error) or "the connection was lost"
            return Response(0, problem=f"the collector cannot be reached: {type(error).__name__}: {said}")

    async def close(self) -> None:
        """Hang up."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _exchange(self, client: httpx.AsyncClient, body: bytes) -> Response:
        async with client.stream("POST", self._url, content=body, headers=self._headers) as response:
            received = bytearray()
            async for chunk in response.aiter_raw():
                received += chunk
                if len(received) > ANSWER_MAX_BYTES:
                    break
            retry_after = response.headers.get("Retry-After", "")
            return Response(response.status_code, bytes(received), retry_after)


def traces_url(url: str) -> str:
    """Where to post, from a collector's URL with or without the path of its traces."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    path = path if path.endswith(TRACES_PATH) else path + TRACES_PATH
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


class DaemonExecutor(ThreadPoolExecutor):
    """A thread for each task, which nobody waits for at exit.

    asyncio looks names up in its default executor, whose threads Python joins as it ends; a dead name server would so
    hold up the end of a program for as long as it takes to give up on it.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it on a new daemon thread."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it is the caller's, who asks the future
                future.set_exception(error)

        threading.Thread(target=work, name="healkit-sync-lookup", daemon=True).start()
        return future
