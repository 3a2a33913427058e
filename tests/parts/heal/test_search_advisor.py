"""Search advisor on the real workbench."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from trial_server_samples import children_of_trial_servers

from healkit import Healkit
from healkit.core.contracts.patches import Check, Edit
from healkit.core.contracts.vault import VaultEntry
from healkit.core.store.entries import code_hash
from healkit.errors import BudgetSpent
from healkit.parts.heal.advisor import Advisor, Case, Peer
from healkit.parts.heal.advisors.search.strategy import SearchAdvisor
from healkit.parts.heal.records import Patch
from healkit.parts.heal.workbench import Bench
from healkit.parts.trials.trials import Trials


def entry_of(code: str, name: str = "tool", **more: Any) -> VaultEntry:
    return VaultEntry(name, "default", 1, code, code_hash(code), **more)


def example(result: Any, **arguments: Any) -> Check:
    return Check(origin="declared", arguments=arguments, known=True, expected=result)


def case_of(code: str, *checks: Check, peers: tuple[Peer, ...] = (), **more: Any) -> Case:
    return Case(entry_of(code, **more), None, checks, peers=peers)


def bench_of(healkit: Healkit, case: Case, budget_s: float, stop: threading.Event | None = None) -> Bench:
    return Bench(Trials(healkit.recorder, healkit.config), case.entry.ref, budget_s, stop)


def first(healkit: Healkit, case: Case, budget_s: float = 60.0) -> Patch | None:
    advisor: Advisor = SearchAdvisor()
    return next(iter(advisor.propose(case, bench_of(healkit, case, budget_s))), None)


ABSOLUTE = """def tool(numbers):
    # The largest distance from zero.
    best = 0
    for number in numbers:
        best = max(best, number)  # so far
    return best
"""


@pytest.mark.slow
@pytest.mark.requirement("HEAL-2")
def test_a_missing_call_is_restored_and_comments_stay(healkit: Healkit) -> None:
    checks = [example(3, numbers=[1, -3]), example(2, numbers=[2]), example(7, numbers=[-7, 3, 5])]
    patch = first(healkit, case_of(ABSOLUTE, *checks))
    assert patch is not None
    assert patch.code == ABSOLUTE.replace("max(best, number)", "max(best, abs(number))")
    assert patch.advisor == "search"
    assert patch.author == "search"
    assert not patch.guard
    assert patch.reason.startswith("Line 5: `best = max(best, number) # so far`".replace(" #", "  #"))


@pytest.mark.slow
@pytest.mark.requirement("HEAL-2")
def test_a_name_that_is_nearly_the_other_is_replaced_whatever_their_types(healkit: Healkit) -> None:
    """`mark` is a number and `marks` a list, so that `len(marks)` was never tried; only special cases were left."""
    wrong = "def tool(marks):\n    total = 0\n    for mark in marks:\n        total += mark\n    return total / len(mark)\n"
    patch = first(healkit, case_of(wrong, example(3.0, marks=[2, 4]), example(2.0, marks=[1, 1, 4])))
    assert patch is not None
    assert patch.code == wrong.replace("len(mark)", "len(marks)")


@pytest.mark.slow
def test_two_mistakes_are_cured_if_fixing_one_shows_progress(healkit: Healkit) -> None:
    code = """def tool(words, least):
    found = {}
    for word in words:
        if len(word) > least:
            found[word] = found.get(word, 1) + 1
    return found
"""
    checks = [
        example({"abc": 1}, words=["abc", "ab"], least=3),
        example({}, words=["a"], least=2),
        example({"aa": 2, "bbb": 1}, words=["aa", "bbb", "aa"], least=2),
        example({"cccc": 1}, words=["cccc"], least=2),
    ]
    patch = first(healkit, case_of(code, *checks))
    assert patch is not None
    assert "len(word) >= least" in patch.code
    assert "found.get(word, 0) + 1" in patch.code


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"type": "sql"}, "SELECT 1"),
        ({"draft": True}, "def tool(numbers:\n    return 1\n"),
    ],
    ids=["sql", "does not parse"],
)
def test_sql_and_drafts_are_not_run(more: dict[str, Any], code: str) -> None:
    class Untouched:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        left_s = 10.0

    case = case_of(code, example(3, numbers=[-3]), **more)
    assert list(SearchAdvisor().propose(case, Untouched())) == []


@pytest.mark.slow
def test_only_contradicted_patches_are_doubted(healkit: Healkit) -> None:
    code = "def tool(age):\n    return age > 18\n"
    few = [example(True, age=18), example(False, age=3)]
    doubted = first(healkit, case_of(code, *few))
    assert doubted is not None
    assert doubted.code == code.replace(">", ">=")
    assert "behave differently" in doubted.doubt
    more = [example(True, age=19), example(True, age=64), example(False, age=17), example(False, age=0)]
    vouched = first(healkit, case_of(code, *few, *more))
    assert vouched is not None
    assert vouched.code == code.replace(">", ">=")
    assert vouched.doubt == ""


@pytest.mark.slow
def test_the_search_ends_when_nothing_is_left_to_try(healkit: Healkit) -> None:
    case = case_of("def tool():\n    return 1\n", example("a text that stands nowhere" * 4))
    bench = bench_of(healkit, case, 60.0)
    assert list(SearchAdvisor().propose(case, bench)) == []
    assert bench.left_s > 20


@pytest.mark.slow
def test_a_spent_budget_raises_nothing_and_leaves_no_process(healkit: Healkit) -> None:
    code = "def tool(n):\n    while n != 1:\n        n = n * 3 + 1\n    return n + undefined_later(n)\n"
    case = case_of(code, example(123456, n=7), example(99, n=12))
    assert list(SearchAdvisor().propose(case, bench_of(healkit, case, 1.5))) == []
    assert children_of_trial_servers() == []
    assert healkit.log.count(status="RUNNING") == 0


def test_stop_ends_the_search_and_found_patches_are_proposed(healkit: Healkit) -> None:
    stop = threading.Event()
    checks = [example(3, numbers=[1, -3]), example(2, numbers=[2]), example(7, numbers=[-7, 3, 5])]
    case = case_of(ABSOLUTE, *checks)
    bench = bench_of(healkit, case, 60.0, stop)

    class Stopping:
        """Bench on which Stop is pressed as soon as a candidate has passed."""

        left_s = property(lambda self: bench.left_s)
        observe, run = bench.observe, bench.run

        def score(
            self, code: str, candidates: Iterable[Sequence[Edit]], checks: Sequence[Check], **more: Any
        ) -> Iterator[tuple[int, str]]:
            for position, outcomes in bench.score(code, candidates, checks, **more):
                yield position, outcomes
                if outcomes == "...":
                    stop.set()
                    raise BudgetSpent("stopped", hint="")

    patches = list(SearchAdvisor().propose(case, Stopping()))
    assert [patch.code for patch in patches] == [
        ABSOLUTE.replace("max(best, number)", "max(best, abs(number))")
    ]


@pytest.mark.slow
def test_a_guard_counts_as_one_only_without_an_expected_value(healkit: Healkit) -> None:
    code = "def tool(total, count):\n    return total / count\n"
    known = first(healkit, case_of(code, example(0, total=5, count=0), example(2.5, total=5, count=2)))
    assert known is not None
    assert not known.guard
    unknown = Check(origin="failing", arguments={"total": 5, "count": 0})
    case = case_of(code, unknown, example(2.5, total=5, count=2), example(3, total=9, count=3))
    patches = SearchAdvisor().propose(case, bench_of(healkit, case, 20.0))
    guards = [patch.guard for patch, _ in zip(patches, range(3), strict=False)]
    assert any(guards)


def test_checks_with_a_call_guide_the_search(healkit: Healkit) -> None:
    code = "class Stack:\n    def __init__(self):\n        self.items = []\n    def pop(self):\n        return self.items.pop(0)\n"
    check = Check(
        origin="declared",
        call="s = Stack()\ns.items = [1, 2, 3]\n[s.pop(), s.pop()]",
        known=True,
        expected=[3, 2],
    )
    patch = first(healkit, case_of(code, check))
    assert patch is not None
    assert "pop(0)" not in patch.code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "draft"),
    [
        ("def tool(prices, limit)\n    return [price for price in prices if price > limit]\n", True),
        ("def tool(prices, limit):\n    return [price for price in prizes if price > limit]\n", False),
    ],
    ids=["a colon is missing", "a name is misspelt"],
)
def test_the_search_fixes_a_second_mistake_after_a_rule(healkit: Healkit, code: str, draft: bool) -> None:
    examples = [
        {"arguments": {"prices": [1, 2, 3], "limit": 2}, "result": [1, 2]},
        {"arguments": {"prices": [5, 4], "limit": 4}, "result": [4]},
        {"arguments": {"prices": [], "limit": 4}, "result": []},
    ]
    healkit.vault.add("tool", code, examples=examples, draft=draft)
    report = healkit.heal("tool", advisors=["rules", "search"], budget_s=30)
    assert report.best is not None
    assert (
        report.best.patch.code
        == "def tool(prices, limit):\n    return [price for price in prices if price <= limit]\n"
    )
    assert report.best.verdict == "unproven"  # two edits, and few examples


@pytest.mark.slow
@pytest.mark.requirement("HEAL-2")
def test_a_patch_that_skips_the_faulty_code_ranks_lower(healkit: Healkit) -> None:
    code = """def tool(a, b):
    if b == 0:
        return a
    return tool(a % b, b)
"""
    # `b >= 0` passes all of them, by never calling itself again.
    checks = [example(13, a=13, b=13), example(20, a=20, b=100), example(3, a=3, b=0)]
    patch = first(healkit, case_of(code, *checks))
    assert patch is not None
    assert patch.code == code.replace("tool(a % b, b)", "tool(b, a % b)")
