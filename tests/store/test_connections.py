"""Connection that is kept for the next read of a file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from healkit.store.database import Database, KeptConnection
from healkit.store.statements import NEWEST

SHOWN = "SELECT count(*) FROM sqlite_master"


class Opened:
    """Connections to one file: all that were opened, and the one that is kept."""

    def __init__(self, path: Path) -> None:
        self.path, self.state, self.all = path, "as it was", list[sqlite3.Connection]()
        self.kept = KeptConnection(self._open, lambda: self.state)

    def _open(self) -> sqlite3.Connection:
        self.all.append(sqlite3.connect(self.path, check_same_thread=False))
        return self.all[-1]

    def read(self, meanwhile: Callable[[], object] = lambda: None) -> sqlite3.Connection:
        """Read, and do something else before the connection is given back; return the connection."""
        with self.kept.lent() as connection:
            connection.execute(SHOWN).fetchone()
            meanwhile()
        return connection


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    found = Opened(tmp_path / "x.db")
    with closing(found.kept):
        yield found
    assert all(map(is_closed, found.all))


def is_closed(connection: sqlite3.Connection) -> bool:
    """Return whether a connection can be used no more."""
    try:
        connection.execute(SHOWN)
    except sqlite3.ProgrammingError:
        return True
    return False


def files_open(path: Path) -> int:
    """Count this process's descriptors of a database and the files beside it."""
    names = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
    return sum(name.startswith(str(path)) for name in names)


def test_the_next_read_has_the_same_connection(opened: Opened) -> None:
    assert opened.read() is opened.read()


def test_a_thread_that_comes_meanwhile_has_its_own_and_one_is_kept(opened: Opened) -> None:
    def another() -> None:
        thread = Thread(target=opened.read)
        thread.start()
        thread.join()

    opened.read(meanwhile=another)
    assert len(opened.all) == 2
    assert sorted(map(is_closed, opened.all)) == [False, True]


def test_a_file_in_another_state_is_opened_anew(opened: Opened) -> None:
    first = opened.read()
    opened.state = "replaced"
    assert opened.read() is not first
    assert is_closed(first)


def test_a_read_that_fails_keeps_no_connection(opened: Opened) -> None:
    with pytest.raises(ZeroDivisionError):
        opened.read(meanwhile=lambda: 1 / 0)
    assert is_closed(opened.all[0])
    opened.read()
    assert len(opened.all) == 2


def test_a_forked_child_opens_its_own_and_leaves_the_parents_alone(opened: Opened) -> None:
    first = opened.read()
    if (child := os.fork()) == 0:
        os._exit(0 if opened.read() is not first and not is_closed(first) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert opened.read() is first


def test_closing_a_database_leaves_none_of_its_files_open(tmp_path: Path, empty_database: Path) -> None:
    path = Path(shutil.copy(empty_database, tmp_path / "healkit.db"))
    database = Database(path)
    database.fetch(NEWEST, limit=1)
    assert files_open(path) > 0
    database.close()
    assert files_open(path) == 0
    assert database.fetch(NEWEST, limit=1) == []  # used again, it opens a new one
    database.close()


def test_a_database_that_is_dropped_without_closing_leaves_none_of_its_files_open(
    tmp_path: Path, empty_database: Path
) -> None:
    import gc

    path = Path(shutil.copy(empty_database, tmp_path / "healkit.db"))
    Database(path).fetch(NEWEST, limit=1)
    gc.collect()
    assert files_open(path) == 0
