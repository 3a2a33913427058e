"""Turns of a SQLite file's writers.

SQLite has one writer at a time and no queue. A connection that finds the lock taken sleeps longer after each try, up to
a tenth of a second, and later connections overtake it. With four processes of eight threads each, writers waited longer
than a second (benchmarks/soak_hosts.py). So the writers of a process take turns, whatever connection they use. Only the
writer whose turn it is tries to get SQLite's lock, often and at irregular times. So four processes make four writers
compete, not 32.

The alternative was a lock file beside the database. It has the same problem, because a blocking lock has no time limit.
It would also be one more file that a fork inherits. Another user may not be able to open it, and network file systems
cannot lock it. SQLite's lock is released with its process, and every other program respects it.
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

#: How long SQLite itself tries to get its lock before the next pause (ms); the first and the longest pause
#: (s).
ASKS_MS, _FIRST_S, _LONGEST_S = 3, 0.001, 0.01
#: Minimum wait of a writer, in seconds: without any wait, it would fail whenever another one writes.
_LEAST_S = 0.05
#: Duration of one try on an idle machine, in seconds: a writer that waits for 1 s has 50 tries.
_TRY_S = 0.02
#: Longest wait of a writer while others make progress, in seconds.
_PATIENCE_S = 30.0

_turns: weakref.WeakValueDictionary[Path, WriteTurns] = weakref.WeakValueDictionary()
_finding = threading.Lock()


class WriteTurns:
    """Turns of this process's writers of one file.

    The wait is limited while other writers make no progress, for instance because a program has left a transaction
    open. While they do make progress, a writer waits for its turn, however many are before it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Counts the turns that ended here, and commits of other processes, as far as a waiting writer saw
        #: them.
        self._moves = 0

    @classmethod
    def of(cls, path: Path) -> WriteTurns:
        """Return the turns of a file, which all connections of this process share."""
        with _finding:
            return _turns.setdefault(path, cls())

    @contextmanager
    def turn(self, wait_s: float, where: str) -> Iterator[None]:
        """Take the turn for the block; raise `DatabaseLocked` if another thread keeps it. where: Name of the file."""
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
        """Return the result of `work`, which first takes SQLite's lock on the connection; retry while it is taken.

        The connection's own busy timeout must be `ASKS_MS`. Raises SQLite's error if the lock is not available.
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
    """Wait of one writer: over if the others make no progress for `wait_s`, or after a long time.

    On an overloaded machine, the writer whose turn it is may not run for a second, without a fault. Nor does the
    waiting writer run then. So the wait only ends after as many tries as that time would allow on an idle machine.
    """

    def __init__(self, wait_s: float, seen: int) -> None:
        self._wait_s, self._seen, self._tries = wait_s, seen, 0
        self._began = self._last = time.monotonic()
        #: Whether the others had made progress at the last check.
        self.moved = False

    def is_over(self, seen: int) -> bool:
        """Return whether the wait is over, after each try; seen: a number that changes when a writer makes progress."""
        now = time.monotonic()
        self._tries += 1
        self.moved = seen != self._seen
        if self.moved:
            self._seen, self._last, self._tries = seen, now, 0
        in_vain = now - self._last >= self._wait_s and self._tries * _TRY_S >= self._wait_s
        return in_vain or now - self._began >= max(self._wait_s, _PATIENCE_S)


def _forked() -> None:
    """Give a forked child new locks, because a thread that no longer exists may have held one."""
    for turns in list(_turns.values()):
        turns._lock = threading.Lock()


os.register_at_fork(after_in_child=_forked)
