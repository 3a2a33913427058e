"""Story of a run: what each event becomes, and its card."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from timeline_samples import (
    BROKEN,
    CURED,
    PASSING,
    PATCHES,
    Tried,
    begun,
    healing,
    observed,
    result,
    tried,
)

from healkit import Healkit
from healkit.core.contracts.execution import utc_now
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.parts.heal import timeline
from healkit.parts.heal.timeline import story_of
from healkit.parts.runs.contract import error_object
from healkit.parts.runs.journal import RunJournal
from healkit.parts.runs.reader import read_run


def told(writer: RunJournal) -> dict[str, Any]:
    writer.finish({"outcome": "completed"})
    return story_of(read_run(writer.folder))


def titles(story: dict[str, Any]) -> list[str]:
    return [step["title"] for step in story["steps"]]


@pytest.mark.parametrize(
    ("action", "said", "tone"),
    [
        ("declined", "Patch 3 was declined; nothing was changed.", "warn"),
        ("denied", "Patch 3 is forbidden by the policy; nothing was changed.", "warn"),
        ("pending", "Patch 3 is waiting for approval, as request 7.", "warn"),
        ("sealed", "Patch 3 was sealed.", ""),  # of a healkit to come
    ],
)
def test_a_decision_is_a_step_of_its_own(tmp_path: Path, action: str, said: str, tone: str) -> None:
    (step,) = [
        s for s in story_of(read_run(healing(tmp_path, action=action)))["steps"] if s["kind"] == "decided"
    ]
    assert (step["title"], step["tone"], step["attempt"]) == (said, tone, 3)


def test_the_timeline_shows_errors_during_a_run(tmp_path: Path) -> None:
    writer = begun(tmp_path, mode="dry_run")
    observed(writer)
    warned = error_object("HEAL_ERROR", "proposal", "the model is busy", utc_now(), severity="warning")
    writer.append("error_raised", step_id=None, error=warned)
    writer.append("proposal_received", step_id="step_2", metadata={"author": "model", "unheard": {"of": 1}})
    broken = error_object("CODE_SYNTAX", "proposal", "line 2 has no colon", utc_now())
    writer.append("proposal_rejected", step_id="step_2", error=broken)
    writer.append("retry_scheduled", step_id="step_3", metadata={"code": "WORKER_LOST", "wait_ms": 300})
    writer.append("backoff_applied", step_id="step_3", metadata={"wait_ms": 300})
    writer.append("recovery_started", step_id="step_3", metadata={"why": "it fails when it runs"})
    writer.append("recovery_finished", step_id="step_3", result={"revision": 3})
    policy = {"reason": "same_state_revisit", "count": 3, "threshold": 2}
    halt = error_object("POLICY_HALT", "policy", "No attempt changes it.", utc_now(), severity="critical")
    writer.append("policy_halt", step_id="step_3", error=halt, metadata={"policy": policy})
    story = told(writer)
    assert titles(story)[4:] == [
        "The run continues without this: the model is busy.",
        "The language model proposes patch 1.",
        "It cannot run as this tool: line 2 has no colon.",
        "It runs again: WORKER_LOST, which the patch did not cause.",
        "It is rolled back: it fails when it runs.",
        "The policy halts the run: No attempt changes it.",
        "The run ends: completed.",
    ]
    assert story["steps"][0]["text"][-1] == "It is a dry run: nothing is kept."
    assert story["steps"][5]["text"] == ["Its code was not kept."]
    assert story["steps"][7]["text"] == ["After a pause of 300 ms."]
    assert story["steps"][8]["text"] == ["The previous code is active again, as v3."]
    assert ("threshold", "2") in story["steps"][9]["facts"]
    assert story["attempts"][0]["mark"] == "✗"


def test_the_timeline_shows_what_torn_and_empty_runs_still_have(tmp_path: Path) -> None:
    folder = healing(tmp_path)
    trace = folder / "trace.jsonl"
    trace.write_bytes(trace.read_bytes()[:-40])
    for item in (folder / "evidence").iterdir():
        item.unlink()
    story = story_of(read_run(folder))
    assert not story["finished"]
    assert "ends after" in story["problems"][0]
    assert story["steps"][8]["text"][-1] == "Its code was not kept."
    assert "and no end" in text_of(timeline.timeline_card(story))
    trace.unlink()
    assert story_of(read_run(folder))["steps"] == []
    assert "0 steps" in html_of(timeline.timeline_card(story_of(read_run(folder))))


def test_the_card_reads_untrusted_and_as_text(tmp_path: Path) -> None:
    hostile = "<script>steal()</script>\x1b[2J\u202e"
    patch = Tried(
        f"{BROKEN}# {hostile}\n", hostile, "agent", hostile,
        (result("wrong", hostile, {"x": hostile}, wanted=hostile, got=hostile),), "not_cured", hostile,
    )  # fmt: skip
    writer = begun(tmp_path)
    observed(writer)
    tried(writer, "step_2", patch)
    story = told(writer)
    html, text = html_of(timeline.timeline_card(story)), text_of(timeline.timeline_card(story))
    assert "<script" not in html
    assert not re.search(r"<style|class=|onclick|<svg", html)
    for shown in (html, text):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "An outside agent proposes patch 1." in shown
    assert "&lt;script&gt;" in html


def test_a_card_stays_small_and_shows_the_decided_patch(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    observed(writer)
    lines = "".join(f"    x{number} = {number}\n" for number in range(200))
    for number in range(2, 60):
        long = Tried(
            f"{BROKEN}{lines}", "search", "search", "Adds much.", PATCHES[1].results, "not_cured", "no."
        )
        tried(writer, f"step_{number}", long)
    tried(writer, "step_60", PATCHES[2])
    writer.append("proposal_accepted", step_id="step_60", metadata={"action": "kept", "revision": 2})
    html = html_of(timeline.timeline_card(told(writer)))
    assert len(html) < 30_000
    assert "if buses else 0.0" in html
    assert "The run ends: completed." in html


def test_long_values_and_many_checks_are_cut(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    rows = tuple(result("passed", "passing", PASSING, got="x" * 9000) for _ in range(150))
    tried(writer, "step_1", Tried(CURED, "search", "search", "r", rows, "cured"))
    story = told(writer)
    step = story["steps"][2]
    assert ("checks", "150 of 150 passed") in step["facts"]
    assert len(step["checks"]) == 100
    assert len(json.dumps(story)) < 100_000


@pytest.mark.requirement("RUN-8", "HEAL-2", "HEAL-3")
def test_the_timeline_shows_every_event_of_a_real_healing(tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db") as hk:
        right = {"arguments": {"values": [2, 4]}, "result": 3.0}
        hk.vault.add("mean", "def mean(values: list):\n    return sum(values) / len(value)", examples=[right])
        hk.execute("mean", arguments={"values": [1, 2, 6]})
        report = hk.heal("mean", advisors=["rules"], auto=True)
    story = story_of(read_run(report.folder))
    assert (story["label"], story["profile"], story["finished"]) == ("mean v1", "heal", True)
    assert story["problems"] == []
    assert story["failing"] == {"lineno": 2, "message": "NameError: name 'value' is not defined"}
    kinds = [step["kind"] for step in story["steps"]]
    assert kinds[:4] == ["begun", "observed", "diagnosed", "checked"]
    assert kinds[-2:] == ["decided", "ended"]
    assert len(story["attempts"]) == len(report.attempts)
    (kept,) = [attempt for attempt in story["attempts"] if attempt["decision"] == "kept"]
    assert (kept["mark"], kept["words"]) == ("✓", report.verdict)
    assert report.best is not None
    assert story["steps"][kept["at"]]["code"] == report.best.patch.code
    assert story["steps"][-1]["title"] == "The healing ends: patch accepted."
