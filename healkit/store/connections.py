"""Connections: set up, kept for the next read, closed.

SQLite parses a database's whole schema for each new connection, which takes longer than most of the reads. So one
connection is kept, and lent to one thread at a time; another thread that comes meanwhile opens its own.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

#: Connections that a process had as this one was forked from it: to close them here could harm its files.
_of_a_parent: list[sqlite3.Connection] = []


class KeptConnection:
    """Lends a connection to one file.

    connect: opens one. state: what the file is now; a connection that was opened in another state is not lent again.
    Safe to use from several threads and after a fork. Closed with this object at the latest.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], state: Callable[[], Hashable]) -> None:
        self._connect, self._state = connect, state
        self._idle: list[tuple[int, Hashable, sqlite3.Connection]] = []
        weakref.finalize(self, _close, self._idle)

    @contextmanager
    def lent(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection for a read that ends with the body; it is closed where the body fails."""
        state = self._state()
        connection = self._take(state) or self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._idle:
            connection.close()
        else:
            self._idle.append((os.getpid(), state, connection))

    def close(self) -> None:
        """Close what is kept; used again, a new connection is opened."""
        _close(self._idle)

    def _take(self, state: Hashable) -> sqlite3.Connection | None:
        try:
            kept = self._idle.pop()
        except IndexError:
            return None
        if kept[:2] == (os.getpid(), state):
            return kept[2]
        _close([kept])
        return None


def _close(kept: list[tuple[int, Hashable, sqlite3.Connection]]) -> None:
    """Close all that this process has opened, and empty the list."""
    with suppress(IndexError):  # another thread may take the last one
        while True:
            owner, _, connection = kept.pop()
            if owner == os.getpid():
                connection.close()
            else:
                _of_a_parent.append(connection)


@contextmanager
def closed_on_error(connection: Any) -> Iterator[None]:
    """Close a new connection that cannot be set up: a full disk or a lost file fails its first statement."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def wait_at_most(connection: Any, wait_s: float) -> None:
    """Bound the wait for a locked table, for reading too; called with each new connection to a server."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"SET lock_timeout = {max(1, int(wait_s * 1000))}")
    connection.commit()  # a rollback would take the setting back
