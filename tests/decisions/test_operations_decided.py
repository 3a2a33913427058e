"""Decisions on public data by built-in operations, in workers.

They end in the view that plain pandas computes. `test_operations_tasks.py` plays every task in this process; here are
those that differ by what crosses to a worker and back: frames of each data set, SQL, charts, files.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from decide_tasks import CORRECTED, TASKS, load
from test_operations_tasks import check_output
from tiers import slow_but

from healkit import Healkit
from healkit.contracts.audit import AuditEntry
from healkit.contracts.decisions import EntityQuestion
from healkit.decisions import Turn
from healkit.decisions.choosers import told
from healkit.decisions.decision import Decision
from healkit.decisions.operations import install

QUICK = {"share_of_the_year", "small_states_by_sql", "a_state_in_capitals"}
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
#: One task a data set: the mistakes of a chooser are the same for each task.
MISTAKEN = {name: BY_NAME[name] for name in ("share_of_the_year", "small_states_by_sql", "mean_of_each_year")}
#: Its message quotes a cell, which no chooser may be told.
BREAKING = (
    "import pandas as pd\n\n\ndef add_up(data: pd.DataFrame):\n    raise KeyError(str(data.iloc[0, 0]))\n"
)


@pytest.fixture(scope="module")
def equipped(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Healkit]:
    path = shutil.copy(empty_database, tmp_path_factory.mktemp("equipped") / "healkit.db")
    with Healkit(path) as opened:
        install(opened)
        opened.vault.add("add_up", BREAKING, group="decide")
        yield opened


def op(tool: str, view: str, **params: Any) -> dict[str, Any]:
    return {"type": "execute_data_op", "tool": tool, "params": params, "viewName": view}


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


@pytest.mark.requirement("DECIDE-4")
@pytest.mark.parametrize("task", slow_but({task["name"]: task for task in CORRECTED}, QUICK))
def test_a_plan_with_another_name_is_corrected_or_marked(equipped: Healkit, task: dict[str, Any]) -> None:
    def ask(question: EntityQuestion) -> Any:
        return task["answers"].get(question.entity)

    decision = decide(equipped, task, task["steps"], aliases=task["aliases"], ask=ask)
    check(equipped, decision, task)
    corrections = [entry for entry in decision.audit_log if entry.choice_type == "self_correction"]
    assert [entry.metadata.correction_applied for entry in corrections] == [task["applied"]]
    assert bool(decision.marked) is not task["applied"]
    if not task["applied"]:
        assert corrections[0].metadata.error_message == "CORRECTION_FAILED"
    if task["answers"]:
        without = decide(equipped, task, task["steps"])
        assert (without.outcome, without.raw_data_view_name) == ("asked", None)
        assert without.asked_for is not None
        assert set(task["answers"].values()) < set(without.asked_for.candidates)


@pytest.mark.requirement("DECIDE-1")
@pytest.mark.parametrize(("kind", "told_name"), [("spot", "price_right"), ("price_right", "joined#4")])
def test_a_join_tells_a_name_with_its_suffix_unless_a_cell_holds_it(
    equipped: Healkit, kind: str, told_name: str
) -> None:
    data = {
        "one": pd.DataFrame({"k": ["a", "b"], "price": [1.0, 2.0], "kind": [kind, "other"]}),
        "two": pd.DataFrame({"k": ["a", "b"], "price": [3.0, 4.0]}),
    }
    plan = [
        op("join_views", "joined", left="one", right="two", on=["k"]),
        {"type": "finalize", "finalViewName": "joined"},
    ]
    decision = equipped.decide("Which?", data, chooser=plan)
    assert decision.ok, decision
    joined = decision.sent[-1].views[-1]
    assert [column.name for column in joined.columns] == ["k", "price", "kind", told_name]


#: A value that no row has, by the first view of a task: the column, and the value.
ABSENT = {
    "grunfeld": ("firm", "Volkswagen"),
    "statecrime": ("state", "Bavaria"),
    "co2": ("date", 19000101),
}


def mistakes_on(view: str) -> list[tuple[str, Any, str, str]]:
    """Return classic mistakes on a view: name, choice, and the audit's type of choice and error for it."""
    column, value = ABSENT[view]
    absent = op("filter_rows", "nobody", data=view, column=column, operator="==", value=value)
    refused, data_op = "choice_refused", "execute_data_op"
    return [
        ("a wrong name of a tool", op("filter", "a", data=view), refused, "CHOICE_INVALID"),
        ("a misspelt column", op("sort_rows", "b", data=view, by=[f"{column}e"]), data_op, "TOOL_EXCEPTION"),
        ("an unknown view", op("drop_nulls", "c", data="view_of_nothing"), refused, "CHOICE_INVALID"),
        ("a wrong type", op("top_rows", "d", data=view, by=column, n="five"), data_op, "ARGUMENTS_INVALID"),
        ("a name that is taken", op("drop_nulls", view, data=view), refused, "CHOICE_INVALID"),
        ("a missing parameter", op("filter_rows", "e", data=view, column=column), data_op, "ARGUMENTS_INVALID"),
        ("the end without the view", {"type": "finalize", "finalViewName": "never_made"}, refused, "CHOICE_INVALID"),
        ("a value that is not there", {**absent, "intended": {"entities": {column: [value]}}}, "self_correction", "CORRECTION_FAILED"),
        ("an invented type of choice", {"type": "run_sql", "query": "SELECT 1"}, refused, "CHOICE_INVALID"),
        ("a tool that raises", op("add_up", "f", data=view), data_op, "TOOL_EXCEPTION"),
        ("a field too many", {**op("drop_nulls", "g", data=view), "reason": "to be sure"}, refused, "CHOICE_INVALID"),
        ("a tool that makes no view", op("export_csv", "h", data=view), data_op, "RESULT_NO_FRAME"),
        ("nonsense", "I would filter the rows first.", refused, "CHOICE_INVALID"),
    ]  # fmt: skip


class Clumsy:
    """Chooser that makes each mistake once, then goes by the plan."""

    name = "clumsy"
    told_in_full = True

    def __init__(self, mistakes: list[tuple[str, Any, str, str]], plan: list[dict[str, Any]]) -> None:
        self._choices = iter([*(choice for _, choice, _, _ in mistakes), *plan])

    def choose(self, _turn: Turn) -> Any:
        return next(self._choices, None)


def errors_in(entries: tuple[AuditEntry, ...]) -> list[tuple[str, str]]:
    """Return the audit's failed entries: type of choice, and the error's code."""
    return [
        (entry.choice_type, (entry.metadata.error_message or "").partition(" ")[0])
        for entry in entries
        if entry.metadata.success is False
    ]


@pytest.mark.requirement("DECIDE-3", "DECIDE-4")
@pytest.mark.parametrize("task", slow_but(MISTAKEN, ()))
def test_a_chooser_that_makes_each_mistake_once_ends_in_the_right_view(
    equipped: Healkit, task: dict[str, Any]
) -> None:
    mistakes, plan = mistakes_on(task["data"][0]), with_aim(task)
    decision = decide(equipped, task, Clumsy(mistakes, plan))
    check(equipped, decision, task)
    assert errors_in(decision.audit_log) == [(kind, code) for _, _, kind, code in mistakes]
    refused = [entry for entry in decision.audit_log if entry.metadata.error_message == "CHOICE_INVALID"]
    reasons = [turn.problem for turn in decision.sent if turn.problem]
    assert len(set(reasons)) == len(refused) == 7
    assert [entry.description for entry in refused] == [
        f"The choice cannot be taken. {said}" for said in reasons
    ]
    assert decision.marked == ("The view nobody does not have the intended state.",)
    made = {step["viewName"] for step in plan if "viewName" in step}
    assert set(decision.views) == {*task["data"], *made, "nobody"}
    if "General Motors" not in str(plan):  # the exception's text is a cell of the first row
        assert "General Motors" not in "".join(map(told, decision.sent))


def test_the_operations_are_the_tools_of_a_decision_that_names_none(equipped: Healkit) -> None:
    data = {"co2": load(["co2"])["co2"]}
    decision = equipped.decide(
        "How many weeks?", data, chooser=[{"type": "finalize", "finalViewName": "co2"}]
    )
    assert len(decision.sent[0].tools) == 22
    assert {"filter_rows", "view_sql", "draw_chart"} < {tool.name for tool in decision.sent[0].tools}


def test_without_tools_the_operations_are_put_into_the_vault(healkit: Healkit) -> None:
    data = {"co2": load(["co2"])["co2"]}
    plan = [
        op("top_rows", "most", data="co2", by="co2", n=1),
        {"type": "finalize", "finalViewName": "most"},
    ]
    assert healkit.decide("When?", data, chooser=plan).ok
    assert healkit.vault.get("top_rows").group == "decide"


@pytest.mark.requirement("DECIDE-1")
def test_the_columns_of_a_query_are_told_by_its_own_words_unless_they_are_data(equipped: Healkit) -> None:
    states = load(["statecrime"])["statecrime"]
    query = "SELECT max(murder) AS most, min(poverty) AS Ohio, count(*) FROM states"
    plan = [
        op("view_sql", "few", query=query, states="states"),
        op("pivot_rows", "wide", data="states", rows=["urban"], columns="state", values="murder"),
        {"type": "finalize", "finalViewName": "few"},
    ]
    decision = equipped.decide("How bad?", {"states": states}, chooser=plan)
    assert decision.ok, decision.sent[-1].steps
    _, few, wide = decision.sent[-1].views
    assert [column.name for column in few.columns] == ["most", "few#2", "few#3"]
    assert [column.name for column in wide.columns] == ["urban", *(f"wide#{at}" for at in range(2, 53))]


def test_what_a_chooser_needs_for_an_aggregate_is_in_the_schema(equipped: Healkit) -> None:
    steps = [
        op(
            "group_rows",
            "out",
            data="co2",
            by=[],
            aggregates={"most": {"column": "co2", "function": "maximum"}},
        ),
        {"type": "finalize", "finalViewName": "co2"},
    ]
    decision = equipped.decide("How much?", load(["co2"]), chooser=Clumsy([], steps))
    (tool,) = [tool for tool in decision.sent[0].tools if tool.name == "group_rows"]
    kinds = tool.input_schema["properties"]["aggregates"]["additionalProperties"]["properties"]["function"][
        "enum"
    ]
    assert {"rows", "sum", "distinct", "last"} < set(kinds)
    assert decision.sent[-1].steps[0].error_code == "ARGUMENTS_INVALID"
