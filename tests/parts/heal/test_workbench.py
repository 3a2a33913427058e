"""Workbench: budget, Stop, candidates, limits."""

from __future__ import annotations

import threading

from trial_server_samples import children_of_trial_servers

from healkit import Healkit
from healkit.core.contracts.patches import Check, Edit
from healkit.core.contracts.tools import EntryRef
from healkit.parts.heal.advisor import Workbench
from healkit.parts.heal.checks import LIMIT_LEAST_S
from healkit.parts.heal.workbench import Bench, Conditions
from healkit.parts.trials.trials import Trials

ENTRY = EntryRef("f", "default", 0, "")
CODE = "def f(n):\n    return n + 0\n"
AT = CODE.index("0")


def number(value: int) -> list[Edit]:
    return [Edit(AT, AT + 1, str(value))]


def returns(value: object, n: int) -> Check:
    return Check(origin="declared", arguments={"n": n}, known=True, expected=value)


def bench_of(healkit: Healkit, budget_s: float = 60.0, stop: threading.Event | None = None) -> Bench:
    return Bench(Trials(healkit.recorder, healkit.config), ENTRY, budget_s, stop)


def test_a_bench_finds_the_candidate_that_passes(healkit: Healkit) -> None:
    tried: list[int] = []
    bench: Workbench = Bench(Trials(healkit.recorder, healkit.config), ENTRY, 60.0, on_progress=tried.append)
    scores = dict(bench.score(CODE, map(number, range(200)), [returns(8, 1), returns(9, 2)]))
    assert [position for position, letters in scores.items() if letters == ".."] == [7]
    assert sorted(scores) == list(range(200))
    assert tried == sorted(tried)
    assert tried[-1] == 200
    assert 0 < bench.left_s < 60


def test_the_codes_own_result_can_be_the_right_one(healkit: Healkit) -> None:
    code = "def f(n):\n    return 1 // n\n"
    at = code.index("//")
    edits = [[], [Edit(at, at + 2, "/")], [Edit(at - 2, at - 1, "2")], [Edit(at + 3, at + 4, "1")]]
    checks = [Check(origin="answered", arguments={"n": n}) for n in (1, 2, 0)] + [returns(7, 1)]
    scores = dict(bench_of(healkit).score(code, edits, checks, every=True, as_code=True, limit_s=5))
    assert scores == {0: "...w", 1: ".w.w", 2: "ww.w", 3: ".www"}


def test_an_abandoned_search_ends(healkit: Healkit) -> None:
    scores = bench_of(healkit).score(CODE, (number(value) for value in range(10**9)), [returns(3, 1)])
    assert next(scores)
    scores.close()
    assert healkit.log.count(status="RUNNING") == 0
    assert children_of_trial_servers() == []


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
    bench = Bench(
        Trials(healkit.recorder, healkit.config), ENTRY, 60.0, conditions=Conditions(off_record=True)
    )
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
