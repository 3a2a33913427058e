"""`%decide` and `%%decide`: plan and person in the cell."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from waiting import wait_until

from healkit import Healkit
from healkit.errors import UsageInvalid
from healkit.faces.notebook.widgets.panel import close_all
from healkit.parts.decide.decision import Decision

TOTALS = """import pandas as pd


def totals(df: pd.DataFrame):
    return df.groupby('region', as_index=False)['sales'].sum()
"""
PLAN = """
[
    {"type": "execute_data_op", "tool": "totals", "params": {"df": "sales"}, "viewName": "by_region"},
    {"type": "finalize", "finalViewName": name},
]
"""

pytestmark = pytest.mark.requirement("DECIDE-1", "FACE-2")


@pytest.fixture
def loaded(shell: Any, healkit: Healkit) -> Any:
    shell.run_line_magic("load_ext", "healkit")
    healkit.vault.add("totals", TOTALS)
    shell.user_ns["frame"] = pd.DataFrame({"region": ["North", "South", "North"], "sales": [1.0, 2.0, 4.0]})
    shell.user_ns["name"] = "by_region"
    return shell


def test_a_cell_is_the_plan_and_may_name_variables(loaded: Any, healkit: Healkit) -> None:
    line = '"Which region sells most?" sales=frame --tools totals'
    decision = loaded.run_cell_magic("decide", line, PLAN)
    assert isinstance(decision, Decision)
    assert decision.ok, decision
    assert healkit.views.load(str(decision.raw_data_view_name))["sales"].tolist() == [5.0, 2.0]
    as_json = PLAN.replace("},\n]", "}\n]").replace(": name", ': "by_region"')
    assert loaded.run_cell_magic("decide", line, as_json).ok


def test_a_plan_may_be_a_file_and_data_a_view(loaded: Any, healkit: Healkit, tmp_path: Any) -> None:
    healkit.views.put(loaded.user_ns["frame"], "kept")
    file = tmp_path / "plan.json"
    file.write_text(json.dumps([{"type": "finalize", "finalViewName": "sales"}]))
    assert loaded.run_line_magic("decide", f"\"Which?\" sales='kept' --tools totals --plan {file}").ok


def test_a_person_chooses_in_the_cell(
    loaded: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = iter(['{"type": "finalize", "finalViewName": "sales"}'])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    assert loaded.run_line_magic("decide", '"Which?" sales=frame --tools totals --chooser person').ok
    shown = capsys.readouterr().out
    assert '"row_count": 3' in shown
    assert "North" not in shown


def test_with_panel_the_decision_is_a_panel_and_a_person_chooses_there(loaded: Any, healkit: Healkit) -> None:
    line = '"Which region sells most?" sales=frame --tools totals --panel'
    audit = loaded.run_cell_magic("decide", line, PLAN)
    found = audit.operations["audit_open"]()
    assert (found["title"], found["data"]["shape"]) == ("Decision: finalized", "2 rows × 2 columns")
    panel = loaded.run_line_magic("decide", f"{line} --chooser person")
    assert panel.decision is None
    assert "Which region sells most?" in panel.static_card().text
    close_all()


def test_without_plan_and_chooser_a_notebook_opens_the_panel_with_the_operations(
    loaded: Any, healkit: Healkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tell a terminal what to type; a notebook's shell has a kernel, a terminal's has none."""
    monkeypatch.setattr(type(loaded), "kernel", object(), raising=False)
    panel = loaded.run_line_magic("decide", '"Which region sold most?" sales=frame')
    try:
        panel.operations["decide_open"]()
        wait_until(lambda: panel._phase in {"choosing", "failed"})
        state = panel.operations["decide_open"]()
        assert (state["phase"], state["problem"]) == ("choosing", None)
        assert "group_rows" in state["turn"]["tools"]
    finally:
        close_all()


WRONG = (
    ('"Which?" --tools totals', PLAN, "needs data"),
    ('"Which?" sales=frame --tools totals', None, r"Say who chooses: --plan FILE, or --chooser person\."),
    ('"Which?" sales=frame --tools totals', "  ", "holds no plan"),
    ('"Which?" sales=frame --tools totals', '{"type": "finalize"}', "list of choices"),
    ('"Which?" sales=frame --tools totals --plan none.json', None, "Cannot read"),
    ('"Which?" sales=frame --tools totals --plan none.json', PLAN, "two plans"),
)


def test_a_line_that_cannot_be_answered_is_one_sentence(loaded: Any) -> None:
    for line, cell, said in WRONG:
        magic = loaded.run_line_magic if cell is None else loaded.run_cell_magic
        with pytest.raises(UsageInvalid, match=said):
            magic(*(word for word in ("decide", line, cell) if word is not None))
