"""Workbench: budget, Stop, candidates, limits.

Candidates are drawn in the advisor's own thread; limits come from the code's own time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from trial_server_samples import children_of_trial_servers, trial_servers

from healkit import Healkit
from healkit.contracts.healing import Check, Edit, difference
from healkit.contracts.tools import EntryRef
from healkit.errors import BudgetSpent
from healkit.healing.advisor import Workbench
from healkit.healing.checks import LIMIT_LEAST_S
from healkit.healing.workbench import Bench, bench_for

ENTRY = EntryRef("f", "default", 0, "")
CODE = "def f(n):\n    return n + 0\n"
AT = CODE.index("0")


def number(value: int) -> list[Edit]:
    return [Edit(AT, AT + 1, str(value))]


def returns(value: object, n: int) -> Check:
    return Check(origin="declared", arguments={"n": n}, known=True, expected=value)


def bench_of(healkit: Healkit, budget_s: float = 60.0, stop: threading.Event | None = None) -> Bench:
    return bench_for(healkit.recorder, healkit.config, ENTRY, budget_s, stop)


def test_a_bench_finds_the_candidate_that_passes(healkit: Healkit) -> None:
    tried: list[int] = []
    bench: Workbench = bench_for(healkit.recorder, healkit.config, ENTRY, 60.0, on_progress=tried.append)
    scores = dict(bench.score(CODE, map(number, range(200)), [returns(8, 1), returns(9, 2)]))
    assert [position for position, letters in scores.items() if letters == ".."] == [7]
    assert sorted(scores) == list(range(200))
    assert tried == sorted(tried)
    assert tried[-1] == 200
    assert 0 < bench.left_s < 60


def test_the_next_search_reuses_the_trial_servers(healkit: Healkit) -> None:
    bench = bench_of(healkit)
    before = None
    for _ in range(5):
        assert len(dict(bench.score(CODE, map(number, range(100)), [returns(8, 1)]))) == 100
        before = before or {process.pid for process in trial_servers()}
    assert before
    assert {process.pid for process in trial_servers()} == before


def test_the_codes_own_result_can_be_the_right_one(healkit: Healkit) -> None:
    code = "def f(n):\n    return 1 // n\n"
    at = code.index("//")
    edits = [[], [Edit(at, at + 2, "/")], [Edit(at - 2, at - 1, "2")], [Edit(at + 3, at + 4, "1")]]
    checks = [Check(origin="answered", arguments={"n": n}) for n in (1, 2, 0)] + [returns(7, 1)]
    scores = dict(bench_of(healkit).score(code, edits, checks, every=True, as_code=True, limit_s=5))
    assert scores == {0: "...w", 1: ".w.w", 2: "ww.w", 3: ".www"}


def test_a_candidate_generator_runs_in_its_own_thread(
    healkit: Healkit,
) -> None:
    bench, seen, threads = bench_of(healkit), dict[int, str](), set[int]()

    def candidates() -> Iterator[list[Edit]]:
        value = 0
        while "." not in seen.values():
            threads.add(threading.get_ident())
            yield number(value)
            value += 1

    for position, letters in bench.score(CODE, candidates(), [returns(5000, 1)]):
        seen[position] = letters
    assert seen[4999] == "."
    assert threads == {threading.get_ident()}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "budget"])
def test_stop_and_the_budget_end_a_search_at_once(healkit: Healkit, how: str) -> None:
    stop = threading.Event()
    warm = list(
        bench_of(healkit).score(CODE, [number(1)], [returns(1, 0)])
    )  # so that no time goes into a start
    assert warm == [(0, ".")]
    bench = bench_of(healkit, 60.0 if how == "stop" else 4.0, stop)
    hang = [Edit(0, len(CODE), "def f(n):\n    while True: pass\n")]
    scores = bench.score(CODE, (hang for _ in range(10**6)), [returns(1, 1)])
    assert next(scores)[1] == "t"
    if how == "stop":
        stop.set()
    with pytest.raises(BudgetSpent, match="'f'"):
        list(scores)
    assert bench.left_s == 0
    assert children_of_trial_servers() == []
    assert healkit.log.count(status="RUNNING") == 0
    with pytest.raises(BudgetSpent):
        bench.run([CODE], [returns(1, 1)])
    with pytest.raises(BudgetSpent):
        bench.observe(CODE, [returns(1, 1)])


def test_benches_side_by_side_share_think_time(healkit: Healkit) -> None:
    bench = bench_of(healkit, 60.0)
    beside = bench.beside(10.0)
    began = time.monotonic()
    before = bench.left_s, beside.left_s
    with beside.off_the_clock(), bench.off_the_clock():
        pass
    with bench.off_the_clock():
        time.sleep(0.5)
    after = bench.left_s, beside.left_s
    worked_s = time.monotonic() - began - bench.think_time_s
    assert bench.think_time_s == beside.think_time_s >= 0.5
    assert all(was - left <= worked_s + 0.001 for was, left in zip(before, after, strict=True))


@pytest.mark.slow
def test_a_candidates_longer_limit_holds_at_validation(healkit: Healkit) -> None:
    bench = bench_of(healkit)
    slow = "import time\ndef f(n):\n    time.sleep(2.2)\n    return 1\n"
    [before] = bench.run([CODE], [returns(1, 0)])
    edit = difference(CODE, slow)
    assert before[0].outcome == "wrong"
    assert dict(bench.score(CODE, [[edit]], [returns(1, 0)], limit_s=2.5)) == {0: "."}
    [after] = bench.run([slow], [returns(1, 0)])
    assert after[0].outcome == "passed"


def test_no_candidates_means_no_run_and_no_record(healkit: Healkit) -> None:
    assert list(bench_of(healkit).score(CODE, [], [returns(1, 1)])) == []
    assert healkit.log.count() == 0


def test_values_of_many_checks_are_one_record(healkit: Healkit) -> None:
    bench = bench_of(healkit)
    checks = [Check(origin="passing", arguments={"n": n}) for n in range(20)]
    before = healkit.log.count()
    assert [result.value for result in bench.values(CODE, checks, 1.0)] == list(range(20))
    assert healkit.log.count() == before + 1


def test_an_abandoned_search_ends(healkit: Healkit) -> None:
    scores = bench_of(healkit).score(CODE, (number(value) for value in range(10**9)), [returns(3, 1)])
    assert next(scores)
    scores.close()
    assert healkit.log.count(status="RUNNING") == 0
    assert children_of_trial_servers() == []


def test_a_generators_exception_ends_the_search(healkit: Healkit) -> None:
    def candidates() -> Iterator[list[Edit]]:
        yield number(1)
        raise LookupError("no more ideas")

    with pytest.raises(LookupError, match="no more ideas"):
        list(bench_of(healkit).score(CODE, candidates(), [returns(3, 1)]))
    assert healkit.log.count(status="RUNNING") == 0


def test_limits_follow_the_codes_own_time(healkit: Healkit) -> None:
    code = "import time\ndef f(n):\n    time.sleep(n)\n    return n\n"
    checks = [returns(0, 0), Check(origin="declared", arguments={"n": 0.1}), returns("wrong", 0)]
    bench = bench_of(healkit)
    assert dict(bench.score(code, [[]], checks, every=True)) == {0: "..w"}
    quick, slow, unknown = (bench._limits[check] for check in checks)
    assert quick >= LIMIT_LEAST_S
    assert slow >= 0.6
    assert unknown == max(quick, slow)
    at = code.index("n)\n    return")
    slower = [Edit(at, at + 1, f"n + {0.1 + 4 * quick}")]  # what only waits is waited for a little longer
    assert dict(bench.score(code, [slower], checks[:1])) == {0: "t"}
    assert dict(bench.score(code, [slower], checks[:1], slow=True)) == {0: "."}


def test_codes_run_on_record_and_are_observed(healkit: Healkit) -> None:
    bench = bench_of(healkit)
    ((result,),) = bench.run([CODE], [returns(1, 1)])
    assert (result.outcome, result.value) == ("passed", 1)
    assert healkit.log.by_trace(result.trace_id).origin == "trial"
    (observed,) = bench.observe(CODE, [returns(1, 1)])
    assert observed.lines == [1, 2]


def test_a_sealed_tool_is_tried_off_the_record(healkit: Healkit) -> None:
    bench = bench_for(healkit.recorder, healkit.config, ENTRY, 60.0, off_record=True)
    code = "def f(secret):\n    print(secret)\n    return secret if secret[0] == 'o' else secret[99]\n"
    checks = [Check(origin="failing", arguments={"secret": text}) for text in ("ok-zanzibar", "no-zanzibar")]
    ((passed, raised),) = bench.run([code], checks)
    assert (passed.value, raised.failure) == ("ok-zanzibar", "IndexError: string index out of range")
    assert dict(bench.score(code, [[]], checks, every=True, limit_s=5)) == {0: ".e"}
    bench.observe(code, checks)
    rows = healkit.log.query(limit=100).rows
    assert (
        len(rows) == 4
    )  # two trials, by which the time is known too, and one search each for score and observation
    assert not [row for row in rows if "zanzibar" in str(row.model_dump())]
    assert not [row.fingerprint for row in rows if row.fingerprint]
