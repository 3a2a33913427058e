"""The sieve: what a candidate is run on first, and what is told of it."""

from __future__ import annotations

import pytest

from healkit import Healkit
from healkit.contracts.healing import Check, difference
from healkit.contracts.tools import EntryRef
from healkit.healing.search.outcomes import late
from healkit.healing.search.ranking import Candidate
from healkit.healing.search.sieve import Sieve, Tried
from healkit.healing.workbench import bench_for

CODE = "def f(n):\n    while n > 5:\n        n += 0\n    return n\n"
CHECKS = [
    Check(origin="declared", arguments={"n": 9}, known=True, expected=5),
    Check(origin="declared", arguments={"n": 1}, known=True, expected=1),
]


def made(text: str) -> Candidate:
    return Candidate((difference(CODE, text),), 1.0, 1.0, ("test",))


@pytest.mark.requirement("HEAL-2")
def test_a_check_that_does_not_end_is_run_last_and_the_letters_keep_their_places(healkit: Healkit) -> None:
    bench = bench_for(healkit._recorder, healkit.config, EntryRef("f", "default", 0, ""), 60.0)
    sieve = Sieve(bench, CODE, CHECKS, "t.", 60.0)
    right = CODE.replace("n += 0", "n -= 1")
    breaks = CODE.replace("return n", "return n + 1")
    still = CODE.replace("n += 0", "n += 1 - 1")
    tried = Tried()
    sieve.fill(map(made, (right, breaks, still)), tried)
    # What breaks the quick one is not asked the other, on which it would not end either.
    assert tried.outcomes == {0: "..", 1: "-w", 2: "t."}
    assert [one.code for one in sieve.found] == [right]
    assert late(tried.with_outcomes()) == [made(still)]
