"""Loop of a decision, choice by choice."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import decide_samples
import msgspec
import pandas as pd
import pytest
from decide_samples import ALL, SALES, Choice, Scripted, decide, end, look

from healkit import Healkit
from healkit.errors import ModelUnavailable, UsageInvalid
from healkit.parts.decide import Turn, told
from healkit.parts.decide.telling import THREADS_FROM_ROWS, counts_of
from healkit.parts.runs.contract import PolicyDefaults
from healkit.parts.runs.reader import in_order, read_run, validate_run
from healkit.parts.runs.run_folders import run_folders


def op(tool: str, view: str, **params: Any) -> Choice:
    return decide_samples.op(tool, view, **{"df": "sales", **params})


@pytest.mark.requirement("DECIDE-1", "DECIDE-3", "DECIDE-5")
def test_a_plan_ends_in_a_view_a_file_and_an_audit_that_verifies(deciding: Healkit) -> None:
    before = SALES.copy(deep=True)
    plan = [
        look("regions", df="sales"),
        op("totals", "by_region"),
        {"type": "execute_output", "tool": "to_csv", "params": {"df": "by_region"}},
        end("by_region"),
    ]
    decision = deciding.decide("Which region sells most?", {"sales": SALES}, tools=ALL, chooser=plan)
    assert (decision.outcome, decision.ok, decision.problem) == ("finalized", True, "")
    assert decision.raw_data_view_name is not None
    expected = pd.DataFrame({"region": ["Meta Inc", "North", "South"], "total": [3.0, 5.0, 2.0]})
    pd.testing.assert_frame_equal(deciding.views.load(decision.raw_data_view_name), expected)
    pd.testing.assert_frame_equal(SALES, before)
    (file,) = decision.files
    assert file.read_text() == expected.to_csv(index=False)
    assert (decision.analysis, decision.analysis_is_non_deterministic) == ("", True)
    entries = decision.audit_log
    assert [entry.choice_type for entry in entries] == [
        "decision_started", "gather_info", "execute_data_op", "execute_output", "finalize", "run_finished",
    ]  # fmt: skip
    assert [entry.seq for entry in entries] == list(range(1, 7))
    assert {entry.execution_type for entry in entries} == {"decide"}
    made = entries[2]
    assert (made.tool_name, made.tool_params) == ("totals", {"df": "sales"})
    assert (made.metadata.row_count, made.metadata.column_count, made.metadata.success) == (3, 2, True)
    assert made.metadata.unique_values == {"region": 3, "total": 3}
    run = read_run(decision.run.folder)
    by_seq = {event.seq: event.event_type for event in run.events}
    assert [by_seq[entry.event_seq or 0] for entry in entries[1:5]] == [
        "trace.gather_info", "trace.execute_data_op", "trace.execute_output", "trace.finalize",
    ]  # fmt: skip
    assert in_order(validate_run(run))
    assert deciding.audit.verify().ok
    rows = deciding.log.query(run=decision.run.run_id).rows
    assert {row.tool_name for row in rows} == {"regions", "totals", "to_csv"}


@pytest.mark.requirement("DECIDE-1")
def test_a_chooser_gets_counts_names_and_types_and_no_cell(deciding: Healkit) -> None:
    plan = [op("totals", "by_region"), op("spread", "wide", column="region"), end("wide")]
    decision = decide(deciding, plan)
    assert decision.ok
    last = decision.sent[-1]
    source, totals, wide = last.views
    assert [(c.name, c.dtype.replace("str", "object"), c.nulls, c.distinct) for c in source.columns] == [
        ("region", "object", 1, 3), ("sales", "float64", 0, 5),
    ]  # fmt: skip
    assert [column.name for column in totals.columns] == ["region", "total"]
    assert [column.name for column in wide.columns] == ["sales", "wide#2", "wide#3", "wide#4"]
    assert wide.columns_numbered == 3
    for value in ("North", "South", "Meta"):
        assert value not in "".join(map(told, decision.sent))


def test_the_chooser_gets_the_code_of_an_error_never_its_message(deciding: Healkit) -> None:
    chooser = Scripted(
        op("as_numbers", "numbers", column="region"),
        op("as_numbers", "others", column="regoin"),
        end("sales"),
    )
    decision = decide(deciding, chooser)
    first, second = decision.sent[-1].steps
    assert (first.error_code, first.error_type, first.error_column) == ("TOOL_EXCEPTION", "ValueError", None)
    assert (second.error_code, second.error_type, second.error_column) == (
        "TOOL_EXCEPTION",
        "KeyError",
        "regoin",
    )
    assert "North" not in "".join(map(told, decision.sent))
    assert [e.metadata.error_message for e in decision.audit_log if e.metadata.success is False] == [
        "TOOL_EXCEPTION", "TOOL_EXCEPTION in column 'regoin'",
    ]  # fmt: skip


@pytest.mark.requirement("DECIDE-1")
def test_the_chooser_gets_the_values_of_shared_columns(deciding: Healkit) -> None:
    decision = decide(deciding, [end("sales")], share=["region"])
    region, amount = decision.sent[0].views[0].columns
    assert (sorted(region.values or []), amount.values) == (["Meta Inc", "North", "South"], None)
    assert decision.sent[0].shared == ["region"]
    assert decision.audit_log[0].description.endswith("The values of region are shared with the chooser.")


def test_all_that_was_sent_is_kept_with_the_run(deciding: Healkit) -> None:
    decision = deciding.decide(
        "Who is jane@example.com?", {"sales": SALES}, tools=ALL, chooser=[op("totals", "t"), end("t")]
    )
    assert "jane" not in decision.sent[0].question
    run = read_run(decision.run.folder)
    kept = [
        msgspec.json.decode((run.path / ref.uri).read_bytes(), type=Turn)
        for event in run.events for ref in event.evidence_refs if ref.kind == "turn"
    ]  # fmt: skip
    assert kept == list(decision.sent)


NONSENSE: dict[str, Any] = {
    "a text": "finalize",
    "no type": {"tool": "pick"},
    "a field too many": {**end("sales"), "sql": "DROP"},
    "no view name": {"type": "execute_data_op", "tool": "totals", "params": {"df": "sales"}},
    "an unknown tool": op("rm", "gone"),
    "a view that does not exist": end("never"),
    "an object that is no JSON": op("totals", "t", df=object()),
    "a choice of a megabyte": op("totals", "t", x="x" * 1_000_000),
}


def test_nonsense_is_answered_once_and_halts_the_second_time(deciding: Healkit) -> None:
    for name, choice in NONSENSE.items():
        decision = decide(deciding, Scripted(choice, choice, end("sales")))
        assert decision.outcome == "halted", (name, decision)
        assert [turn.problem is None for turn in decision.sent] == [True, False], name
        refused = [entry for entry in decision.audit_log if entry.choice_type == "choice_refused"]
        assert [entry.metadata.error_message for entry in refused] == ["CHOICE_INVALID"] * 2, name
        assert decide(deciding, Scripted(choice, end("sales"))).ok, name
    assert deciding.audit.verify().ok


@pytest.mark.slow
def test_ten_identical_choices_halt(deciding: Healkit) -> None:
    again = [look("regions", df="sales")] * 20
    decision = decide(deciding, Scripted(*again))
    assert decision.outcome == "halted"
    assert sum(entry.choice_type == "gather_info" for entry in decision.audit_log) == 9
    (halt,) = [entry for entry in decision.audit_log if entry.choice_type == "policy_halt"]
    assert "same_choice" in halt.description


@pytest.mark.slow
def test_the_caps_of_the_run_halt_a_decision(deciding: Healkit) -> None:
    failing = [op("as_numbers", f"n{number}", column="region") for number in range(9)]
    about: dict[str, Any] = {"question": "Which?", "data": {"sales": SALES}, "tools": ALL}
    cap = PolicyDefaults(same_state_revisits=1)
    decision = deciding.decide(**about, chooser=Scripted(*failing), policy=cap)
    assert decision.outcome == "halted"
    assert sum(entry.choice_type == "execute_data_op" for entry in decision.audit_log) == 2
    many = [op("totals", f"t{number}") for number in range(9)]
    capped = deciding.decide(**about, chooser=Scripted(*many), policy=PolicyDefaults(hard_cap_steps=3))
    assert (capped.outcome, len(capped.views)) == ("halted", 4)


def test_a_tool_that_returns_no_frame_makes_no_view(deciding: Healkit) -> None:
    chooser = Scripted(
        op("regions", "names"),
        {"type": "execute_output", "tool": "regions", "params": {"df": "sales"}},
        end("sales"),
    )
    decision = decide(deciding, chooser)
    assert [step.error_code for step in decision.sent[-1].steps] == ["RESULT_NO_FRAME", "RESULT_NO_FILE"]
    assert list(decision.views) == ["sales"]


STRANGE: dict[str, pd.DataFrame] = {
    "no rows": pd.DataFrame({"region": pd.Series([], dtype="str"), "sales": pd.Series([], dtype="float64")}),
    "no columns": pd.DataFrame(),
    "duplicate labels": pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "a long name": pd.DataFrame({"x" * 2000: [1]}),
    "names that are numbers": pd.DataFrame([[1, 2]], columns=[2024, 2025]),
    "names in two levels": pd.DataFrame(
        [[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
    ),
    "cells that cannot be hashed": pd.DataFrame({"a": [[1], [2]], "b": [{"x": 1}, None]}),
    "1,000 columns": pd.DataFrame([range(1_000)], columns=[f"c{number}" for number in range(1_000)]),
}


def test_the_chooser_gets_bounded_metadata_of_a_strange_frame(deciding: Healkit) -> None:
    for name, frame in STRANGE.items():
        decision = decide(deciding, [end("sales")], {"sales": frame})
        assert decision.ok, name
        (view,) = decision.sent[0].views
        assert (view.row_count, view.column_count) == frame.shape, name
        assert len(view.columns) + view.columns_left_out == view.column_count, name
        assert len(told(decision.sent[0])) < 60_000, name
        assert "x" * 100 not in told(decision.sent[0]), name
        assert len({column.name for column in view.columns}) == len(view.columns), name


def test_a_long_frame_is_counted_as_a_short_one_is() -> None:
    """It is counted in threads; a column of each kind must still be counted as itself, in its own place."""
    number = pd.Series(range(THREADS_FROM_ROWS))
    frame = pd.DataFrame(
        {
            "whole": number,
            "half": number.where(number % 2 == 0),
            "text": (number % 7).astype(str),
            "kind": pd.Categorical(number % 3),
            "time": pd.to_datetime(number % 5, unit="D"),
            "list": pd.Series([[1], None] * (THREADS_FROM_ROWS // 2), dtype=object),
        }
    )
    half = THREADS_FROM_ROWS // 2
    assert counts_of(frame) == [(0, 2 * half), (half, half), (0, 7), (0, 3), (0, 5), (half, None)]
    assert [nulls for nulls, _ in counts_of(frame.head(half))] == [0, half // 2, 0, 0, 0, half // 2]


def test_a_decision_that_is_stopped_keeps_what_was_done(deciding: Healkit) -> None:
    stop = threading.Event()

    class Stopping(Scripted):
        def choose(self, turn: Turn) -> Any:
            if turn.number == 2:
                stop.set()
            return super().choose(turn)

    chooser = Stopping(op("totals", "t"), op("totals", "u"), end("u"))
    decision = decide(deciding, chooser, stop=stop)
    assert (decision.outcome, list(decision.views)) == ("stopped", ["sales", "t", "u"])
    pressed = decide(deciding, Scripted(op("totals", "t"), KeyboardInterrupt()))
    assert (pressed.outcome, list(pressed.views)) == ("stopped", ["sales", "t"])
    assert deciding.audit.verify().ok


def test_a_chooser_that_fails_halts_and_your_own_exception_is_yours(deciding: Healkit) -> None:
    gone = decide(deciding, Scripted(ModelUnavailable("It is away.")))
    assert (gone.outcome, "MODEL_UNAVAILABLE" in gone.reason) == ("halted", True)
    with pytest.raises(ZeroDivisionError):
        decide(deciding, Scripted(ZeroDivisionError()))
    assert deciding.audit.verify().ok


def test_a_decision_that_stops_says_at_what(deciding: Healkit) -> None:
    for choice, why in [
        ({"type": "execute_data_op", "tool": "totals", "params": {"df": "sales"}}, "`viewName`"),
        ({"type": "gather_info", "tool": "regions"}, "step 1, regions, failed with ARGUMENTS_INVALID."),
        (look("regions", df="sales"), "none was finalize."),
    ]:
        decision = decide(deciding, [choice])
        assert decision.outcome == "stopped"
        assert decision.reason.startswith("The chooser made no further choice")
        assert why in decision.reason


UNTYPED = "def {0}(table, column, least=0):\n    return table[table[column] > least]\n"


def test_a_text_that_names_a_view_is_that_view_where_no_type_says_otherwise(deciding: Healkit) -> None:
    deciding.vault.add("above", UNTYPED.format("above"))
    deciding.vault.add(
        "stacked", "import pandas as pd\n\n\ndef stacked(parts):\n    return pd.concat(parts)\n"
    )
    plan = [
        {
            **op("above", "some", column="sales", least=2),
            "params": {"table": "data", "column": "sales", "least": 2},
        },
        {**op("stacked", "all"), "params": {"parts": ["some", "data"]}},
        end("all"),
    ]
    decision = deciding.decide("Which?", {"data": SALES}, tools=["above", "stacked"], chooser=plan)
    assert decision.ok, decision
    assert len(deciding.views.load(str(decision.raw_data_view_name))) == 3 + 5


def test_a_text_that_is_a_view_and_a_column_needs_a_type_that_says_which(deciding: Healkit) -> None:
    deciding.vault.add("over", UNTYPED.format("over"))
    deciding.vault.add("above_typed", UNTYPED.format("above_typed").replace("column,", "column: str,"))
    params = {"table": "sales", "column": "sales"}
    plan = [{**op("over", "some"), "params": params}]
    decision = deciding.decide("Which?", {"sales": SALES}, tools=["over"], chooser=plan)
    assert "'sales' is a view and a column, but over does not say which" in decision.reason
    plan = [{**op("above_typed", "some"), "params": params}, end("some")]
    assert deciding.decide("Which?", {"sales": SALES}, tools=["above_typed"], chooser=plan).ok


@pytest.mark.requirement("DECIDE-2")
def test_a_view_says_which_tool_made_it(deciding: Healkit) -> None:
    decision = decide(deciding, [op("totals", "t"), end("t")])
    made = {name: deciding.views.get(kept).created_by for name, kept in decision.views.items()}
    assert made == {"sales": "user", "t": "totals"}


WRONG_CALLS: dict[str, Mapping[str, Any]] = {
    "no question": {"question": " "},
    "no data": {"data": {}},
    "data that is no table": {"data": {"sales": 7}},
    "a name that is no name": {"data": {"a b": pd.DataFrame()}},
    "no tools": {"tools": []},
    "no chooser": {"chooser": "nobody"},
    "other names that are one text": {"aliases": {"Meta Inc": "Facebook"}},
    "a shared column that is not there": {"share": ["none"]},
}


def test_a_wrong_call_is_refused_before_a_run_begins(deciding: Healkit) -> None:
    right = {"question": "Which?", "data": {"sales": SALES}, "tools": ALL, "chooser": []}
    runs = run_folders(deciding.runs_dir)
    for name, wrong in WRONG_CALLS.items():
        with pytest.raises(UsageInvalid):
            raise AssertionError(f"{name}: {deciding.decide(**{**right, **wrong})}")
    assert run_folders(deciding.runs_dir) == runs
