"""When a stage of the search stops."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from healkit import Healkit
from healkit.core.contracts.patches import Check, difference
from healkit.core.contracts.tools import EntryRef
from healkit.parts.heal.advisors.search.edit_space import Candidate
from healkit.parts.heal.advisors.search.strategy import CandidateEvaluator, Evaluated, StopCriterion
from healkit.parts.heal.workbench import Bench
from healkit.parts.trials.trials import Trials

pytestmark = pytest.mark.requirement("HEAL-2")
#: Longer than is looked on in any case after a success, and than is waited for at the end.
LONG_ENOUGH_S = 0.6


class Clock:
    """Clock that a test sets by hand."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    ("tried", "score", "ends"),
    [
        (300, 0.9, False),  # others as likely may come
        (300, 0.1, True),  # what comes is much less likely
        (150, 0.1, False),  # but some are looked at in any case
        (2000, 0.9, True),
    ],
)
def test_after_a_success_the_stop_depends_on_the_next_score(tried: int, score: float, ends: bool) -> None:
    clock = Clock()
    criterion = StopCriterion(60.0, part=1.0, clock=clock)
    unmoved = StopCriterion(60.0, part=1.0, after_success=False, clock=clock)
    for one in (criterion, unmoved):
        one.record_success(tried=1, score=0.8)
    assert not criterion.reached(tried=2000, score=0.0)  # it was just now: a look on takes its time
    clock.now_s = LONG_ENOUGH_S
    assert criterion.reached(tried, score) == ends
    assert not unmoved.reached(tried, score)


@pytest.mark.parametrize(
    ("tried", "score", "whole"), [(399, 0.9, False), (400, 0.9, True), (201, 0.1, True), (199, 0.1, False)]
)
def test_a_comparison_that_time_cuts_short_is_not_whole(tried: int, score: float, whole: bool) -> None:
    """H10: a claim was made also where the time after the first success was too short for a comparison."""
    clock = Clock()
    criterion = StopCriterion(0.1, part=1.0, clock=clock)
    criterion.record_success(tried=0, score=0.8)
    clock.now_s = LONG_ENOUGH_S  # four times the budget
    assert criterion.reached(tried, score)
    assert criterion.compared(tried, score) is whole


CODE = "def f(n):\n    while n > 5:\n        n += 0\n    return n\n"
CHECKS = [
    Check(origin="declared", arguments={"n": 9}, known=True, expected=5),
    Check(origin="declared", arguments={"n": 1}, known=True, expected=1),
]


def made(text: str, score: float = 1.0) -> Candidate:
    return Candidate((difference(CODE, text),), score, 1.0, ("test",))


@pytest.mark.parametrize(
    ("more", "budget_s", "compared"), [(0, 60.0, True), (1000, 0.01, False)], ids=["no others", "many others"]
)
def test_a_comparison_is_whole_when_no_candidate_is_left(
    healkit: Healkit, more: int, budget_s: float, compared: bool
) -> None:
    """H10: a source that has ended leaves nothing to compare with; one that time ends does."""
    bench = Bench(Trials(healkit.recorder, healkit.config), EntryRef("f", "default", 0, ""), 60.0)
    evaluator = CandidateEvaluator(bench, CODE, CHECKS[1:], ".", budget_s)

    def candidates() -> Iterator[Candidate]:
        yield made(CODE.replace("n += 0", "n -= 1"))
        for number in range(more):
            time.sleep(0.005 * bool(evaluator.found))  # slower than 400 in the time of a comparison
            yield made(CODE.replace("return n", f"return {number} + 9"))

    evaluator.evaluate(candidates(), Evaluated())
    assert evaluator.compared is compared
