"""Changes in a server's database, received as notifications.

Writers send a NOTIFY: `Database.write` with each transaction, the log's writer at most once a second, because commits
that notify wait for each other. A process that shows the database has a connection that listens, and checks its socket,
which does not involve the server.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

NOTIFY = "NOTIFY healkit_changed"

#: Pause between two notifications of a writer, in seconds; the first one covers all changes in between.
PAUSE_S = 1.0
#: Data is read again after this many seconds, because other programs change it without a notification.
_LONGEST_S = 30.0


class Changes:
    """Listener for one database; safe to use from several threads. connect: Opens a connection in autocommit."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._connection: Any = None
        self._heard_s = 0.0

    def may_differ(self, read_s: float) -> bool:
        """Return False if nothing has changed since that time of `time.monotonic`; True if that is not known."""
        with self._lock:
            try:
                if new := self._connection is None:
                    self._connection = self._connect()
                    self._connection.execute("LISTEN healkit_changed")
                if new or list(self._connection.notifies(timeout=0)):
                    self._heard_s = time.monotonic()
            except Exception:  # noqa: BLE001 - the server is gone or cannot notify: query it instead
                self.close()
                return True
        return read_s <= self._heard_s + 1.5 * PAUSE_S or time.monotonic() > read_s + _LONGEST_S

    def close(self) -> None:
        """Stop listening; the next question opens a new connection."""
        connection, self._connection = self._connection, None
        with suppress(Exception):  # it may not exist
            connection.close()
