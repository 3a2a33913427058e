"""Chance: checks that pass and fail with the same code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from healing_samples import Idea

from healkit import Healkit
from healkit.parts.heal.chance import SET_ORDER, SOURCES, chance_in

FLAKY = "import random\ndef tool(n: int) -> int:\n    if random.random() < 0.5:\n        raise ValueError('bad luck')\n"
FLAKY += "    return n\n"


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ("import random\nx = random.random()", "random.random"),
        ("import random as r\nx = r.choice([1])", "random.choice"),
        ("from random import shuffle\nshuffle([])", "random.shuffle"),
        ("import random\nrandom.seed(1)\nx = random.random()", ""),
        ("import random\nx = random.Random(1).random()", ""),
        ("import numpy as np\nx = np.random.rand(3)", "numpy.random.rand"),
        ("import numpy as np\nx = np.random.default_rng(3).random()", ""),
        ("import numpy as np\nx = np.random.default_rng().random()", "numpy.random.default_rng"),
        ("import secrets\nx = secrets.token_hex()", "secrets.token_hex"),
        ("from uuid import uuid4\nx = uuid4()", "uuid.uuid4"),
        ("import time\nx = time.time()", "time.time"),
        ("import time\ntime.sleep(1)", ""),
        ("from datetime import datetime\nx = datetime.now()", "datetime.datetime.now"),
        ("import datetime as dt\nx = dt.date.today()", "datetime.date.today"),
        ("import datetime as dt\nx = dt.date(2026, 1, 1)", ""),
        ("x = list({'a', 'b'})", SET_ORDER),
        ("def f(words):\n    seen = set(words)\n    return ', '.join(seen)", SET_ORDER),
        ("def f(words):\n    return sorted(set(words))", ""),
        ("def f(words):\n    return len({w for w in words})", ""),
        ("def f(:", ""),
    ],
)
def test_what_may_differ_each_time_is_read_off_the_code(code: str, source: str) -> None:
    assert chance_in(code) == source


def test_each_source_of_chance_has_an_example_that_no_other_pattern_catches() -> None:
    caught = {text: [part for part in SOURCES if re.fullmatch(part, text)] for text in SOURCES.values()}
    assert caught == {text: [part] for part, text in SOURCES.items()}


@pytest.mark.requirement("HEAL-9")
def test_the_report_counts_failures_of_a_tool_that_fails_by_chance(healing: Healkit) -> None:
    """E7: "nothing fails any more", or patches that were tried against luck."""
    healing.vault.add("tool", FLAKY)
    ended = [healing.execute("tool", arguments={"n": 1}).failure is None for _ in range(12)]
    assert set(ended) == {True, False}
    report = healing.heal(
        "tool", advisors=[idea := Idea("def tool(n: int) -> int:\n    return n\n")], auto=True
    )
    assert (report.outcome, idea.cases) == ("by_chance", [])
    told = re.match(
        r"It sometimes passes and sometimes fails\. The failing input \(n=1\) failed in (\d+) of (\d+) "
        r"(?:recorded runs of this code|runs) \(ValueError: bad luck\)\. The code reads random\.random\.",
        report.reason,
    )
    assert told is not None, report.reason
    assert 0 < int(told[1]) < int(told[2]) >= 10
    assert report.reason.endswith("Give it a seed, and run it again.")
    assert "sometimes passes and sometimes fails" in str(report)


@pytest.mark.parametrize(
    ("code", "examples", "advice"),
    [
        (
            "import random\ndef tool(n: int) -> int:\n    return random.choice([n, n + 1])\n",
            [(n, n) for n in range(1, 7)],
            "Give it a seed",
        ),
        (
            "import random\ndef tool(n: int) -> int:\n    return random.choice([n, n + 1, n + 1, n + 1])\n",
            [(n, n) for n in range(1, 7)],
            "Give it a seed",
        ),
        (
            "import time\ndef tool(n: int) -> int:\n    return n + time.time_ns() // 1000 % 2\n",
            [(n, n) for n in range(1, 7)],
            "Give it the time as an argument",
        ),
    ],
    ids=["random", "random and rarely right", "clock"],
)
def test_examples_that_chance_decides_say_nothing_of_a_wrong_result(
    healing: Healkit, code: str, examples: list[tuple[int, int]], advice: str
) -> None:
    """E7: "found: No exception, but the result is wrong" where nothing is wrong.

    Where three runs of four fail, some example failed each of ten times, and a patch was looked for.
    """
    known = [{"arguments": {"n": n}, "result": right} for n, right in examples]
    healing.vault.add("tool", code, examples=known)
    report = healing.heal("tool")
    assert (report.outcome, report.attempts) == ("by_chance", ())
    assert report.diagnosis == "It sometimes passes and sometimes fails with the same arguments."
    assert advice in report.reason


@pytest.mark.slow
def test_the_order_of_a_set_is_another_one_in_another_process(healing: Healkit) -> None:
    code = (
        "def tool(n: int) -> str:\n    word = next(iter({'a', 'b'}))\n    if word == 'a':\n"
        "        raise ValueError(word)\n    return word\n"
    )
    healing.vault.add("tool", code)
    ended: set[bool] = set()
    while len(ended) < 2:
        ended.add(healing.execute("tool", arguments={"n": 1}, mode="subprocess").failure is None)
    report = healing.heal("tool", auto=True)
    assert (report.outcome, report.attempts) == ("by_chance", ())
    assert f"The code reads {SET_ORDER}. No patch can be checked against that. Sort the set" in report.reason


def test_what_fails_each_time_is_healed_beside_what_chance_decides(healing: Healkit) -> None:
    code = (
        "import random\ndef tool(n: int, lucky: bool) -> int:\n    if lucky:\n"
        "        return random.randint(0, 1)\n    return n + nn\n"
    )
    known = [{"arguments": {"n": n, "lucky": False}, "result": n + n} for n in (2, 5)]
    known += [{"arguments": {"n": n, "lucky": True}, "result": 1} for n in range(6)]
    healing.vault.add("tool", code, examples=known)
    report = healing.heal("tool", advisors=["rules"], auto=True)
    assert (report.outcome, report.verdict_code) == ("kept", "cured"), str(report)
    assert any("sometimes passes and sometimes fails. The example (n=" in note for note in report.notes)


def test_a_patch_that_passes_by_chance_does_not_fix(healing: Healkit) -> None:
    known = [{"arguments": {"n": n}, "result": n} for n in range(6)]
    healing.vault.add(
        "tool", "import random\ndef tool(n: int) -> int:\n    return n + 7\n", examples=known[:1]
    )
    lucky = "import random\ndef tool(n: int) -> int:\n    return n + random.choice([0] * 3 + [1])\n"
    verdicts = [
        one.verdict
        for _ in range(4)
        for one in healing.heal("tool", advisors=[Idea(lucky)], dry_run=True).attempts
    ]
    assert "not_cured" in verdicts


def test_calls_that_answered_otherwise_decide_and_healing_goes_on(healing: Healkit) -> None:
    answers = iter([2.0, None, 3.0, None])
    healing.provide(lambda n: next(answers), name="rate")
    healing.vault.add("tool", "def tool(n: int) -> float:\n    return mcp.host.rate(n=n) * n\n")
    for _ in range(4):
        healing.execute("tool", arguments={"n": 2})
    report = healing.heal("tool", advisors=["rules"])
    assert report.outcome != "by_chance"
    assert any(
        "failed in 2 of 4 recorded runs" in note and "The result depends on the answers of its calls." in note
        for note in report.notes
    )


@pytest.mark.slow
def test_the_report_of_a_healthy_tool_names_its_last_failure(healing: Healkit, tmp_path: Path) -> None:
    """E7: "nothing fails any more" of code that has not changed since it failed."""
    code = "def tool(path: str) -> str:\n    return open(path).read()\n"
    folder = tmp_path / "data"
    folder.mkdir()
    healing.vault.add("tool", code, grants={"read": [str(folder)]})
    arguments = {"path": str(folder / "late.txt")}
    assert healing.execute("tool", arguments=arguments).failure is not None
    (folder / "late.txt").write_text("here")
    for same in (True, False):
        if not same:
            healing.vault.patch("tool", f"{code}\n")
        report = healing.heal("tool", advisors=[Idea()])
        assert report.outcome == "healthy"
        assert ("failed with the same code (FileNotFoundError: " in report.reason) is same
        assert ("nothing fails any more" in report.reason) is not same


def test_what_fails_in_a_worker_only_is_checked_there(healing: Healkit) -> None:
    """E15: a tool that failed in every run was called healthy, because a trial has no kernel."""
    code = "import sys\ndef tool(n: int) -> int:\n    if 'ipykernel' in sys.modules:\n        raise ValueError(n)\n    return n\n"
    healing.vault.add("tool", code)
    assert healing.execute("tool", arguments={"n": 1}).failure is not None
    whole = "def tool(n: int) -> int:\n    return n\n"
    report = healing.heal("tool", advisors=[Idea(code.replace("ValueError", "KeyError"), whole)], auto=True)
    assert [one.verdict for one in report.attempts] == ["silenced", "not_cured"]
    assert report.best is not None
    assert report.best.patch.code == whole
    assert "A trial does not fail as the execution did, so each check runs in a worker." in report.notes


LAZY = "def tool(n: int) -> list:\n    return (i for i in range(n))\n"


@pytest.mark.slow
@pytest.mark.requirement("HEAL-9")
@pytest.mark.parametrize("known", [False, True], ids=["without an example", "with an example"])
def test_a_check_fails_on_a_result_that_no_execution_may_return(healing: Healkit, known: bool) -> None:
    """E15: a generator passed the checks, so the tool was healthy, or a peer's generator was accepted."""
    examples = [{"arguments": {"n": n}, "result": list(range(n))} for n in (2, 4)]
    healing.vault.add("tool", LAZY, examples=examples if known else [])
    assert healing.execute("tool", arguments={"n": 2}).failure is not None
    lazy = LAZY.replace("range(n)", "range(0, n)")
    listed = "def tool(n: int) -> list:\n    return list(range(n))\n"
    report = healing.heal("tool", advisors=[Idea(lazy, listed)], auto=True)
    assert {one.patch.code: one.verdict for one in report.attempts} == {
        lazy: "not_cured",
        listed: "cured" if known else "unproven",
    }
    assert healing.heal("tool", advisors=["search"], dry_run=True).outcome in ("shown", "healthy")


def test_a_check_finds_the_loop_that_a_run_finds(healing: Healkit) -> None:
    """E15: `run_until_complete` failed in each run, in a loop, and in no trial, which had none."""
    for place, body in enumerate(
        (
            "asyncio.get_event_loop().run_until_complete(asyncio.sleep(0, n))",
            "asyncio.new_event_loop().run_until_complete(asyncio.sleep(0, n))",
            "asyncio.run(asyncio.sleep(0, n))",
            "asyncio.get_running_loop() and n",
        )
    ):
        tool, examples = f"tool_{place}", [{"arguments": {"n": 1}, "result": 1}]
        code = f"import asyncio\ndef {tool}(n: int) -> int:\n    return {body}\n"
        healing.vault.add(tool, code, examples=examples)
        ran = healing.execute(tool, arguments={"n": 1}).failure
        report = healing.heal(tool, advisors=[Idea()])
        assert report.outcome == ("healthy" if ran is None else "not_cured"), body
        assert ran is None or ran.summary in report.reason


@pytest.mark.slow
def test_a_check_that_runs_out_of_memory_says_so(healing: Healkit) -> None:
    """E9: a check was stopped before the memory ran out: "does not end in time"."""
    healing.vault.add(
        "tool", "def tool(n: int) -> int:\n    kept = []\n    while True:\n        kept.append(n)\n"
    )
    failed = healing.execute("tool", arguments={"n": 1}).failure
    assert failed is not None
    assert failed.code == "TOOL_OUT_OF_MEMORY"
    report = healing.heal("tool", advisors=[Idea()])
    assert "the failing input (n=1): needs more memory than its limit allows." in report.reason
    assert "in time" not in report.reason
