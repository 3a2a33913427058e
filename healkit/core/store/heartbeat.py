"""Heartbeats of hosts that share a database on a server.

A host with running executions has one row there, with the time until which it counts as alive, by the database's clock.
A thread renews the row, and removes it when nothing runs any more. Another machine cannot check the host's process
(`core.host`). So a host counts as dead once its row has expired, and as unknown without a row. If a host was paused or
cut off for so long, it later records the true ending of its executions. This replaces the verdict that it had died.

A file has no heartbeats, because only one machine uses it.
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

#: Time between two heartbeats, and how long a host counts as alive after one, in seconds.
BEAT_S, ALIVE_S = 10.0, 60.0

_BEAT = """INSERT INTO hostheartbeat (host, alive_until)
    VALUES (:host, clock_timestamp() + make_interval(secs => :alive_s))
    ON CONFLICT (host) DO UPDATE SET alive_until = excluded.alive_until"""
_LEAVE = "DELETE FROM hostheartbeat WHERE host = :host OR alive_until < clock_timestamp() - interval '1 day'"
# While the server was down, no host could renew its row.
_ALIVE = """SELECT greatest(alive_until, pg_postmaster_start_time() + make_interval(secs => :alive_s))
        > clock_timestamp() AS alive
    FROM hostheartbeat WHERE host = :host"""


def is_alive_there(database: Database, host: HostIdentity) -> bool | None:
    """Return whether a host of another machine counts as alive; None if the database does not know it."""
    if database.path is not None:
        return None
    rows = database.fetch(_ALIVE, host=_name(host), alive_s=ALIVE_S)
    return bool(rows[0]["alive"]) if rows else None


def _name(host: HostIdentity) -> str:
    return f"{host.hostname} {host.boot_id} {host.pid_namespace} {host.pid} {host.started_ticks}"


class Heartbeat:
    """Renews the row while executions of this process run, or records wait; safe to use from several threads.

    waiting: Whether records wait for the database.
    look: Called regularly while the heartbeat runs.

    Never raises; if the database does not accept a heartbeat, the next one makes up for it.
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
        """Note the beginning of an execution; called before its row is written."""
        if self._beats:
            with self._lock:
                self._running.add(trace_id)
                if self._thread is None or not self._thread.is_alive():  # the thread is gone after a fork
                    self._thread = threading.Thread(target=self._beat, name="healkit-heartbeat", daemon=True)
                    self._thread.start()

    def ended(self, trace_id: str) -> None:
        """Note the end of an execution."""
        self._running.discard(trace_id)

    def close(self) -> None:
        """Stop, and remove the row."""
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
                    if self._closed.is_set() or self._is_idle():  # otherwise an execution began in between
                        self._thread = None
                        return

    def _is_idle(self) -> bool:
        return not self._running and not self._waiting()

    def _say(self, text: str) -> None:
        statement = prepared("postgresql", text)
        values = statement.bind({"host": _name(host_identity()), "alive_s": ALIVE_S})
        with suppress(DatabaseError):
            self._writer.transaction(lambda cursor: cursor.execute(statement.sql, values))
