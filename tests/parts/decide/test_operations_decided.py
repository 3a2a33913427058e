"""Decisions on public data by built-in operations, in workers.

They end in the view that plain pandas computes. `test_operations_tasks.py` plays every task in this process; here are
those that differ by what crosses to a worker and back: frames of each data set, SQL, charts, files.
"""

from __future__ import annotations

import stat
from typing import Any

import pandas as pd
import pytest
from decide_samples import Scripted, end, op
from decide_tasks import TASKS, load
from test_operations_tasks import check_output
from tiers import slow_but

from healkit import Healkit
from healkit.parts.decide.choosers import told
from healkit.parts.decide.decision import Decision
from healkit.parts.runs.audit_records import AuditEntry

QUICK = {"share_of_the_year", "small_states_by_sql"}
BY_NAME = {task["name"]: task for task in TASKS}
IN_WORKERS = {
    name: BY_NAME[name]
    for name in (
        "share_of_the_year",
        "small_states_by_sql",
        "best_year_of_each_firm",
        "chart_of_the_air",
        "chart_of_states",
        "histogram_of_measurements",
    )
}
MISTAKEN = BY_NAME["mean_of_each_year"]
#: Its message quotes a cell, which no chooser may be told.
BREAKING = (
    "import pandas as pd\n\n\ndef add_up(data: pd.DataFrame):\n    raise KeyError(str(data.iloc[0, 0]))\n"
)


@pytest.fixture(scope="module")
def equipped(deciding: Healkit) -> Healkit:
    deciding.vault.add("add_up", BREAKING, group="decide")
    return deciding


def with_aim(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps, the last view with what pandas says that it should be."""
    expected = task["expect"](load(task["data"]))
    aim = {"rows": len(expected), "columns": list(expected.columns)}
    final = task["steps"][-1]["finalViewName"]
    return [{**step, "intended": aim} if step.get("viewName") == final else step for step in task["steps"]]


def check(hk: Healkit, decision: Decision, task: dict[str, Any]) -> None:
    """Compare the final view cell by cell, look into the files, and verify the audit."""
    assert decision.outcome == "finalized", (task["name"], decision.reason, decision.sent[-1].steps)
    expected = task["expect"](load(task["data"]))
    found = hk.views.load(str(decision.raw_data_view_name))
    pd.testing.assert_frame_equal(found, expected, check_exact=False, rtol=1e-12)
    outputs = [step["tool"] for step in task["steps"] if step["type"] == "execute_output"]
    assert len(decision.files) == len(outputs)
    for tool, file in zip(outputs, decision.files, strict=True):
        assert file.parent == decision.run.folder / "outputs"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        is_text = tool.startswith("export_") and tool != "export_parquet"
        content = file.read_bytes()
        check_output(tool, content.decode() if is_text or content[:1] == b"{" else content, found)
        assert file.suffix in {".csv", ".parquet", ".ipynb", ".md", ".png", ".json"}
    ran = [row for row in hk.log.query(run=decision.run.run_id).rows if row.status == "SUCCESS"]
    assert {row.isolation for row in ran} <= {"namespaces", "landlock"}
    assert decision.problem == ""
    assert [entry.seq for entry in decision.audit_log] == list(range(1, len(decision.audit_log) + 1))
    assert hk.audit.verify().ok


def decide(hk: Healkit, task: dict[str, Any], chooser: Any, **more: Any) -> Decision:
    return hk.decide(task["name"].replace("_", " "), load(task["data"]), chooser=chooser, **more)


@pytest.mark.requirement("DECIDE-2", "DECIDE-5")
@pytest.mark.parametrize("task", slow_but(IN_WORKERS, QUICK))
def test_a_plan_ends_in_the_right_view(equipped: Healkit, task: dict[str, Any]) -> None:
    plan = with_aim(task)
    decision = decide(equipped, task, plan)
    check(equipped, decision, task)
    assert decision.marked == ()
    taken = [e.choice_type for e in decision.audit_log if e.tool_name or e.choice_type == "finalize"]
    assert taken == [step["type"] for step in plan]
    assert all(entry.metadata.success is not False for entry in decision.audit_log)


@pytest.mark.requirement("DECIDE-1")
@pytest.mark.parametrize(("kind", "told_name"), [("spot", "price_right"), ("price_right", "joined#4")])
def test_a_join_tells_its_suffix_unless_a_cell_holds_it(equipped: Healkit, kind: str, told_name: str) -> None:
    data = {
        "one": pd.DataFrame({"k": ["a", "b"], "price": [1.0, 2.0], "kind": [kind, "other"]}),
        "two": pd.DataFrame({"k": ["a", "b"], "price": [3.0, 4.0]}),
    }
    plan = [op("join_views", "joined", left="one", right="two", on=["k"]), end("joined")]
    decision = equipped.decide("Which?", data, chooser=plan)
    assert decision.ok, decision
    joined = decision.sent[-1].views[-1]
    assert [column.name for column in joined.columns] == ["k", "price", "kind", told_name]


def mistakes_on(view: str) -> list[tuple[str, Any, str, str]]:
    """Return classic mistakes on a view: name, choice, and the audit's type of choice and error for it."""
    column, value = "date", 19000101  # a value that no row has
    absent = op("filter_rows", "nobody", data=view, column=column, operator="==", value=value)
    refused, data_op = "choice_refused", "execute_data_op"
    return [
        ("a wrong name of a tool", op("filter", "a", data=view), refused, "CHOICE_INVALID"),
        ("a misspelt column", op("sort_rows", "b", data=view, by=[f"{column}e"]), data_op, "TOOL_EXCEPTION"),
        ("an unknown view", op("drop_nulls", "c", data="view_of_nothing"), refused, "CHOICE_INVALID"),
        ("a wrong type", op("top_rows", "d", data=view, by=column, n="five"), data_op, "ARGUMENTS_INVALID"),
        ("a name that is taken", op("drop_nulls", view, data=view), refused, "CHOICE_INVALID"),
        ("a missing parameter", op("filter_rows", "e", data=view, column=column), data_op, "ARGUMENTS_INVALID"),
        ("the end without the view", end("never_made"), refused, "CHOICE_INVALID"),
        ("a value that is not there", {**absent, "intended": {"entities": {column: [value]}}}, "self_correction", "CORRECTION_FAILED"),
        ("an invented type of choice", {"type": "run_sql", "query": "SELECT 1"}, refused, "CHOICE_INVALID"),
        ("a tool that raises", op("add_up", "f", data=view), data_op, "TOOL_EXCEPTION"),
        ("a field too many", {**op("drop_nulls", "g", data=view), "reason": "to be sure"}, refused, "CHOICE_INVALID"),
        ("a tool that makes no view", op("export_csv", "h", data=view), data_op, "RESULT_NO_FRAME"),
        ("nonsense", "I would filter the rows first.", refused, "CHOICE_INVALID"),
    ]  # fmt: skip


def errors_in(entries: tuple[AuditEntry, ...]) -> list[tuple[str, str]]:
    """Return the audit's failed entries: type of choice, and the error's code."""
    return [
        (entry.choice_type, (entry.metadata.error_message or "").partition(" ")[0])
        for entry in entries
        if entry.metadata.success is False
    ]


@pytest.mark.requirement("DECIDE-3", "DECIDE-4")
@pytest.mark.slow
def test_a_chooser_that_makes_each_mistake_once_ends_in_the_right_view(equipped: Healkit) -> None:
    task = MISTAKEN
    mistakes, plan = mistakes_on(task["data"][0]), with_aim(task)
    decision = decide(
        equipped, task, Scripted(*(choice for _, choice, _, _ in mistakes), *plan, told_in_full=True)
    )
    check(equipped, decision, task)
    assert errors_in(decision.audit_log) == [(kind, code) for _, _, kind, code in mistakes]
    refused = [entry for entry in decision.audit_log if entry.metadata.error_message == "CHOICE_INVALID"]
    reasons = [turn.problem for turn in decision.sent if turn.problem]
    assert len(set(reasons)) == len(refused) == 7
    assert [entry.description for entry in refused] == [f"The choice is invalid. {said}" for said in reasons]
    assert decision.marked == ("The view nobody does not have the intended state.",)
    made = {step["viewName"] for step in plan if "viewName" in step}
    assert set(decision.views) == {*task["data"], *made, "nobody"}
    assert "19580329" not in "".join(map(told, decision.sent))  # a cell of the first row


def test_the_operations_are_the_tools_of_a_decision_that_names_none(equipped: Healkit) -> None:
    data = {"co2": load(["co2"])["co2"]}
    decision = equipped.decide("How many weeks?", data, chooser=[end("co2")])
    assert len(decision.sent[0].tools) == 22
    assert {"filter_rows", "view_sql", "draw_chart"} < {tool.name for tool in decision.sent[0].tools}


@pytest.mark.requirement("DECIDE-1")
def test_columns_keep_the_names_in_a_query_unless_they_are_data(equipped: Healkit) -> None:
    states = load(["statecrime"])["statecrime"]
    query = "SELECT max(murder) AS most, min(poverty) AS Ohio, count(*) FROM states"
    plan = [
        op("view_sql", "few", query=query, states="states"),
        op("pivot_rows", "wide", data="states", rows=["urban"], columns="state", values="murder"),
        end("few"),
    ]
    decision = equipped.decide("How bad?", {"states": states}, chooser=plan)
    assert decision.ok, decision.sent[-1].steps
    _, few, wide = decision.sent[-1].views
    assert [column.name for column in few.columns] == ["most", "few#2", "few#3"]
    assert [column.name for column in wide.columns] == ["urban", *(f"wide#{at}" for at in range(2, 53))]
