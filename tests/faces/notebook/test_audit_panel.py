"""Audit panel's half in the kernel."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pandas as pd
import pytest

from healkit import Healkit
from healkit.errors import UsageInvalid
from healkit.faces.pages.audit_reading import PAGE_STEPS
from healkit.parts.decide import Turn
from healkit.parts.decide.decision import Decision

PICK = """import pandas as pd


def pick(df: pd.DataFrame, column: str, values: list):
    return df[df[column].isin(values)]
"""
STOCKS = pd.DataFrame({"ticker": ["AAPL", "META"], "password": ["hunter2!x", "letmein!9"]})


class Analyst:
    """Analyst with a number that code fills in, and one that it strikes out."""

    name = "mine"

    def write(self, turn: Turn) -> str:
        return "There are {count(chosen)} of them. Each costs 7 dollars."


def decided(healkit: Healkit) -> Decision:
    healkit.vault.add("pick", PICK)
    wanted = ["AAPL", "FB"]
    plan = [
        {
            "type": "execute_data_op", "tool": "pick", "viewName": "chosen",
            "params": {"df": "stocks", "column": "ticker", "values": wanted},
            "intended": {"rows": 2, "entities": {"ticker": wanted}},
        },
        {"type": "finalize", "finalViewName": "chosen"},
    ]  # fmt: skip
    return healkit.decide(
        "What do they cost?",
        {"stocks": STOCKS},
        tools=["pick"],
        chooser=plan,
        aliases={"META": ["FB"]},
        analyst=Analyst(),
    )


def opened(panel: Any) -> dict[str, Any]:
    """Return what the page opens with, as it gets it."""
    found: dict[str, Any] = json.loads(json.dumps(panel.operations["audit_open"]()))
    return found


@pytest.mark.requirement("DECIDE-6", "DECIDE-5")
def test_the_panel_shows_the_same_for_a_decision_and_its_id(healkit: Healkit) -> None:
    decision = decided(healkit)
    panel = healkit.audit_panel(decision)
    found = opened(panel)
    corrected = [step for step in found["steps"] if step["apart"]]
    assert [(step["state"], step["tone"]) for step in corrected] == [("corrected", "warn")]
    assert ["parameters", '{"df": "stocks", "column": "ticker", "values": ["AAPL", "META"]}'] in corrected[0][
        "facts"
    ]
    assert dict(found["summary"])["corrections"] == "1, and 0 that failed"
    assert found["data"]["shape"] == "2 rows × 2 columns"
    assert found["data"]["rows"][1][0] == "'META'"
    assert found["analysis"].startswith("There are 2 of them. ~~Each costs 7 dollars.~~")
    by_id = opened(healkit.audit_panel(decision.run.run_id))
    same = ("mark", "title", "question", "summary", "steps", "data", "total", "analysis", "no_analysis")
    assert {name: by_id[name] for name in same} == {name: found[name] for name in same}
    card = panel.static_card()
    assert ">Each costs 7 dollars.</del>" in card.html
    for shown in (json.dumps(found), json.dumps(panel.get_state()), card.html, card.text):
        assert "hunter2!x" not in shown
        assert "letmein!9" not in shown
    assert len(json.dumps(panel.get_state())) < 3_000


def test_the_audit_of_anything_else_is_shown_alone_and_by_pages(healkit: Healkit) -> None:
    for number in range(PAGE_STEPS + 5):
        healkit.audit.append("mine", "notebook", "gather_info", tool_params={"n": number})
    panel = healkit.audit_panel("mine")
    found = opened(panel)
    assert (found["apart"], found["data"], found["total"]) == (False, None, PAGE_STEPS + 5)
    assert len(found["steps"]) == PAGE_STEPS
    more = panel.operations["audit_steps"](PAGE_STEPS)["steps"]
    assert [step["seq"] for step in more] == list(range(PAGE_STEPS + 1, PAGE_STEPS + 6))
    assert "Analysis" not in panel.static_card().html
    with pytest.raises(UsageInvalid, match="'nothing' is on the audit"):
        healkit.audit_panel("nothing")


@pytest.mark.requirement("DECIDE-6")
def test_a_healings_audit_is_shown_by_its_report_and_by_its_id(healkit: Healkit) -> None:
    """Both are views of one audit."""
    healkit.vault.add(
        "share",
        "def share(total, parts):\n    return total / len(parts) if parts else 1",
        examples=[{"arguments": {"total": 9, "parts": []}, "result": 0.0}],
    )
    report = healkit.heal("share", auto=True, budget_s=20)
    found = opened(healkit.audit_panel(report))
    assert found == opened(healkit.audit_panel(report.run_id))
    assert (found["apart"], found["title"]) == (False, f"Healing: {report.run_id}")
    assert {"proposal_received", "run_finished"} <= {step["choice"] for step in found["steps"]}
    assert dict(found["summary"])["tools"] == "share"


def test_a_decision_without_an_end_or_whose_view_is_gone_is_shown_as_it_is(healkit: Healkit) -> None:
    decision = decided(healkit)
    healkit.views.remove(str(decision.raw_data_view_name))
    shutil.rmtree(decision.run.folder)
    gone = opened(healkit.audit_panel(decision.run.run_id))
    assert (gone["data"], gone["analysis"]) == (None, None)
    assert gone["no_analysis"] == "Its text was in the run folder, which no longer exists."
    assert gone["notes"] == [f"The view {decision.raw_data_view_name} was removed."]
    healkit.audit.append("cut-off", "decide", "decision_started", tool_params={"question": "Which?"})
    cut_off = opened(healkit.audit_panel("cut-off"))
    assert cut_off["question"] == "Which?"
    assert "its process was killed" in cut_off["reason"]
