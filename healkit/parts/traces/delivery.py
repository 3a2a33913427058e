"""Delivery of traces to a collector, in the background.

An execution never waits for it: its trace is in the database when the execution ends, and the execution only increases
a counter here. A batch is sent when enough traces are waiting, or after a while with the existing ones. The syncer
decides when to send, how much, when to pause, and when to end; `judge` reads the answers.

Each trace is delivered at least once. The collector recognises a trace that it already has, so it stores each trace
once.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit, urlunsplit

import msgspec

from healkit.config import Config
from healkit.core import times
from healkit.errors import DatabaseError
from healkit.parts.traces.contract import DeliveryVerdict, Waiting

if TYPE_CHECKING:
    import httpx


#: Limit of the characters of one request's traces, if there is more than one.
_BATCH_MAX_CHARS = 2_000_000
#: Time by which a lease outlasts its request, for storing the verdicts.
_LEASE_MARGIN_S = 20.0
#: Time to end the thread, besides the flush itself.
_END_S = 2.0


class Pace(NamedTuple):
    """Times of a sender, in seconds: of one request, of the first and the longest pause, and of closing."""

    request_s: float = 10.0
    backoff_s: float = 1.0
    backoff_max_s: float = 30.0
    flush_s: float = 2.0


PACE = Pace()


class Outbox(Protocol):
    """Queue of traces to send; the store's `Outbox` is one. All methods may raise `DatabaseError`."""

    def claim(self, limit: int, max_bytes: int, lease_s: float) -> list[Waiting]:
        """Take the next traces on lease; called before each request."""
        ...

    def settle(self, verdicts: Sequence[DeliveryVerdict]) -> None:
        """Store the verdicts on them; called after each request."""
        ...

    def release(self) -> None:
        """Release the leases of this process and of dead ones; called at the start and at the end."""
        ...


class Syncer:
    """Sender of an outbox to the collector at `config.sync_url`, from `start` to `close`.

    pace: By default `PACE`.
    """

    def __init__(self, outbox: Outbox, config: Config, pace: Pace | None = None) -> None:
        self._pace = pace or PACE
        self._outbox = outbox
        self._config = config
        self._policy = RetryPolicy(config.sync_retries, self._pace.backoff_s, self._pace.backoff_max_s)
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._news = 0
        self._counting = threading.Lock()
        self._recorded = False
        self._closing = False
        self._limit = config.sync_batch
        self._failures = 0
        self._not_before = 0.0
        self._last_success: datetime | None = None
        #: Reason why nothing is sent now or any more; empty when all is well.
        self.problem = ""
        self._stopped = False

    def start(self) -> None:
        """Start, with the traces of earlier processes."""
        self._thread = threading.Thread(target=self._serve, name="healkit-sync", daemon=True)
        self._thread.start()

    def notify(self) -> None:
        """Count one more waiting trace; called after its transaction, cheap, never raises."""
        self._recorded = True
        with self._counting:
            self._news += 1
            full = self._news % self._config.sync_batch == 0
        if full and os.getpid() == self._pid:
            self._call(self._wake.set)

    def send_now(self, timeout_s: float) -> None:
        """Send all due traces, whatever the last attempt returned; return when none are left, or time is up."""
        if self._thread is None or os.getpid() != self._pid:
            return
        done = threading.Event()

        def begin() -> None:
            task = asyncio.ensure_future(self._send_all(timeout_s))
            task.add_done_callback(lambda _: done.set())

        give_up = time.monotonic() + timeout_s + _END_S
        while self._loop is None and time.monotonic() < give_up:
            time.sleep(0.005)
        self._call(begin)
        done.wait(max(0.0, give_up - time.monotonic()))

    def close(self) -> None:
        """Send this process's traces for at most two seconds, and end; safe to call twice.

        The rest waits for the next start.
        """
        if self._thread is None or os.getpid() != self._pid:
            return  # after a fork, the thread and its traces are the parent's
        self._closing = True
        self._call(self._begin_end)
        self._thread.join(timeout=self._pace.flush_s + _END_S)
        self._thread = None

    def _call(self, function: Callable[[], object]) -> None:
        """Call a function in the thread's loop, if there is one."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(function)

    def _begin_end(self) -> None:
        self._wake.set()
        if self._main is not None and self._loop is not None:
            self._loop.call_later(self._pace.flush_s, self._main.cancel)

    def _serve(self) -> None:
        """Run the loop; the thread's target."""
        with asyncio.Runner() as runner, suppress(asyncio.CancelledError):
            runner.get_loop().set_default_executor(DaemonExecutor())
            runner.run(self._run())

    async def _run(self) -> None:
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        self._sending = asyncio.Lock()
        self._client = CollectorClient(self._config.sync_url, self._config.sync_token, self._pace.request_s)
        self._release()
        if self._closing:  # closed before there was a loop to tell
            self._begin_end()
        try:
            while not self._closing:
                full = await self._pause()
                if not self._closing and self._may_send():
                    await self._drain(only_full=full)
            if self._recorded and self._may_send():
                await self._drain()
        finally:
            self._release()
            with suppress(asyncio.CancelledError):
                await self._client.close()

    async def _pause(self) -> bool:
        """Wait for a full batch or the end of the interval; after a failure, until the next attempt is due.

        Returns True for a full batch.
        """
        wait_s = self._not_before - time.monotonic()
        if wait_s <= 0 or self._stopped:
            wait_s = self._config.sync_interval_s
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        full = self._wake.is_set()
        self._wake.clear()
        return full

    def _may_send(self) -> bool:
        return not self._stopped and time.monotonic() >= self._not_before

    async def _send_all(self, timeout_s: float) -> None:
        """Drain until nothing is due; try again after a failure while there is time."""
        give_up = time.monotonic() + timeout_s
        self._stopped = False
        self._not_before = 0.0
        while True:
            try:
                async with asyncio.timeout(give_up - time.monotonic()):
                    in_order = await self._drain()
            except TimeoutError:
                if not self._sending.locked():  # else the leased traces are being sent
                    self._release()
                return
            if in_order or self._stopped or self._not_before >= give_up:
                return
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))

    async def _drain(self, *, only_full: bool = False) -> bool:
        """Send batch after batch until none is due, or something is wrong; return True if nothing was.

        only_full: An incomplete batch waits for more traces, or for the end of the interval.
        """
        async with self._sending:
            if not only_full:
                self._sent(self._news)
            while not self._stopped:
                if only_full and self._news < self._config.sync_batch:
                    return True
                lease_s = self._pace.request_s + _LEASE_MARGIN_S
                try:
                    batch = self._outbox.claim(self._limit, _BATCH_MAX_CHARS, lease_s)
                    if not batch:
                        return True
                    if not await self._send(batch):
                        return False
                    self._sent(len(batch) if only_full else 0)
                except DatabaseError as error:  # busy or gone: the traces wait, and the lease runs out
                    self._failed(error.message, 0.0)
                    return False
                except Exception as error:  # noqa: BLE001 - the thread must outlive any error
                    self._failed(f"{type(error).__name__}: {error}", 0.0)
                    self._release()
                    return False
            return False

    def _sent(self, traces: int) -> None:
        with self._counting:
            self._news = max(0, self._news - traces)

    async def _send(self, batch: list[Waiting]) -> bool:
        """Send one request and settle it; return True to continue with the next at once."""
        response = await self._client.post(batch)
        judged = judge(batch, response, self._policy, self._last_success)
        verdicts, self._stopped = judged.verdicts, judged.stop
        if judged.trouble:
            pause_s = self._failed(judged.trouble, judged.wait_s)
            verdicts = [msgspec.structs.replace(verdict, delay_s=pause_s) for verdict in verdicts]
        else:
            self.problem, self._failures = "", 0
        if judged.smaller:
            self._limit = max(1, len(batch) // 2)
        elif not judged.trouble:
            self._limit = min(self._config.sync_batch, 2 * self._limit)
        self._outbox.settle(verdicts)
        if judged.trouble:  # counted from now, so that the traces put off are due by then
            self._not_before = time.monotonic() + pause_s
        if any(verdict.state == "sent" for verdict in verdicts):
            self._last_success = datetime.now(UTC)
        return not judged.trouble

    def _failed(self, problem: str, wait_s: float) -> float:
        """Record the problem and postpone the next attempt; return by how many seconds."""
        self.problem = problem
        self._failures += 1
        pause_s = max(wait_s, self._policy.pause_s(self._failures))
        self._not_before = time.monotonic() + pause_s
        return pause_s

    def _release(self) -> None:
        with suppress(DatabaseError):
            self._outbox.release()


# Verdicts on sent traces. Two kinds of failure are kept apart. *Trouble* means that the collector is missing or does
# not work: no connection, no answer in time, half an answer, 429, 5xx, a page of HTML. It says nothing about the
# traces, so they wait as long as it lasts. A *refusal* comes from a working collector that does not want this one
# trace. It is asked again a few times, then the trace is parked with the reason.
#
# 500 lies in between: the application may fail on one trace, or on everything. It counts as a refusal only of a trace
# that was sent alone, and only if the collector took another trace since the last try. 400, 413 and 422 concern a whole
# request, so the next ones are made smaller until it is known which trace was meant.


#: Limit of an answer; a longer one is not from a collector.
ANSWER_MAX_BYTES = 1_000_000
#: Longest pause that a collector can ask for.
RETRY_AFTER_MAX_S = 3600.0
_REASON_MAX_CHARS = 500
#: No answer, or none in time: the request may have been too large for the line, or for the application.
_PERHAPS_TOO_MUCH = frozenset({0, 408, 500, 504})


class ItemError(msgspec.Struct, frozen=True):
    """Error for one trace that was not stored; `index` is its position in the request."""

    index: int | None = None
    id: str | None = None
    code: str = ""
    message: str = ""
    retryable: bool = True


class CollectorAnswer(msgspec.Struct, frozen=True):
    """A collector's answer to a request that it understood."""

    received: int
    stored: int
    errors: list[ItemError] = []


class CollectorResponse(msgspec.Struct, frozen=True):
    """Response as received; status 0 and a text in `problem` if there is no usable one."""

    status: int
    body: bytes = b""
    retry_after: str = ""
    problem: str = ""


class Judgement(msgspec.Struct, frozen=True):
    """Verdict on each trace, and how to continue.

    `trouble` says what is wrong with the collector, `wait_s` how long it wants no requests. `smaller`: Send less at
    once. `stop`: Send nothing more, because waiting does not help.
    """

    verdicts: list[DeliveryVerdict]
    trouble: str = ""
    wait_s: float = 0.0
    smaller: bool = False
    stop: bool = False


class RetryPolicy(msgspec.Struct, frozen=True):
    """Number of retries of a refused trace, and the pauses between attempts, in seconds."""

    retries: int
    backoff_s: float
    backoff_max_s: float

    def pause_s(self, failures: int) -> float:
        """Draw the pause before the next attempt after so many failures: exponential, with almost full jitter."""
        return times.pause_s(failures, self.backoff_s, self.backoff_max_s, least=0.05)

    def refused(self, trace: Waiting, reason: str, *, for_good: bool = False) -> DeliveryVerdict:
        """Return the verdict on a trace that was refused once more: again later, or parked."""
        reason = shown_reason(reason)
        if for_good or trace.attempts + 1 > self.retries:
            return DeliveryVerdict(trace.trace_id, "parked", reason, counted=True)
        return DeliveryVerdict(
            trace.trace_id, "pending", reason, self.pause_s(trace.attempts + 1), counted=True
        )


def judge(
    batch: Sequence[Waiting], response: CollectorResponse, policy: RetryPolicy, last_success: datetime | None
) -> Judgement:
    """Judge a batch by the response; `last_success` is when the collector last took a trace."""
    if 200 <= response.status < 300:
        try:
            answer = msgspec.json.decode(response.body, type=CollectorAnswer)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            answer = None
        if answer is None or answer.received != len(batch) or not 0 <= answer.stored <= len(batch):
            return _trouble(batch, f"{_said(response)} with an answer that cannot be understood")
        return _judge_items(batch, answer, policy)
    match response.status:
        case 401 | 403:
            reason = f"{_said(response)}: set sync_token (HEALKIT_SYNC_TOKEN) to a token that the collector accepts"
            return msgspec.structs.replace(_trouble(batch, reason), stop=True)
        case 413 if len(batch) == 1:
            reason = f"{_said(response)} to this trace alone, which has {len(batch[0].wire):,} characters"
            return Judgement([policy.refused(batch[0], reason, for_good=True)])
        case 400 | 422 if len(batch) == 1:
            return Judgement([policy.refused(batch[0], f"{_said(response)} to this trace alone")])
        case 400 | 413 | 422:
            return Judgement([DeliveryVerdict(trace.trace_id, "pending") for trace in batch], smaller=True)
        case 500 if len(batch) == 1 and _worked_since(batch[0], last_success):
            return Judgement(
                [policy.refused(batch[0], f"{_said(response)} to this trace, but accepted others")]
            )
    judged = _trouble(batch, response.problem or _said(response))
    wait_s = retry_after_s(response.retry_after)
    return msgspec.structs.replace(judged, wait_s=wait_s, smaller=response.status in _PERHAPS_TOO_MUCH)


def retry_after_s(header: str) -> float:
    """Parse `Retry-After` as seconds from now: seconds or an HTTP date (RFC 9110, 10.2.3); 0 for neither."""
    try:
        seconds = float(min(int(header), 10**9))
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except (ValueError, TypeError, IndexError):
            return 0.0
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(max(0.0, seconds), RETRY_AFTER_MAX_S)


def shown_reason(text: str) -> str:
    """Reduce a text from a server to one line that can be shown and stored."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _REASON_MAX_CHARS]).split())
    return line[:_REASON_MAX_CHARS]


def _judge_items(batch: Sequence[Waiting], answer: CollectorAnswer, policy: RetryPolicy) -> Judgement:
    refused = _refused_places(batch, answer.errors)
    verdicts = [
        policy.refused(batch[place], f"{error.code}: {error.message}", for_good=not error.retryable)
        for place, error in refused.items()
    ]
    remaining = [trace for place, trace in enumerate(batch) if place not in refused]
    if answer.stored >= len(remaining):
        return Judgement([*verdicts, *(DeliveryVerdict(trace.trace_id, "sent") for trace in remaining)])
    if len(batch) == 1:
        reason = "the collector received it but did not store it, without a reason"
        return Judgement([policy.refused(batch[0], reason)])
    # Some are stored, but which is unknown: each is sent again alone, and none is stored twice.
    return Judgement(
        [*verdicts, *(DeliveryVerdict(trace.trace_id, "pending") for trace in remaining)], smaller=True
    )


def _refused_places(batch: Sequence[Waiting], errors: Sequence[ItemError]) -> dict[int, ItemError]:
    """Map positions in the batch to their errors; an error without a trace in it is left out."""
    by_id = {trace.trace_id: place for place, trace in enumerate(batch)}
    errors_by_place: dict[int, ItemError] = {}
    for error in errors:
        place = by_id.get(error.id or "")
        if place is None and error.index is not None and 0 <= error.index < len(batch):
            place = error.index
        if place is not None:
            errors_by_place[place] = error
    return errors_by_place


def _trouble(batch: Sequence[Waiting], problem: str) -> Judgement:
    problem = shown_reason(problem)
    return Judgement(
        [DeliveryVerdict(trace.trace_id, "pending", problem) for trace in batch], trouble=problem
    )


def _worked_since(trace: Waiting, last_success: datetime | None) -> bool:
    return last_success is not None and trace.attempted_at is not None and last_success > trace.attempted_at


def _said(response: CollectorResponse) -> str:
    try:
        phrase = f" {HTTPStatus(response.status).phrase}"
    except ValueError:
        phrase = ""
    return f"the collector answered {response.status}{phrase}"


# The HTTP client. httpx limits each read, and a server that sends a byte a second never reaches that limit. So the
# request runs in an event loop and is cancelled when its time is up. A failure is a `CollectorResponse` that says so,
# never an exception.


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
            reason = str(error) or "the connection was lost"
            return CollectorResponse(
                0, problem=f"the collector cannot be reached: {type(error).__name__}: {reason}"
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

    asyncio resolves host names in its default executor, whose threads are joined when Python ends. A dead name server
    would delay the end of a program until its timeout.
    """

    def submit(self, fn: Callable[..., Any], /, *args: object, **kwargs: object) -> Future[Any]:
        """Run `fn` on a new daemon thread."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the caller gets it from the future
                future.set_exception(error)

        threading.Thread(target=work, name="healkit-sync-lookup", daemon=True).start()
        return future
