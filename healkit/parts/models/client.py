"""Client of a language model: retries, limits, Stop.

One question is one request, which runs in an event loop in its own thread. The calling thread waits for it and shows
progress. It cancels the request when the budget is spent, when Stop is pressed, or when it is interrupted itself. A
blocking read would not notice these events.

A busy server is asked again within the budget. Its own `Retry-After` counts; if that is later than the end of the
budget, the client gives up at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import ssl
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from httpx_sse import EventSource

from healkit.config import Config
from healkit.core.times import pause_s
from healkit.errors import BudgetSpent, ModelError, ModelInputTooLarge, ModelKeyRefused, ModelUnavailable
from healkit.parts.models.model_endpoint import KEY_VARIABLE, ModelEndpoint, ModelRequest
from healkit.parts.models.protocols import Progress, Prompt, Reader, Reply, StreamError, complaint_of, mapping
from healkit.parts.sanitizer.sanitizer import Sanitizer
from healkit.parts.traces.delivery import DaemonExecutor, retry_after_s, shown_reason

#: How often a request is repeated while the server is busy or away, and the first pause, which doubles each time. A
#: pause that the server asks for counts more.
RETRIES, BACKOFF_S = 3, 1.0
#: Interval at which the budget and Stop are checked.
_POLL_S = 0.05
#: Time by which a request outlasts the budget: the thread that waits for it ends it first.
_LATER_S = 5.0
#: Number of optional fields that a server may refuse, one after another.
_UNSUPPORTED_MAX = 4
#: Bytes of a stream: for each token, its envelope included, and for the rest.
_TOKEN_MAX_BYTES, _STREAM_BYTES = 2048, 256 * 1024


class ModelClient:
    """Asks one model; `left_s` returns the rest of the budget, 0 once Stop was pressed."""

    def __init__(
        self,
        endpoint: ModelEndpoint,
        config: Config,
        left_s: Callable[[], float],
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._endpoint = endpoint
        self._config = config
        self._left_s = left_s
        self._on_progress = on_progress
        self._unsupported: list[str] = []
        self.model = endpoint.model
        self.requests = 0

    def ask(self, prompt: Prompt, attempt: int) -> Reply:
        """Return the model's answer; raise `BudgetSpent`, or `ModelError` and its kinds."""
        for tries in range(RETRIES + 1):
            self._on_progress(Progress(attempt))
            try:
                return self._supported(prompt, attempt)
            except TransientError as passing:
                if tries == RETRIES:
                    raise passing.error from None
                self._wait(passing, tries, attempt)
        raise AssertionError("the last try returns or raises")

    def _supported(self, prompt: Prompt, attempt: int) -> Reply:
        """Send one request, without the fields that this server does not know."""
        adapter = self._endpoint.adapter
        body = adapter.body(self._endpoint.model, prompt, self._config.heal_model_max_tokens)
        for complaint in self._unsupported:
            body = adapter.without(body, complaint) or body
        while True:
            try:
                return self._send(body, attempt)
            except UnsupportedRequest as refused:
                fewer = adapter.without(body, refused.said)
                if fewer is None or len(self._unsupported) >= _UNSUPPORTED_MAX:
                    raise refused.error from None
                self._unsupported.append(refused.said)
                body = fewer

    def _send(self, body: dict[str, Any], attempt: int) -> Reply:
        """Run one request; raise `TransientError` if the same request may succeed later."""
        if (left_s := self._left_s()) <= 0:
            raise BudgetSpent("Stopped, or out of time, before the model was called.")
        config = self._config
        request = ModelRequest(
            self._endpoint,
            body,
            min(config.heal_model_timeout_s, left_s + _LATER_S),
            _STREAM_BYTES + _TOKEN_MAX_BYTES * config.heal_model_max_tokens,
        )
        self.requests += 1
        reader = self._endpoint.adapter.reader()
        running = _Running(send(request, reader))
        reported_chars = 0
        try:
            while not running.done.done():
                if self._left_s() <= 0:
                    raise BudgetSpent("Stopped, or out of time, while the model was answering.")
                with suppress(TimeoutError):
                    running.done.exception(timeout=_POLL_S)
                if (received := len(reader.reply.text)) != reported_chars:
                    reported_chars = received
                    self._on_progress(Progress(attempt, received))
            return running.done.result()
        finally:
            running.cancel()

    def _wait(self, passing: TransientError, tries: int, attempt: int) -> None:
        """Pause before the next try: as long as the server says, otherwise longer each time."""
        wait_s = passing.wait_s or pause_s(tries + 1, BACKOFF_S, least=0.5)
        left_s = self._left_s()
        if 0 < left_s <= wait_s:
            raise ModelUnavailable(
                f"{passing.error.message} You can ask again in {wait_s:.3g} s, but only {left_s:.3g} s of the budget "
                "are left.",
                hint="Give it more time, or try again later.",
            )
        self._on_progress(Progress(attempt, wait_s=wait_s, why=passing.error.message))
        until = time.monotonic() + wait_s
        while (rest := until - time.monotonic()) > 0:
            if self._left_s() <= 0:
                raise BudgetSpent("Stopped, or out of time, while the model was busy.")
            time.sleep(min(_POLL_S, rest))


class _Running:
    """Coroutine in its own daemon thread, which does not delay the end of the process."""

    def __init__(self, work: Coroutine[Any, Any, Reply]) -> None:
        self.done: Future[Reply] = Future()
        self._work = work
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonExecutor())
        self._task: asyncio.Task[Reply] | None = None
        threading.Thread(target=self._main, name="healkit-model", daemon=True).start()

    def cancel(self) -> None:
        """Cancel it, if it has not ended; return at once."""
        with suppress(RuntimeError):  # the loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _main(self) -> None:
        try:
            self._task = self._loop.create_task(self._work)
            reply = self._loop.run_until_complete(self._task)
        except BaseException as error:  # noqa: BLE001 - the caller gets it from the future
            self.done.set_exception(error)
        else:
            self.done.set_result(reply)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


# HTTP transport of one bounded request to a model.
#
# httpx limits each read, and an answer that trickles in never reaches that limit. So the whole request has a deadline,
# and its stream a limit in bytes.


#: Limit of what is read of an error's page.
_ERROR_MAX_BYTES = 64 * 1024


async def send(request: ModelRequest, reader: Reader) -> Reply:
    """Send the request and read the complete answer with `reader`.

    Raises `ModelError` and its kinds, `UnsupportedRequest`, or `TransientError` if the same request may succeed later.
    """
    host = request.endpoint.host
    try:
        async with asyncio.timeout(request.timeout_s):
            # A redirect is never followed: the key would go to its target. The limits of httpx are for each read; the
            # deadline of the whole comes before them.
            async with httpx.AsyncClient(
                timeout=request.timeout_s + 5, follow_redirects=False, verify=_authorities()
            ) as client:
                return await _exchange(client, request, reader)
    except TimeoutError:
        raise ModelUnavailable(
            f"The model at {host} did not answer within {request.timeout_s:.3g} s.",
            hint="Raise heal_model_timeout_s or the budget, or use a faster model.",
        ) from None
    except httpx.ConnectError as error:
        if "ssl" in str(error).lower() or "certificate" in str(error).lower():
            raise ModelError(
                f"There is no safe connection to {host}: {error}.",
                hint="Check heal_model_url (http or https?); SSL_CERT_FILE can name your own certificate authority.",
            ) from None
        raise TransientError(_unreachable(host, error)) from None
    except httpx.TransportError as error:
        raise TransientError(_unreachable(host, error)) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
        raise _unreachable(host, error) from None


def _authorities() -> ssl.SSLContext:
    """Return the trusted certificate authorities; read once, because that takes longer than a local model's answer."""
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
            body = await _beginning(response) if plain else b""
            raise refusal_of(response.status_code, dict(response.headers), body, request.endpoint)
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
    """Stream of bytes that fails beyond its limit: httpx and httpx-sse would keep a line of any length."""

    def __init__(self, stream: httpx.AsyncByteStream, max_bytes: int, host: str) -> None:
        self._stream, self._max_bytes, self._host = stream, max_bytes, host

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > self._max_bytes:
                raise ModelError(
                    f"The model at {self._host} sent more than {self._max_bytes:,} bytes.",
                    hint="heal_model_max_tokens limits the length of an answer. Does the server respect it?",
                )
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _read(data: str, reader: Reader, endpoint: ModelEndpoint) -> None:
    """Read one event, and report the server's errors without the key."""
    try:
        reader.read(data)
    except StreamError as broken:
        message = (
            f"The model at {endpoint.host} stopped in the middle of its answer: "
            f"{presentable(str(broken), endpoint)}."
        )
        if broken.passing:
            raise TransientError(ModelUnavailable(message, hint="Try again later.")) from None
        raise ModelError(message) from None
    except ModelError as error:
        raise ModelError(f"{presentable(error.message, endpoint)}.", hint=error.hint) from None


async def _beginning(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _ERROR_MAX_BYTES:
            break
    return bytes(body[:_ERROR_MAX_BYTES])


def _unreachable(host: str, error: BaseException) -> ModelUnavailable:
    reason = str(error) or "the connection was lost"
    return ModelUnavailable(
        f"The model at {host} cannot be reached: {type(error).__name__}: {reason}.",
        hint="Is the server running, and is heal_model_url its address?",
    )


def _broken_off(host: str, text: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"The answer of the model at {host} ended too early, after {len(text):,} characters.",
        hint="Did the server stop, or did a proxy time out?",
    )


# Errors for a server's refusals: wait, fix a setting, or end.
#
# OpenAI (https://platform.openai.com/docs/guides/error-codes) and Anthropic
# (https://platform.claude.com/docs/en/api/errors) publish the codes; 529 is Anthropic's code for overloaded.


#: Codes after which another try may succeed.
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
#: Words of a 429 that waiting does not help: the quota is used up.
_NO_QUOTA = ("insufficient_quota", "billing")


class TransientError(Exception):
    """A temporary refusal or fault; `wait_s` is the pause that the server wants, otherwise 0."""

    def __init__(self, error: ModelUnavailable, wait_s: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait_s = wait_s


class UnsupportedRequest(Exception):
    """Refusal of a request that the server does not understand; `said` is its message."""

    def __init__(self, said: str, error: ModelError) -> None:
        super().__init__(said)
        self.said = said
        self.error = error


def refusal_of(status: int, headers: Mapping[str, str], body: bytes, endpoint: ModelEndpoint) -> Exception:
    """Return the exception for an answer that is not a stream of events; `headers` have lower-case names."""
    kind, message = _said(body, endpoint)
    answered = f"The model's server at {endpoint.host} answered {_named(status)}" + (
        f": {message}" if message else ""
    )
    match status:
        case 200:
            return _no_stream(answered, headers)
        case 401 | 403:
            return ModelKeyRefused(f"{answered}.", hint=_key_hint(endpoint))
        case 404:
            hint = f"Does it have a model {endpoint.model!r}, and is {endpoint.adapter.endpoint} its address?"
            return ModelError(f"{answered}.", hint=hint)
        case 413:
            return ModelInputTooLarge(f"{answered}.", hint="Lower heal_model_input_max_bytes.")
        case 402 | 429 if status == 402 or any(word in f"{kind} {message}" for word in _NO_QUOTA):
            return ModelError(f"{answered}.", hint="The account has no quota left.")
        case _ if status in _PASSING:
            wait_s = retry_after_s(headers.get("retry-after", ""))
            return TransientError(ModelUnavailable(f"{answered}.", hint="Try again later."), wait_s)
        case 400 | 422:
            return UnsupportedRequest(f"{kind} {message}", ModelError(f"{answered}."))
        case _ if 300 <= status < 400:
            return _redirect(answered, headers)
    return ModelError(f"{answered}.", hint="Is heal_model_url the address of such an API?")


def _no_stream(answered: str, headers: Mapping[str, str]) -> ModelError:
    kind = headers.get("content-type", "") or "no type"
    packed = headers.get("content-encoding", "identity")
    form = f"{kind} packed as {packed}" if packed != "identity" else kind
    return ModelError(
        f"{answered}, as {shown_reason(form)!r} instead of a stream of events.",
        hint="Is heal_model_url the address of such an API, and is heal_model_provider its protocol?",
    )


def _redirect(answered: str, headers: Mapping[str, str]) -> ModelError:
    try:
        place = urlsplit(headers.get("location", ""))
        target = f"to {place.hostname or ''}{place.path}"
    except ValueError:
        target = "elsewhere"
    return ModelError(
        f"{answered}: it points {shown_reason(target)}. healkit does not follow redirects, because the key "
        "would be sent there.",
        hint="If that address is right, set heal_model_url to it.",
    )


def _key_hint(endpoint: ModelEndpoint) -> str:
    if not endpoint.key:
        return f"It needs a key: set {KEY_VARIABLE}."
    return f"The key is from {endpoint.key.source}: is the key right, and may it use {endpoint.model!r}?"


def _said(body: bytes, endpoint: ModelEndpoint) -> tuple[str, str]:
    """Return kind and text of a JSON error in any common form, without key and secrets; else empty texts."""
    try:
        payload = mapping(msgspec.json.decode(body))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return "", ""
    for name in ("error", "message", "detail"):
        if payload.get(name):
            kind, text = complaint_of(payload[name])
            code = str(mapping(payload[name]).get("code") or "")
            return endpoint.key.kept_out(f"{kind} {code}"), presentable(text, endpoint)
    return "", ""


def presentable(said: str, endpoint: ModelEndpoint) -> str:
    """Return a server's message as one line without the key, which some servers quote, and without other secrets."""
    return shown_reason(str(Sanitizer().text(endpoint.key.kept_out(said)).value)).rstrip(".")


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
