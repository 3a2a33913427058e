"""Predictions, TD errors, priorities and samples."""

from __future__ import annotations

from collections import Counter

import pytest
from learning_samples import NEW, call, learn, learned, store, trace
from sqlalchemy import insert

from healkit import Healkit
from healkit.core.store.database import Database
from healkit.core.store.retention import Retention
from healkit.errors import ArgumentsInvalid, UsageInvalid
from healkit.parts.learn import priority
from healkit.parts.learn.priority import MODEL_VERSION
from healkit.parts.learn.service import LearningService
from healkit.parts.learn.tables import VALUES

LEARN_1 = pytest.mark.requirement("LEARN-1")


@LEARN_1
@pytest.mark.dialect
def test_a_priority_is_the_error_of_what_was_expected(database: Database) -> None:
    table = [(0.9, False, 0.9, -0.9), (0.9, True, 0.9, 0.1), (None, True, 0.5, 0.5), (None, False, 0.5, -0.5), (1.0, True, 1.0, 0.0)]  # fmt: skip
    with database.write() as session:
        for number, (before, *_) in enumerate(table):
            if before is not None:
                state = {"state": f"f{number}@111111111111", "value": before, "visits": 40}
                session.execute(insert(VALUES), state)
    ran = [trace(f"f{number}", success) for number, (_, success, *_) in enumerate(table)]
    learn(database, *ran)
    for number, (before, success, predicted, error) in enumerate(table):
        (row,) = priority.steps(database, ran[number].id)
        assert (row.predicted, row.td_error) == pytest.approx((predicted, error))
        assert row.priority == pytest.approx(max(0.01, abs(error)))
        said = row.task_id, row.tool_name, row.succeeded, row.model_version, row.visits
        visits = 0 if before is None else 40
        assert said == ("", f"f{number}", success, priority.MODEL_VERSION, visits)


@LEARN_1
def test_the_calls_of_an_execution_are_a_walk_to_its_end(database: Database) -> None:
    calls = [call("fs:read"), call("shop:price", 5), call("vault:total", 9)]
    values = {"call fs:read": 0.6, "call shop:price": 0.8, "call total": 0.7}
    with database.write() as session:
        rows = [{"state": state, "value": value, "visits": 100} for state, value in values.items()]
        session.execute(insert(VALUES), rows)
    ran = trace("f", False, calls)
    learn(database, ran)
    _, read, price, total = priority.steps(database, ran.id)
    assert (read.tool_name, price.tool_name, total.tool_name) == ("fs:read", "shop:price", "total")
    assert read.td_error == pytest.approx(0.9 * 0.8 - 0.6)
    assert price.td_error == pytest.approx(0.9 * 0.7 - 0.8)
    assert total.td_error == pytest.approx(0 - 0.7)


@LEARN_1
def test_a_prediction_is_the_share_that_went_well_and_follows_a_change(database: Database) -> None:
    ran = [trace("f", success) for success in [True, True, False, True] + [False] * 100]
    learn(database, *ran)
    predicted = [priority.steps(database, one.id)[0].predicted for one in ran]
    assert predicted[:5] == pytest.approx([1 / 2, 2 / 3, 3 / 4, 3 / 5, 4 / 6])
    assert predicted[-1] < 0.01


@LEARN_1
def test_a_healed_tool_starts_anew(database: Database) -> None:
    ran = [*[trace("f", False) for _ in range(9)], trace("f", code=NEW)]
    learn(database, *ran)
    (first_of_the_new,) = priority.steps(database, ran[-1].id)
    assert (first_of_the_new.predicted, first_of_the_new.visits) == (0.5, 0)


@LEARN_1
def test_trials_searches_and_what_never_ran_teach_nothing(healkit: Healkit) -> None:
    healkit.vault.add("half", "def half(n):\n    return n / 2\n")
    healkit.try_code("half", "def half(n):\n    return n // 2\n", arguments={"n": 3})
    with pytest.raises(ArgumentsInvalid):
        healkit.execute("half", arguments={})
    ran = healkit.execute("half", arguments={"n": 3})
    dead = [trace("half", False, errorCode="HOST_DIED"), trace("half", False, origin="search")]
    store(healkit.database, dead)
    assert [row.trace_id for row in healkit.learning.surprising(10)] == [ran.trace_id]


@LEARN_1
def test_the_most_surprising_come_first_and_say_so(healkit: Healkit) -> None:
    healkit.vault.add("inverse", "def inverse(n):\n    return 1 / n\n")
    for n in (1, 2, 3, 0, 4):
        healkit.execute("inverse", arguments={"n": n})
    worst, *others = healkit.learning.surprising(3, tool="inverse")
    assert str(worst) == "inverse failed, expected to succeed at 80%: priority 0.80"
    assert [row.succeeded for row in others] == [True, True]
    assert healkit.learning.surprising(3, tool="other") == []
    assert healkit.learning.count() == 5


@LEARN_1
@pytest.mark.dialect
def test_a_sample_is_proportional_and_its_weights_take_that_back(database: Database) -> None:
    """The weighted mean over draws is that over all (Schaul et al. 2016), with β = 1."""
    ran = [trace(f"tool_{n % 7}", n % 7 > n % 5) for n in range(200)]
    learn(database, *ran)
    service = LearningService(database)
    rows = {row.trace_id: row for row in service.surprising(1000)}
    assert len(rows) == 200
    draws = 40_000
    drawn = service.sample(draws, alpha=0.6, beta=1.0, seed=7)
    times = Counter(one.trace_id for one in drawn)
    total = sum(round(100 * row.priority) ** 0.6 for row in rows.values())
    for row in list(rows.values())[:5]:
        chance = round(100 * row.priority) ** 0.6 / total
        one = next(one for one in drawn if one.trace_id == row.trace_id)
        assert one.probability == pytest.approx(chance)
        assert times[row.trace_id] / draws == pytest.approx(chance, rel=0.25)
    mean = sum(row.predicted for row in rows.values()) / 200
    weighted = sum(one.weight * one.predicted for one in drawn) / sum(one.weight for one in drawn)
    plain = sum(one.predicted for one in drawn) / len(drawn)
    assert weighted == pytest.approx(mean, abs=0.01)
    assert abs(plain - mean) > 0.02
    assert max(one.weight for one in drawn) == 1.0


@LEARN_1
def test_the_same_seed_gives_the_same_sample_of_one_tool_or_all(database: Database) -> None:
    learn(database, *[trace(f"tool_{n % 3}", n % 4 > 0, [call("fs:read")]) for n in range(60)])
    service = LearningService(database)
    for tool in (None, "tool_1"):
        first, again, other = (service.sample(20, seed=seed, tool=tool) for seed in (1, 1, 2))
        assert first == again != other
    assert {row.tool_name for row in service.sample(50, seed=1, tool="tool_1")} == {"tool_1"}
    assert not service.sample(5, tool="missing")
    assert list(service.sample(20, seed=1).to_pandas()["weight"]) == [
        row.weight for row in service.sample(20, seed=1)
    ]
    traces = service.sample_by_priority(20, seed=1)
    assert [one.id for one in traces] == list(
        dict.fromkeys(row.trace_id for row in service.sample(20, seed=1))
    )


@LEARN_1
def test_a_sample_that_cannot_be_is_refused(database: Database) -> None:
    service = LearningService(database)
    for wrong in ({"count": -1}, {"count": 1, "alpha": -1}, {"count": 1, "beta": 2}, {"count": 10**9}):
        with pytest.raises(UsageInvalid, match="A sample has"):
            service.sample(**wrong)  # type: ignore[arg-type]  # the point
    assert not service.sample(5)


@LEARN_1
def test_what_retention_deletes_is_never_drawn_and_never_counted(healkit: Healkit) -> None:
    healkit.vault.add("inverse", "def inverse(n):\n    return 1 / n\n")
    for n in (1, 2, 0, 3, 0, 4, 5, 6):
        healkit.execute("inverse", arguments={"n": n})
    assert healkit.learning.count() == 8
    assert Retention(healkit.database, lambda: False).prune(None, 2).deleted == 6
    left = {row.trace_id for row in healkit.log.query()}
    drawn = healkit.learning.sample(300, seed=1)
    assert {row.trace_id for row in drawn} == left
    assert {round(row.probability, 6) for row in drawn if row.priority > 0.01} == {
        round(row.probability, 6) for row in healkit.learning.sample(300, seed=3, tool="inverse")
    }


@LEARN_1
def test_a_rebuild_gives_the_same_numbers(database: Database) -> None:
    ran = [
        trace(f"tool_{n % 5}", n % 3 > 0, [call("fs:read"), call(f"vault:tool_{n % 2}", 3)])
        for n in range(250)
    ]
    consumer = learn(database, *ran[:130])
    store(database, ran[130:])
    consumer.catch_up()
    before = learned(database)
    assert len(before["learnedtrace"]) == 750
    assert consumer.rebuild() == 250
    assert learned(database) == before


@LEARN_1
def test_numbers_of_another_way_of_counting_are_made_anew(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(database, *[trace("f", n % 3 > 0) for n in range(20)])
    before = learned(database)
    monkeypatch.setattr("healkit.parts.learn.consumer.MODEL_VERSION", MODEL_VERSION + 1)
    monkeypatch.setattr("healkit.parts.learn.priority.MODEL_VERSION", MODEL_VERSION + 1)
    assert LearningService(database).catch_up() == 20
    after = learned(database)
    assert after["learnedvalue"] == before["learnedvalue"]
    assert {row[-2] for row in after["learnedtrace"]} == {MODEL_VERSION + 1}
