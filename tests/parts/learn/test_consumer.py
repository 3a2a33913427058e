"""Each trace is learned from once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from learning_samples import learn, learned, store, trace
from side_by_side import Forked, Meet, at_once
from sqlalchemy import select
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.contracts.failure import Failure
from healkit.core.store.database import Database
from healkit.core.store.models import TRACES
from healkit.core.store.retention import Retention
from healkit.parts.learn import priority
from healkit.parts.learn.consumer import Consumer
from healkit.parts.learn.service import LearningService, consumer_of
from healkit.parts.learn.tables import LEARNING
from healkit.parts.learn.thread import ConsumerThread
from healkit.parts.traces.contract import encode_trace

sys.path.insert(0, str(Path(__file__).parents[2] / "faces" / "server"))
sys.path.insert(0, str(Path(__file__).parents[2] / "parts" / "traces"))
import collector_samples
from tracing_samples import Sender, failed, succeeded

LEARN_1 = pytest.mark.requirement("LEARN-1")


def be_killed(path: Path, at: str, nth: int) -> None:
    """Learn from all traces, and be killed before the n-th statement that begins so."""
    from sqlalchemy import event

    database = Database(path, wait_s=30)
    seen = 0

    def watch(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        nonlocal seen
        seen += statement.startswith(at)
        if seen == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(database.engine, "before_cursor_execute", watch)
    consumer_of(database).catch_up()


@LEARN_1
@pytest.mark.slow
def test_a_kill_at_any_statement_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    path = tmp_path / "healkit.db"
    with contextlib.closing(Database(path)) as database:
        store(database, [trace(f"tool_{n % 5}", n % 3 > 0) for n in range(450)])
        starts = (
            "INSERT INTO learnedtrace",
            "INSERT INTO learnedvalue",
            "INSERT INTO prioritycount",
            "INSERT INTO learningstate",
        )
        for at in starts:
            for nth in (1, 2):
                process = Forked(be_killed, path, at, nth)
                assert process.wait() in {-signal.SIGKILL, 0}
        consumer = consumer_of(database)
        consumer.catch_up()
        found = learned(database)
        assert len(found["learnedtrace"]) == 450
        consumer.rebuild()
        assert learned(database) == found


def learn_at_once(meet: Meet, path: Path) -> int:
    database = Database(path, wait_s=60)
    consumer = consumer_of(database)
    meet()
    return consumer.catch_up()


@LEARN_1
@pytest.mark.slow
def test_several_processes_share_the_traces_and_learn_each_once(tmp_path: Path) -> None:
    path = tmp_path / "healkit.db"
    with contextlib.closing(Database(path)) as database:
        store(database, [trace(f"tool_{n % 5}", n % 3 > 0) for n in range(2000)])
        assert sum(at_once(learn_at_once, *[(path,)] * 3)) == 2000
        found = learned(database)
        consumer_of(database).rebuild()
        assert learned(database) == found


@LEARN_1
@pytest.mark.dialect
def test_an_outcome_that_comes_late_is_learned_from_once(new_database: Any, tmp_path: Path) -> None:
    sender = Sender(new_database("late"), Config())
    begun = sender.begin("late")
    died = msgspec.structs.replace(
        failed(begun), failure=Failure("HOST_DIED", "HostDied", "its host died", "", [])
    )
    sender.recorder.close_row(died, sender.recorder.collector(begun))
    sender.record(2, tool="other")
    service = LearningService(sender.database)
    assert service.catch_up() == 2
    sender.recorder.close_row(succeeded(begun), sender.recorder.collector(begun))
    assert (service.catch_up(), service.catch_up()) == (1, 0)
    assert service.steps(begun.trace_id)[0].succeeded
    found = learned(sender.database)
    assert service.rebuild() == 3
    assert learned(sender.database) == found
    sender.recorder.close()
    sender.database.close()


@LEARN_1
def test_the_newest_trace_is_kept_so_that_its_number_is_not_given_again(tmp_path: Path) -> None:
    sender = Sender(tmp_path / "kept.db", Config())
    running = sender.begin("runs")
    sender.record(3)
    Retention(sender.database, lambda: False).prune(None, 0)
    with sender.database.read() as session:
        (kept,) = session.execute(select(TRACES.c.id)).all()
    assert kept.id == 3
    sender.end(running)
    service = LearningService(sender.database)
    assert (service.catch_up(), service.count()) == (2, 2)
    sender.recorder.close()
    sender.database.close()


@LEARN_1
@pytest.mark.slow  # it starts a server
def test_a_collector_shows_the_priority_of_a_clients_trace(tmp_path: Path) -> None:
    path = tmp_path / "collector.db"
    with collector_samples.collecting(path) as server, contextlib.ExitStack() as opened:
        client = opened.enter_context(
            httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {collector_samples.TOKEN}"})
        )
        sent = [json.loads(encode_trace(trace("f", n != 3))) for n in range(4)]
        sent.append(json.loads(encode_trace(trace("f", False, errorCode="ARGUMENTS_INVALID"))))
        assert client.post("/api/traces", json=sent).json()["stored"] == 5

        def priority_of(one: dict[str, Any]) -> float | None:
            priority: float | None = client.get(f"/api/traces/{one['id']}").json()["priority"]
            return priority

        wait_until(lambda: priority_of(sent[3]) is not None)  # it is learned beside the answers
        found = [priority_of(one) for one in sent]
        assert found[:4] == pytest.approx([1 / 2, 1 / 3, 1 / 4, 4 / 5])
        assert found[4] is None
        page = client.get("/api/traces").json()["traces"]
        assert sorted((one["priority"] or 0) for one in page) == pytest.approx(
            [0, 1 / 4, 1 / 3, 1 / 2, 4 / 5]
        )
    with contextlib.closing(Database(path)) as database:
        rows = LearningService(database).sample_by_priority(50, seed=1)
        assert {one.id for one in rows} <= {one["id"] for one in sent[:4]}
        found_before = learned(database)
        consumer_of(database).rebuild()
        assert learned(database) == found_before


@LEARN_1
def test_a_thread_learns_once_nothing_happens(healkit: Healkit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerThread, "IDLE_S", 0.05)
    healkit.vault.add("one", "def one():\n    return 1\n")
    ran = healkit.execute("one")
    wait_until(lambda: priority.steps(healkit.database, ran.trace_id))
    assert healkit.status().problem == ""


@LEARN_1
def test_a_failure_of_the_database_is_reported_and_tried_again(
    healkit: Healkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConsumerThread, "IDLE_S", 0.05)
    healkit.vault.add("one", "def one():\n    return 1\n")
    with healkit.database.write() as session:
        session.execute(LEARNING.insert(), {"name": "checkpoint", "value": "no JSON"})
    first = healkit.execute("one")
    wait_until(lambda: "Learning from new traces failed" in healkit.learning_thread.problem)
    with healkit.database.write() as session:
        session.execute(LEARNING.delete())
    healkit.execute("one")
    wait_until(lambda: priority.steps(healkit.database, first.trace_id))
    wait_until(lambda: not healkit.learning_thread.problem)


def test_a_database_that_can_only_be_read_is_asked_and_not_written(database: Database) -> None:
    learn(database, *[trace("f", n > 0) for n in range(3)])
    store(database, [trace("f")])
    database.read_only = True
    assert len(LearningService(database).surprising(10)) == 3
    assert Consumer(database, []).catch_up() == 0
