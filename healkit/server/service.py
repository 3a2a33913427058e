"""The collector behind its two servers: one database, a few threads, what is counted.

Nothing is opened before the first request that needs it, nor is SQLAlchemy imported: under Jupyter this is loaded with
every server, also by those who never send a trace. The event loop only ever waits; reading, cleaning and storing
happen on threads.
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
from healkit.server.bodies import unpacked
from healkit.server.limiter import RateLimiter
from healkit.server.metrics import Metrics
from healkit.server.queries import Query, page_json, trace_json

if TYPE_CHECKING:
    from healkit.sanitizer.cleaner import Cleaner
    from healkit.server.intake import Intake, Receipt
    from healkit.store.collected import CollectedTraces
    from healkit.store.database import Database

Answer = TypeVar("Answer")

#: Requests that are worked on at once; each holds the interpreter's lock most of the time.
THREADS = 4
#: Requests that may be let in at once, bodies still arriving included; together they bound the memory.
MAX_ADMITTED = 64

#: What kept the database from storing → what is said of it, and after how many seconds another try makes sense. The
#: database's own message names its place, which is no client's business.
_TROUBLE: tuple[tuple[type[DatabaseError], str, float], ...] = (
    (DatabaseLocked, "The database is busy.", 1.0),
    (DatabaseFull, "The database is out of space.", 60.0),
    (DatabaseReadOnly, "The database cannot be written.", 60.0),
    (DatabaseError, "The database is not available.", 10.0),
)


class CollectorService:
    """Everything about collecting that is not HTTP; its coroutines are called from one event loop.

    db: as for `Healkit`; None takes the configured one, else the default. cleaner: instead of healkit's sanitiser.
    on_trouble: told of each database error in full, for the server's own log.
    """

    def __init__(
        self,
        config: Config,
        db: str | None = None,
        *,
        cleaner: Cleaner | None = None,
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.config = config
        self.limiter = RateLimiter(config.collect_rate_per_s, config.collect_burst)
        self.metrics = Metrics()
        #: Requests under way, and those of them that were not turned away.
        self.in_flight = self.admitted = 0
        #: Set while no request is under way.
        self.idle = asyncio.Event()
        self.idle.set()
        self._db = db or config.collect_db or None
        self._cleaner = cleaner
        self._on_trouble = on_trouble
        self._threads = ThreadPoolExecutor(THREADS, "healkit-collect")
        self._opening = threading.Lock()
        self._database: Database | None = None
        self._intake: Intake | None = None

    def open(self) -> Database:
        """The database, opened and brought up to date where it was not yet; raises `DatabaseError`."""
        from healkit.store.database import Database, resolve_url

        with self._opening:
            if self._database is None:
                wait_s, synchronous = self.config.log_wait_s, self.config.synchronous
                self._database = Database(resolve_url(self._db), wait_s=wait_s, synchronous=synchronous)
            return self._database

    def make_ready(self) -> None:
        """Open the database and load the sanitiser, so that the first request need not; raises `DatabaseError`."""
        self._the_intake()

    def began(self) -> None:
        """A request has come; called once for each, and `ended` once after it."""
        self.in_flight += 1
        self.idle.clear()
        self.metrics.began()

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """It was answered, or given up."""
        self.in_flight -= 1
        if not self.in_flight:
            self.idle.set()
        self.metrics.answered(method, route, status, seconds)

    async def take(self, data: bytes, encoding: str) -> Receipt:
        """Store a batch, given as the body came; raises `RequestRefused`."""
        return await self._on_thread(lambda: self._take(data, encoding))

    async def page(self, query: Query) -> bytes:
        """One page of traces, as JSON; raises `RequestRefused`."""

        def work() -> bytes:
            return page_json(self._store().page(**vars(query)))

        return await self._on_thread(work)

    async def get(self, trace_id: str) -> bytes:
        """One trace, as JSON; raises `RequestRefused`, also where there is none of that id."""
        return await self._on_thread(lambda: self._get(trace_id))

    async def check(self) -> None:
        """Ask the database whether it answers, if it has been needed yet; raises `RequestRefused`."""
        if self._database is not None:
            await self._on_thread(lambda: self._store().answers())

    def close(self) -> None:
        """Finish what is under way, and close the database."""
        self._threads.shutdown(wait=True)
        if self._database is not None:
            self._database.close()

    async def _on_thread(self, work: Callable[[], Answer]) -> Answer:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except DatabaseError as error:
            self._on_trouble(str(error))
            said, seconds = next((said, s) for kind, said, s in _TROUBLE if isinstance(error, kind))
            raise RequestRefused(
                "STORE_UNAVAILABLE",
                f"{said} Nothing of this request was stored.",
                hint="Send it again later.",
                retry_after_s=seconds,
            ) from None

    def _take(self, data: bytes, encoding: str) -> Receipt:
        body = unpacked(data, encoding, self.config.collect_max_bytes)
        taken = self._the_intake().take(body)
        codes = [fault.code for fault in taken.receipt.errors]
        self.metrics.took(len(body), taken.outcomes, codes, taken.hidden)
        return taken.receipt

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

    def _the_intake(self) -> Intake:
        if self._intake is None:
            from healkit.server.intake import Intake

            self._intake = Intake(
                self._store(), self._cleaner or _sanitizer(self.config), self.config.payload_max_bytes
            )
        return self._intake


def _sanitizer(config: Config) -> Cleaner:
    from healkit.sanitizer import Sanitizer  # its tables are only wanted by who stores

    return Sanitizer.from_config(config)
