"""Broken tools of the gallery that the rules alone fix.

Proven by real trials on all of their examples.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from failing_tools import case_of, declared, entry_of, run

from healkit import Healkit, gallery
from healkit.contracts.healing import same_value
from healkit.gallery import LESSONS, Lesson
from healkit.healing.advisor import Case
from healkit.healing.advisors.simple import RulesAdvisor
from healkit.runtime.trials import Trial

#: What no traceback says and no classic mistake is: the search's work.
FOR_THE_SEARCH = {"factorial", "sum_to", "can_vote", "to_celsius"}
PYTHON = [lesson for lesson in LESSONS if lesson.type == "python"]


HIDDEN = json.loads((Path(gallery.__file__).parent / "hidden_examples.json").read_text())


def patches_for(lesson: Lesson) -> list[str]:
    checks = [declared(example["arguments"], example["result"]) for example in lesson.examples]
    _, failure = run(lesson.code, lesson.failing, lesson.name)
    case = case_of(lesson.code, lesson.failing, *checks, name=lesson.name, failure=failure)
    return [patch.code for patch in RulesAdvisor().propose(case) if not patch.guard]


def passing(hk: Healkit, lesson: Lesson, codes: list[str], examples: list[dict[str, Any]]) -> list[str]:
    """Those of the codes that do all that the examples say, in their order."""
    trials = [Trial(code, example["arguments"], lesson.name, 20.0) for code in codes for example in examples]
    results = iter(hk.trials(trials, parallel=1))
    outcomes = [
        [same_value(e["result"], r.value) and r.ok for e, r in zip(examples, results, strict=False)]
        for _ in codes
    ]
    return [code for code, outcome in zip(codes, outcomes, strict=True) if all(outcome)]


@pytest.fixture(scope="module")
def hk(tmp_path_factory: pytest.TempPathFactory):
    with Healkit(tmp_path_factory.mktemp("gallery") / "healkit.db") as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.requirement("HEAL-2")
@pytest.mark.parametrize("lesson", PYTHON, ids=lambda lesson: lesson.name)
def test_the_rules_fix_a_lesson_or_leave_it_to_the_search(lesson, hk):
    plausible = passing(hk, lesson, patches_for(lesson), list(lesson.examples))
    assert bool(plausible) == (lesson.name not in FOR_THE_SEARCH)
    if plausible:
        assert passing(hk, lesson, plausible[:1], HIDDEN[lesson.name]), plausible[0]


def test_the_sql_lesson_asks_for_null_as_sql_does():

    lesson = next(lesson for lesson in LESSONS if lesson.type == "sql")
    case = Case(entry_of(lesson.code, lesson.name, type="sql"), None, ())
    (patch,) = RulesAdvisor().propose(case)
    assert patch.code == lesson.code.replace("= NULL", "IS NULL")
