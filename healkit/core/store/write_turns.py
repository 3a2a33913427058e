"""Turns of a SQLite file's writers.

SQLite has one writer at a time and no queue: a connection that finds the lock taken sleeps longer after each try, up to
a tenth of a second, and those that come later pass it. With four processes of eight threads each, writers waited longer
than a second (benchmarks/soak_hosts.py). So the writers of a process take turns, whatever connection they use. The one
whose turn it is asks for SQLite's own lock, often and at irregular moments; of four processes four ask, not 32.

A lock file beside the database was the alternative. It would have to be asked for in the same way, because a lock that
can be waited for has no time limit; it would be one more file that a fork inherits, that another user may not open, and
that a network has no locks for. SQLite's lock goes with its process, and every other program keeps to it too.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from healkit.core.times import pause_s
from healkit.errors import DatabaseLocked

Result = TypeVar("Result")

#: How long SQLite itself asks for its lock before the next pause; the first and the longest pause.
ASKS_MS, _FIRST_S, _LONGEST_S = 3, 0.001, 0.01
#: The shortest time that a writer waits, in seconds: with no wait at all, it would fail whenever another one writes.
_LEAST_S = 0.05
#: How long a try may take on a machine with nothing else to do, in seconds: a writer that waits for 1 s has 50.
_TRY_S = 0.02
#: The longest time that a writer waits while others get on, in seconds.
_PATIENCE_S = 30.0

_turns: weakref.WeakValueDictionary[Path, WriteTurns] = weakref.WeakValueDictionary()
_finding = threading.Lock()


class WriteTurns:
    """Turns of this process's writers of one file.

    A wait has a limit for a writer that does not get on, such as a program that has left a transaction open. While
    others do get on, a writer waits for its turn, however many there are before it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Counts the turns that ended here, and the commits of other processes as far as a waiting writer saw them.
        self._moves = 0

    @classmethod
    def of(cls, path: Path) -> WriteTurns:
        """Return those of a file, which all connections of this process share."""
        with _finding:
            return _turns.setdefault(path, cls())

    @contextmanager
    def turn(self, wait_s: float, where: str) -> Iterator[None]:
        """Have the turn for the block; raise `DatabaseLocked` where another thread keeps it. where: names the file."""
        lock = self._lock
        if not lock.acquire(blocking=False) and not self._wait(lock, max(wait_s, _LEAST_S)):
            raise DatabaseLocked(
                f"The database {where} was busy for {wait_s:g} s: another thread holds a transaction open.",
                hint="Commit or close it, then try again.",
            )
        try:
            yield
        finally:
            self._moves += 1
            lock.release()

    def write(self, connection: sqlite3.Connection, work: Callable[[], Result], wait_s: float) -> Result:
        """Return what `work` does on the connection, which takes SQLite's lock first; tried again while that is taken.

        The connection's own busy timeout is to be `ASKS_MS`. Raises SQLite's error where the lock is not to be had.
        """
        wait_s, waiting = max(wait_s, _LEAST_S), None
        for failures in itertools.count(1):
            try:
                return work()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                (commits,) = connection.execute("PRAGMA data_version").fetchone()
                waiting = waiting or Waiting(wait_s, commits)
                if waiting.is_over(commits):
                    raise
                self._moves += waiting.moved
            time.sleep(pause_s(failures, _FIRST_S, _LONGEST_S, least=0.2))
        raise AssertionError("unreachable")

    def _wait(self, lock: threading.Lock, wait_s: float) -> bool:
        waiting = Waiting(wait_s, self._moves)
        while not (acquired := lock.acquire(timeout=_TRY_S)) and not waiting.is_over(self._moves):
            pass
        return acquired


class Waiting:
    """Wait of one writer: over when the others have not got on for `wait_s`, or after a long time.

    On a machine where far too much runs, who has the turn may not run for a second, and is not to blame. Nor does the
    writer that waits then. So it must have tried as often as it would have in that time on any other machine.
    """

    def __init__(self, wait_s: float, seen: int) -> None:
        self._wait_s, self._seen, self._tries = wait_s, seen, 0
        self._began = self._last = time.monotonic()
        #: Whether the others had got on when it was asked last.
        self.moved = False

    def is_over(self, seen: int) -> bool:
        """Return whether it is, after each try; seen: a number that changes when a writer gets on."""
        now = time.monotonic()
        self._tries += 1
        self.moved = seen != self._seen
        if self.moved:
            self._seen, self._last, self._tries = seen, now, 0
        in_vain = now - self._last >= self._wait_s and self._tries * _TRY_S >= self._wait_s
        return in_vain or now - self._began >= max(self._wait_s, _PATIENCE_S)


def _forked() -> None:
    """Give a forked child turns of its own: a thread that is not there any more may have had one."""
    for turns in list(_turns.values()):
        turns._lock = threading.Lock()


os.register_at_fork(after_in_child=_forked)
