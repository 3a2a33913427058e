"""HTTP routes of the collector, for any tornado application.

A handler reads the request and writes the answer; `CollectorService` does the work. Each application decides who has
access: its classes add `identify` (and Jupyter's own decorators) to the classes here.

Bodies are read as a stream, so a request without a token, or with too large a body, costs no memory. A refused body is
still read to its end, up to a limit. Otherwise a client that is still sending would see a reset instead of an answer.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Awaitable
from typing import Any, ClassVar

import msgspec
from tornado.web import HTTPError, RequestHandler

from healkit.errors import RequestRefused
from healkit.parts.collect.limits import Connections, Stage, check_content_type, too_large
from healkit.parts.collect.service import (
    MAX_ADMITTED,
    MAX_HELD_BODIES,
    METRICS_TYPE,
    CollectorService,
    read_query,
)

TRACES, TRACE, HEALTH, METRICS = "/api/traces", r"/api/traces/([^/]{1,100})", "/api/health", "/api/metrics"

#: Bytes of a refused body that are read all the same before the connection is closed.
DRAINED_BYTES = 64 * 1024 * 1024
#: How long the smallest body may take to arrive; the largest has the configured time.
_SMALL_BODY_S = 5.0

_JSON = "application/json"
_CODES = {
    400: "BODY_INVALID",
    401: "TOKEN_MISSING",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
}


class CollectorHandler(RequestHandler):
    """Base of all routes: identity, limits, refusals as JSON, counting."""

    #: The route's name in the metrics.
    route: ClassVar[str] = "none"
    #: True for a route that answers known clients only.
    guarded: ClassVar[bool] = True

    def initialize(self, collector: CollectorService) -> None:
        """Set the request's state; called by tornado for each request."""
        self.collector = collector
        self.refusal: RequestRefused | None = None
        self.chunks = bytearray()
        self.received_bytes = self._held_bytes = 0
        self._started_s = time.monotonic()
        self._counted = False
        self._admitted = False

    def identify(self) -> str | None:
        """Return the client's name for the rate limit, None for an unknown client; called before the body is read."""
        raise NotImplementedError

    def claims_identity(self) -> bool:
        """Return True when the request holds a credential, right or wrong."""
        return "Authorization" in self.request.headers

    def deliver(self, body: bytes, content_type: str) -> None:
        """Send the answer."""
        self.set_header("Content-Type", content_type)
        self.finish(body)

    def set_default_headers(self) -> None:
        """Tell browsers not to interpret or keep the answers, because they contain other people's data."""
        super().set_default_headers()
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")

    def compute_etag(self) -> str | None:
        """Return None: answers are never cached."""
        return None

    async def prepare(self) -> None:
        """Check the request before its body is read."""
        self.collector.started()
        self._counted = True
        if self._connections is not None:
            self._connections.asks(self._stream)
        try:
            ready: Awaitable[None] | None = super().prepare()
            if ready is not None:
                await ready
        except HTTPError as error:
            # Answered after the body: a client that is still sending would see a reset instead.
            if error.status_code != 403:
                raise
            is_known = not self.guarded or self.identify() is not None
            self.refusal = RequestRefused("FORBIDDEN", "Forbidden.") if is_known else self._nobody()
        if self._finished:
            return
        self.request.connection.set_body_timeout(self._body_timeout_s())  # type: ignore[union-attr]  # a request that is being handled has one
        try:
            self._admit()
        except RequestRefused as refusal:
            self.refusal = self.refusal or refusal
        if self.refusal and self._declared_bytes() > self.collector.config.collect_max_bytes + DRAINED_BYTES:
            self.refuse(self.refusal)

    def data_received(self, chunk: bytes) -> None:
        """Collect a piece of the body, or refuse it; called by tornado with each."""
        limit = self.collector.config.collect_max_bytes
        self.received_bytes += len(chunk)
        if self.refusal is None and self.received_bytes > limit:
            self.refusal = too_large(limit)
        elif self.refusal is None and self.collector.held_bytes + len(chunk) > MAX_HELD_BODIES * limit:
            self.refusal = _overloaded()
        if self.refusal is None and self.guarded:
            self.chunks += chunk
            self._held_bytes += len(chunk)
            self.collector.held_bytes += len(chunk)
        elif self.chunks:
            self.chunks.clear()
            self._let_go()
        if self.refusal is None:
            return
        if self.received_bytes > limit + DRAINED_BYTES and not self._finished:
            self.refuse(self.refusal)

    async def answer(self, work: Awaitable[bytes], content_type: str = _JSON) -> None:
        """Send the result of the work, or its refusal."""
        try:
            body = await work
        except RequestRefused as refusal:
            self.refuse(refusal)
        else:
            self.deliver(body, content_type)

    def refuse(self, refusal: RequestRefused) -> None:
        """Send a refusal."""
        self.set_status(refusal.status)
        if refusal.retry_after_s is not None:
            self.set_header("Retry-After", str(max(1, math.ceil(refusal.retry_after_s))))
        if refusal.status == 401:
            self.set_header("WWW-Authenticate", 'Bearer realm="healkit"')
        details = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
        self.deliver(json.dumps({"error": details}).encode(), _JSON)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send any other error as JSON, without its message; called by tornado."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        if isinstance(error, RequestRefused):
            self.refuse(error)
        elif self.refusal is not None:
            self.refuse(self.refusal)
        else:
            code = _CODES.get(status_code, "BODY_INVALID" if status_code < 500 else "INTERNAL")
            self.refuse(RequestRefused(code, f"{self._reason}."))

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Leave refusals out of the log: they are the client's errors, and they are counted."""
        if not isinstance(value, RequestRefused):
            super().log_exception(typ, value, tb)

    def on_finish(self) -> None:
        """Count the request; called by tornado after the answer."""
        super().on_finish()
        self._count(self.get_status())

    def on_connection_close(self) -> None:
        """Count the request as 499, as nginx does; called by tornado if the client left before the answer."""
        super().on_connection_close()
        self._count(499)

    def _admit(self) -> None:
        """Raise `RequestRefused` for a request that must not be served."""
        limiter, peer = self.collector.limiter, self.request.remote_ip
        who = self.identify() if self.guarded else None
        if (wait_s := limiter.take((who, peer))) > 0:
            raise RequestRefused("RATE_LIMITED", "There were too many requests.", retry_after_s=wait_s)
        if self.guarded and who is None:
            raise self._nobody()
        if self._declared_bytes() > self.collector.config.collect_max_bytes:
            raise too_large(self.collector.config.collect_max_bytes)
        if self.guarded:
            self._reach(Stage.SENDING)

    def _nobody(self) -> RequestRefused:
        hint = "Send the header Authorization: Bearer <token>."
        if self.claims_identity():
            return RequestRefused("TOKEN_WRONG", "The token is wrong.", hint=hint)
        return RequestRefused("TOKEN_MISSING", "The request has no token.", hint=hint)

    def _declared_bytes(self) -> int:
        declared = self.request.headers.get("Content-Length", "0")
        return int(declared) if declared.isascii() and declared.isdigit() and len(declared) < 20 else 0

    def _count(self, status: int) -> None:
        if self._counted:
            self._counted = False
            self.collector.admitted -= self._admitted
            self._let_go()
            if self.guarded and (self.refusal is None or self._admitted):
                self._reach(Stage.IDLE)
            seconds = time.monotonic() - self._started_s
            self.collector.ended(self.request.method or "", self.route, status, seconds)

    def _begin(self) -> None:
        """Take one of the places for running requests; raise `RequestRefused`."""
        if self.refusal is not None:
            raise self.refusal
        if not self.guarded:
            return
        if self.collector.admitted >= MAX_ADMITTED:
            raise _overloaded()
        self.collector.admitted += 1
        self._admitted = True
        self._reach(Stage.ANSWERED)

    def _let_go(self) -> None:
        self.collector.held_bytes -= self._held_bytes
        self._held_bytes = 0

    def _body_timeout_s(self) -> float:
        """Return the time limit for the body: the configured time for the largest body, less for a smaller one."""
        config = self.collector.config
        if "Content-Length" not in self.request.headers:
            return config.collect_timeout_s
        share = min(1.0, self._declared_bytes() / config.collect_max_bytes)
        return min(config.collect_timeout_s, _SMALL_BODY_S + share * config.collect_timeout_s)

    @property
    def _connections(self) -> Connections | None:
        """Return the server's connections; None under Jupyter, whose server manages its own."""
        return self.settings.get("healkit_connections")

    @property
    def _stream(self) -> Any:
        return getattr(self.request.connection, "stream", None)

    def _reach(self, stage: Stage) -> None:
        if self._connections is not None:
            self._connections.reached(self._stream, stage)


def _overloaded() -> RequestRefused:
    return RequestRefused("OVERLOADED", "The collector is busy.", retry_after_s=1.0)


class TracesHandler(CollectorHandler):
    """`POST /api/traces` stores a batch, `GET /api/traces` pages through the stored traces."""

    route = "traces"

    async def post(self) -> None:
        """Store a batch."""
        await self.answer(self._store())

    async def get(self) -> None:
        """Send one page, newest first."""
        await self.answer(self._page())

    async def _store(self) -> bytes:
        self._begin()
        check_content_type(self.request.headers.get("Content-Type", ""))
        data, self.chunks = bytes(self.chunks), bytearray()
        encoding = self.request.headers.get("Content-Encoding", "")
        receipt = await self.collector.store(data, encoding, self.identify() or "")
        return msgspec.json.encode(receipt)

    async def _page(self) -> bytes:
        self._begin()
        arguments = {name: self.get_query_argument(name) for name in self.request.query_arguments}
        return await self.collector.page(read_query(arguments))


class TraceHandler(CollectorHandler):
    """`GET /api/traces/{id}`: one trace and its family."""

    route = "trace"

    async def get(self, trace_id: str) -> None:
        """Send one trace."""
        await self.answer(self._one(trace_id))

    async def _one(self, trace_id: str) -> bytes:
        self._begin()
        return await self.collector.get(trace_id)


class HealthHandler(CollectorHandler):
    """`GET /api/health`: whether traces can be stored now; for probes, which have no token."""

    route = "health"
    guarded = False

    async def get(self) -> None:
        """Send `{"status": "ok"}`, or 503."""
        await self.answer(self._status())

    async def _status(self) -> bytes:
        self._begin()
        await self.collector.check()
        return b'{"status":"ok"}'


class MetricsHandler(CollectorHandler):
    """`GET /api/metrics`: the counters, as Prometheus reads them."""

    route = "metrics"

    async def get(self) -> None:
        """Send all counters."""
        await self.answer(self._metrics(), METRICS_TYPE)

    async def _metrics(self) -> bytes:
        self._begin()
        return self.collector.metrics.render()


class UnknownHandler(CollectorHandler):
    """Refusal of any other address."""

    guarded = False

    async def prepare(self) -> None:
        """Refuse it."""
        await super().prepare()
        self.refusal = self.refusal or RequestRefused("NOT_FOUND", "There is nothing at this address.")
