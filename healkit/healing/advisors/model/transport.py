"""One request to a model's server: bounded, stoppable, and seen while it runs.

httpx limits each read, and an answer that trickles in never reaches that limit; a blocking read does not hear Stop
either. So the request runs in an event loop of its own thread and is cancelled from outside: when its time is up, when
the budget is spent, or when the one who waits for it is interrupted. Who waits also hears how much has come, in their
own thread.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.errors import BudgetSpent, ModelError, ModelUnavailable
from healkit.healing.advisors.model.api_errors import TransientError, presentable, refusal_of
from healkit.healing.advisors.model.endpoint import Access
from healkit.healing.advisors.model.protocol import Broken, Reader, Reply
from healkit.healing.advisors.model.sse import EventStream
from healkit.tracing.collector_client import DaemonExecutor

if TYPE_CHECKING:
    import httpx

#: How often it is asked whether somebody pressed Stop.
POLL_S = 0.05
#: More of an error's page is not read.
_ERROR_MAX_BYTES = 64 * 1024
#: What a token can take in a stream, its envelope included, and what a stream has besides.
_TOKEN_MAX_BYTES, _STREAM_BYTES = 2048, 256 * 1024


@dataclasses.dataclass(frozen=True)
class Request:
    """What to send, and the limits of the whole exchange in seconds and bytes."""

    access: Access
    body: dict[str, Any]
    timeout_s: float
    answer_max_bytes: int

    @property
    def headers(self) -> dict[str, str]:
        """All headers, the key among them."""
        return {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",  # so that its size is known without unpacking
            "User-Agent": "healkit",
            **self.access.adapter.headers(self.access.key.reveal()),
        }


def answer_max_bytes(max_tokens: int) -> int:
    """The most that a stream of so many tokens can honestly take."""
    return _STREAM_BYTES + _TOKEN_MAX_BYTES * max_tokens


def exchange(
    request: Request, left_s: Callable[[], float], on_received: Callable[[int], None] = lambda _: None
) -> Reply:
    """The whole answer; `on_received` gets the number of characters so far whenever it has changed.

    Raises `BudgetSpent` as soon as `left_s()` is 0, `ModelError` and its kinds, or `TransientError` where the same
    request may succeed later.
    """
    reader = request.access.adapter.reader()
    running = _Running(_ask(request, reader))
    seen = 0
    try:
        while not running.done.done():
            if left_s() <= 0:
                raise BudgetSpent(
                    "The healing was stopped, or its time was up, while the model was answering."
                )
            with suppress(TimeoutError):
                running.done.exception(timeout=POLL_S)
            if (received := len(reader.reply.text)) != seen:
                seen = received
                on_received(received)
        return running.done.result()
    finally:
        running.cancel()


class _Running:
    """A coroutine in a thread of its own, which nobody waits for at exit."""

    def __init__(self, work: Any) -> None:
        self.done: Future[Reply] = Future()
        self._work = work
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonExecutor())
        self._task: asyncio.Task[Reply] | None = None
        threading.Thread(target=self._main, name="healkit-model", daemon=True).start()

    def cancel(self) -> None:
        """End it, if it has not ended; returns at once."""
        with suppress(RuntimeError):  # the loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _main(self) -> None:
        try:
            self._task = self._loop.create_task(self._work)
            reply = self._loop.run_until_complete(self._task)
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who asks the future
            self.done.set_exception(error)
        else:
            self.done.set_result(reply)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


async def _ask(request: Request, reader: Reader) -> Reply:
    import httpx  # here, not above: without a model, healkit loads no HTTP client

    host = request.access.host
    try:
        async with asyncio.timeout(request.timeout_s):
            # A redirect is never followed: the key would go to whom it names. httpx's own limits, which are for each
            # read, come later than the one for the whole.
            async with httpx.AsyncClient(timeout=request.timeout_s + 5, follow_redirects=False) as client:
                return await _exchange(client, request, reader)
    except TimeoutError:
        raise ModelUnavailable(
            f"The model at {host} did not answer within {request.timeout_s:.3g} s.",
            hint="Raise heal_model_timeout_s or the budget, or take a faster model.",
        ) from None
    except httpx.ConnectError as error:
        if "ssl" in str(error).lower() or "certificate" in str(error).lower():
            raise ModelError(
                f"There is no safe connection to {host}: {error}.",
                hint="Check heal_model_url (http or https?); SSL_CERT_FILE names a certificate authority of your own.",
            ) from None
        raise TransientError(_unreachable(host, error)) from None
    except httpx.TransportError as error:
        raise TransientError(_unreachable(host, error)) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
        raise _unreachable(host, error) from None


async def _exchange(client: httpx.AsyncClient, request: Request, reader: Reader) -> Reply:
    content = msgspec.json.encode(request.body)
    endpoint = request.access.adapter.endpoint
    async with client.stream("POST", endpoint, content=content, headers=request.headers) as response:
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        plain = response.headers.get("Content-Encoding", "identity") == "identity"
        if response.status_code != 200 or kind != "text/event-stream" or not plain:
            said = await _beginning(response) if plain else b""
            raise refusal_of(response.status_code, dict(response.headers), said, request.access)
        events = EventStream()
        received = 0
        async for chunk in response.aiter_raw():
            received += len(chunk)
            if received > request.answer_max_bytes:
                raise ModelError(
                    f"The model at {request.access.host} sent more than {request.answer_max_bytes:,} bytes.",
                    hint="heal_model_max_tokens says how long an answer may be; does the server heed it?",
                )
            _read(events.feed(chunk), reader, request.access)
            if reader.done:
                break
    if not reader.reply.ending:
        raise TransientError(_broken_off(request.access.host, reader.reply.text))
    return reader.reply


def _read(events: list[str], reader: Reader, access: Access) -> None:
    try:
        for data in events:
            reader.read(data)
    except Broken as broken:
        message = f"The model at {access.host} broke its answer off: {presentable(str(broken), access)}."
        if broken.passing:
            raise TransientError(ModelUnavailable(message, hint="Try again later.")) from None
        raise ModelError(message) from None
    except ModelError as error:
        raise ModelError(f"{presentable(error.message, access)}.", hint=error.hint) from None


async def _beginning(response: httpx.Response) -> bytes:
    said = bytearray()
    async for chunk in response.aiter_raw():
        said += chunk
        if len(said) > _ERROR_MAX_BYTES:
            break
    return bytes(said[:_ERROR_MAX_BYTES])


def _unreachable(host: str, error: BaseException) -> ModelUnavailable:
    said = str(error) or "the connection was lost"
    return ModelUnavailable(
        f"The model at {host} cannot be reached: {type(error).__name__}: {said}.",
        hint="Is the server running, and heal_model_url its address?",
    )


def _broken_off(host: str, text: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"The answer of the model at {host} broke off after {len(text):,} characters.",
        hint="Was the server ended, or a proxy between you and it too impatient?",
    )
