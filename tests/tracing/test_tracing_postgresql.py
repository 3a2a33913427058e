"""Traces on a real PostgreSQL.

They are stored with the ending, and lent and sent as on SQLite.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from misbehaving import Collector, collecting
from tracing_samples import QUICK, Sender
from waiting import wait_until

sys.path.insert(0, str(Path(__file__).parents[1]))
from postgres_samples import postgresql

from healkit.config import Config

pytestmark = pytest.mark.requirement("TRACE-3")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as serving:
        yield serving


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture
def sender(
    server: str, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sender]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Sender(server, Config(sync_url=collector.url, **QUICK))
    yield made
    made.close()


def test_several_senders_on_one_server_send_each_trace_once(sender: Sender, collector: Collector) -> None:
    with sender.syncing(), sender.syncing(), sender.syncing():
        parent = sender.begin("caller")
        ids = sender.record(60) + sender.record(5, parent_trace_id=parent.trace_id)
        ids.append(sender.end(parent))
        wait_until(lambda: {sender.states()[trace] for trace in ids} == {"sent"})
    assert {trace: collector.taken[trace] for trace in ids} == dict.fromkeys(ids, 1)


def test_a_refused_trace_is_parked_counted_and_brought_back(sender: Sender, collector: Collector) -> None:
    (unwanted,) = sender.record(arguments='{"text":"\\u0000 and \\ud83d\\ude00"}')
    error = {"code": "BUSY", "message": "not now", "retryable": True}
    collector.judge = lambda trace: error if trace["id"] == unwanted else None
    with sender.syncing() as syncer:
        wait_until(lambda: sender.states()[unwanted] == "parked")
        assert collector.taken[unwanted] == 4
        assert sender.outbox.state().parked_for == {"BUSY: not now": 1}
        collector.judge = lambda trace: None
        assert sender.outbox.requeue(parked=True) == 1
        syncer.send_now(10)
        assert sender.states()[unwanted] == "sent"


def test_a_claim_is_leased_and_released(sender: Sender) -> None:
    ids = sender.record(3)
    assert [waiting.trace_id for waiting in sender.outbox.claim(10, 10**6, 60.0)] == ids
    assert sender.outbox.claim(10, 10**6, 60.0) == []
    sender.outbox.release()
    assert len(sender.outbox.claim(10, 10**6, 60.0)) == 3
