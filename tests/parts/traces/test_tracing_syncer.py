"""Syncer against a server that misbehaves, refuses or delays."""

from __future__ import annotations

import email.utils
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx  # noqa: F401 - the first request would load it, which takes its time
import pytest
from misbehaving import Collector
from side_by_side import Forked
from tracing_samples import QUICK, Sender, trace_rows
from waiting import wait_until

from healkit.config import Config
from healkit.core.contracts.execution import utc_now
from healkit.errors import ConfigError
from healkit.parts.traces.delivery import CollectorResponse, RetryPolicy, judge

TRACE_3 = pytest.mark.requirement("TRACE-3")
SAMPLES = str(Path(__file__).parent)


def everything_sent(sender: Sender) -> Callable[[], bool]:
    return lambda: set(sender.states().values()) == {"sent"}


@pytest.mark.slow
@TRACE_3
def test_without_a_url_there_is_no_thread_and_no_http_client(tmp_path: Path) -> None:
    program = f"""
import sys, threading
sys.path.insert(0, {SAMPLES!r})
from healkit import Config, Healkit
hk = Healkit({str(tmp_path / "healkit.db")!r}, config=Config(fork_server=False, spares=0, start_timeout_s=30))
hk.vault.add("one", "SELECT 1", type="sql")
hk.execute("one")
assert [t.name for t in threading.enumerate() if "healkit-sync" in t.name] == []
hk.close()
assert "httpx" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert [row["state"] for row in trace_rows(tmp_path / "healkit.db")] == ["local"]


@TRACE_3
def test_what_fills_no_batch_waits_for_more_or_for_the_interval(sender: Sender, collector: Collector) -> None:
    """C4: after a full batch, what was left went out at once, in a batch of its own."""
    with sender.syncing(sync_interval_s=3600.0):
        first = sender.record(13)
        wait_until(lambda: len(collector.requests) == 1)
        second = sender.record(7)
        wait_until(everything_sent(sender))
    both = first + second
    begun = time.monotonic()
    with sender.syncing(sync_interval_s=0.2):
        single = sender.record()
        wait_until(everything_sent(sender))
    assert collector.requests[-1][0] - begun >= 0.2
    assert [ids for _, _, ids in collector.requests] == [both[:10], both[10:], single]
    assert collector.tokens == {"Bearer collector-token"}


@pytest.mark.slow
@TRACE_3
@pytest.mark.parametrize(
    "word",
    ["500", "502", "503", "429", "404", "302", "408", "html", "nonsense", "endless", "half", "half-after", "reset",
     "reset-after"],
)  # fmt: skip
def test_traces_arrive_once_whatever_the_collector_does(
    sender: Sender, collector: Collector, word: str
) -> None:
    collector.otherwise = lambda: word
    ids = sender.record(12)
    # On a busy machine an answer may take a second, and what is given up before it comes is sent again.
    with sender.syncing(request_s=60.0) as syncer:
        wait_until(lambda: syncer.problem)
        wait_until(lambda: len(collector.requests) >= 5)
        collector.otherwise = lambda: "accept"
        wait_until(everything_sent(sender))
        assert syncer.problem == ""
    assert set(collector.stored) == set(ids)
    if "after" not in word:
        assert set(collector.taken.values()) == {1}


def send_and_wait(path: Path, url: str) -> None:
    """Record three executions and send them, until killed."""
    sender = Sender(path, Config(sync_url=url, **QUICK))
    sender.record(3)
    with sender.syncing():
        signal.pause()


@pytest.mark.slow
@TRACE_3
def test_the_next_process_sends_a_killed_ones_traces_at_once(sender: Sender, collector: Collector) -> None:
    collector.plan.append("hang")
    process = Forked(send_and_wait, sender.path, collector.url)
    try:
        wait_until(lambda: collector.words() == ["hang"])
        assert all(row["lease_owner"] for row in trace_rows(sender.path))
        with sender.syncing() as syncer:
            syncer.send_now(10)
            assert collector.words() == ["hang"]  # it lives, and what it sends is its own
    finally:
        process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    with sender.syncing():
        wait_until(everything_sent(sender))
    assert len(collector.stored) == 3


@TRACE_3
def test_closing_sends_what_is_left(sender: Sender, collector: Collector) -> None:
    with sender.syncing(sync_interval_s=60.0, flush_s=10.0):
        ids = sender.record(25)
    assert set(collector.stored) == set(ids)
    assert everything_sent(sender)()


@TRACE_3
@pytest.mark.parametrize("word", ["hang", "503"])
def test_closing_does_not_wait_for_a_silent_collector(
    sender: Sender, collector: Collector, word: str
) -> None:
    collector.otherwise = lambda: word
    with sender.syncing(sync_interval_s=60.0, flush_s=0.2, request_s=600.0, backoff_s=600.0):
        sender.record(3)
    collector.otherwise = lambda: "accept"
    with sender.syncing():
        wait_until(everything_sent(sender))  # nothing is left on lease


@TRACE_3
def test_a_forked_child_sends_nothing_and_ends_at_once(sender: Sender, collector: Collector) -> None:
    with sender.syncing(sync_interval_s=60.0, sync_batch=2) as syncer:
        pid = os.fork()
        if pid == 0:
            for _ in range(5):
                syncer.notify()
            syncer.close()
            os._exit(0)
        assert wait_until(lambda: (ended := os.waitpid(pid, os.WNOHANG))[0] and ended) == (pid, 0)
        assert collector.requests == []
        sender.record(2)
        wait_until(lambda: len(collector.stored) == 2)


def processor_s_of(pause_s: float) -> float:
    """Return the processor's time that this process takes in a pause."""
    before = time.process_time()
    time.sleep(pause_s)
    return time.process_time() - before


@pytest.mark.slow
@TRACE_3
@pytest.mark.parametrize("word", ["accept", "401", "503"])
def test_an_idle_syncer_does_nothing(sender: Sender, collector: Collector, word: str) -> None:
    collector.otherwise = lambda: word
    sender.record()
    with sender.syncing(backoff_s=0.02, backoff_max_s=0.02) as syncer:
        wait_until(lambda: collector.requests)
        wait_until(lambda: syncer.problem or everything_sent(sender)())
        # Another process has sent it meanwhile.
        with closing(sqlite3.connect(sender.path)) as connection, connection:
            connection.execute("UPDATE executiontrace SET state = 'sent', lease_owner = NULL")
        connection.close()
        # Threads of other tests may be at work for a while; a syncer that is busy is so for ever.
        wait_until(lambda: processor_s_of(0.4) < 0.2)
        sender.record(10)
        collector.otherwise = lambda: "accept"
        syncer.send_now(20)
        assert everything_sent(sender)()


@TRACE_3
def test_a_clock_set_back_delays_no_trace(sender: Sender, collector: Collector) -> None:
    sender.record(2)
    with closing(sqlite3.connect(sender.path)) as connection, connection:
        ahead = (utc_now() + timedelta(days=400)).replace(tzinfo=None).isoformat(" ")
        connection.execute(
            "UPDATE executiontrace SET next_attempt_at = ?, lease_until = ?, lease_owner = 'x'",
            (ahead, ahead),
        )
    connection.close()
    with sender.syncing():
        wait_until(everything_sent(sender))


@TRACE_3
def test_a_backlog_goes_out_in_requests_of_bounded_size(sender: Sender, collector: Collector) -> None:
    payload = '"' + "word " * 1900 + '"'
    sizes: list[int] = []
    take = collector.take

    def measured(body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        sizes.append(len(body))
        return take(body, headers)

    collector.take = measured
    sender.record(250, arguments=payload)
    with sender.syncing(sync_batch=100, request_s=20.0):
        wait_until(everything_sent(sender))
    assert max(sizes) < 2_000_000
    assert len(collector.stored) == 250


@pytest.mark.requirement("TRACE-5")
@pytest.mark.parametrize(
    "changes",
    [{"sync_url": "collector.example"}, {"sync_url": "ftp://x"}, {"sync_url": "http://me:pass@x"},
     {"sync_batch": 101}, {"sync_batch": 0}, {"sync_interval_s": 0}, {"sync_retries": -1}],
)  # fmt: skip
def test_settings_that_could_not_work_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        Config(**changes)
    assert "pass" not in str(caught.value).replace("password", "")


def test_the_token_prints_as_stars() -> None:
    with pytest.raises(ConfigError) as caught:
        Config(sync_token="not-to-be-seen\n")
    config = Config.from_environment({"HEALKIT_SYNC_TOKEN": "not-to-be-seen", "HEALKIT_SYNC_BATCH": "7"})
    assert "not-to-be-seen" not in str(caught.value) + repr(config)
    assert (config.sync_token, config.sync_batch) == ("not-to-be-seen", 7)


@pytest.mark.slow
@TRACE_3
def test_retry_after_is_honoured(sender: Sender, collector: Collector) -> None:
    collector.plan.append("429")
    collector.retry_after = lambda: "1"
    sender.record(3)
    with sender.syncing():
        wait_until(everything_sent(sender))
    (first, *_), (second, *_) = collector.requests
    assert second >= first + 1.0
    assert collector.words() == ["429", "accept"]


@TRACE_3
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_takes_seconds_and_dates(sender: Sender, status: int, form: str) -> None:
    date = email.utils.format_datetime(utc_now() + timedelta(seconds=600), usegmt=True)
    header = "600" if form == "seconds" else date
    sender.record()
    batch = sender.outbox.claim(1, 10**6, 60.0)
    judged = judge(batch, CollectorResponse(status, b"", header), RetryPolicy(3, 0.1, 1.0), None)
    assert 60 < judged.wait_s <= 600


@TRACE_3
def test_a_too_large_request_is_halved_until_one_trace_is_parked(
    sender: Sender, collector: Collector
) -> None:
    small = sender.record(8)
    large = sender.record(arguments='"' + "x" * 9000 + '"')
    collector.max_body = 6000
    with sender.syncing():
        wait_until(lambda: set(sender.states().values()) == {"sent", "parked"})
    assert set(collector.stored) == set(small)
    assert set(collector.taken.values()) == {1}
    assert sender.states()[large[0]] == "parked"
    assert any("413" in reason and "characters" in reason for reason in sender.outbox.state().parked_for)


@TRACE_3
def test_a_refused_trace_is_parked_after_four_tries(sender: Sender, collector: Collector) -> None:
    ids = sender.record(6)
    unwanted = ids[2]
    error = {"code": "BUSY", "message": "not\nnow", "retryable": True}
    collector.judge = lambda trace: error if trace["id"] == unwanted else None
    with sender.syncing() as syncer:
        wait_until(lambda: sender.states()[unwanted] == "parked")
        assert collector.taken == {trace: 4 if trace == unwanted else 1 for trace in ids}
        state = sender.outbox.state()
        assert (state.sent, state.parked, state.parked_for) == (5, 1, {"BUSY: not now": 1})
        collector.judge = lambda trace: None
        assert sender.outbox.requeue(parked=True) == 1
        syncer.send_now(10)
        assert sender.states()[unwanted] == "sent"


@TRACE_3
def test_an_unclear_answer_makes_traces_go_out_one_by_one(sender: Sender, collector: Collector) -> None:
    collector.plan.append("forgets")
    ids = sender.record(5)
    with sender.syncing():
        wait_until(everything_sent(sender))
    assert set(collector.stored) == set(ids)
    assert [len(ids) for _, _, ids in collector.requests][:2] == [5, 2]


@pytest.mark.slow
@TRACE_3
def test_a_refused_token_stops_sending_until_asked_again(sender: Sender, collector: Collector) -> None:
    collector.plan.append("401")
    sender.record(12)
    with sender.syncing() as syncer:
        wait_until(lambda: syncer.problem)
        sender.record(12)
        time.sleep(0.3)  # six intervals
        assert collector.words() == ["401"]
        assert set(sender.states().values()) == {"pending"}
        assert "sync_token" in sender.outbox.state().problem
        syncer.send_now(10)
        assert set(sender.states().values()) == {"sent"}


@pytest.mark.slow
@TRACE_3
def test_one_bad_trace_does_not_hold_up_the_others(sender: Sender, collector: Collector) -> None:
    ids = sender.record(12)
    poison = ids[1]
    take = collector.take

    def broken_by_poison(body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        return (500, b"oops") if poison.encode() in body else take(body, headers)

    collector.take = broken_by_poison
    with sender.syncing(backoff_max_s=0.02):
        wait_until(lambda: len(collector.stored) == 11)
        # Nothing else is to be sent now, so nothing proves that the collector works.
        while sender.states()[poison] == "pending":
            sender.record()
            wait_until(lambda: list(sender.states().values()).count("pending") <= 1)
    states = sender.states()
    assert states.pop(poison) == "parked"
    assert set(states.values()) == {"sent"}


@TRACE_3
def test_a_parked_parent_does_not_hold_up_its_children(sender: Sender, collector: Collector) -> None:
    parent = sender.begin("caller")
    (child,) = sender.record(parent_trace_id=parent.trace_id)
    sender.end(parent)
    collector.judge = lambda trace: (
        {"code": "NO", "message": "", "retryable": False} if trace["id"] == parent.trace_id else None
    )
    with sender.syncing():
        wait_until(lambda: sender.states() == {parent.trace_id: "parked", child: "sent"})
