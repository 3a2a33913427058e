"""Self-correction: what a step should have reached, by code."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from healkit import Healkit
from healkit.core.secrets.cleaner import Verbatim
from healkit.parts.decide import told
from healkit.parts.decide.correction import compare
from healkit.parts.decide.decision import Decision
from healkit.parts.decide.records import EntityQuestion, Intended, StateGap
from healkit.parts.decide.telling import KnownNames

STOCKS = pd.DataFrame(
    {
        "ticker": ["META", "AAPL", "AMZN", "NFLX", "GOOG", "Müller AG", "Acme Corp", "Acme Corporation"],
        "price": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
    }
)
BROKEN = """import pandas as pd


def halve(df: pd.DataFrame):
    return df.assign(price=dff["price"] / 2)
"""


def asks_for(*tickers: str, rows: int | None = None) -> list[dict[str, Any]]:
    wanted = list(tickers)
    step = {
        "type": "execute_data_op", "tool": "pick", "viewName": "chosen",
        "params": {"df": "stocks", "column": "ticker", "values": wanted},
        "intended": {"rows": len(wanted) if rows is None else rows, "entities": {"ticker": wanted}},
    }  # fmt: skip
    return [step, {"type": "finalize", "finalViewName": "chosen"}]


def decided(deciding: Healkit, *tickers: str, **more: Any) -> Decision:
    rows = more.pop("rows", None)
    return deciding.decide(
        "What do they cost?",
        {"stocks": STOCKS},
        tools=["pick"],
        chooser=asks_for(*tickers, rows=rows),
        **more,
    )


def corrections(decision: Decision) -> list[bool | None]:
    return [e.metadata.correction_applied for e in decision.audit_log if e.choice_type == "self_correction"]


@pytest.mark.requirement("DECIDE-4")
def test_a_renamed_entity_is_resolved_and_the_retry_counts(deciding: Healkit) -> None:
    """Five asked, four found, FB is missing: the case of the seed."""
    decision = decided(deciding, "AAPL", "AMZN", "FB", "NFLX", "GOOG", aliases={"META": ["FB", "Facebook"]})
    assert (decision.outcome, decision.marked) == ("finalized", ())
    kept = deciding.views.load(str(decision.raw_data_view_name))
    assert sorted(kept["ticker"]) == ["AAPL", "AMZN", "GOOG", "META", "NFLX"]
    kinds = [entry.choice_type for entry in decision.audit_log]
    assert kinds[1:-1] == ["execute_data_op", "gather_info", "self_correction", "finalize"]
    first, looked, corrected = decision.audit_log[1:4]
    asked = ["AAPL", "AMZN", "FB", "NFLX", "GOOG"]
    missing = {"requested": 5, "found": 4, "missing": ["FB"]}
    assert first.metadata.intended_state == {"rows": 5, "entities": {"ticker": asked}}
    assert first.metadata.actual_state == {"asIntended": False, "rows": 4, "entities": missing}
    assert first.metadata.correction_applied is None
    assert (looked.tool_name, looked.tool_params["entity"]) == ("resolve_entity", "FB")
    assert corrected.metadata.correction_applied is True
    assert corrected.description.startswith("FB → META. 1 of 1 missing entities replaced")
    whole = {"requested": 5, "found": 5, "missing": []}
    assert corrected.metadata.actual_state == {"asIntended": True, "rows": 5, "entities": whole}
    assert corrected.tool_params["values"] == ["AAPL", "AMZN", "META", "NFLX", "GOOG"]
    assert deciding.audit.summary(decision.run.run_id).corrections == 1
    assert "META" not in "".join(map(told, decision.sent))


@pytest.mark.requirement("DECIDE-4")
@pytest.mark.parametrize(
    ("asked", "found"),
    [("meta", "META"), ("MULLER  A.G.", "Müller AG"), ("AMZNN", "AMZN")],
    ids=["by case", "by accents and signs", "by likeness"],
)
def test_one_candidate_is_taken(deciding: Healkit, asked: str, found: str) -> None:
    decision = decided(deciding, asked)
    assert decision.ok
    assert deciding.views.load(str(decision.raw_data_view_name))["ticker"].tolist() == [found]
    assert corrections(decision) == [True]


@pytest.mark.requirement("DECIDE-4")
def test_of_two_candidates_a_person_says_which(deciding: Healkit) -> None:
    decision = decided(deciding, "Acme Corpo")
    assert (decision.outcome, decision.raw_data_view_name) == ("asked", None)
    assert decision.asked_for is not None
    assert sorted(decision.asked_for.candidates) == ["Acme Corp", "Acme Corporation"]
    assert "candidates: 'Acme Corp" in str(decision)
    assert corrections(decision) == [False]
    heard: list[EntityQuestion] = []

    def ask(question: EntityQuestion) -> str:
        heard.append(question)
        return "Acme Corporation"

    answered = decided(deciding, "Acme Corpo", ask=ask)
    assert deciding.views.load(str(answered.raw_data_view_name))["price"].tolist() == [8.0]
    assert (corrections(answered), heard[0].entity) == ([True], "Acme Corpo")
    unknown = decided(deciding, "Acme Corpo", ask=lambda _: "Globex")
    assert unknown.outcome == "asked"
    assert "Acme Corporation" not in "".join(map(told, (*decision.sent, *answered.sent)))


@pytest.mark.requirement("DECIDE-4")
def test_without_a_candidate_the_step_is_marked_after_two_tries(deciding: Healkit) -> None:
    decision = decided(deciding, "AAPL", "ZZZZ")
    assert decision.ok
    assert decision.marked == ("The view chosen does not have the intended state.",)
    tries = [e.tool_params["try"] for e in decision.audit_log if e.choice_type == "gather_info"]
    assert tries == [1, 2]
    assert corrections(decision) == [False]
    (failed,) = [e for e in decision.audit_log if e.choice_type == "self_correction"]
    assert failed.metadata.error_message == "CORRECTION_FAILED"
    assert deciding.audit.summary(decision.run.run_id).failed_corrections == 1
    step = decision.sent[-1].steps[0]
    assert (step.corrected, step.differs and step.differs.entities_missing) == (False, 1)


@pytest.mark.requirement("DECIDE-4")
def test_a_retry_that_misses_the_intended_state_does_not_correct(deciding: Healkit) -> None:
    decision = decided(deciding, "AAPL", "meta", rows=7)
    assert corrections(decision) == [False]
    kept = deciding.views.load(str(decision.raw_data_view_name))
    assert kept["ticker"].tolist() == ["AAPL"]
    assert len(decision.marked) == 1


@pytest.mark.requirement("DECIDE-4")
@pytest.mark.slow
def test_a_failing_operation_is_healed_with_consent_and_retried(deciding: Healkit) -> None:
    deciding.vault.add(
        "halve",
        BROKEN,
        examples=[{"arguments": {"df": STOCKS}, "result": STOCKS.assign(price=STOCKS["price"] / 2)}],
    )
    plan = [
        {
            "type": "execute_data_op",
            "tool": "halve",
            "params": {"df": "stocks"},
            "viewName": "half",
            "intended": {"rows": 8},
        },
        {"type": "finalize", "finalViewName": "half"},
    ]
    alone = deciding.decide("Half?", {"stocks": STOCKS}, tools=["halve"], chooser=plan)
    assert (alone.outcome, corrections(alone)) == ("stopped", [])

    decision = deciding.decide("Half?", {"stocks": STOCKS}, tools=["halve"], chooser=plan, heal=True)
    assert corrections(decision) == [True]
    assert deciding.vault.get("halve").revision == 2
    assert deciding.views.load(str(decision.raw_data_view_name))["price"].tolist()[0] == 0.5
    assert {e.execution_type for e in deciding.audit.get(decision.run.run_id)} == {"decide"}
    assert deciding.audit.summary().by_choice["proposal_received"] >= 1
    assert deciding.audit.verify().ok


def test_intended_and_actual_are_compared() -> None:
    for intended, differs in [
        (Intended(rows=8, columns=["ticker"], entities=["META"], ranges={"price": (1, 8)}), {}),
        (Intended(rows=9), {"rows": (9, 8)}),
        (Intended(columns=["cost"]), {"columns_missing": ["cost"]}),
        (Intended(ranges={"price": (2, None)}), {"ranges_missed": ["price"]}),
        (Intended(ranges={"ticker": (2, 3), "none": (1, 2)}), {"ranges_missed": ["ticker", "none"]}),
        (Intended(entities={"price": [9.0]}), {"entities_missing": 1, "entities_intended": 1}),
    ]:
        assert compare(intended, STOCKS, KnownNames(Verbatim())).gap == StateGap(**differs), intended
