"""Executions on record with their traces."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(
    0, str(Path(__file__).parents[2] / "core" / "store")
)  # the store's samples are these tests' too
from sqlalchemy import select
from store_samples import failed, started, succeeded

from healkit.config import Config
from healkit.core.contracts.execution import Started
from healkit.core.runtime.recording import Recorder
from healkit.core.store.database import Database
from healkit.core.store.models import TRACES
from healkit.parts.traces.delivery import Pace, Syncer
from healkit.parts.traces.outbox import Outbox
from healkit.parts.traces.trace_collector import Tracer

__all__ = ["QUICK", "Sender", "failed", "started", "succeeded", "trace_rows"]

#: Everything that takes its time in real life, quick.
QUICK: dict[str, Any] = {
    "sync_interval_s": 0.05, "sync_token": "collector-token",
}  # fmt: skip
PACE = Pace(request_s=60.0, backoff_s=0.02, backoff_max_s=0.1)


class Sender:
    """Database with its recorder, its outbox, and whatever syncers a test starts on it."""

    def __init__(self, place: Path | str, config: Config, wait_s: float = 20.0) -> None:
        self.path = Path(place)  # of a file; tests on a server do not ask for it
        self.config = config
        self.database = Database(place, wait_s=wait_s)
        self.outbox = Outbox(self.database)
        self.notify: Callable[[], None] = lambda: None
        self.recorder = Recorder(
            self.database, config, Tracer(config), lambda send: self.notify() if send else None
        )

    def record(self, count: int = 1, **changes: Any) -> list[str]:
        """So many executions from beginning to end; their ids."""
        return [self.end(self.begin(**changes)) for _ in range(count)]

    def begin(self, tool: str = "fibonacci", **changes: Any) -> Started:
        begun = started(tool, **changes)
        self.recorder.open_row(begun)
        return begun

    def end(self, begun: Started) -> str:
        self.recorder.close_row(succeeded(begun), self.recorder.collector(begun))
        return begun.trace_id

    @contextlib.contextmanager
    def syncing(self, **changes: Any) -> Iterator[Syncer]:
        """Run a syncer on this outbox, closed at the end; changes: settings, and fields of its pace."""
        pace = PACE._replace(**{name: changes.pop(name) for name in Pace._fields if name in changes})
        syncer = Syncer(Outbox(self.database), replaced(self.config, **changes), pace)
        self.notify = syncer.notify
        syncer.start()
        try:
            yield syncer
        finally:
            syncer.close()

    def states(self) -> dict[str, str]:
        """Trace id → state."""
        with self.database.read() as session:
            return dict(session.execute(select(TRACES.c.trace_id, TRACES.c.state)).all())

    def close(self) -> None:
        self.recorder.close()
        self.database.close()


def replaced(config: Config, **changes: Any) -> Config:
    import dataclasses

    return dataclasses.replace(config, **changes)


def trace_rows(where: Path | Sender) -> list[dict[str, Any]]:
    """Return the traces, of a file as another program reads them."""
    if isinstance(where, Sender):
        with where.database.read() as session:
            return [dict(row) for row in session.execute(select(TRACES).order_by(TRACES.c.id)).mappings()]
    path = where
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM executiontrace ORDER BY id")]
