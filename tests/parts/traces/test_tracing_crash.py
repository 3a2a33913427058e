"""Kills and outages: no row is lost, each trace arrives once."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from misbehaving import Collector, collecting
from side_by_side import Forked
from tracing_samples import QUICK, Sender, trace_rows
from waiting import wait_until

sys.path.insert(0, str(Path(__file__).parents[2] / "faces" / "server"))
import collector_samples

from healkit import Config, Healkit

TRACE_3 = pytest.mark.requirement("TRACE-3")
HERE = Path(__file__).parent
#: How many kills, at least: shared out to processes that kill side by side, on one database.
KILLS = int(os.environ.get("HEALKIT_KILLS", "100"))
LAUNCHERS = 4
#: How long the collector is away at least, and until each kind of trouble was met. `make outage` takes 20 s.
OUTAGE_S = float(os.environ.get("HEALKIT_OUTAGE_S", "1"))
TROUBLES = ("503", "429", "reset", "half", "reset-after", "half-after", "500", "html", "hang")


def end_and_die(database: Path, at: str) -> None:
    """Record an execution, and be killed within the ending's transaction, at that statement."""
    sender = Sender(database, Config())
    begun = sender.begin("dies")

    def watch(statement: str) -> None:
        if at in statement:
            os.kill(os.getpid(), signal.SIGKILL)

    sender.recorder._writer._connection.set_trace_callback(watch)
    sender.end(begun)


@pytest.mark.slow
@TRACE_3
@pytest.mark.parametrize("at", ["UPDATE executionlog", "INSERT INTO executiontrace", "COMMIT"])
def test_an_ending_and_its_trace_are_stored_together(tmp_path: Path, at: str) -> None:
    database = tmp_path / "healkit.db"
    assert Forked(end_and_die, database, at).wait() == -signal.SIGKILL
    assert trace_rows(database) == []
    with contextlib.closing(sqlite3.connect(database)) as reader:
        assert reader.execute("SELECT status FROM executionlog").fetchall() == [("RUNNING",)]
    with Healkit(database) as healkit:
        row = healkit.log.last_error()
        assert row.error_code == "HOST_DIED"
        trace = healkit.traces.get(row.trace_id)
        assert trace.metadata["errorCode"] == "HOST_DIED"


@pytest.mark.slow
@TRACE_3
@pytest.mark.timeout(300)
def test_a_hundred_kills_lose_no_row_and_double_no_trace(
    tmp_path: Path,
) -> None:
    database, promises = tmp_path / "healkit.db", tmp_path / "promises"
    with Healkit(database) as healkit:
        healkit.vault.add("counts", "SELECT :n + 1 AS n", type="sql")
        healkit.vault.add("fails", "SELECT * FROM no_such_table WHERE n = :n", type="sql")
        from crash_host import SLEEPS

        healkit.vault.add("sleeps", SLEEPS)
    environ = {"HEALKIT_COLLECT_RATE_PER_S": "100000"}
    with collector_samples.collecting(tmp_path / "collector.db", **environ) as server:
        kill_many(database, server.url, promises)
        promised = dict(line.split() for line in promises.read_text().splitlines())
        with contextlib.closing(sqlite3.connect(database)) as reader:
            running = {
                row[0] for row in reader.execute("SELECT trace_id FROM executionlog WHERE status = 'RUNNING'")
            }
        assert running, "nothing was in flight"
        deliver_the_rest(database, server.url)
        with contextlib.closing(sqlite3.connect(database)) as reader:
            rows = dict(reader.execute("SELECT trace_id, status FROM executionlog"))
            codes = dict(reader.execute("SELECT trace_id, error_code FROM executionlog"))
        traces = trace_rows(database)
        stored = server.stored()
    assert len(promised) > KILLS
    assert {trace: rows.get(trace) for trace in promised} == promised, "a committed row was lost"
    assert {codes[trace] for trace in running} == {"HOST_DIED"}, "a run in flight is not shown as such"
    assert Counter(row["state"] for row in traces) == {"sent": len(rows)}
    assert set(stored) == set(rows) == {row["trace_id"] for row in traces}
    with contextlib.closing(sqlite3.connect(tmp_path / "collector.db")) as reader:
        (count,) = reader.execute("SELECT count(*) FROM collectedtrace").fetchone()
    assert count == len(rows)
    slept = [trace for trace in stored.values() if ".sleeps." in trace["capabilityId"]]
    assert slept
    assert any(trace["decisions"] and trace["taskResults"] for trace in slept), "no kill hit a worker at work"
    print(
        f"{len(rows)} rows after {KILLS} kills, {len(promised)} promised, {len(running)} in flight at the end"
    )


def kill_many(database: Path, url: str, promises: Path) -> None:
    """Several launchers at once, each of which forks hosts and kills them."""
    environ = {**os.environ, "HEALKIT_COLLECT_TOKEN": collector_samples.TOKEN}
    launchers = [
        subprocess.Popen(
            [sys.executable, str(HERE / "crash_host.py"), str(database), url, str(promises), str(KILLS // LAUNCHERS), str(seed)],
            env=environ, stderr=subprocess.PIPE, text=True,
        )
        for seed in range(LAUNCHERS)
    ]  # fmt: skip
    for launcher in launchers:
        _, said = launcher.communicate(timeout=240)
        assert launcher.returncode == 0, said


def deliver_the_rest(database: Path, url: str) -> None:
    config = Config(sync_url=url, sync_token=collector_samples.TOKEN, sync_batch=100, sync_interval_s=0.05)
    with Healkit(database, config=config) as healkit:
        wait_until(lambda: healkit.traces.sync().pending == 0)


@pytest.mark.slow
@TRACE_3
@pytest.mark.timeout(120)
def test_every_trace_arrives_once_after_an_outage_and_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    environ = {"HEALKIT_COLLECT_RATE_PER_S": "100000"}
    with (
        collector_samples.collecting(tmp_path / "collector.db", **environ) as server,
        collecting(server.url) as proxy,
    ):
        proxy.retry_after = itertools.cycle(["1", "", ""]).__next__
        luck = random.Random(7)
        shuffled = itertools.chain.from_iterable(
            luck.sample(TROUBLES, len(TROUBLES)) for _ in itertools.count()
        )
        ids = run_through(tmp_path / "healkit.db", proxy, lambda: next(shuffled))
        stored = server.stored()
        with contextlib.closing(sqlite3.connect(tmp_path / "collector.db")) as reader:
            count = reader.execute("SELECT count(*), count(DISTINCT trace_id) FROM collectedtrace").fetchone()
    assert set(stored) == set(ids)
    assert count == (len(ids), len(ids))
    assert set(TROUBLES) <= set(proxy.words())
    print(f"{len(ids)} traces through {OUTAGE_S:g} s of {dict(Counter(proxy.words()))}")


def run_through(path: Path, proxy: Collector, trouble: Callable[[], str]) -> list[str]:
    """Executions before, during and after the outage, by a client that is closed and opened again in its middle."""
    changes = {"sync_token": collector_samples.TOKEN}
    config = Config(sync_url=proxy.url, **{**QUICK, **changes})
    ids: list[str] = []
    pause = threading.Event()

    def record_until(sender: Sender, happened: Callable[[], object]) -> None:
        """Five at a time, for half of the outage at least."""
        end = time.monotonic() + OUTAGE_S / 2
        while time.monotonic() < end or not happened():
            ids.extend(sender.record(5))
            pause.wait(0.05)

    def troubles(count: int) -> Callable[[], bool]:
        return lambda: len({*TROUBLES} & {*proxy.words()}) >= count

    with contextlib.closing(Sender(path, config)) as sender, sender.syncing(request_s=0.5, flush_s=0.3):
        record_until(sender, lambda: "accept" in proxy.words())
        proxy.otherwise = trouble
        record_until(sender, troubles(len(TROUBLES) // 2))
    with contextlib.closing(Sender(path, config)) as sender, sender.syncing(request_s=0.5, flush_s=0.3):
        record_until(sender, troubles(len(TROUBLES)))
        proxy.otherwise = lambda: "accept"
        ids.extend(sender.record(5))
        wait_until(lambda: set(sender.states().values()) == {"sent"})
    return ids
