"""Candidate evaluator: order of checks, outcomes, its stop."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from healkit import Healkit
from healkit.contracts.healing import Check, difference
from healkit.contracts.tools import EntryRef
from healkit.healing.advisors.search.edit_space import Candidate, timed_out
from healkit.healing.advisors.search.strategy import CandidateEvaluator, Evaluated
from healkit.healing.workbench import bench_for

CODE = "def f(n):\n    while n > 5:\n        n += 0\n    return n\n"
CHECKS = [
    Check(origin="declared", arguments={"n": 9}, known=True, expected=5),
    Check(origin="declared", arguments={"n": 1}, known=True, expected=1),
]


def made(text: str, score: float = 1.0) -> Candidate:
    return Candidate((difference(CODE, text),), score, 1.0, ("test",))


@pytest.mark.slow
@pytest.mark.requirement("HEAL-2")
def test_an_endless_check_runs_last_and_outcomes_keep_their_order(healkit: Healkit) -> None:
    bench = bench_for(healkit.recorder, healkit.config, EntryRef("f", "default", 0, ""), 60.0)
    evaluator = CandidateEvaluator(bench, CODE, CHECKS, "t.", 60.0)
    right = CODE.replace("n += 0", "n -= 1")
    breaks = CODE.replace("return n", "return n + 1")
    still = CODE.replace("n += 0", "n += 1 - 1")
    tried = Evaluated()
    evaluator.evaluate(map(made, (right, breaks, still)), tried)
    # What breaks the quick one is not asked the other, on which it would not end either.
    assert tried.outcomes == {0: "..", 1: "-w", 2: "t."}
    assert [one.code for one in evaluator.found] == [right]
    assert timed_out(tried.with_outcomes()) == [made(still)]


@pytest.mark.parametrize(
    ("more", "budget_s", "compared"), [(0, 60.0, True), (1000, 0.01, False)], ids=["no others", "many others"]
)
def test_the_comparison_is_whole_when_no_candidate_is_left(
    healkit: Healkit, more: int, budget_s: float, compared: bool
) -> None:
    """H10: a source that has ended leaves nothing to compare with; one that time ends does."""
    bench = bench_for(healkit.recorder, healkit.config, EntryRef("f", "default", 0, ""), 60.0)
    evaluator = CandidateEvaluator(bench, CODE, CHECKS[1:], ".", budget_s)

    def candidates() -> Iterator[Candidate]:
        yield made(CODE.replace("n += 0", "n -= 1"))
        for number in range(more):
            time.sleep(0.005 * bool(evaluator.found))  # slower than 400 in the time of a comparison
            yield made(CODE.replace("return n", f"return {number} + 9"))

    evaluator.evaluate(candidates(), Evaluated())
    assert evaluator.compared is compared


@pytest.mark.requirement("HEAL-2")
def test_after_a_success_unlikely_candidates_are_not_tried(healkit: Healkit) -> None:
    bench = bench_for(healkit.recorder, healkit.config, EntryRef("f", "default", 0, ""), 60.0)
    evaluator = CandidateEvaluator(bench, CODE, CHECKS[1:], ".", 60.0)

    def candidates() -> Iterator[Candidate]:
        yield made(CODE.replace("n += 0", "n -= 1"))
        more = itertools.count()
        while not evaluator.found:  # until it is known that the first one passes
            yield made(CODE.replace("return n", f"return {next(more)} + 9"))
        for _ in range(600):
            time.sleep(0.0005)  # all of it is longer than is looked on at least, and shorter than at most
            yield made(CODE.replace("return n", f"return {next(more)} + 9"), score=0.01)

    tried = Evaluated()
    evaluator.evaluate(candidates(), tried)
    assert 0 < sum(candidate.score < 1.0 for candidate in tried.candidates) < 600
    assert [one.code for one in evaluator.found] == [CODE.replace("n += 0", "n -= 1")]
