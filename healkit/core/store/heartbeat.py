"""Heartbeats of hosts that share a database on a server.

A host whose executions run keeps one row there: until when it counts as alive, by the database's own clock. A thread
renews it, and removes it when nothing runs any more. So a host of another machine, whose process cannot be asked
(`core.host`), is dead once its row has run out, and one without a row is unknown. A host that was paused or cut off for
so long comes back with the true ending of its executions, which takes the place of the verdict that it had died.

A file has no heartbeats: it is used on one machine.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import suppress

from healkit.core.contracts.execution import HostIdentity
from healkit.core.host import host_identity
from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.statements import prepared
from healkit.errors import DatabaseError

#: Time between two beats, and how long a host counts as alive after one, in seconds.
BEAT_S, ALIVE_S = 10.0, 60.0

_BEAT = """INSERT INTO hostheartbeat (host, alive_until)
    VALUES (:host, clock_timestamp() + make_interval(secs => :alive_s))
    ON CONFLICT (host) DO UPDATE SET alive_until = excluded.alive_until"""
_LEAVE = "DELETE FROM hostheartbeat WHERE host = :host OR alive_until < clock_timestamp() - interval '1 day'"
# While the server was down, no host could beat.
_ALIVE = """SELECT greatest(alive_until, pg_postmaster_start_time() + make_interval(secs => :alive_s))
        > clock_timestamp() AS alive
    FROM hostheartbeat WHERE host = :host"""


def is_alive_there(database: Database, host: HostIdentity) -> bool | None:
    """Return whether a host of another machine counts as alive; None where the database does not know it."""
    if database.path is not None:
        return None
    rows = database.fetch(_ALIVE, host=_name(host), alive_s=ALIVE_S)
    return bool(rows[0]["alive"]) if rows else None


def _name(host: HostIdentity) -> str:
    return f"{host.hostname} {host.boot_id} {host.pid_namespace} {host.pid} {host.started_ticks}"


class Heartbeat:
    """Beats while executions of this process run, or records of theirs wait; safe to use from several threads.

    waiting: whether records wait for the database. look: called from time to time while it beats. Raises nothing; a
    beat that the database does not take is made up for by the next.
    """

    def __init__(
        self, database: Database, writer: LogWriter, waiting: Callable[[], bool], look: Callable[[], object]
    ) -> None:
        self._beats = database.path is None and not database.read_only and database.trusted
        self._writer, self._waiting, self._look = writer, waiting, look
        self._running: set[str] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def began(self, trace_id: str) -> None:
        """Take note of an execution that begins; called before its row is written."""
        if self._beats:
            with self._lock:
                self._running.add(trace_id)
                if self._thread is None or not self._thread.is_alive():  # as after a fork
                    self._thread = threading.Thread(target=self._beat, name="healkit-heartbeat", daemon=True)
                    self._thread.start()

    def ended(self, trace_id: str) -> None:
        """Take note of its end."""
        self._running.discard(trace_id)

    def close(self) -> None:
        """Beat no more, and remove the row."""
        self._closed.set()
        if (thread := self._thread) is not None:
            thread.join(timeout=5.0)

    def _beat(self) -> None:
        for number in itertools.count(1):
            self._say(_BEAT)
            if number % (ALIVE_S // BEAT_S) == 0:
                self._look()
            if self._closed.wait(BEAT_S) or self._is_idle():
                self._say(_LEAVE)
                with self._lock:
                    if self._closed.is_set() or self._is_idle():  # else one began meanwhile
                        self._thread = None
                        return

    def _is_idle(self) -> bool:
        return not self._running and not self._waiting()

    def _say(self, text: str) -> None:
        statement = prepared("postgresql", text)
        values = statement.bind({"host": _name(host_identity()), "alive_s": ALIVE_S})
        with suppress(DatabaseError):
            self._writer.transaction(lambda cursor: cursor.execute(statement.sql, values))
