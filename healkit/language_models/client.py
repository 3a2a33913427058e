"""Client of a language model: retries, limits, Stop.

One question is one request, which runs in an event loop of its own thread (`transport`). The thread that asks waits for
it, tells progress, and cancels the request when the budget is spent, when Stop is pressed, or when it is interrupted
itself. A blocking read would hear neither.

A busy server is asked again within the budget. Its own `Retry-After` counts; if that is later than the end of the
budget, the question is given up at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from healkit.config import Config
from healkit.contracts.backoff import pause_s
from healkit.errors import BudgetSpent, ModelUnavailable
from healkit.language_models.api_errors import TransientError, UnsupportedRequest
from healkit.language_models.model_endpoint import ModelEndpoint, ModelRequest
from healkit.language_models.protocol import Progress, Prompt, Reply
from healkit.tracing.delivery import DaemonExecutor

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
        for tries in range(self._config.heal_model_retries + 1):
            self._on_progress(Progress(attempt))
            try:
                return self._supported(prompt, attempt)
            except TransientError as passing:
                if tries == self._config.heal_model_retries:
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
        """Run one request; raise `TransientError` where the same request may succeed later."""
        if (left_s := self._left_s()) <= 0:
            raise BudgetSpent("It was stopped, or its time was up, before the model was asked.")
        from healkit.language_models import transport  # late: without a model, no HTTP client is loaded

        config = self._config
        request = ModelRequest(
            self._endpoint,
            body,
            min(config.heal_model_timeout_s, left_s + _LATER_S),
            _STREAM_BYTES + _TOKEN_MAX_BYTES * config.heal_model_max_tokens,
        )
        self.requests += 1
        reader = self._endpoint.adapter.reader()
        running = _Running(transport.send(request, reader))
        seen = 0
        try:
            while not running.done.done():
                if self._left_s() <= 0:
                    raise BudgetSpent("It was stopped, or its time was up, while the model was answering.")
                with suppress(TimeoutError):
                    running.done.exception(timeout=_POLL_S)
                if (received := len(reader.reply.text)) != seen:
                    seen = received
                    self._on_progress(Progress(attempt, received))
            return running.done.result()
        finally:
            running.cancel()

    def _wait(self, passing: TransientError, tries: int, attempt: int) -> None:
        """Pause before the next try: as long as the server asks for, else longer each time."""
        wait_s = passing.wait_s or pause_s(tries + 1, self._config.heal_model_backoff_s, least=0.5)
        left_s = self._left_s()
        if 0 < left_s <= wait_s:
            raise ModelUnavailable(
                f"{passing.error.message} Asking again makes sense in {wait_s:.3g} s, and {left_s:.3g} s of the budget "
                "are left.",
                hint="Give it more time, or try again later.",
            )
        self._on_progress(Progress(attempt, wait_s=wait_s, why=passing.error.message))
        until = time.monotonic() + wait_s
        while (rest := until - time.monotonic()) > 0:
            if self._left_s() <= 0:
                raise BudgetSpent("It was stopped, or its time was up, while the model was busy.")
            time.sleep(min(_POLL_S, rest))


class _Running:
    """Coroutine in a daemon thread of its own, which does not hold up the end of the process."""

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
