"""Examiner of healing: what it counts as right."""

from __future__ import annotations

import ast
import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def heal():
    """Import the benchmark's modules, which are scripts' and not the package's."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import soak_calls
        from heal import measuring, mutants, programs, quixbugs, quixbugs_inputs, scoring, summary
    finally:
        sys.path.remove(str(BENCHMARKS))
    return SimpleNamespace(
        measuring=measuring, mutants=mutants, programs=programs, quixbugs=quixbugs,
        inputs=quixbugs_inputs, scoring=scoring, summary=summary, soak_calls=soak_calls,
    )  # fmt: skip


@pytest.fixture(scope="module")
def judge(heal: Any, tmp_path_factory: pytest.TempPathFactory):
    with heal.scoring.Judge(tmp_path_factory.mktemp("judge")) as judge:
        yield judge


def double(heal: Any, code: str) -> Any:
    return heal.programs.Program(
        name="double", code=code, examples=({"arguments": {"n": 2}, "result": 4},), kind="operator"
    )


def test_a_patch_is_correct_only_if_it_passes_hidden_examples(heal, judge):
    program = double(heal, "def double(n):\n    return n - 2\n")
    unseen = [{"arguments": {"n": 5}, "result": 10}, {"call": "x = 7\ndouble(x) + 1", "result": 15}]
    codes = [f"def double(n):\n    return {body}\n" for body in ("n * 2", "n + 2", "n ** 2", "nn")]
    assert judge.correct(codes, program, unseen) == [True, False, False, False]


def test_a_row_tells_plausible_first_correct_and_kept_apart(heal, judge):
    program = double(heal, "def double(n):\n    return n - 2\n")
    plus, times, worse = (f"def double(n):\n    return {body}\n" for body in ("n + 2", "n * 2", "0"))
    attempts = [
        SimpleNamespace(patch=SimpleNamespace(code=code, doubt=""), verdict=verdict)
        for code, verdict in ((worse, "not_cured"), (plus, "cured"), (times, "cured"))
    ]
    row = heal.measuring.Row("double", "operator", "wrong", 1, 1, True, 0)
    heal.measuring.score(row, program, attempts, plus, judge, [{"arguments": {"n": 5}, "result": 10}])
    assert (row.plausible, row.first_correct, row.any_correct) == (True, False, True)
    assert (row.kept, row.verdict, row.kept_correct) == (True, "cured", False)
    kept = dataclasses.replace(row)
    heal.measuring.score(kept, program, attempts, times, judge, [{"arguments": {"n": 5}, "result": 10}])
    assert kept.kept_correct
    total = heal.summary.summary([row, kept, dataclasses.replace(kept, knowable=False, kept_correct=False)])
    assert total["programs"] == 2
    assert total["rate"] == 0.5
    assert total["claims"] == {"cured": 3, "correct": 1, "precision": 0.333, "memorised": 0}
    assert total["unknowable"]["claims"]["cured"] == 1


def test_a_patch_that_copies_an_answer_is_counted(heal, judge):
    program = double(heal, "def double(n):\n    return n - 2\n")
    learnt = "def double(n):\n    if n == 2:\n        return 4\n    return n - 2\n"
    row = heal.measuring.Row("double", "operator", "wrong", 1, 1, True, 0)
    attempt = SimpleNamespace(patch=SimpleNamespace(code=learnt, doubt=""), verdict="cured")
    heal.measuring.score(row, program, [attempt], learnt, judge, [{"arguments": {"n": 5}, "result": 10}])
    assert (row.plausible, row.kept_correct, row.memorised) == (True, False, True)
    assert heal.summary.summary([row])["claims"]["memorised"] == 1
    assert not heal.measuring.memorised("+    return n * 2", program)


def test_the_healer_sees_the_failure_but_no_hidden_example(heal, healkit):
    heal.measuring.register(healkit, double(heal, "def double(n):\n    return n / 0\n"))
    assert healkit.last_error("double").failure.ename == "ZeroDivisionError"
    draft = heal.programs.Program(
        name="draft",
        code="def draft(n)\n    return n\n",
        examples=({"arguments": {"n": 2}, "result": 2, "within": 1},),
        shows="draft",
    )
    heal.measuring.register(healkit, draft)
    assert healkit.vault.get("draft").examples == [{"arguments": {"n": 2}, "result": 2}]
    assert healkit.last_error("draft") is not None


@pytest.mark.slow
def test_a_tool_that_calls_is_scored_by_what_it_returns_and_does(heal, judge):
    program = next(one for one in heal.programs.written("calls") if one.name == "storm_alert")
    unseen = heal.scoring.hidden_examples("calls")["storm_alert"]
    right = heal.scoring.reference("storm_alert", "calls")
    twice = right.replace(
        "        return True", "        mcp.host.send(to=to, text='!')\n        return True"
    )
    marks = judge.passes_in_world([right, twice, program.code], program, unseen)
    assert [all(one) for one in marks] == [True, False, False]
    assert (all(marks[1][:-1]), marks[1][-1], marks[2][0]) == (True, False, False)


@pytest.mark.slow
@pytest.mark.requirement("HEAL-7")
def test_no_variation_of_a_healing_makes_a_real_call(heal):
    """Heal one tool of the set; `benchmarks/soak_calls.py` has all of them."""
    [program] = [one for one in heal.programs.written("calls") if one.name == "pay_bill"]
    cases = heal.soak_calls.variations(program)
    found = {name: heal.soak_calls.heal(case, 1.0) for name, case in cases.items()}
    assert len(found) == 7
    assert sum(answered for _, answered, _ in found.values()) > 20
    assert {name: real for name, (_, _, real) in found.items() if real} == {}


def test_mutants_are_broken_tools_and_the_same_for_the_same_seed(heal, judge):
    made = heal.mutants.mutants(judge, 5, 8)
    assert [mutant.code for mutant in made] == [mutant.code for mutant in heal.mutants.mutants(judge, 5, 8)]
    assert [mutant.code for mutant in made] != [mutant.code for mutant in heal.mutants.mutants(judge, 6, 8)]
    for mutant in made:
        ast.parse(mutant.code)
        example = mutant.examples[mutant.failing]
        assert judge.passes([mutant.code], mutant.name, [example], 1.0) == [[False]]
        assert judge.correct([heal.scoring.reference(mutant.name)], mutant, []) == [True]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two programs of our own, laid out as in QuixBugs: one with tests in JSON, one with tests on nodes."""
    broken, right = tmp_path / "python_programs", tmp_path / "correct_python_programs"
    tests, cases = tmp_path / "python_testcases", tmp_path / "json_testcases"
    for folder in (broken, right, tests, cases):
        folder.mkdir()
    gcd = "def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a\n"
    (right / "gcd.py").write_text(gcd)
    (broken / "gcd.py").write_text(gcd.replace("return a", "return b"))
    rows = [[[12, 18], 6], [[7, 0], 7], [[9, 3], 3], [[5, 4], 1]]
    (cases / "gcd.json").write_text("\n".join(map(json.dumps, rows)))
    loop = "def detect_cycle(node):\n    seen = []\n    while node:\n        if node in seen:\n            return True\n        seen.append(node)\n        node = node.successor\n    return False\n"  # fmt: skip
    (right / "detect_cycle.py").write_text(loop)
    (broken / "detect_cycle.py").write_text(loop.replace("return True", "return False"))
    (tests / "node.py").write_text(
        "class Node:\n    def __init__(self, value=None, successor=None):\n        self.value = value\n        self.successor = successor\n"
    )
    (tests / "test_detect_cycle.py").write_text(
        "import pytest\nfrom node import Node\n\nnode1 = Node(1)\nnode2 = Node(2, node1)\n\n\n"
        'def test1():\n    """None."""\n    detected = detect_cycle(node2)\n    assert not detected\n\n\n'
        "def test2():\n    node1.successor = node2\n    assert detect_cycle(node2)\n\n\n"
        "def test3():\n    expected = {(1, 2), (0, 1)}\n    result = {(0, 1), (1, 2)}\n    assert result == expected\n"
        "    node1.successor = node1\n    detected = detect_cycle(node2)\n    assert detected\n"
    )
    (broken / "node.py").write_text("")
    (broken / "gcd_test.py").write_text("")
    return tmp_path


def test_half_of_a_checkouts_tests_become_visible_examples(heal, judge, checkout):
    programs = heal.quixbugs.read(checkout)
    assert [program.name for program in programs] == ["detect_cycle", "gcd"]
    passed, doubtful = heal.quixbugs.survey(programs, judge)
    assert doubtful == []
    assert passed == {"detect_cycle": [True, False, False], "gcd": [False] * 4}
    visible, unseen = heal.quixbugs.problems(programs, passed, judge, 1, half=True)
    assert [len(program.examples) for program in visible] == [2, 2]
    for program, original in zip(visible, programs, strict=True):
        shown = [test for test in original.tests if test in program.examples]
        others = [test for test in original.tests if test not in shown]
        assert shown == list(program.examples)
        assert unseen[program.name][: len(others)] == others
        assert len(unseen[program.name]) > 20
        assert judge.correct([original.correct, original.code], program, unseen[program.name]) == [
            True,
            False,
        ]
        assert not passed[program.name][original.tests.index(program.examples[program.failing])]
    everything, _ = heal.quixbugs.problems(programs, passed, judge, 1, half=False)
    assert [program.examples for program in everything] == [program.tests for program in programs]


@pytest.mark.slow
@pytest.mark.requirement("HEAL-5")
def test_the_benchmark_heals_and_scores_tools_from_the_command_line(tmp_path):
    kept = tmp_path / "kept.json"
    command = [sys.executable, str(BENCHMARKS / "bench_heal.py"), "--set", "own", "--advisors", "rules"]
    command += ["--only", "strip_accents", "stack_machine", "tax_due", "--budget", "20", "--keep", str(kept)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    own = json.loads(done.stdout)["sets"]["own"]
    assert (own["programs"], own["plausible"], own["kept_correct"], own["errors"]) == (2, 2, 2, [])
    assert own["claims"]["correct"] == 2
    assert own["unknowable"]["programs"] == 1
    rows = own.pop("programs_in_detail")
    assert [row["name"] for row in rows] == ["strip_accents", "stack_machine", "tax_due"]
    assert "import unicodedata" in rows[0]["diff"]
    assert json.loads(kept.read_text())["own"]["kept_correct"] == 2
    assert "| own | 2 |" in done.stderr
