"""Traces that a collector refuses, delays or breaks on.

They are halved, sent again or parked, and the others go on.
"""

from __future__ import annotations

import email.utils
import itertools
import time
from datetime import timedelta
from pathlib import Path

import httpx  # noqa: F401 - the first request would load it, which takes its time
import pytest
from misbehaving import Collector
from syncer_samples import TRACE_3, everything_sent
from tracing_samples import Sender
from waiting import wait_until

from healkit.contracts.execution import utc_now
from healkit.tracing.delivery import CollectorResponse, RetryPolicy, judge


@pytest.mark.slow
@TRACE_3
@pytest.mark.parametrize(("status", "form"), [("429", "seconds"), ("503", "date")])
def test_retry_after_is_honoured(sender: Sender, collector: Collector, status: str, form: str) -> None:
    due: list[float] = []

    def retry_after() -> str:
        """In a second, or on the next but one."""
        moment = (utc_now() + timedelta(seconds=2)).replace(microsecond=0)
        wait_s = 1.0 if form == "seconds" else (moment - utc_now()).total_seconds()
        due.append(time.monotonic() + wait_s)
        return "1" if form == "seconds" else email.utils.format_datetime(moment, usegmt=True)

    collector.plan.append(status)
    collector.retry_after = retry_after
    sender.record(3)
    with sender.syncing():
        wait_until(everything_sent(sender))
    _, (second, *_) = collector.requests
    assert second >= due[0] - 0.01
    assert collector.words() == [status, "accept"]


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
    assert [
        reason for reason in sender.outbox.state().parked_for if "413" in reason and "characters" in reason
    ]


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
def test_a_permanent_refusal_parks_a_trace_at_once(sender: Sender, collector: Collector) -> None:
    ids = sender.record(3)
    collector.judge = lambda trace: {"code": "TRACE_INVALID", "message": "no", "retryable": False}
    with sender.syncing():
        wait_until(lambda: set(sender.states().values()) == {"parked"})
    assert collector.taken == dict.fromkeys(ids, 1)


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
@pytest.mark.parametrize("status", ["401", "403"])
def test_a_refused_token_stops_sending_until_asked_again(
    sender: Sender, collector: Collector, status: str
) -> None:
    collector.plan.append(status)
    sender.record(12)
    with sender.syncing() as syncer:
        wait_until(lambda: syncer.problem)
        sender.record(12)
        time.sleep(0.3)  # six intervals
        assert collector.words() == [status]
        assert set(sender.states().values()) == {"pending"}
        assert "sync_token" in sender.outbox.state().problem
        syncer.send_now(10)
        assert set(sender.states().values()) == {"sent"}


@pytest.mark.slow
@TRACE_3
def test_a_long_outage_parks_nothing(sender: Sender, collector: Collector, tmp_path: Path) -> None:
    words = itertools.cycle(["503", "reset", "500", "html"])
    collector.otherwise = lambda: next(words)
    ids = sender.record(3)
    with sender.syncing(backoff_max_s=0.02):
        wait_until(lambda: len(collector.requests) > 40)
        assert set(sender.states().values()) == {"pending"}
        assert sender.outbox.state().problem
        collector.otherwise = lambda: "accept"
        wait_until(everything_sent(sender))
    assert set(collector.stored) == set(ids)


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
