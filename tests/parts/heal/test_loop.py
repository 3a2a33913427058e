"""Healing loop from failure to revision."""

from __future__ import annotations

import pytest
from healing_samples import BROKEN, FIXED, WRONG, Idea

from healkit import Healkit


@pytest.mark.requirement("HEAL-1", "HEAL-2", "HEAL-3", "HEAL-4")
def test_auto_keeps_a_cure_and_the_report_is_complete(healing: Healkit) -> None:
    idea = Idea(WRONG, FIXED)
    report = healing.heal("ratio", advisors=[idea], auto=True)
    assert (report.outcome, report.verdict, report.revision) == ("kept", "fixed, no regressions", 2)
    assert report.verdict_code == "cured"
    assert healing.execute_tool("ratio", arguments={"a": 1, "b": 0}) == 0.0
    best, other = report.attempts
    assert (best.patch.code, best.passed, best.total) == (FIXED, 3, 3)
    assert best.diff.splitlines()[-2:] == [
        "-    return a / b  # how many times",
        "+    return a / b if b else 0.0  # how many times",
    ]
    assert (other.verdict, other.why) == ("not_cured", "the example (a=6, b=3): gives 0.5, but 2.0 is right")
    assert [attempt and attempt.verdict for attempt in idea.told] == ["not_cured", "cured"]
    assert report.cost == {"ideas": 2}
    revision = healing.vault.history("ratio")[-1]
    assert (revision.author, revision.reason) == ("rule", "Idea 2. [fixed, no regressions]")
    failed = healing.log.query(tool="ratio", status="FAILURE").rows[-1]
    assert revision.motivating_log_id == failed.id
    assert healing.vault.blame("ratio").last_cured_by == 2
    text = str(report)
    assert "fixed, no regressions" in text
    assert "+    return a / b if b else 0.0" in text
    assert report.run_id in text


@pytest.mark.requirement("LOG-9", "LOG-10")
def test_a_healing_does_not_hide_the_users_last_failure(healing: Healkit) -> None:
    failed = healing.last_error()
    before = [execution.log_id for execution in healing.executions()]
    assert failed is not None
    assert healing.heal("ratio", advisors=[Idea(WRONG)], auto=True).outcome == "not_cured"
    listed = healing.executions()
    assert [execution.log_id for execution in listed] == before
    assert listed.left_out == healing.log.count() - len(before) > 0
    tried = healing.executions(tried=True, status="FAILURE")
    assert tried[0].origin == "trial"  # the newest failure of all
    last = healing.last_error()
    assert last is not None
    assert last.log_id == failed.log_id
    healing.heal("ratio", advisors=[Idea(FIXED)], auto=True)
    assert [(e.origin, e.revision) for e in healing.executions()][: -len(before)] == [("heal", 2)]


@pytest.mark.requirement("HEAL-1")
def test_a_patch_must_keep_recorded_results(healing: Healkit) -> None:
    healing.vault.add("bare", BROKEN.replace("ratio", "bare"))
    assert healing.execute("bare", arguments={"a": 8, "b": 2}).ok
    healing.execute("bare", arguments={"a": 1, "b": 0})
    always = "def bare(a, b):\n    return 4 if b == 3 else 0\n"
    report = healing.heal("bare", advisors=[Idea(always)])
    assert report.outcome == "not_cured"
    assert "the recorded run (a=8, b=2): gives 0, but 4.0 is right" in report.attempts[0].why


def test_a_random_recorded_value_is_not_a_check(healing: Healkit) -> None:
    healing.vault.add("dice", "import random\ndef dice(n):\n    return [random.random(), 1 / n][0]\n")
    assert healing.execute("dice", arguments={"n": 1}).ok
    healing.execute("dice", arguments={"n": 0})
    report = healing.heal(
        "dice", advisors=[Idea("import random\ndef dice(n):\n    return random.random()\n")]
    )
    assert [check.origin for check in report.checks] == ["failing"]
    assert report.verdict == "passes all checks, unverified"


@pytest.mark.requirement("HEAL-1")
def test_recorded_values_of_a_wrong_tool_do_not_count(healing: Healkit) -> None:
    healing.vault.add(
        "double",
        "def double(n):\n    return n + 2\n",
        examples=[{"arguments": {"n": n}, "result": 2 * n} for n in (3, 5)],
    )
    assert healing.execute("double", arguments={"n": 10}).value == 12
    report = healing.heal("double", advisors=[Idea("def double(n):\n    return n * 2\n")], auto=True)
    assert (report.outcome, report.verdict) == ("kept", "fixed, no regressions")
    assert [check.origin for check in report.checks] == ["declared", "declared"]


def test_a_patch_of_a_tool_with_side_effects_waits_for_a_person(healing: Healkit) -> None:
    healing.vault.set_flags("ratio", side_effects=True)
    report = healing.heal("ratio", advisors=[Idea(WRONG, author="search"), Idea(FIXED)], auto=True)
    assert (report.outcome, report.verdict_code) == ("pending", "cured")


def test_another_tool_is_a_replacement_that_is_asked_about(healing: Healkit) -> None:
    """H5: another program does not repair the tool: it keeps the tool's signature, and a person decides."""
    typed = (
        "from typing import Any\ndef ratio(a: int, b: int, more: Any = None) -> float:\n    return a / b\n"
    )
    healing.vault.patch("ratio", typed)
    healing.vault.add("quotient", typed.replace("ratio", "quotient").replace("a / b", "a / b if b else 0.0"))
    report = healing.heal("ratio", advisors=["peers"], auto=True, confirm=lambda _: True)
    other = next(attempt for attempt in report.attempts if "quotient v1" in attempt.patch.reason)
    assert (other.verdict, other.patch.reason) == (
        "unproven",
        "Replace the tool by quotient v1, which is another program.",
    )
    assert report.outcome == "kept"
    schema = healing.vault.get("ratio", revision=2).input_schema
    assert healing.vault.get("ratio").input_schema == schema
    assert healing.execute_tool("ratio", arguments={"a": 1, "b": 0}) == 0.0


@pytest.mark.requirement("HEAL-2")
def test_another_tool_is_proposed_only_where_an_example_has_a_result(healing: Healkit) -> None:
    """E11: `Replace the tool by b_gen v1, another program` was offered for whatever took the same arguments."""
    healing.vault.add("first", "def first(items: list):\n    return items[0]\n")
    healing.vault.add("b_gen", "def b_gen(items: list):\n    return (item for item in items)\n")
    assert healing.execute("first", arguments={"items": []}).failure is not None
    assert healing.heal("first", advisors=["peers"]).attempts == ()
    healing.vault.add_example("first", {"arguments": {"items": []}, "result": []})
    assert len(healing.heal("first", advisors=["peers"]).attempts) == 1


@pytest.mark.slow
def test_an_earlier_revision_of_the_tool_is_proposed(healing: Healkit) -> None:
    healing.vault.patch("ratio", FIXED)
    healing.vault.patch("ratio", BROKEN, reason="broken again")
    healing.execute("ratio", arguments={"a": 1, "b": 0})
    again = healing.heal("ratio", advisors=["peers"], auto=True)
    assert again.attempts[0].patch.reason == "Go back to ratio v2."


@pytest.mark.slow
@pytest.mark.requirement("HEAL-1")
def test_a_tool_that_calls_others_is_validated_in_a_worker(healing: Healkit) -> None:
    code = "def share(a, b):\n    return mcp.vault.ratio(a=a, b=b) + extra\n"
    healing.vault.add("share", code, examples=[{"arguments": {"a": 6, "b": 3}, "result": 2.0}])
    healing.execute("share", arguments={"a": 6, "b": 3})
    wrong, right = code.replace("extra", "1"), code.replace(" + extra", "")
    report = healing.heal("share", advisors=[Idea(wrong, right)], auto=True)
    assert report.outcome == "kept"
    assert "gives 3.0, but 2.0 is right" in report.attempts[1].why
    last = healing.log.last_error("share")
    assert last is not None
    assert (last.revision, last.ename) == (1, "NameError")
    assert [info.failures for info in healing.vault.history("share")] == [1, 0]


TOTAL = "def total(price, qty):\n    return price * qtyy\n"
TOTALS = [
    {"arguments": {"price": 2.5, "qty": 4}, "result": 10.0},
    {"arguments": {"price": 5.0, "qty": 1}, "result": 5.0},
]


@pytest.mark.slow
@pytest.mark.requirement("HEAL-3", "HEAL-9")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return price * qty", ""),
        ("total = price\n    for _ in range(qty - 1):\n        total += price\n    return total", "Other edits pass too"),
        ("if price == 777.77:\n        return 0.0\n    return price * qty", "the number 777.77"),
        ("return price * qty * (price != 99)", "the number 99"),
        ("return {'7': 0.0}.get(str(qty), price * qty)", "the text '7'"),
        ("if price > 5.0:\n        return 0.0\n    return price * qty", "`price > 5.0` has the same result on every check"),
        ("if not qty:\n        return 0.0\n    return price * qty", "`not qty` has the same result on every check"),
        ("if price:\n        return price * qty\n    return 0.0", "`price` has the same result on every check"),
        ("return 0.0 if qty == 2 else price * qty", "`qty == 2` has the same result on every check"),
        ("return price * qty if qty else 0.0", "`qty` has the same result on every check"),
        ("return price * qty if qty > 0 and not price.is_integer() or price else 0.0", "has the same result on every check"),
        ("try:\n        return price * qty\n    except OverflowError:\n        price = 0.0\n    return price", "does not run in any check"),
        ("match qty:\n        case 2:\n            return 0.0\n    return price * qty", "does not run in any check"),
    ],
)  # fmt: skip
def test_a_models_patch_that_does_more_than_the_checks_see_is_not_kept_by_itself(
    healing: Healkit, body: str, said: str
) -> None:
    """E2, E4: `if price == 777.77: …` passed every check, was called fixed, and was kept by auto."""
    healing.vault.add("total", TOTAL, examples=TOTALS)
    idea = Idea(f"def total(price, qty):\n    {body}\n", author="model")
    report = healing.heal("total", advisors=[idea], auto=True)
    assert report.best is not None
    assert report.outcome == ("pending" if said else "kept"), str(report)
    assert said in report.best.patch.doubt


@pytest.mark.requirement("HEAL-3")
def test_another_advisors_patch_that_changes_right_results_is_doubted(healing: Healkit) -> None:
    """E4: where the tool only ever raised, what it returned elsewhere counts, whoever proposes."""
    code = "def share(part, whole):\n    return part / whole\n"
    examples = [
        {"arguments": {"part": 3, "whole": 0}, "result": 3.0},
        {"arguments": {"part": 5, "whole": 0}, "result": 5.0},
        {"arguments": {"part": 3, "whole": 2}, "result": 1.5},
    ]
    healing.vault.add("share", code, examples=examples)
    ideas = code.replace("whole\n", "max(whole, 1)\n"), code.replace("/ whole\n", "/ (whole or 1)\n")
    report = healing.heal("share", advisors=[Idea(*ideas)], auto=True)
    doubts = [attempt.patch.doubt for attempt in report.attempts]
    assert any("It changes the result of share(part=" in doubt for doubt in doubts)
    assert all(doubts)  # nothing says what is right where the two differ
