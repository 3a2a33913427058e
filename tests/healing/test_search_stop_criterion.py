"""When a stage of the search stops."""

from __future__ import annotations

import pytest

from healkit.healing.advisors.search.strategy import StopCriterion

pytestmark = pytest.mark.requirement("HEAL-2")
#: Longer than is looked on in any case after a success, and than is waited for at the end.
LONG_ENOUGH_S = 0.6


class Clock:
    """Clock that a test sets by hand."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_without_a_success_a_stage_uses_its_part_of_the_budget() -> None:
    assert not StopCriterion(60.0, part=1.0).reached(tried=100_000, score=0.0)
    clock = Clock()
    criterion = StopCriterion(60.0, part=0.5, clock=clock)
    clock.now_s = 31.0
    assert criterion.reached(tried=1, score=1.0)


def test_slow_candidates_still_get_the_minimum_tries() -> None:
    clock = Clock()
    criterion = StopCriterion(40.0, part=0.01, least=3, clock=clock)
    clock.now_s = LONG_ENOUGH_S  # more than its part, and less than four times that
    assert not criterion.reached(tried=2, score=1.0)
    assert criterion.reached(tried=3, score=1.0)


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
    ("tried", "score", "whole"),
    [(399, 0.9, False), (400, 0.9, True), (201, 0.1, True), (199, 0.1, False)],
)
def test_a_comparison_that_time_cuts_short_is_not_whole(tried: int, score: float, whole: bool) -> None:
    """H10: a claim was made also where the time after the first success was too short for a comparison."""
    clock = Clock()
    criterion = StopCriterion(0.1, part=1.0, clock=clock)
    criterion.record_success(tried=0, score=0.8)
    clock.now_s = LONG_ENOUGH_S  # four times the budget
    assert criterion.reached(tried, score)
    assert criterion.compared(tried, score) is whole


def test_a_stage_does_not_end_in_the_middle_of_a_comparison() -> None:
    """H10: a success at the end of a stage's part of the budget was compared with nothing."""
    clock = Clock()
    criterion = StopCriterion(60.0, part=0.1, clock=clock)
    clock.now_s = 5.9
    criterion.record_success(tried=5000, score=0.8)
    clock.now_s = 6.1
    assert not criterion.reached(tried=5001, score=0.8)
    clock.now_s = 9.5
    assert not criterion.reached(tried=5002, score=0.8)  # candidates are slow, and there is time
    clock.now_s = 40.0
    assert criterion.reached(tried=5002, score=0.8)


def test_running_candidates_are_awaited_only_briefly() -> None:
    clock = Clock()
    criterion = StopCriterion(60.0, part=0.01, clock=clock)
    assert not criterion.overdue
    clock.now_s = 1.0
    assert criterion.reached(tried=1, score=1.0)
    assert not criterion.overdue
    clock.now_s += LONG_ENOUGH_S
    assert criterion.overdue
