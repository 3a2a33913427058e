"""Outbox: what is lent to whom, in which order, and how often."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from misbehaving import Collector
from sqlalchemy import event
from tracing_samples import QUICK, Sender, trace_rows
from waiting import wait_until

from healkit.config import Config
from healkit.core.rendering.to_text import text_of
from healkit.core.store.database import Database
from healkit.parts.doctor import cards
from healkit.parts.doctor.records import Status
from healkit.parts.traces import outbox
from healkit.parts.traces.contract import DeliveryVerdict
from healkit.parts.traces.outbox import Outbox

sys.path.insert(0, str(Path(__file__).parents[2] / "core" / "store"))
from store_samples import dead_host, failed, locked_by_another_process, succeeded

TRACE_3 = pytest.mark.requirement("TRACE-3")
PLENTY = 10_000_000


CONFIG = Config(sync_url="http://collector.example", log_wait_s=0.2)


@pytest.fixture
def sender(
    new_database: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sender]:
    """Open a sender, on SQLite and on PostgreSQL."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with closing(Sender(new_database("healkit"), CONFIG, wait_s=2.0)) as made:
        yield made


@pytest.fixture
def sqlite_sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sender]:
    """Open a sender on a file."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with closing(Sender(tmp_path / "healkit.db", CONFIG, wait_s=2.0)) as made:
        yield made


def claimed(outbox: Outbox, limit: int = 10, max_bytes: int = PLENTY, lease_s: float = 60.0) -> list[str]:
    return [waiting.trace_id for waiting in outbox.claim(limit, max_bytes, lease_s)]


@pytest.mark.requirement("SCALE-3")
def test_traces_of_one_state_are_counted_up_to_a_bound(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender.record(5)
    assert sender.outbox.state().pending == 5
    for module in (outbox, cards):
        monkeypatch.setattr(module, "TRACES_COUNTED_MAX", 3)
    state = sender.outbox.state()
    assert (state.pending, state.sent, state.parked) == (3, 0, 0)
    status = Status("here", "none", 0, 0, 0, 0, "", traces=state)
    assert "at least 3 waiting" in text_of(cards.status_card(status))


@TRACE_3
@pytest.mark.requirement("SCALE-1")
def test_a_leased_trace_is_not_leased_twice(sender: Sender) -> None:
    ids = sender.record(5)
    other = Outbox(sender.database)
    assert claimed(sender.outbox, 3) == ids[:3]
    assert claimed(other) == ids[3:]
    assert claimed(sender.outbox) == claimed(other) == []
    other.release()
    assert claimed(sender.outbox) == ids[3:]


@TRACE_3
def test_several_senders_on_one_database_send_each_trace_once(sender: Sender, collector: Collector) -> None:
    one, two, three = (sender.syncing(sync_url=collector.url, **QUICK) for _ in range(3))
    with one, two, three:
        parent = sender.begin("caller")
        ids = sender.record(60) + sender.record(5, parent_trace_id=parent.trace_id)
        ids.append(sender.end(parent))
        wait_until(lambda: set(sender.states().values()) == {"sent"})
    assert collector.taken == dict.fromkeys(ids, 1)


@TRACE_3
def test_a_lease_expires(sender: Sender) -> None:
    ids = sender.record(2)
    assert claimed(sender.outbox, lease_s=0.0) == ids
    assert claimed(Outbox(sender.database)) == ids
    # Whoever comes back late has nothing to say any more.
    sender.outbox.settle([DeliveryVerdict(ids[0], "parked", "late")])
    assert set(sender.states().values()) == {"pending"}


@TRACE_3
def test_a_claim_is_bounded_in_bytes_but_holds_one_trace(sender: Sender) -> None:
    ids = sender.record(4)
    size = len(trace_rows(sender)[0]["wire"])
    assert claimed(sender.outbox, max_bytes=2 * size + 50) == ids[:2]
    assert claimed(sender.outbox, max_bytes=1) == ids[2:3]


@TRACE_3
def test_parents_go_out_before_their_children(sender: Sender) -> None:
    grandparent = sender.begin("grandparent")
    parent = sender.begin("parent", parent_trace_id=grandparent.trace_id)
    (child,) = sender.record(parent_trace_id=parent.trace_id)
    assert claimed(sender.outbox) == []  # its parent still runs
    sender.end(parent)
    assert claimed(sender.outbox) == []
    sender.end(grandparent)
    assert claimed(sender.outbox, 2) == [grandparent.trace_id, parent.trace_id]
    assert claimed(sender.outbox) == []  # on its way, but not there
    sender.outbox.settle(
        [DeliveryVerdict(grandparent.trace_id, "sent"), DeliveryVerdict(parent.trace_id, "sent")]
    )
    assert claimed(sender.outbox) == [child]


@TRACE_3
def test_a_tried_trace_goes_to_the_end_of_the_queue(sender: Sender) -> None:
    first, second, third = sender.record(3)
    assert claimed(sender.outbox, 1) == [first]
    sender.outbox.settle([DeliveryVerdict(first, "pending", "refused", counted=True)])
    assert [(w.trace_id, w.attempts) for w in sender.outbox.claim(3, PLENTY, 60)] == [
        (second, 0), (third, 0), (first, 1),
    ]  # fmt: skip


@TRACE_3
def test_a_delayed_trace_is_not_due_early(sender: Sender) -> None:
    (only,) = sender.record()
    claimed(sender.outbox)
    sender.outbox.settle([DeliveryVerdict(only, "pending", "no", delay_s=600)])
    assert claimed(sender.outbox) == []
    assert sender.outbox.state().problem == "no"
    assert sender.outbox.requeue() == 0
    assert claimed(sender.outbox) == [only]


@TRACE_3
def test_recording_an_ending_twice_sends_its_trace_once(sender: Sender) -> None:
    begun = sender.begin()
    finished = sender.recorder.collector(begun).conclude(succeeded(begun))
    sender.recorder.close_row(finished)
    claimed(sender.outbox)
    sender.outbox.settle([DeliveryVerdict(begun.trace_id, "sent")])
    sender.recorder.close_row(finished)
    assert sender.states() == {begun.trace_id: "sent"}


@pytest.mark.slow
@TRACE_3
def test_a_late_true_ending_replaces_a_host_died_trace(
    sender: Sender,
) -> None:
    begun = sender.begin(host=dead_host())
    collector = sender.recorder.collector(begun)
    assert sender.recorder.recover_orphans() == 1
    claimed(sender.outbox)
    sender.outbox.settle([DeliveryVerdict(begun.trace_id, "sent")])
    assert "HOST_DIED" in trace_rows(sender)[0]["wire"]
    sender.recorder.close_row(succeeded(begun), collector)
    (row,) = trace_rows(sender)
    assert (row["state"], "HOST_DIED" in row["wire"]) == ("pending", False)


@TRACE_3
def test_refused_calls_and_spooled_endings_have_traces(sender: Sender) -> None:
    refused = sender.begin()
    other = msgspec.structs.replace(
        refused, trace_id=refused.trace_id[:-1] + ("0" if refused.trace_id[-1] != "0" else "1")
    )
    sender.recorder.add_row(other, failed(other))
    with locked_by_another_process(sender.database.url):
        assert sender.recorder.close_row(succeeded(refused), sender.recorder.collector(refused)) is None
    sender.recorder.ingest()
    assert sender.states() == {other.trace_id: "pending", refused.trace_id: "pending"}


@TRACE_3
def test_lone_surrogates_and_nul_are_stored_as_escapes(sender: Sender) -> None:
    begun = sender.begin(arguments='{"a":"\\u0000x"}')
    sender.end(begun)
    assert "\\u0000" in trace_rows(sender)[0]["wire"]
    assert claimed(sender.outbox) == [begun.trace_id]


def count_steps(database: Database) -> list[int]:
    """Grows by one for each thousand instructions of SQLite's machine that this database runs from now on."""
    steps: list[int] = []

    def watch(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_progress_handler(lambda: steps.append(1), 1000)

    event.listen(database.engine, "checkout", watch)
    return steps


@pytest.mark.slow
@TRACE_3
def test_a_claim_is_fast_among_100_000_traces(sqlite_sender: Sender) -> None:
    sqlite_sender.record(1)
    with closing(sqlite3.connect(sqlite_sender.path)) as connection, connection:
        connection.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
            INSERT INTO executiontrace
                (trace_id, wire, state, attempts, reason, created_at, queued_at)
            SELECT printf('%036d', i), '{}', CASE i % 2 WHEN 0 THEN 'pending' ELSE 'sent' END, 0, '', created_at, queued_at
            FROM n, executiontrace
            """
        )
    connection.close()
    steps = count_steps(sqlite_sender.database)
    for _ in range(20):
        assert len(claimed(sqlite_sender.outbox, 100)) == 100
    # Each looks at what waits, some ten instructions a trace, and never at one trace for another.
    assert len(steps) < 40_000
