"""Changes of a server's database, heard and not asked for.

Who writes says so by NOTIFY: with each transaction of `Database.write`, and the log's writer once a second at most,
because commits that notify wait for each other. Who shows the database has a connection that listens, and looks at its
socket, which asks the server nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

NOTIFY = "NOTIFY healkit_changed"

#: A writer's pause between two notices, in seconds; what changed meanwhile is heard of by the first.
PAUSE_S = 1.0
#: What was read is read again after so many seconds: other programs change it without a notice.
_LONGEST_S = 30.0


class Changes:
    """Ear for one database; safe to use from several threads. connect: opens a connection in autocommit."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._connection: Any = None
        self._heard_s = 0.0

    def may_differ(self, read_s: float) -> bool:
        """Return False where all is as it was at that time of `time.monotonic`; True also where that is not known."""
        with self._lock:
            try:
                if new := self._connection is None:
                    self._connection = self._connect()
                    self._connection.execute("LISTEN healkit_changed")
                if new or list(self._connection.notifies(timeout=0)):
                    self._heard_s = time.monotonic()
            except Exception:  # noqa: BLE001 - a server that has gone, or cannot notify: then it is asked
                self.close()
                return True
        return read_s <= self._heard_s + 1.5 * PAUSE_S or time.monotonic() > read_s + _LONGEST_S

    def close(self) -> None:
        """Listen no more; asked again, it opens a new connection."""
        connection, self._connection = self._connection, None
        with suppress(Exception):  # there may be none
            connection.close()
