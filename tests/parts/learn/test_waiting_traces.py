"""Answers from what is learned, while traces wait."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from cli_samples import call as cli
from graph_samples import collect
from graph_samples import trace as sent
from learning_samples import call, store, trace
from waiting import wait_until

from healkit import Healkit
from healkit.commands.agents import AgentCaller
from healkit.core.store.database import Database
from healkit.core.store.models import TRACES
from healkit.parts.learn.consumer import Consumer
from healkit.parts.learn.service import LearningService, consumer_of
from healkit.parts.learn.tool_graph import ToolGraph
from healkit.parts.traces.contract import encode_trace

LEARN_1, LEARN_2, LEARN_3 = (pytest.mark.requirement(f"LEARN-{n}") for n in (1, 2, 3))


@pytest.fixture(autouse=True)
def patient() -> None:
    """Let no question wait longer than it does elsewhere: `conftest.patient` is for the other files."""


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let learning take as long as the test."""
    over = False

    def learn(*_: Any, **__: Any) -> int:
        wait_until(lambda: over)
        return 0

    monkeypatch.setattr(Consumer, "catch_up", learn)
    yield
    over = True


def questions(healkit: Healkit) -> dict[str, Callable[[], Any]]:
    """Return every question that learning answers."""
    learning = healkit.learning
    return {
        "graph": healkit.graph.drawn,
        "neighbours": functools.partial(healkit.graph.neighbours, "tool_1"),
        "suggest": functools.partial(healkit.suggest, "read a file", after="tool_1"),
        "count": learning.count,
        "surprising": learning.surprising,
        "sample": functools.partial(learning.sample, 100, seed=1),
        "steps": functools.partial(learning.steps, "none"),
        "report": learning.report,
        "memory": learning.memory.show,
    }


def some(many: int) -> list[Any]:
    """Make traces of twenty tools that call others."""
    return [
        trace(f"tool_{n % 20}", n % 7 > 0, [call("fs:read"), call(f"vault:tool_{n % 3}", 3)], process="one")
        for n in range(many)
    ]


@LEARN_1
@LEARN_2
@LEARN_3
@pytest.mark.slow
def test_each_question_is_answered_in_200_ms_while_10_000_traces_wait(healkit: Healkit) -> None:
    store(healkit.database, some(200))
    assert healkit.learning.catch_up() == 200
    store(healkit.database, some(10_000))
    seconds: dict[str, list[float]] = {}
    for _ in range(5):
        for name, ask in questions(healkit).items():
            began = time.monotonic()
            answer = ask()
            seconds.setdefault(name, []).append(time.monotonic() - began)
            if hasattr(answer, "waiting"):
                assert answer.waiting > 1_000, name
    slow = {name: taken for name, taken in seconds.items() if statistics.median(taken) > 0.2}
    assert not slow
    healkit.learning.catch_up()
    assert healkit.learning.waiting() == 0
    assert healkit.learning.count() == 10_200


@LEARN_1
@LEARN_2
@LEARN_3
def test_a_question_does_not_wait_for_learning_that_hangs(healkit: Healkit, stuck: None) -> None:
    store(healkit.database, some(30))
    consumer_of(healkit.database)._catch_up(500, lambda: False)
    store(healkit.database, some(1_500))
    for name, ask in questions(healkit).items():
        assert getattr(ask(), "waiting", 1_500) == 1_500, name
    assert healkit.graph.neighbours("tool_1", "contains")
    assert healkit.learning.count() == 30
    assert "Not learned yet: 1,500 traces." in repr(healkit.graph)
    assert "Not learned yet: 1,500 traces." in repr(healkit.suggest())
    shown = healkit.graph.drawn()
    assert json.loads(shown.mermaid().splitlines()[1].removeprefix("title: ")).startswith("Not learned yet")
    assert "Not learned yet: 1,500 traces." in shown.svg()


@LEARN_3
def test_a_suggestion_does_not_wait_for_the_batch_that_is_learned(healkit: Healkit) -> None:
    store(healkit.database, some(30))
    healkit.learning.catch_up()
    best = [(one.tool, pytest.approx(one.share)) for one in healkit.suggest(after="tool_1", k=2)]
    at_rest = healkit.learning.graph_learner.ranker
    with healkit.learning.graph_learner.lock:
        found: list[Any] = []
        asking = threading.Thread(target=lambda: found.extend(healkit.suggest(after="tool_1")))
        asking.start()
        asking.join(10)
        assert [(one.tool, one.share) for one in found[:2]] == best
    assert healkit.learning.graph_learner.ranker is at_rest


@LEARN_1
def test_the_newest_traces_are_learned_while_a_question_is_asked(healkit: Healkit) -> None:
    store(healkit.database, some(3))
    assert healkit.learning.waiting() == 3
    wait_until(lambda: healkit.learning.count() == 3)
    assert healkit.learning.waiting() == 0
    assert "Not learned" not in repr(healkit.graph)


@LEARN_1
@pytest.mark.dialect
def test_what_waits_is_counted_on_both_databases(database: Database) -> None:
    service = LearningService(database)
    assert service.waiting() == 0
    store(database, some(7))
    collect(database, sent("a"), sent("b"))
    assert service.waiting() == 9
    assert service.catch_up() == 9
    assert service.waiting() == 0


@LEARN_1
@pytest.mark.slow  # it stores thousands, so that a command does not learn them all
def test_a_terminal_and_an_agent_read_how_many_wait(
    healkit: Healkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(healkit.database, some(4_000))
    db = ("--db", str(healkit.path))
    for words in (("graph",), ("suggest",), ("learn",)):
        for more in ((), ("--json",)):
            answer = cli(*words, *more, *db)
            assert answer.returncode == 0, answer
            assert "Not learned yet: " in answer.stderr
            assert "Not learned yet" not in answer.stdout
    assert json.loads(cli("learn", "--json", *db).stdout)["waiting"] > 0
    from healkit.parts.learn.agent_tools import suggest_tools

    class Caller:
        services, persona = healkit, "default"

    asked: Any = Caller()
    caller: AgentCaller = asked
    assert suggest_tools(caller).data["waiting_traces"] > 0
    assert "learned from" in cli("learn", "catch-up", *db).stdout
    assert "waiting_traces" not in suggest_tools(caller).data
    assert not cli("learn", *db).stderr


@LEARN_2
@pytest.mark.dialect
def test_interleaved_executions_of_two_hosts_make_no_edges_between_each_other(database: Database) -> None:
    """M4: four processes on one database gave "work parallel work"."""
    collect(
        database,
        *(
            sent(f"{host}_{step}", at_s=n + host_at / 3, process=host)
            for n, step in enumerate(("find", "read", "send") * 4)
            for host_at, host in enumerate(("a", "b"))
        ),
        sent("unknown_1", at_s=100, process=""), sent("unknown_2", at_s=101, process=""),
    )  # fmt: skip
    LearningService(database).catch_up()
    found = {(edge.source, edge.target, edge.kind) for edge in ToolGraph(database).edges()}
    steps = [("find", "read"), ("read", "send"), ("send", "find")]
    assert found == {(f"{h}_{one}", f"{h}_{other}", "sequence") for h in "ab" for one, other in steps}


@LEARN_2
@pytest.mark.slow  # it starts processes
def test_traces_distinguish_processes_that_share_a_database(healkit: Healkit) -> None:
    healkit.vault.add("work", "def work():\n    return 1\n")
    for _ in range(2):
        assert healkit.execute("work").ok
        command = [sys.executable, "-m", "healkit", "run", "work", "--db", str(healkit.path)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    traces = [healkit.traces.get(row.trace_id) for row in healkit.log.query()]
    assert len({one.metadata["process"] for one in traces}) == 3
    healkit.learning.catch_up()
    assert [str(edge) for edge in healkit.graph.edges()] == ["work → work  sequence, 1 seen"]
    with healkit.database.write() as session:  # traces of before, which do not name their process
        for one in traces:
            unnamed = {name: value for name, value in one.metadata.items() if name != "process"}
            wire = encode_trace(msgspec.structs.replace(one, metadata=unnamed)).decode()
            session.execute(TRACES.update().where(TRACES.c.trace_id == one.id).values(wire=wire))
    assert healkit.learning.rebuild() == 4
    assert [str(edge) for edge in healkit.graph.edges()] == ["work → work  sequence, 1 seen"]
