"""Decide panel's half in the kernel."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from waiting import wait_until

from healkit import Healkit
from healkit.errors import UsageInvalid
from healkit.parts.decide.choosers import told

PICK = """import pandas as pd


def pick(df: pd.DataFrame, column: str, values: list):
    return df[df[column].isin(values)]
"""
STOCKS = pd.DataFrame({"ticker": ["AAPL", "META"], "price": [210.5, 600.25]})
OP = {
    "type": "execute_data_op", "tool": "pick", "viewName": "chosen",
    "params": {"df": "stocks", "column": "ticker", "values": ["META"]},
}  # fmt: skip


def opened(healkit: Healkit, **more: Any) -> Any:
    healkit.vault.add("pick", PICK)
    return healkit.decide_panel("What does Meta cost?", {"stocks": STOCKS}, tools=["pick"], **more)


def turn_of(panel: Any, number: int) -> dict[str, Any]:
    """Return the turn of that number, once it waits for a choice."""
    found: list[dict[str, Any]] = []

    def waits() -> bool:
        turn = panel.operations["decide_open"]()["turn"]
        found[:] = [turn] if turn and turn["number"] == number else []
        return bool(found)

    wait_until(waits)
    return found[0]


@pytest.mark.requirement("DECIDE-1", "DECIDE-6")
def test_a_person_sees_what_a_model_would_be_told_and_no_more(healkit: Healkit) -> None:
    panel = opened(healkit)
    assert "What does Meta cost?" in panel.static_card().text
    choose = panel.operations["decide_choose"]
    shown = [turn_of(panel, 1)]
    choose(1, {"type": "finalize", "finalViewName": "none"})
    shown.append(turn_of(panel, 2))
    assert "There is no view 'none'" in shown[1]["problem"]
    with pytest.raises(UsageInvalid, match="not waited for any more"):
        choose(1, OP)
    choose(2, OP)
    shown.append(turn_of(panel, 3))
    assert shown[2]["views"] == ["stocks", "chosen"]
    choose(3, {"type": "finalize", "finalViewName": "chosen"})
    wait_until(lambda: panel.decision is not None)
    decision = panel.decision
    assert decision.outcome == "finalized"
    assert [turn["told"] for turn in shown] == [told(turn) for turn in decision.sent]
    for turn in shown:
        assert set(turn) == {"number", "told", "problem", "tools", "views"}
    assert "AAPL" not in str(shown)
    assert decision.audit_log[0].description.endswith("chooser: person.")
    assert panel.operations["audit_open"]()["title"] == "Decision: finalized"
    assert "Decision: finalized" in panel.static_card().text


def test_a_stop_and_a_closed_panel_end_the_decision(healkit: Healkit) -> None:
    panel = opened(healkit)
    turn_of(panel, 1)
    panel.operations["decide_stop"]()
    assert panel.decision is not None
    assert panel.decision.outcome == "stopped"
    other = opened(healkit)
    turn_of(other, 1)
    other.close()
    assert other.decision is not None
    assert other.decision.outcome == "stopped"


def test_a_call_that_cannot_be_answered_is_said_in_the_panel(healkit: Healkit) -> None:
    healkit.vault.add("pick", PICK)
    panel = healkit.decide_panel("Which?", {}, tools=["pick"])
    wait_until(lambda: panel.operations["decide_open"]()["phase"] == "failed")
    assert panel.operations["decide_open"]()["problem"]["message"] == "A decision needs data."
    with pytest.raises(UsageInvalid, match="'chooser' is the panel's own"):
        healkit.decide_panel("Which?", {"stocks": STOCKS}, chooser="person")
