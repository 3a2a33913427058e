"""Collector behind both servers: a database and its threads.

Nothing is opened before the first request that needs it, nor is SQLAlchemy imported: under Jupyter this is loaded with
every server, also where no trace is ever sent. The event loop only ever waits; reading, cleaning and storing happen on
threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from healkit.config import Config
from healkit.errors import (
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    RequestRefused,
)
from healkit.server.metrics import Metrics
from healkit.server.request_limits import RateLimiter, unpacked
from healkit.server.trace_queries import Query, page_json, trace_json

if TYPE_CHECKING:
    from healkit.sanitizer.cleaner import Cleaner
    from healkit.server.ingest import Ingest, Receipt
    from healkit.store.collected import CollectedTraces
    from healkit.store.database import Database

Answer = TypeVar("Answer")

#: Batches that are cleaned and stored at once, and questions that are answered at once; each holds the interpreter's
#: lock most of the time. Cleaning a large batch takes seconds, and questions have threads of their own, so that they
#: never wait for it.
STORING_THREADS, ASKING_THREADS = 4, 2
#: Requests that are worked on or wait for a thread. One whose body is still arriving is none of them: who sends slowly
#: keeps no other request out.
MAX_ADMITTED = 64
#: Bodies of the largest size that may be in memory at once, in whatever pieces; with it, the memory is bounded.
MAX_HELD_BODIES = 64

#: Database error → message to the client, and the seconds after which a new attempt makes sense. The error's own
#: message names the database's place, which clients need not know.
_UNAVAILABLE: tuple[tuple[type[DatabaseError], str, float], ...] = (
    (DatabaseLocked, "The database is busy.", 1.0),
    (DatabaseFull, "The database is out of space.", 60.0),
    (DatabaseReadOnly, "The database cannot be written.", 60.0),
    (DatabaseError, "The database is not available.", 10.0),
)


class CollectorService:
    """Storage and questions of collected traces, without HTTP; its coroutines are called from one event loop.

    db: as for `Healkit`; None takes the configured one, else the default. cleaner: instead of healkit's sanitiser.
    on_error: called with each database error in full, for the server's own log.
    """

    def __init__(
        self,
        config: Config,
        db: str | None = None,
        *,
        cleaner: Cleaner | None = None,
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.config = config
        self.limiter = RateLimiter(config.collect_rate_per_s, config.collect_burst)
        self.metrics = Metrics()
        #: Running requests, and those of them that are worked on or wait for a thread.
        self.in_flight = self.admitted = 0
        #: Bytes of all bodies in memory.
        self.held_bytes = 0
        #: Set while no request runs.
        self.idle = asyncio.Event()
        self.idle.set()
        self._db = db or config.collect_db or None
        self._cleaner = cleaner
        self._on_error = on_error
        self._storing = ThreadPoolExecutor(STORING_THREADS, "healkit-store")
        self._asking = ThreadPoolExecutor(ASKING_THREADS, "healkit-ask")
        self._opening = threading.Lock()
        self._database: Database | None = None
        self._ingest: Ingest | None = None

    def open(self) -> Database:
        """Open the database and bring it up to date, once; raise `DatabaseError`."""
        from healkit.store.database import Database, resolve_url

        with self._opening:
            if self._database is None:
                wait_s, synchronous = self.config.log_wait_s, self.config.synchronous
                self._database = Database(resolve_url(self._db), wait_s=wait_s, synchronous=synchronous)
            return self._database

    def make_ready(self) -> None:
        """Open the database and load the sanitiser before the first request; raise `DatabaseError`."""
        self._opened_ingest()

    def started(self) -> None:
        """Count a request that has come; called once for each, and `ended` once after it."""
        self.in_flight += 1
        self.idle.clear()
        self.metrics.started()

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered, or given up."""
        self.in_flight -= 1
        if not self.in_flight:
            self.idle.set()
        self.metrics.answered(method, route, status, seconds)

    async def store(self, data: bytes, encoding: str, sender: str) -> Receipt:
        """Store a client's batch, given as the body came; raise `RequestRefused`."""
        return await self._on_thread(self._storing, lambda: self._store_batch(data, encoding, sender))

    async def page(self, query: Query) -> bytes:
        """Return one page of traces as JSON; raise `RequestRefused`."""

        def work() -> bytes:
            return page_json(self._store().page(**vars(query)))

        return await self._on_thread(self._asking, work)

    async def get(self, trace_id: str) -> bytes:
        """Return one trace as JSON; raise `RequestRefused`, also where there is none of that id."""
        return await self._on_thread(self._asking, lambda: self._get(trace_id))

    async def check(self) -> None:
        """Check that the database answers, if it has been opened; raise `RequestRefused`."""
        if self._database is not None:
            await self._on_thread(self._asking, lambda: self._store().answers())

    def close(self) -> None:
        """Finish the running requests, and close the database."""
        self._storing.shutdown(wait=True)
        self._asking.shutdown(wait=True)
        if self._database is not None:
            self._database.close()

    async def _on_thread(self, threads: ThreadPoolExecutor, work: Callable[[], Answer]) -> Answer:
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        except DatabaseError as error:
            self._on_error(str(error))
            said, seconds = next((said, s) for kind, said, s in _UNAVAILABLE if isinstance(error, kind))
            raise RequestRefused(
                "STORE_UNAVAILABLE",
                f"{said} Nothing of this request was stored.",
                hint="Send it again later.",
                retry_after_s=seconds,
            ) from None

    def _store_batch(self, data: bytes, encoding: str, sender: str) -> Receipt:
        body = unpacked(data, encoding, self.config.collect_max_bytes)
        ingested = self._opened_ingest().store(body, sender)
        codes = [fault.code for fault in ingested.receipt.errors]
        self.metrics.stored(len(body), ingested.outcomes, codes, ingested.hidden)
        return ingested.receipt

    def _get(self, trace_id: str) -> bytes:
        store = self._store()
        row = store.get(trace_id)
        if row is None:
            raise RequestRefused("NOT_FOUND", f"There is no trace {trace_id!r}.")
        parent = row.parent_trace_id
        return trace_json(
            row,
            parent_stored=parent is not None and store.get(parent) is not None,
            children=store.children(trace_id),
        )

    def _store(self) -> CollectedTraces:
        from healkit.store.collected import CollectedTraces

        return CollectedTraces(self.open())

    def _opened_ingest(self) -> Ingest:
        if self._ingest is None:
            from healkit.server.ingest import Ingest

            self._ingest = Ingest(
                self._store(), self._cleaner or _sanitizer(self.config), self.config.payload_max_bytes
            )
        return self._ingest


def _sanitizer(config: Config) -> Cleaner:
    from healkit.sanitizer import Sanitizer  # its tables are only wanted by who stores

    return Sanitizer.from_config(config)
