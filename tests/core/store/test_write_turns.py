"""Writers of one SQLite file, in threads and processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from side_by_side import Meet, at_once
from store_samples import started, succeeded

from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.vault import Vault
from healkit.errors import DatabaseLocked
from healkit.parts.heal.requests import Requests

pytestmark = pytest.mark.requirement("SCALE-1")

SOAK = Path(__file__).parents[3] / "benchmarks" / "soak_hosts.py"
#: How long each writer may wait without any other getting on, and how long each keeps the others waiting.
WAIT_S, HELD_S = 1.0, 0.01
HOSTS, THREADS, TURNS = 4, 8, 6


def write_from_threads(meet: Meet, path: str) -> int:
    """Record executions and change the vault from many threads; return how many executions were recorded."""
    with contextlib.closing(Database(path, wait_s=WAIT_S)) as database:
        writer, vault = LogWriter(database), Vault(database)
        vault.add(
            f"first_{os.getpid()}", f"def first_{os.getpid()}():\n    return 1"
        )  # loads what that needs
        meet()

        def work(thread: int) -> int:
            for turn in range(TURNS):
                begun = started(f"{os.getpid()}_{thread}")
                writer.begin_in_order(begun)
                writer.finish(succeeded(begun))
                with database.write() as session:
                    session.connection().exec_driver_sql("UPDATE executionlog SET client = 'x' WHERE id = 1")
                    time.sleep(HELD_S)
                if turn == 0:
                    vault.add(
                        f"tool_{os.getpid()}_{thread}", f"def tool_{os.getpid()}_{thread}():\n    return 1"
                    )
            return TURNS

        with contextlib.closing(writer), ThreadPoolExecutor(THREADS) as threads:
            return sum(threads.map(work, range(THREADS)))


@pytest.mark.slow
def test_four_hosts_of_eight_threads_wait_for_their_turns_however_long_that_takes(
    sqlite_database: Database,
) -> None:
    """The others take longer together than a writer waits for one that does not get on."""
    recorded = at_once(write_from_threads, *[(str(sqlite_database.path),)] * HOSTS)
    assert recorded == [THREADS * TURNS] * HOSTS
    assert Log(sqlite_database).count(status="SUCCESS") == HOSTS * THREADS * TURNS
    assert len(Vault(sqlite_database).list()) == HOSTS * (THREADS + 1)


def test_a_transaction_that_a_thread_leaves_open_is_not_waited_for(sqlite_database: Database) -> None:
    other = Database(sqlite_database.path, wait_s=WAIT_S)  # another connection of this process
    with contextlib.closing(other), contextlib.closing(LogWriter(other)) as writer:
        with sqlite_database.write():
            with pytest.raises(DatabaseLocked, match="another thread holds a transaction open"):
                writer.begin(started())
            with pytest.raises(DatabaseLocked):
                Requests(other).add("tool", "def tool(): pass")
        writer.begin(started())
    assert Log(sqlite_database).count() == 1


def test_a_writer_that_is_killed_keeps_no_one_waiting(sqlite_database: Database) -> None:
    program = (
        "import sys, time\nfrom healkit.core.store.database import Database\n"
        "with Database(sys.argv[1]).write() as session:\n"
        "    session.connection().exec_driver_sql('DELETE FROM executionlog')\n"
        "    print('held', flush=True)\n    time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(sqlite_database.path)]
    with contextlib.closing(LogWriter(sqlite_database)) as writer:
        writer.begin(started())
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            with pytest.raises(DatabaseLocked):
                writer.begin(started())
            process.kill()
        writer.begin(started())
    assert Log(sqlite_database).count() == 2


def test_a_forked_child_has_turns_of_its_own(sqlite_database: Database) -> None:
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with sqlite_database.turn(1.0):
            held.set()
            free.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    if (child := os.fork()) == 0:
        try:  # the thread that has the turn is not in this process
            with contextlib.closing(LogWriter(sqlite_database)) as writer:
                writer.begin(started())
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    free.set()
    thread.join()
    assert Log(sqlite_database).count() == 1
