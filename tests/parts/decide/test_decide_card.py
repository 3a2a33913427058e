"""Card of a decision: three outputs, kept apart."""

from __future__ import annotations

import pandas as pd
import pytest
from decide_samples import SALES

from healkit import Healkit
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of


@pytest.mark.requirement("DECIDE-5", "DECIDE-6")
def test_a_decision_shows_audit_data_and_analysis_apart_and_no_secret(deciding: Healkit) -> None:
    stocks = pd.DataFrame({"ticker": ["AAPL", "META"], "password": ["hunter2!x", "letmein!9"]})
    wanted = {"ticker": ["AAPL", "FB"]}
    plan = [
        {
            "type": "execute_data_op", "tool": "pick", "viewName": "chosen",
            "params": {"df": "stocks", "column": "ticker", "values": ["AAPL", "FB"]},
            "intended": {"rows": 2, "entities": wanted},
        },
        {"type": "finalize", "finalViewName": "chosen"},
    ]  # fmt: skip
    decision = deciding.decide(
        "What do they cost?", {"stocks": stocks}, tools=["pick"], chooser=plan, aliases={"META": ["FB"]}
    )
    html, text = decision._repr_html_(), text_of(decision.card())
    audit, data, analysis = (html.index(f'aria-label="{name}"') for name in ("Audit", "Data", "Analysis"))
    assert audit < data < analysis
    assert "↻ corrected" in html[audit:data]
    assert "META" in html[data:analysis]
    assert "⚡ AI analysis, may be wrong, not deterministic" in html[analysis:]
    assert "Empty, because no model wrote one." in html[analysis:]
    assert decision.raw_data_view_name is not None
    assert f'hk.views.export("{decision.raw_data_view_name}", "chosen.csv")' in text
    for shown in (html, text):
        assert "hunter2!x" not in shown
        assert "letmein!9" not in shown


@pytest.mark.requirement("DECIDE-6")
def test_a_decision_without_a_result_says_so(deciding: Healkit) -> None:
    decision = deciding.decide("Which?", {"sales": SALES}, tools=["pick"], chooser=[])
    text = text_of(decision.card())
    assert text.startswith("■ Decision: stopped")
    assert "No result." in text
    assert "Decision: stopped" in html_of(decision.card())


STRANGE = {
    "no rows": pd.DataFrame({"a": pd.Series([], dtype="float64")}),
    "no columns": pd.DataFrame(index=[0, 1]),
    "duplicate labels": pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "a label that is markup": pd.DataFrame(
        {"__proto__": [1], "<script>alert(1)</script>": ["</pre><img src=x>"]}
    ),
    "a long label": pd.DataFrame({"x" * 2_000: ["y" * 5_000]}),
    "an index of pairs": pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_tuples([(1, 2), (3, 4)])),
    "cells of all kinds": pd.DataFrame({"a": [b"x", None, [1], {"b": 2}, float("nan"), pd.NaT]}),
}


@pytest.mark.requirement("DECIDE-6")
@pytest.mark.parametrize("frame", STRANGE.values(), ids=STRANGE)
def test_strange_data_is_shown_within_bounds(deciding: Healkit, frame: pd.DataFrame) -> None:
    plan = [{"type": "finalize", "finalViewName": "strange"}]
    decision = deciding.decide("Which?", {"strange": frame}, tools=["pick"], chooser=plan)
    html, text = decision._repr_html_(), text_of(decision.card())
    assert "Decision: finalized" in text
    assert len(html) < 40_000
    assert "<script" not in html
    assert "<img src=x" not in html
