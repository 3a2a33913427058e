"""Recorded runs that are run again, most telling first."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from healkit import Healkit
from healkit.errors import ConfigError
from healkit.parts.heal.case import passing_runs
from healkit.parts.trials.order import Recorded, order

pytestmark = pytest.mark.requirement("LEARN-6")

GRADE = """def grade(points):
    if points >= 90:
        return "A"
    return "B" if points >= 70 else "F"
"""


_numbers = itertools.count(1)


def graded(healkit: Healkit, *points: Any) -> tuple[str, str]:
    """Add a tool that grades, and run it with these; its name and code."""
    name = f"grade_{next(_numbers)}"
    code = GRADE.replace("grade", name)
    healkit.vault.add(name, code)
    for one in points:
        healkit.execute(name, "default", {"points": one})
    return name, code


def returned(value: Any, **arguments: Any) -> Recorded:
    return Recorded(arguments, succeeded=True, outcome=json.dumps(value))


def test_the_order_has_every_run_once_and_depends_on_nothing_else() -> None:
    runs = [returned(n * n, n=n) for n in range(50)]
    assert sorted(order(runs)) == list(range(50))
    assert order(runs, GRADE) == order(runs, GRADE)
    assert order([]) == []


def test_a_run_unlike_the_others_comes_before_more_of_the_same() -> None:
    runs = [
        *(returned(n + 1, n=n) for n in range(20, 30)),
        Recorded({"n": "x"}, succeeded=False, outcome="TypeError"),
    ]
    assert order(runs).index(10) < 4


def test_a_run_at_a_literal_of_the_code_comes_early() -> None:
    runs = [returned("A" if n >= 90 else "B", points=n) for n in (72, 73, 75, 77, 80, 95, 98, 99, 90)]
    assert order(runs, GRADE).index(8) < 2


def test_faults_are_found_sooner_than_by_the_simple_orders() -> None:
    dice = random.Random(3)
    points = [dice.choice([*range(40, 60)] * 3 + [69, 70, 89, 90, 100]) for _ in range(150)]
    runs = [returned(given(GRADE, one), points=one) for one in points]
    edits = {">= 90": "> 90", "90": "91", "70 ": "69 ", ">= 70": "> 70", '"A"': '"a"'}
    faulty = [GRADE.replace(was, now) for was, now in edits.items()]
    kills = [
        {at for at, one in enumerate(points) if given(code, one) != given(GRADE, one)} for code in faulty
    ]
    simple = [list(range(150)), dice.sample(range(150), 150)]

    def firsts(positions: list[int]) -> float:
        return sum(min(map(positions.index, each)) for each in kills) / len(kills)

    assert all(kills)
    assert firsts(order(runs, GRADE)) < min(map(firsts, simple)) / 2


def given(code: str, points: int) -> str:
    """Grade in this process: the code is this test's own."""
    names: dict[str, Any] = {}
    exec(code, names)
    return str(names["grade"](points))


def test_runs_that_tell_as_much_stay_as_they_were_given() -> None:
    assert order([returned(1, n=5)] * 4) == [0, 1, 2, 3]


def test_the_code_as_it_is_gives_what_is_on_record_and_re_runs_are_trials(shared: Healkit) -> None:
    name, _ = graded(shared, 10, 90, 90, 71, "x")
    for _ in range(2):
        report = shared.regress(name)
        assert [one.outcome for one in report.reruns] == ["same"] * 4
        assert (report.not_reached, report.first_fault_after) == ((), None)
        assert "no recorded run differs" in str(report)
    assert shared.log.count(tool=name, tried=False) == 5


def test_a_fault_is_found_early_and_named(shared: Healkit) -> None:
    name, code = graded(shared, 10, 20, 95, 50, 33, 90, 71, 80, 12)
    report = shared.regress(name, code.replace(">= 90", "> 90"))
    (fault,) = report.faults
    assert (fault.recorded, fault.now) == ('"A"', "'B'")
    assert report.first_fault_after is not None
    assert report.first_fault_after <= 3
    assert "1 recorded run of 9 differs" in str(report)
    assert "1 recorded run of 9 differs" in report._repr_html_()


def test_a_failure_that_returns_now_is_fixed_and_no_fault(shared: Healkit) -> None:
    name, code = graded(shared, "x", 90)
    number = "    points = int(points) if str(points).isdigit() else 0\n    if"
    report = shared.regress(name, code.replace("    if", number, 1))
    assert report.counts["fixed"] == 1
    assert not report.faults


def test_what_differs_with_the_active_code_too_is_not_blamed_on_the_new_code(shared: Healkit) -> None:
    shared.vault.add("dice", "import random\ndef dice(sides):\n    return random.random()\n")
    shared.execute("dice", "default", {"sides": 6})
    shared.vault.patch("dice", "def dice(sides):\n    return 4.0\n", reason="fair")
    report = shared.regress("dice", "def dice(sides):\n    # as it is\n    return 4.0\n")
    assert [one.outcome for one in report.reruns] == ["as_active"]


def test_calls_are_answered_from_the_record_and_none_is_made(shared: Healkit) -> None:
    made: list[int] = []

    def price(item: int) -> int:
        made.append(item)
        return item * 2

    def other(item: int) -> int:
        made.append(-item)
        return item

    shared.provide(price)
    shared.provide(other)
    code = "def total(item):\n    return mcp.host.price(item=item) + 1\n"
    shared.vault.add("total", code)
    assert shared.execute_tool("total", "default", {"item": 3}) == 7
    report = shared.regress("total", code.replace("+ 1", "+ 2"))
    assert [one.outcome for one in report.reruns] == ["differs"]
    unknown = shared.regress("total", "def total(item):\n    return mcp.host.other(item=item)\n")
    assert [one.outcome for one in unknown.reruns] == ["undecided"]
    assert made == [3]


def test_what_the_budget_does_not_reach_is_listed(shared: Healkit) -> None:
    shared.vault.add("slow", "import time\ndef slow(n):\n    time.sleep(0.1)\n    return n\n")
    for n in range(3):
        shared.execute("slow", "default", {"n": n})
    report = shared.regress("slow", budget_s=0.15)
    assert 1 <= len(report.reruns) <= 2
    assert len(report.reruns) + len(report.not_reached) == 3
    assert "not reached" in str(report)


def test_a_tool_without_runs_has_an_empty_report_and_a_budget_that_is_none_is_refused(
    shared: Healkit,
) -> None:
    name, _ = graded(shared)
    report = shared.regress(name)
    assert report.reruns == ()
    assert "no recorded executions to run again" in str(report)
    with pytest.raises(ConfigError, match="budget_s=0"):
        shared.regress(name, budget_s=0)


def test_of_many_recorded_runs_healing_checks_those_that_tell_most(shared: Healkit) -> None:
    name, _ = graded(shared, 90, *range(20, 55))
    checks = passing_runs(shared.log, shared.vault.get(name))
    assert len(checks) == 30
    assert {"points": 90} in [check.arguments for check in checks]  # the oldest of 36
    ids = [check.log_id or 0 for check in checks]
    assert ids == sorted(ids, reverse=True)
