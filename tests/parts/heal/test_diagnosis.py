"""Diagnoses, and what they say of a mistake."""

from __future__ import annotations

from typing import Any

import pytest
from failing_tools import declared, entry_of, run

from healkit import Healkit
from healkit.core.contracts.failure import Failure
from healkit.errors import ArgumentsInvalid, catalogue
from healkit.parts.heal.case import diagnose, gather
from healkit.parts.teach.gallery import LESSONS

HEAD = "def tool(x=0):\n"
#: Code, the kind of its failure, the line, and a part of the sentence.
RAISING = {
    "import": ("    import ramdom\n", "import", 2, "ramdom"),
    "import_from": ("    from math import sqroot\n", "import", 2, "sqroot"),
    "name": ("    total = 1\n    return totl\n", "name", 3, "totl"),
    "unbound": ("    if x:\n        y = 1\n    return y\n", "name", 4, "`y` has no value"),
    "attribute": ("    return [].apend(x)\n", "attribute", 2, "apend"),
    "key": ("    return {'a': 1}['b']\n", "key", 2, "'b'"),
    "path": ("    return open('not/there')\n", "path", 2, "not/there"),
    "type": ("    return 'a' + 1\n", "type", 2, "`+`"),
    "value": ("    return int('a')\n", "value", 2, "'a'"),
    "zero": ("    return 1 / x\n", "zero", 2, "zero"),
    "index": ("    return [][x]\n", "index", 2, "no item"),
    "assertion": ("    assert x == 1, 'no'\n", "assertion", 2, "assert"),
    "recursion": ("    return tool(x + 1)\n", "limits", 2, "calls itself"),
    "json": ("    import json\n    return json.loads(\"{'a': 1}\")\n", "value", 3, "JSON"),
    "own": ("    class Odd(Exception): pass\n    raise Odd('very')\n", "other", 3, "very"),
    "compile": ("    x = 1\nreturn x\n", "syntax", 3, "return"),
}


@pytest.mark.requirement("HEAL-1")
@pytest.mark.parametrize(("body", "kind", "line", "part"), RAISING.values(), ids=RAISING)
def test_a_diagnosis_names_the_line_of_the_tools_own_code(body, kind, line, part):
    code = HEAD + body
    _, failure = run(code, {})
    found = diagnose(entry_of(code), failure)
    assert (found.kind, found.line, found.fixable) == (kind, line, True)
    assert part in found.sentence
    assert found.sentence.endswith((".", "?"))
    assert "\n" not in found.sentence


@pytest.mark.parametrize(
    "code", ["def tool(:\n    pass\n", "def tool():\nreturn 1\n", "x = 'a\n", "x = '\0'\n"]
)
def test_unreadable_code_is_a_syntax_error_whatever_is_on_record(code):
    for failure in (None, Failure("TOOL_EXCEPTION", "ValueError", "old", "ValueError: old")):
        found = diagnose(entry_of(code), failure)
        assert found.kind == "syntax"
        assert found.fixable
        assert found.sentence.startswith("Python cannot read")


def test_without_a_failure_a_known_result_makes_it_a_wrong_value():
    entry = entry_of("def tool(x):\n    return x\n")
    assert diagnose(entry, None, [declared({"x": 1}, 2)]).kind == "wrong_value"
    nothing = diagnose(entry, None, [])
    assert not nothing.fixable
    assert nothing.why_not


CAUSED = {
    "TOOL_TIMEOUT": "timeout", "TOOL_CPU_LIMIT": "timeout", "TOOL_OUT_OF_MEMORY": "memory", "TOOL_OUTPUT_LIMIT": "limits", "TOOL_CRASHED": "crash",
}  # fmt: skip


@pytest.mark.parametrize(("code", "kind"), CAUSED.items())
def test_an_ending_caused_by_the_code_can_be_fixed(code, kind):
    found = diagnose(entry_of("def tool():\n    pass\n"), Failure(code, "X", "so it ended", "so it ended"))
    assert (found.kind, found.fixable) == (kind, True)


@pytest.mark.parametrize(
    "code",
    ["ARGUMENTS_INVALID", "ISOLATION_UNAVAILABLE", "HOST_DIED", "WORKER_LOST", "TOOL_KILLED", "WORKER_ERROR"],
)
def test_an_ending_not_caused_by_the_code_says_why_no_fix_helps(code):
    assert code in catalogue()
    found = diagnose(entry_of("def tool():\n    pass\n"), Failure(code, "X", "it was so", "it was so"))
    assert not found.fixable
    assert found.why_not.endswith(".")


@pytest.mark.parametrize("lesson", [x for x in LESSONS if x.type == "python"], ids=lambda lesson: lesson.name)
def test_every_lesson_of_the_gallery_has_a_diagnosis(lesson):
    _, failure = run(lesson.code, lesson.failing, lesson.name)
    entry = entry_of(lesson.code, lesson.name)
    found = diagnose(entry, failure, [declared(x["arguments"], x["result"]) for x in lesson.examples])
    assert found.fixable
    assert (found.kind == "wrong_value") == (lesson.ename is None)
    assert found.kind != "other"


@pytest.mark.parametrize(
    "example",
    [{"arguments": {"xs": [1, 2, 3]}, "result": 2}, {"call": "mean([1, 2, 3])", "result": 2}],
    ids=["arguments", "call"],
)
def test_examples_are_run_before_anything_is_said_of_them(healkit: Healkit, example: dict[str, Any]) -> None:
    """H2: without a run on record, what an example raises is diagnosed, and the rules see it."""
    code = "def mean(xs: list):\n    total = sum(xs)\n    return totl / len(xs)\n"
    healkit.vault.add("mean", code, examples=[example])
    report = healkit.heal("mean", advisors=["rules"], auto=True)
    assert "`totl`" in report.diagnosis
    assert (report.outcome, report.attempts[0].patch.code) == ("kept", code.replace("totl", "total"))


def test_an_example_kept_off_the_record_is_diagnosed_by_its_one_line(healkit: Healkit) -> None:
    healkit.vault.add(
        "mean",
        "def mean(xs):\n    return totl\n",
        examples=[{"arguments": {"xs": []}, "result": 0}],
        log=False,
    )
    assert "`totl`" in healkit.heal("mean", advisors=["rules"]).diagnosis


def test_the_examples_of_a_tool_with_side_effects_are_run_without_any(healkit: Healkit) -> None:
    healkit.vault.add(
        "mean",
        "def mean(xs):\n    return totl\n",
        examples=[{"arguments": {"xs": []}, "result": 0}],
        side_effects=True,
    )
    assert healkit.heal("mean", advisors=["rules"]).diagnosis == "`totl` is not defined."


def test_annotations_are_evaluated_as_python_does(healkit: Healkit) -> None:
    """H1: a name that only an annotation lacks fails as in Python, and its import is the fix."""
    healkit.vault.add("first", "def first(xs: List[int]):\n    return xs[0]\n")
    failed = healkit.execute("first", arguments={"xs": [3]})
    assert failed.failure is not None
    assert failed.failure.summary == "NameError: name 'List' is not defined"
    report = healkit.heal("first", advisors=["rules"])
    assert report.best is not None
    assert report.best.patch.code.startswith("from typing import List\n")
    assert healkit.execute("first", arguments={"xs": [3]}, mode="subprocess").failure is not None


@pytest.mark.requirement("HEAL-1")
def test_a_refused_call_does_not_hide_the_failure_before_it(healkit: Healkit) -> None:
    healkit.vault.add("ratio", "def ratio(wins: int, games: int) -> float:\n    return wins / games\n")
    failed = healkit.execute("ratio", arguments={"wins": 3, "games": 0})
    with pytest.raises(ArgumentsInvalid):
        healkit.execute("ratio", arguments={"wins": 3})
    case, log_id, _ = gather(healkit.vault, healkit.log, "ratio", "default")
    assert log_id == failed.log_id
    assert [check.arguments for check in case.checks] == [{"wins": 3, "games": 0}]
