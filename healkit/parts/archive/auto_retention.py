"""Retention that runs by itself, in the background.

It deletes nothing unless a limit is set, `retention_days` or `retention_rows`. Its thread works in batches that lock
the database for some milliseconds each. It starts half a minute after the database was opened, and then runs once an
interval. It keeps everything that `log.prune` always keeps. Several processes may do this on one database.
"""

from __future__ import annotations

import os
import threading
from datetime import timedelta

from healkit.config import Config
from healkit.core.store.database import Database
from healkit.errors import HealkitError

#: Pause between two rounds, in seconds.
INTERVAL_S = 3600.0
#: Time before the first round, in seconds: a command that ends at once deletes nothing.
_FIRST_AFTER_S = 30.0
#: Time that closing waits for the batch in progress, in seconds.
_END_S = 10.0


class AutoRetention:
    """Thread that deletes records beyond the configured limits, from `start` to `close`; without a limit, no thread."""

    def __init__(self, database: Database, config: Config) -> None:
        self._database, self._config = database, config
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        #: Executions deleted so far, and what was wrong in the last round; empty where nothing was.
        self.deleted, self.problem = 0, ""

    def start(self) -> None:
        """Start the thread, if there is a limit."""
        if self._config.retention_days or self._config.retention_rows:
            self._thread = threading.Thread(target=self._serve, name="healkit-retention", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End it after the batch in progress; safe to call twice."""
        self._closing.set()
        if self._thread is not None and os.getpid() == self._pid:
            self._thread.join(_END_S)
            self._thread = None

    def _serve(self) -> None:
        """Delete in rounds, with a pause before each; the thread's target."""
        pause_s = min(_FIRST_AFTER_S, INTERVAL_S)
        while not self._closing.wait(pause_s):
            pause_s = INTERVAL_S
            try:
                self._round()
                self.problem = ""
            except Exception as error:  # noqa: BLE001 - a full or busy database: the next round tries again
                self.problem = (
                    error.message if isinstance(error, HealkitError) else f"{type(error).__name__}: {error}"
                )

    def _round(self) -> None:
        from healkit.core.store.retention import Retention  # late: most processes end before the first round

        days, rows = self._config.retention_days, self._config.retention_rows
        age = timedelta(days=days) if days else None
        self.deleted += Retention(self._database, self._closing.is_set).prune(age, rows or None).deleted
