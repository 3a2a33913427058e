"""HTTP transport of one bounded request to a model.

httpx limits each read, and an answer that trickles in never reaches that limit. So the whole request has a deadline,
and its stream a limit in bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator

import httpx
import msgspec
from httpx_sse import EventSource

from healkit.errors import ModelError, ModelUnavailable
from healkit.language_models.api_errors import TransientError, presentable, refusal_of
from healkit.language_models.model_endpoint import ModelEndpoint, ModelRequest
from healkit.language_models.protocol import Reader, Reply, StreamError

#: Limit of what is read of an error's page.
_ERROR_MAX_BYTES = 64 * 1024


async def send(request: ModelRequest, reader: Reader) -> Reply:
    """Send the request and read the whole answer with `reader`.

    Raises `ModelError` and its kinds, `UnsupportedRequest`, or `TransientError` where the same request may succeed
    later.
    """
    host = request.endpoint.host
    try:
        async with asyncio.timeout(request.timeout_s):
            # A redirect is never followed: the key would go to its target. httpx's own limits, which are for each
            # read, come later than the deadline of the whole.
            async with httpx.AsyncClient(
                timeout=request.timeout_s + 5, follow_redirects=False, verify=_authorities()
            ) as client:
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


def _authorities() -> ssl.SSLContext:
    """Return the certificate authorities to trust; read once, as that takes longer than a local model's answer."""
    return _authorities_of(*(os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")))


@functools.cache
def _authorities_of(*_where: str | None) -> ssl.SSLContext:
    return httpx.create_ssl_context()


async def _exchange(client: httpx.AsyncClient, request: ModelRequest, reader: Reader) -> Reply:
    content = msgspec.json.encode(request.body)
    url = request.endpoint.adapter.endpoint
    async with client.stream("POST", url, content=content, headers=request.headers) as response:
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        plain = response.headers.get("Content-Encoding", "identity") == "identity"
        if response.status_code != 200 or kind != "text/event-stream" or not plain:
            said = await _beginning(response) if plain else b""
            raise refusal_of(response.status_code, dict(response.headers), said, request.endpoint)
        async with contextlib.aclosing(event_data(response, request.answer_max_bytes)) as events:
            async for data in events:
                _read(data, reader, request.endpoint)
                if reader.done:
                    break
    if not reader.reply.ending:
        raise TransientError(_broken_off(request.endpoint.host, reader.reply.text))
    return reader.reply


async def event_data(response: httpx.Response, max_bytes: int) -> AsyncGenerator[str, None]:
    """Yield the data of each server-sent event; raise `ModelError` once the stream is longer than `max_bytes`.

    Names, ids and retry times of events are skipped: both protocols repeat them in the data.
    """
    assert isinstance(response.stream, httpx.AsyncByteStream)  # the client is an async one
    response.stream = _BoundedStream(response.stream, max_bytes, response.url.netloc.decode())
    response.encoding = "utf-8-sig"  # as the format demands, whatever the header says
    async with contextlib.aclosing(EventSource(response).aiter_sse()) as events:
        async for event in events:
            if event.data:
                yield event.data


class _BoundedStream(httpx.AsyncByteStream):
    """Stream of bytes that fails over its limit: httpx and httpx-sse would hold a line of any length."""

    def __init__(self, stream: httpx.AsyncByteStream, max_bytes: int, host: str) -> None:
        self._stream, self._max_bytes, self._host = stream, max_bytes, host

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > self._max_bytes:
                raise ModelError(
                    f"The model at {self._host} sent more than {self._max_bytes:,} bytes.",
                    hint="heal_model_max_tokens says how long an answer may be; does the server heed it?",
                )
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _read(data: str, reader: Reader, endpoint: ModelEndpoint) -> None:
    """Read one event, and say the server's errors without the key."""
    try:
        reader.read(data)
    except StreamError as broken:
        message = f"The model at {endpoint.host} broke its answer off: {presentable(str(broken), endpoint)}."
        if broken.passing:
            raise TransientError(ModelUnavailable(message, hint="Try again later.")) from None
        raise ModelError(message) from None
    except ModelError as error:
        raise ModelError(f"{presentable(error.message, endpoint)}.", hint=error.hint) from None


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
