"""kill -9 and outages: no committed row is lost, and the collector has each trace exactly once."""

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
from tracing_samples import QUICK, Sender, soon, trace_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
import collector_samples

from healkit import Config, Healkit

TRACE_3 = pytest.mark.requirement("TRACE-3")
HERE = Path(__file__).parent
#: How many kills, at least: half of them in each of two processes on one database.
KILLS = int(os.environ.get("HEALKIT_KILLS", "104"))
#: How long the collector is away. `make outage` takes 20 s; the gate has every kind of trouble in less.
OUTAGE_S = float(os.environ.get("HEALKIT_OUTAGE_S", "4"))

DIES_WITHIN = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from tracing_samples import Sender
from healkit.config import Config
sender = Sender(Path(sys.argv[1]), Config())
begun = sender.begin("dies")
connection = sender.recorder._writer._connection
def watch(statement):
    if sys.argv[3] in statement:
        os.kill(os.getpid(), signal.SIGKILL)
connection.set_trace_callback(watch)
sender.end(begun)
"""


@TRACE_3
@pytest.mark.parametrize("at", ["UPDATE executionlog", "INSERT INTO executiontrace", "COMMIT"])
def test_a_host_killed_between_an_ending_and_its_trace_leaves_neither(tmp_path: Path, at: str) -> None:
    database = tmp_path / "healkit.db"
    command = [sys.executable, "-c", DIES_WITHIN, str(database), str(HERE), at]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    assert trace_rows(database) == []
    with contextlib.closing(sqlite3.connect(database)) as reader:
        assert reader.execute("SELECT status FROM executionlog").fetchall() == [("RUNNING",)]
    with Healkit(database) as healkit:
        row = healkit.log.last_error()
        assert row.error_code == "HOST_DIED"
        trace = healkit.traces.get(row.trace_id)
        assert trace is not None
        assert trace.metadata["errorCode"] == "HOST_DIED"


@TRACE_3
@pytest.mark.timeout(300)
def test_after_a_hundred_kills_no_committed_row_is_lost_and_the_collector_has_each_trace_once(
    tmp_path: Path,
) -> None:
    database, promises = tmp_path / "healkit.db", tmp_path / "promises"
    with Healkit(database) as healkit:
        healkit.vault.add("counts", "SELECT :n + 1 AS n", type="sql")
        healkit.vault.add("fails", "SELECT * FROM no_such_table WHERE n = :n", type="sql")
        from crash_host import SLEEPS

        healkit.vault.add("sleeps", SLEEPS)
    environ = {"HEALKIT_COLLECT_RATE_PER_S": "100000", "HEALKIT_COLLECT_BURST": "100000"}
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
    """Two launchers at once, each of which forks hosts and kills them."""
    environ = {**os.environ, "HEALKIT_COLLECT_TOKEN": collector_samples.TOKEN}
    launchers = [
        subprocess.Popen(
            [sys.executable, str(HERE / "crash_host.py"), str(database), url, str(promises), str(KILLS // 2), seed],
            env=environ, stderr=subprocess.PIPE, text=True,
        )
        for seed in ("1", "2")
    ]  # fmt: skip
    for launcher in launchers:
        _, said = launcher.communicate(timeout=240)
        assert launcher.returncode == 0, said


def deliver_the_rest(database: Path, url: str) -> None:
    config = Config(sync_url=url, sync_token=collector_samples.TOKEN, sync_batch=100, sync_interval_s=0.05)
    with Healkit(database, config=config) as healkit:
        assert soon(lambda: healkit.traces.sync().pending == 0, 60), healkit.traces.state()


@TRACE_3
@pytest.mark.timeout(120)
def test_through_an_outage_with_a_restart_in_the_middle_everything_arrives_and_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    words = ["503", "429", "reset", "half", "reset-after", "half-after", "500", "html", "hang"]
    environ = {"HEALKIT_COLLECT_RATE_PER_S": "100000", "HEALKIT_COLLECT_BURST": "100000"}
    with (
        collector_samples.collecting(tmp_path / "collector.db", **environ) as server,
        collecting(server.url) as proxy,
    ):
        proxy.retry_after = "1"
        luck = random.Random(7)
        shuffled = itertools.chain.from_iterable(luck.sample(words, len(words)) for _ in itertools.count())
        ids = run_through(tmp_path / "healkit.db", proxy, lambda: next(shuffled))
        stored = server.stored()
        with contextlib.closing(sqlite3.connect(tmp_path / "collector.db")) as reader:
            count = reader.execute("SELECT count(*), count(DISTINCT trace_id) FROM collectedtrace").fetchone()
    assert set(stored) == set(ids)
    assert count == (len(ids), len(ids))
    assert {"503", "429", "reset", "half"} <= set(proxy.words())
    print(f"{len(ids)} traces through {OUTAGE_S:g} s of {dict(Counter(proxy.words()))}")


def run_through(path: Path, proxy: Collector, trouble: Callable[[], str]) -> list[str]:
    """Executions before, during and after the outage, by a client that is closed and opened again in its middle."""
    config = Config(
        sync_url=proxy.url, **{**QUICK, "sync_token": collector_samples.TOKEN, "sync_backoff_max_s": 0.5}
    )
    ids: list[str] = []
    pause = threading.Event()

    def record_for(sender: Sender, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ids.extend(sender.record(5))
            pause.wait(0.05)

    with contextlib.closing(Sender(path, config)) as sender, sender.syncing(sync_flush_s=0.3):
        record_for(sender, 0.5)
        proxy.otherwise = trouble
        record_for(sender, OUTAGE_S / 2)
    with contextlib.closing(Sender(path, config)) as sender, sender.syncing(sync_flush_s=0.3):
        record_for(sender, OUTAGE_S / 2)
        proxy.otherwise = lambda: "accept"
        record_for(sender, 0.3)
        assert soon(lambda: set(sender.states().values()) == {"sent"}, 60), sender.outbox.state()
    return ids
