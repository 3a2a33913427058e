"""`hk.traces`: traces that are kept, and their sending."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from healkit.config import Config
from healkit.core.secrets.cleaner import sanitizer_of
from healkit.core.store.database import Database
from healkit.errors import ConfigError, DatabaseError
from healkit.parts.traces.contract import ExecutionTrace, read_trace
from healkit.parts.traces.trace_collector import Tracer

if TYPE_CHECKING:
    from healkit.core.store.log_reader import Log
    from healkit.parts.traces.delivery import Syncer
    from healkit.parts.traces.otel import OtelExporter
    from healkit.parts.traces.outbox import Outbox, OutboxState

#: Default limit of `sync`, in seconds.
SYNC_TIMEOUT_S = 30.0


class Traces:
    """Traces of one database; sends nothing anywhere unless `sync_url` is set.

    Raises `RulesInvalid` for invalid custom rules.

    Example:
    >>> hk.traces.get(failed.trace_id).error
    'ZeroDivisionError: division by zero'
    """

    def __init__(self, database: Database, config: Config) -> None:
        self._config = config
        self._database = database
        self._syncer: Syncer | None = None
        if config.sync_url and not database.read_only and database.trusted:
            from healkit.parts.traces.delivery import Syncer

            self._syncer = Syncer(self._outbox, config)
        if config.sanitizer_rules or config.sanitizer_allow:
            sanitizer_of(config)  # fail now for faulty rules of the user's own
        self._otel: OtelExporter | None = None
        if config.otel:
            from healkit.core.store.log_reader import Log
            from healkit.parts.traces.otel import OtelExporter

            self._otel = OtelExporter(config, lambda: sanitizer_of(config), root_finder(Log(database)))
        export = [self._otel.export] if self._otel is not None else []
        self.tracer = Tracer(config, lambda: sanitizer_of(config), *export)

    @functools.cached_property
    def _outbox(self) -> Outbox:
        """Stored traces; loaded when one is needed."""
        from healkit.parts.traces.outbox import Outbox

        return Outbox(self._database)

    def get(self, trace_id: str) -> ExecutionTrace | None:
        """Return the trace of that execution (`Execution.trace_id`); None if there is none.

        Example:
        >>> trace = hk.traces.get(failed.trace_id)
        >>> trace.success, trace.metadata["arguments"]
        (False, {'hits': 3, 'games': 0})
        """
        wire = self._outbox.wire(trace_id)
        return None if wire is None else read_trace(wire)

    def state(self) -> OutboxState:
        """Count the traces by state (local, waiting, sent, parked and why), with the last error, if any.

        Example:
        >>> hk.traces.state().sent
        0
        """
        return self._outbox.state()

    def sync(
        self, *, retry_parked: bool = False, local: bool = False, timeout_s: float = SYNC_TIMEOUT_S
    ) -> OutboxState:
        """Send all waiting traces now, and return the status; an unreachable collector is retried until time is up.

        retry_parked: Also the traces that the collector refused.
        local: Also the traces that were recorded while nothing was sent.

        Raises `ConfigError` if no collector is configured.

        Example:
        >>> config = Config(sync_url="http://127.0.0.1:9")  # no collector answers there
        >>> with Healkit("sent.db", config=config) as sent:
        ...     _ = sent.vault.add("one", "def one(): return 1")
        ...     _ = sent.execute("one")
        ...     state = sent.traces.sync(timeout_s=0.5)
        >>> state.sent, state.pending
        (0, 1)
        """
        if self._config.sync_url:
            self._database.require_trust("Its traces cannot be sent")
        if self._syncer is None:
            raise ConfigError(
                "No collector is configured.",
                hint="Set sync_url (HEALKIT_SYNC_URL) to its URL; `healkit collect` starts one.",
            )
        self._outbox.requeue(parked=retry_parked, local=local)
        self._syncer.send_now(timeout_s)
        return self._outbox.state()

    def start(self) -> None:
        """Start sending in the background; called once the database is ready."""
        if self._syncer is not None:
            self._syncer.start()

    def notify(self) -> None:
        """Wake the sender, because one more trace is waiting; called by the recorder."""
        if self._syncer is not None:
            self._syncer.notify()

    def close(self) -> None:
        """Send as many waiting traces as time allows, and stop."""
        if self._syncer is not None:
            self._syncer.close()
        if self._otel is not None:
            self._otel.close()


def root_finder(log: Log) -> Callable[[str], str]:
    """Return a function that finds the root of a running execution; its row precedes its children's."""

    @functools.lru_cache(maxsize=1024)
    def root_of(trace_id: str) -> str:
        try:
            row = log.by_trace(trace_id)
        except DatabaseError:
            return trace_id
        return trace_id if row is None or row.parent_trace_id is None else root_of(row.parent_trace_id)

    return root_of
