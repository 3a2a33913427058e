"""Times of a healing: at work, and waiting for a person."""

from __future__ import annotations

import json
import time
from collections.abc import Generator

import pytest
from healing_samples import FIXED, STEP, STEP_EXAMPLES, Idea

from healkit import Healkit
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.advisors.simple import PersonAdvisor
from healkit.parts.heal.commands import report_json
from healkit.parts.heal.questions import Answer, Question
from healkit.parts.heal.records import Attempt, Patch
from healkit.parts.heal.render import report_facts
from healkit.parts.heal.report import HealReport
from healkit.parts.heal.timeline import story_of
from healkit.parts.runs.reader import read_run

#: How long the people of these tests think, at least.
THOUGHT_S = 1.05
#: How long it takes to have ideas, at least.
WORK_S = 0.3


class WorkingIdea(Idea):
    """Advisor that takes its time."""

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        time.sleep(WORK_S)
        yield from super().propose(case, bench)


def tried(report: HealReport) -> str:
    """Return what the report says about the time."""
    return dict(report_facts(report))["tried"]


def answer(question: Question) -> Answer:
    time.sleep(THOUGHT_S)
    return Answer(20 if question.arguments["n"] >= 10 else 0)


def accept(_: Attempt) -> bool:
    time.sleep(THOUGHT_S)
    return True


def write_it_by_hand(_: Case, code: str, problem: str) -> str | None:
    time.sleep(THOUGHT_S)
    return None if problem else FIXED


@pytest.mark.slow
def test_think_time_is_not_working_time_and_is_on_record(healing: Healkit) -> None:
    healing.vault.add("step", STEP, examples=STEP_EXAMPLES)
    ideas = WorkingIdea(STEP.replace("> 10", "> 4"), STEP.replace("> 10", ">= 10"))
    report = healing.heal("step", advisors=[ideas], auto=True, ask=answer)
    assert len(report.questions) == 1
    assert report.think_time_s >= THOUGHT_S
    assert report.working_time_s >= WORK_S
    assert report.working_time_s == pytest.approx(report.duration_s - report.think_time_s)
    assert f"(and {report.think_time_s:.1f} s waiting for you)" in tried(report)
    shown = report_json(report)
    assert shown["think_time_s"] == round(report.think_time_s, 3)
    assert shown["duration_s"] > shown["think_time_s"]
    events = [event for event in read_run(report.folder).events if "inspection" in event.event_type]
    asking, told = events[-2:]
    assert (asking.event_type, asking.metadata["kind"]) == ("inspection_started", "question")
    assert told.result is not None
    assert told.result["think_time_ms"] >= THOUGHT_S * 1000
    assert (told.ts_utc - asking.ts_utc).total_seconds() >= THOUGHT_S
    assert "answered after" in json.dumps(story_of(read_run(report.folder)))


@pytest.mark.slow
def test_waiting_for_consent_and_an_editor_is_think_time(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(FIXED)], confirm=accept)
    assert report.outcome == "kept"
    assert THOUGHT_S <= report.think_time_s < report.duration_s
    healing.vault.revert("ratio", 1, reason="once more")
    edited = healing.heal("ratio", advisors=[PersonAdvisor(write_it_by_hand)], auto=True)
    assert edited.outcome == "kept"
    assert THOUGHT_S <= edited.think_time_s < edited.duration_s


def test_without_a_wait_the_report_has_working_time_only(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(FIXED)], auto=True)
    assert report.think_time_s == 0
    assert report.working_time_s == report.duration_s
    assert "waiting" not in tried(report)
