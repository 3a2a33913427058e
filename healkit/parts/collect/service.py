"""Collector behind both servers: a database and its threads.

Nothing is opened, and SQLAlchemy is not imported, before the first request that needs it. Under Jupyter, every server
loads this module, also if it never gets a trace. The event loop only waits; threads read, clean and store.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import collections
import dataclasses
import hashlib
import json
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from healkit.config import Config
from healkit.core.secrets.cleaner import Cleaner
from healkit.core.times import parse_since
from healkit.core.wire.encoding import to_jsonable
from healkit.errors import (
    BatchTooLarge,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    RequestRefused,
    TraceInvalid,
    UsageInvalid,
)
from healkit.parts.collect.limits import RateLimiter, unpacked
from healkit.parts.learn.thread import ConsumerThread
from healkit.parts.sanitizer.rule import shared_limit
from healkit.parts.traces.cleaning import cleaned_trace
from healkit.parts.traces.contract import NO_ID, ExecutionTrace, TraceFault, read_batch

if TYPE_CHECKING:
    from healkit.core.store.database import Database
    from healkit.core.store.models import CollectedTrace
    from healkit.parts.learn.consumer import Consumer
    from healkit.parts.traces.outbox import Arrival, CollectedTraces, Stored, TracePage


Answer = TypeVar("Answer")

#: Batches that are cleaned and stored at once, and questions that are answered at once; each holds the interpreter's
#: lock most of the time. Cleaning a large batch takes seconds, and questions have threads of their own, so that they
#: never wait for it.
STORING_THREADS, ASKING_THREADS = 4, 2
#: Requests that are in work or wait for a thread. A request whose body is still arriving does not count, so a slow
#: sender does not block other requests.
MAX_ADMITTED = 64
#: Bodies of the largest size that may be in memory at once, in whatever pieces; with it, the memory is bounded.
MAX_HELD_BODIES = 64
#: How long a question for one trace waits for its priority, in seconds.
_LEARNING_S = 0.2

#: Database error → message to the client, and the seconds after which a new attempt makes sense. The error's own
#: message names the database's place, which clients need not know.
_UNAVAILABLE: tuple[tuple[type[DatabaseError], str, float], ...] = (
    (DatabaseLocked, "The database is busy.", 1.0),
    (DatabaseFull, "The database is out of space.", 60.0),
    (DatabaseReadOnly, "The database cannot be written.", 60.0),
    (DatabaseError, "The database is not available.", 10.0),
)


class CollectorService:
    """Storage and queries of collected traces, without HTTP; its coroutines are called from one event loop.

    db: As for `Healkit`; None takes the default.
    on_error: Called with the full text of each database error, for the server's own log.
    """

    def __init__(
        self,
        config: Config,
        db: str | None = None,
        *,
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.config = config
        self.limiter = RateLimiter(config.collect_rate_per_s, max(1, round(2 * config.collect_rate_per_s)))
        self.metrics = Metrics()
        #: Running requests, and those of them that are worked on or wait for a thread.
        self.in_flight = self.admitted = 0
        #: Bytes of all bodies in memory.
        self.held_bytes = 0
        #: Set while no request runs.
        self.idle = asyncio.Event()
        self.idle.set()
        self._db = db
        self._on_error = on_error
        self._storing = ThreadPoolExecutor(STORING_THREADS, "healkit-store")
        self._asking = ThreadPoolExecutor(ASKING_THREADS, "healkit-ask")
        self._opening = threading.Lock()
        self._database: Database | None = None
        self._ingest: Ingest | None = None
        self._learned: Consumer | None = None
        self._learning = ConsumerThread(self._consumer)

    def open(self) -> Database:
        """Open the database and bring it up to date, once; raise `DatabaseError`."""
        from healkit.core.store.database import Database, resolve_url

        with self._opening:
            if self._database is None:
                wait_s, synchronous = self.config.log_wait_s, self.config.synchronous
                self._database = Database(resolve_url(self._db), wait_s=wait_s, synchronous=synchronous)
            return self._database

    def make_ready(self) -> None:
        """Open the database and load the sanitiser before the first request; raise `DatabaseError`."""
        self._opened_ingest()

    def started(self) -> None:
        """Count an incoming request; called once for each request, with `ended` once after it."""
        self.in_flight += 1
        self.idle.clear()
        self.metrics.started()

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered or abandoned."""
        self.in_flight -= 1
        if not self.in_flight:
            self.idle.set()
        self.metrics.answered(method, route, status, seconds)

    async def store(self, data: bytes, encoding: str, sender: str) -> Receipt:
        """Store a client's batch, with the body as received; raise `RequestRefused`."""
        return await self._on_thread(self._storing, lambda: self._store_batch(data, encoding, sender))

    async def page(self, query: Query) -> bytes:
        """Return one page of traces as JSON; raise `RequestRefused`."""

        def work() -> bytes:
            store = self._store()
            page = store.page(**vars(query))
            return page_json(page, self._priorities([row.trace_id for row in page.rows]))

        return await self._on_thread(self._asking, work)

    async def get(self, trace_id: str) -> bytes:
        """Return one trace as JSON; raise `RequestRefused`, also for an unknown id."""
        return await self._on_thread(self._asking, lambda: self._get(trace_id))

    async def check(self) -> None:
        """Check that the database answers, if it is open; raise `RequestRefused`."""
        if self._database is not None:
            await self._on_thread(self._asking, lambda: self._store().answers())

    def close(self) -> None:
        """Finish the running requests, and close the database."""
        self._storing.shutdown(wait=True)
        self._asking.shutdown(wait=True)
        self._learning.close()
        if self._database is not None:
            self._database.close()

    async def _on_thread(self, threads: ThreadPoolExecutor, work: Callable[[], Answer]) -> Answer:
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        except DatabaseError as error:
            self._on_error(str(error))
            message, seconds = next(
                (message, s) for kind, message, s in _UNAVAILABLE if isinstance(error, kind)
            )
            raise RequestRefused(
                "STORE_UNAVAILABLE",
                f"{message} Nothing of this request was stored.",
                hint="Send it again later.",
                retry_after_s=seconds,
            ) from None

    def _store_batch(self, data: bytes, encoding: str, sender: str) -> Receipt:
        body = unpacked(data, encoding, self.config.collect_max_bytes)
        ingested = self._opened_ingest().store(body, sender)
        codes = [fault.code for fault in ingested.receipt.errors]
        self.metrics.stored(len(body), ingested.outcomes, codes, ingested.hidden)
        if ingested.receipt.stored:
            self._learning.notify()
        return ingested.receipt

    def _get(self, trace_id: str) -> bytes:
        store = self._store()
        row = store.get(trace_id)
        if row is None:
            raise RequestRefused("NOT_FOUND", f"There is no trace {trace_id!r}.")
        parent = row.parent_trace_id
        self._learning.hurry(_LEARNING_S)  # a backlog is learned beside the answer
        return trace_json(
            row,
            self._priorities([trace_id]).get(trace_id),
            parent_stored=parent is not None and store.get(parent) is not None,
            children=store.children(trace_id),
        )

    def _priorities(self, trace_ids: Sequence[str]) -> dict[str, float]:
        from healkit.parts.learn.priority import priorities  # loads SQLAlchemy

        return priorities(self.open(), trace_ids)

    def _consumer(self) -> Consumer:
        from healkit.parts.learn.service import consumer_of

        database = self.open()
        with self._opening:
            if self._learned is None:
                self._learned = consumer_of(database)
            return self._learned

    def _store(self) -> CollectedTraces:
        from healkit.parts.traces.outbox import CollectedTraces

        return CollectedTraces(self.open())

    def _opened_ingest(self) -> Ingest:
        if self._ingest is None:
            self._ingest = Ingest(self._store(), _sanitizer(self.config), self.config.payload_max_bytes)
        return self._ingest


def _sanitizer(config: Config) -> Cleaner:
    from healkit.parts.sanitizer.sanitizer import Sanitizer  # its tables are only wanted by who stores

    return Sanitizer.from_config(config)


# Ingestion of trace batches: read, cleaned, stored once.
#
# A client only claims that its traces were cleaned. So all text in them that a person or a tool wrote goes through this
# side's sanitiser before it is stored. Ids, names, times and numbers are checked by the wire form and not changed. No
# HTTP here.
#
# JSON as Python writes it by default is not always JSON: `NaN` and half a surrogate pair are not allowed in JSON.
# Python's own reader reads a body with such values. They get the form that healkit itself would have sent ("NaN" as
# text, the surrogate as an escape). So one odd value does not cost the whole batch.


#: Traces that one request may hold.
MAX_TRACES = 100

_FAULTS: dict[Stored, tuple[str, str]] = {
    "conflict": (
        "TRACE_CONFLICT",
        (
            "A trace with this id is already stored, with the same number of calls and decisions but other "
            "content. It was kept."
        ),
    ),
    "refused": ("TRACE_REFUSED", "The database can never store this trace: a value in it is out of range."),
}


class Receipt(msgspec.Struct, frozen=True):
    """Answer to a batch: how many traces came, how many are stored now, and why the others are not.

    `ids` exists if a trace came without an id: the id of each stored trace, in order, and null for each other one.
    """

    received: int
    stored: int
    errors: list[TraceFault]
    ids: list[str | None] | msgspec.UnsetType = msgspec.UNSET


@dataclasses.dataclass(frozen=True)
class Ingested:
    """Receipt of a batch, and its counters: the outcome of each trace, the hidden texts by rule."""

    receipt: Receipt
    outcomes: list[str]
    hidden: dict[str, int]


#: A trace's metadata is cleaned as a whole, and then each value of it by itself.
_CLEANED_TIMES = 2


class Ingest:
    """Ingestion into one store; safe to use from several threads.

    payload_max_bytes: The largest payload that is kept whole, in bytes of JSON.
    """

    def __init__(self, store: CollectedTraces, cleaner: Cleaner, payload_max_bytes: int) -> None:
        self._store = store
        self._cleaner = cleaner
        self._payload_max_bytes = payload_max_bytes

    def store(self, body: bytes, sender: str = "") -> Ingested:
        """Store the valid traces of a body in one transaction.

        sender: The sender, whose traces without an id are kept apart from those of others.

        Raises `RequestRefused` for an invalid batch, and `DatabaseError` if nothing was stored.
        """
        items = _read(body)
        hidden: collections.Counter[str] = collections.Counter()
        arrivals: dict[int, Arrival] = {}
        faults: list[TraceFault] = []
        unnamed: collections.Counter[str] = collections.Counter()
        with shared_limit(_CLEANED_TIMES * len(body)):
            for index, item in enumerate(items):
                if isinstance(item, ExecutionTrace):
                    arrivals[index] = self._arrival(item, hidden, sender, unnamed)
                else:
                    faults.append(item)
        results = (
            dict(zip(arrivals, self._store.store(list(arrivals.values())), strict=True)) if arrivals else {}
        )
        faults += [
            TraceFault(index, arrivals[index].trace_id, *_FAULTS[result])
            for index, result in results.items()
            if result in _FAULTS
        ]
        outcomes = [results.get(index, "invalid") for index in range(len(items))]
        receipt = Receipt(len(items), len(items) - len(faults), sorted(faults, key=lambda fault: fault.index))
        if unnamed:
            faulty = {fault.index for fault in faults}
            ids = [None if index in faulty else arrivals[index].trace_id for index in range(len(items))]
            receipt = msgspec.structs.replace(receipt, ids=ids)
        return Ingested(receipt, outcomes, dict(hidden))

    def _arrival(
        self,
        trace: ExecutionTrace,
        hidden: collections.Counter[str],
        sender: str,
        unnamed: collections.Counter[str],
    ) -> Arrival:
        """Return the cleaned trace in the form of the store.

        unnamed: Counts equal traces without an id.
        """
        from healkit.parts.traces.outbox import (  # loads SQLAlchemy, for those only who store
            Arrival,
            capability_of,
        )

        capability = capability_of(trace.capability_id)
        if not capability.code_hash:  # any text
            name = self._cleaner.clean(trace.capability_id, limit_bytes=self._payload_max_bytes)
            hidden.update(name.hidden)
            trace = msgspec.structs.replace(trace, capability_id=str(name.value))
            capability = capability_of(trace.capability_id)
        cleaned, hidden_counts = cleaned_trace(trace, self._cleaner, self._payload_max_bytes)
        hidden.update(hidden_counts)
        if trace.id == NO_ID:
            cleaned = msgspec.structs.replace(cleaned, id=_id_of(cleaned, sender, unnamed))
        return Arrival(
            trace_id=cleaned.id,
            parent_trace_id=trace.parent_id,
            capability=capability,
            success=trace.success,
            timestamp=trace.timestamp,
            duration_ms=trace.duration_ms,
            detail=_detail_of(trace),
            digest=hashlib.sha256(_json(cleaned, canonical=True)).hexdigest(),
            wire=_json(cleaned).decode(),
        )


def _id_of(trace: ExecutionTrace, sender: str, unnamed: collections.Counter[str]) -> str:
    """Make the id of a trace that came without one, from its content: a batch that is sent again gets the same ids.

    The content is the stored content, because a hash of hidden values would allow guessing them. Equal traces in one
    batch get different ids, by their number. UUIDs of version 8 are meant for such ids (RFC 9562).
    """
    content = hashlib.sha256(sender.encode() + b"\0" + _json(trace, canonical=True)).digest()
    number = unnamed[content.hex()]
    unnamed[content.hex()] += 1
    digest = hashlib.sha256(content + number.to_bytes(8)).digest()[:16]
    value = int.from_bytes(digest) & ~(0xF << 76) & ~(0x3 << 62) | (8 << 76) | (2 << 62)
    return str(uuid.UUID(int=value))


def _detail_of(trace: ExecutionTrace) -> int:
    """Measure the detail of a report: its calls and decisions, and whether its host saw the end.

    The execution of a dead host is reported as HOST_DIED. If its true outcome appears later in a spool file, that is
    the better report and not a contradiction.
    """
    count = 2 * (len(trace.task_results) + len(trace.decisions))
    return count + (trace.metadata.get("errorCode") != "HOST_DIED")


def _read(body: bytes) -> list[ExecutionTrace | TraceFault]:
    """Read the traces of the body; raise `RequestRefused`."""
    try:
        return read_batch(body, MAX_TRACES)
    except BatchTooLarge as error:
        raise RequestRefused(error.code, error.message, hint=error.hint) from None
    except TraceInvalid as error:
        first = error
    try:
        return read_batch(_rewritten(body), MAX_TRACES)
    except TraceInvalid as error:
        reported = error if isinstance(error, BatchTooLarge) else first
        code = error.code if reported is error else "BODY_INVALID"
        raise RequestRefused(code, reported.message, hint=reported.hint) from None


def _rewritten(body: bytes) -> bytes:
    """Rewrite `NaN` and lone surrogates as healkit writes them; raise `RequestRefused` with the place of an error."""
    try:
        value = json.loads(body.decode())
    except UnicodeDecodeError as error:
        message = f"The body is not UTF-8 at byte {error.start}."
    except json.JSONDecodeError as error:
        message = f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno} (byte {error.pos})."
    except RecursionError:
        message = "The body is nested too deeply."
    except ValueError as error:  # an integer of more digits than Python reads (CVE-2020-10735)
        message = f"The body cannot be read: {error}."
    else:
        return json.dumps(to_jsonable(value)[0], allow_nan=False).encode()
    raise RequestRefused("BODY_INVALID", message)


def _json(trace: ExecutionTrace, *, canonical: bool = False) -> bytes:
    """Write the wire form.

    canonical: Sort its keys, so that equal content has equal bytes.
    """
    try:
        return msgspec.json.encode(trace, order="sorted" if canonical else None)
    except OverflowError:  # msgspec reads integers of any length, and writes up to 64 bits
        value = msgspec.to_builtins(trace, enc_hook=None)
        return json.dumps(value, sort_keys=canonical, separators=(",", ":"), ensure_ascii=False).encode()


# Queries for collected traces, and their answers as JSON.


DEFAULT_LIMIT, MAX_LIMIT = 50, 100

#: The largest row number that both databases can compare with.
_MAX_ID = 2**31 - 1
_YES, _NO = {"true", "1", "yes"}, {"false", "0", "no"}
_encode = msgspec.json.Encoder().encode


@dataclasses.dataclass(frozen=True)
class Query:
    """Parameters of one page; the names are those of `CollectedTraces.page`."""

    tool: str | None = None
    success: bool | None = None
    since: datetime | None = None
    limit: int = DEFAULT_LIMIT
    cursor: tuple[datetime, int] | None = None


def read_query(parameters: Mapping[str, str]) -> Query:
    """Read the parameters of `GET /api/traces`; raise `RequestRefused` for an invalid or unknown one."""
    filters = {field.name for field in dataclasses.fields(Query)}
    # Jupyter's own clients may give their token, and ask not to count as activity, in any address.
    for name in set(parameters) - filters - {"token", "no_track_activity"}:
        raise _wrong(f"There is no filter {name[:100]!r}.", f"The filters are {', '.join(sorted(filters))}.")
    return Query(
        tool=parameters.get("tool"),
        success=_success(parameters["success"]) if "success" in parameters else None,
        since=_since(parameters["since"]) if "since" in parameters else None,
        limit=_limit(parameters["limit"]) if "limit" in parameters else DEFAULT_LIMIT,
        cursor=_position(parameters["cursor"]) if "cursor" in parameters else None,
    )


def page_json(page: TracePage, priorities: Mapping[str, float]) -> bytes:
    """Write `{"traces": […], "next": …}`; `next` is the cursor of the next page, null at the end."""
    after = None if page.next_cursor is None else _cursor(*page.next_cursor)
    rows = [_row_json(row, priorities.get(row.trace_id)) for row in page.rows]
    return b'{"traces":[%b],"next":%b}' % (b",".join(rows), _encode(after))


def trace_json(
    row: CollectedTrace, priority: float | None, *, parent_stored: bool, children: list[str]
) -> bytes:
    """Write one trace, with its parent and children as far as they are stored."""
    return _row_json(row, priority, {"parentStored": parent_stored, "children": children})


def _row_json(row: CollectedTrace, priority: float | None, more: dict[str, Any] | None = None) -> bytes:
    """Write a trace in its wire form, with what this side added; null stands for a priority not computed yet."""
    fields = {"toolId": row.tool_id, "receivedAt": row.received_at, "priority": priority}
    added = _encode({**fields, **(more or {})})
    return row.wire.encode()[:-1] + b"," + added[1:]


def _cursor(moment: datetime, row_id: int) -> str:
    return base64.urlsafe_b64encode(f"{moment.isoformat()}~{row_id}".encode()).decode().rstrip("=")


def _position(cursor: str) -> tuple[datetime, int]:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        moment, _, row_id = text.partition("~")
        position = (datetime.fromisoformat(moment).astimezone(UTC), int(row_id))
    except (ValueError, OverflowError, binascii.Error):
        raise _wrong(
            "This cursor was not made by this collector.", "Use `next` of the previous page, unchanged."
        ) from None
    if not 0 <= position[1] <= _MAX_ID:
        raise _wrong(
            "This cursor was not made by this collector.", "Use `next` of the previous page, unchanged."
        )
    return position


def _success(text: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise _wrong(
            f"success={text[:100]!r} is neither true nor false.", "Write success=true or success=false."
        )
    return text.lower() in _YES


def _since(text: str) -> datetime:
    try:
        return parse_since(text[:100])
    except UsageInvalid as error:
        raise _wrong(error.message, error.hint) from None


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise _wrong(
            f"limit={text[:100]!r} is not a number of traces.", f"Write a number from 1 to {MAX_LIMIT}."
        )
    return min(int(text), MAX_LIMIT)


def _wrong(message: str, hint: str) -> RequestRefused:
    return RequestRefused("QUERY_INVALID", message, hint=hint)


# Counters for Prometheus, in a registry of their own: Jupyter's server keeps its metrics in the process-wide one.


#: The media type of `render()`: Prometheus' text exposition format.
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters of one collector since it started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "healkit_collect_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._traces = Counter(
            "healkit_collect_traces",
            "Traces received, by result.",
            ["outcome"],
            registry=self._registry,
        )
        self._faults = Counter(
            "healkit_collect_trace_errors", "Traces not stored, by reason.", ["code"], registry=self._registry
        )
        self._hidden = Counter(
            "healkit_collect_hidden",
            "Secrets and personal data that arrived and were hidden.",
            ["rule"],
            registry=self._registry,
        )
        self._bytes = Counter(
            "healkit_collect_body_bytes", "Bytes of bodies, uncompressed.", registry=self._registry
        )
        self._in_flight = Gauge(
            "healkit_collect_requests_in_flight", "Requests in progress.", registry=self._registry
        )
        self._seconds = Histogram(
            "healkit_collect_request_seconds",
            "Time to answer a request.",
            ["route"],
            buckets=_BUCKETS_S,
            registry=self._registry,
        )

    def started(self) -> None:
        """Count a request that has come."""
        self._in_flight.inc()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered or abandoned."""
        self._in_flight.dec()
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def stored(
        self, size_bytes: int, outcomes: Iterable[str], codes: Iterable[str], hidden: dict[str, int]
    ) -> None:
        """Count a batch: the outcome of each trace, the codes of refusals, the hidden texts by rule."""
        self._bytes.inc(size_bytes)
        for outcome in outcomes:
            self._traces.labels(outcome).inc()
        for code in codes:
            self._faults.labels(code).inc()
        for rule, count in hidden.items():
            self._hidden.labels(rule).inc(count)

    def render(self) -> bytes:
        """Return all counters in Prometheus' text format."""
        return generate_latest(self._registry)
