"""Analysis: words of a model that gets metadata only."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from decide_samples import SALES
from model_server import SECRET_KEY, ModelServer, fails, says

from healkit import Healkit
from healkit.core.rendering.to_text import text_of
from healkit.errors import UsageInvalid
from healkit.parts.decide import Turn
from healkit.parts.decide.analysis import ModelAnalyst
from healkit.parts.decide.choosers import told
from healkit.parts.decide.decision import Decision
from healkit.parts.decide.records import ANALYSIS_LABEL
from healkit.parts.runs.reader import in_order, read_run, validate_run

OP = {"type": "execute_data_op", "tool": "totals", "params": {"df": "sales"}, "viewName": "by_region"}
END = {"type": "finalize", "finalViewName": "by_region"}
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])


class Says:
    """Analyst that always writes the same text."""

    name = "says"

    def __init__(self, text: str) -> None:
        self._text = text
        self.turns: list[Turn] = []

    def write(self, turn: Turn) -> str:
        self.turns.append(turn)
        return self._text


def decided(
    deciding: Healkit, frame: pd.DataFrame, analyst: Any, plan: Any = (OP, END), **more: Any
) -> Decision:
    tools = ["totals", "spread"]
    return deciding.decide(
        "Which region?", {"sales": frame}, tools=tools, chooser=list(plan), analyst=analyst, **more
    )


def analysed(deciding: Healkit, frame: pd.DataFrame, text: str) -> Decision:
    return decided(deciding, frame, Says(text), [{"type": "finalize", "finalViewName": "sales"}])


@PROVIDERS
@pytest.mark.requirement("DECIDE-5", "DECIDE-1")
def test_a_models_analysis_has_codes_numbers_and_no_cell(
    deciding: Healkit, server: ModelServer, provider: str
) -> None:
    server.plan.append(
        says(
            "The {count(by_region)} regions sold {sum(by_region.total)}. North sold 5. The rest is missing values."
        )
    )
    analyst = ModelAnalyst(server.config(provider), environ={"HEALKIT_MODEL_KEY": SECRET_KEY})
    decision = decided(deciding, SALES, analyst)
    assert decision.ok
    assert decision.analysis.splitlines()[0] == (
        "The 3 regions sold 10. ~~North sold 5.~~ The rest is missing values."
    )
    assert decision.analysis_struck == ("North sold 5.",)
    (request,) = server.requests
    (user,) = [one["content"] for one in request.body["messages"] if one["role"] == "user"]
    assert user == told(decision.sent[-1])
    assert decision.sent[-1].tools == []
    assert "tools" not in request.body
    whole = json.dumps([request.path, request.headers, request.body])
    assert not [cell for cell in ("North", "South", "Meta", "10.0") if cell in whole]
    entry = next(entry for entry in decision.audit_log if entry.choice_type == "analysis_written")
    assert (
        entry.description
        == "An analysis was written by model: 2 numbers filled in by code, 1 sentence struck out."
    )
    assert deciding.audit.verify().ok
    assert in_order(validate_run(read_run(decision.run.folder)))


@pytest.mark.requirement("DECIDE-5")
def test_an_analysis_is_labelled_wherever_it_is_shown(deciding: Healkit) -> None:
    decision = analysed(deciding, SALES, "There are {count(sales)} rows.")
    kept = [file for file in decision.run.folder.rglob("*") if file.is_file() and "There are 5 rows." in file.read_text(errors="replace")]  # fmt: skip
    shown = [
        str(decision),
        text_of(decision.card()),
        decision._repr_html_(),
        *(file.read_text() for file in kept),
    ]
    assert len(shown) == 4
    assert all(
        "There are 5 rows." in text and ANALYSIS_LABEL in text.replace("\\u26a1", "⚡") for text in shown
    )
    assert (decision.to_json()["analysis_label"], decision.analysis_is_non_deterministic) == (
        ANALYSIS_LABEL,
        True,
    )


FRAME = pd.DataFrame(
    {
        "price": [1.5, 2.25, None],
        "count2": [10, 20, 30],
        "when": pd.to_datetime(["2026-01-02", "2026-03-04", None]),
        "kind": ["Ann", "Bob", "Ann"],
        "Unit price (EUR)": [1_000_000, 2, 3],
    }
)
FILLED = {
    "Rows: {count(sales)}.": "Rows: 3.",
    "{count(sales.price)} of {count(sales)} prices, {nulls(sales.price)} null.": "2 of 3 prices, 1 null.",
    "Kinds: {distinct(sales.kind)}.": "Kinds: 2.",
    "Mean {mean(sales.price)}, median {median(sales.count2)}.": "Mean 1.88, median 20.",
    "From {min(sales.when)} on.": "From 2026-01-02T00:00:00 on.",
    "Sum {sum(sales.Unit price (EUR))}.": "Sum 1,000,005.",
    "The column count2 of sales.": "The column count2 of sales.",
    "{max(sales.count2) > max(sales.price)}, which is more.": "30 > 2.25, which is more.",
    "No number at all.": "No number at all.",
}
STRUCK = [
    "There are 3 rows.", "There are three rows.", "About ½ of it.", "٣ rows.", "Most prices are missing.", "Prices rose.", "It is 5% of it.",
    "Rows: {count(other)}.", "Mean {mean(sales.none)}.", "The first is {min(sales.kind)}.", "All: {sum(sales.kind)}.",
    "Code: {__import__('os').system('true')}.", "Max {max(sales)}.", "{max(sales.price) > max(sales.count2)}, as expected.",
    "{max(sales.price) > max(sales.when)}, as expected.", "{count(sales)} rows, and 3 columns.", "{ {count(sales)} } rows.",
]  # fmt: skip


@pytest.mark.requirement("DECIDE-5")
def test_each_reference_is_filled_in_from_the_views(deciding: Healkit) -> None:
    decision = analysed(deciding, FRAME, "\n".join(FILLED))
    assert decision.analysis.splitlines() == list(FILLED.values())
    assert decision.analysis_struck == ()


@pytest.mark.requirement("DECIDE-5")
def test_each_claim_that_code_has_not_verified_is_struck_out_and_listed(deciding: Healkit) -> None:
    decision = analysed(deciding, FRAME, "\n".join(STRUCK))
    *lines, _, last = decision.analysis.splitlines()
    assert [line for line in lines if not (line.startswith("~~") and line.endswith("~~"))] == []
    assert list(decision.analysis_struck) == [line[2:-2] for line in lines]
    assert last == f"Struck out, because code could not verify it: {len(STRUCK)} sentences."
    for cell in ("Ann", "Bob"):
        assert cell not in decision.analysis


def test_a_secret_is_not_shown_as_an_aggregate(deciding: Healkit) -> None:
    """For a column of card numbers, the greatest value is a card number."""
    for card in (378282246310005, 378282246310005.0):
        frame = pd.DataFrame({"card": [card, 1]})
        assert analysed(deciding, frame, "Of {count(sales)}: {max(sales.card)}.").analysis == "Of 2: [CARD]."


def test_a_numbered_column_is_named_by_its_number(deciding: Healkit) -> None:
    wide = {"type": "execute_data_op", "tool": "spread", "params": {"df": "sales", "column": "region"}, "viewName": "wide"}  # fmt: skip
    plan = [wide, {"type": "finalize", "finalViewName": "wide"}]
    decision = decided(deciding, SALES, Says("It sold {sum(wide.wide#3)} in wide#3."), plan)
    assert decision.analysis == "It sold 2 in wide#3."


@pytest.mark.requirement("DECIDE-5")
def test_a_decision_without_a_model_or_a_result_has_no_analysis(
    deciding: Healkit, server: ModelServer
) -> None:
    assert decided(deciding, SALES, None).analysis == ""
    analyst = Says("Text.")
    assert decided(deciding, SALES, analyst, [OP]).outcome == "stopped"
    assert analyst.turns == []
    for wrong, why in (("model", "HEALKIT_HEAL_MODEL"), ("cat", "cannot write"), (7, "cannot write")):
        with pytest.raises(UsageInvalid, match=why):
            decided(deciding, SALES, wrong)


def test_a_model_that_fails_leaves_the_result_without_an_analysis(
    deciding: Healkit, server: ModelServer
) -> None:
    server.plan.append(fails(401, {"error": {"message": SECRET_KEY}}))
    analyst = ModelAnalyst(server.config(), environ={"HEALKIT_MODEL_KEY": SECRET_KEY})
    decision = decided(deciding, SALES, analyst)
    assert (decision.outcome, decision.analysis) == ("finalized", "")
    assert decision.marked[-1].startswith("There is no analysis (MODEL_KEY_REFUSED): ")
    assert SECRET_KEY not in f"{decision}{decision.audit_log}"
    entry = next(entry for entry in decision.audit_log if entry.choice_type == "analysis_written")
    assert entry.metadata.success is False
