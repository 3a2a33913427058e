"""Limits of a run, and records of a try or a re-run."""

from __future__ import annotations

import pytest
from run_samples import BROKEN, FIXED, recorded, types

from healkit import Healkit
from healkit.errors import (
    ArgumentsInvalid,
    PolicyHalted,
    RunNotAllowed,
    ToolNotFound,
    UsageInvalid,
)
from healkit.parts.runs.reader import validate_run


@pytest.mark.requirement("RUN-6")
def test_the_third_time_in_the_same_failing_state_ends_the_run(divide: Healkit) -> None:
    with divide.run() as run:
        for _ in range(3):
            execution = divide.execute("divide", arguments={"n": 0})
            assert execution.failure is not None  # each outcome reaches the caller as it is
        assert run.halted is not None
        with pytest.raises(PolicyHalted, match="observed 3 times; 2 are allowed") as refused:
            divide.execute("divide", arguments={"n": 2})
    row = divide.log.get(refused.value.log_id)
    assert (row.status, row.error_code, row.run_id) == ("FAILURE", "POLICY_HALT", run.run_id)
    read = validate_run(run.folder)
    assert read.problems == []
    counts = [
        e.metadata["policy"]["same_state_revisit_count"]
        for e in read.events
        if e.metadata.get("phase") == "after"
    ]
    assert counts == [1, 2, 3]
    (halt,) = [event for event in read.events if event.event_type == "policy_halt"]
    assert (halt.error.error_code, halt.error.stage, halt.error.severity) == (
        "POLICY_HALT",
        "policy",
        "critical",
    )
    assert halt.metadata["policy"] == {
        "reason": "same_state_revisit", "state_key": halt.state_signature_after.state_key, "count": 3, "threshold": 2,
    }  # fmt: skip
    assert read.events[-1].result == {"outcome": "halted", "steps": 3, "failures": 3}
    assert divide.execute("divide", arguments={"n": 2}).ok  # the run is over, healkit is not


def test_a_run_executes_only_the_tools_on_its_list(divide: Healkit) -> None:
    divide.vault.add("other", "def other():\n    return 1\n")
    with divide.run(allow="div*") as run:
        assert divide.execute("divide", arguments={"n": 1}).ok
        with pytest.raises(RunNotAllowed, match="'other' is not on the list"):
            divide.execute("other")
    read = validate_run(run.folder)
    assert read.manifest.allowlist == ["div*"]
    assert types(read).count("action_started") == 1
    assert [event.error.error_code for event in read.events if event.error is not None] == ["RUN_NOT_ALLOWED"]


@pytest.mark.requirement("LOG-1")
def test_a_try_runs_with_the_tools_grants_and_leaves_the_vault_alone(divide: Healkit) -> None:
    failed = divide.try_code(
        "divide", "def divide(n: int, m: int = 2):\n    return n / 0\n", {"n": 1, "m": 3}
    )
    assert failed.failure.tool_frame.filename == "<divide@0>"
    row = divide.log.get(failed.log_id)
    assert (row.origin, row.revision, row.status) == ("try", None, "FAILURE")
    assert len(divide.vault.history("divide")) == 1
    assert divide.vault.history("divide")[0].runs == 0
    with pytest.raises(ArgumentsInvalid, match="'m'"):
        divide.try_code("divide", BROKEN, {"n": 1, "m": 3})
    with pytest.raises(ToolNotFound):
        divide.try_code("nothing", BROKEN)
    divide.vault.add("rows", "SELECT :n AS n", type="sql")
    assert divide.try_code("rows", "SELECT :n + 1 AS n", {"n": 1}).value["rows"] == [[2]]


def test_a_rerun_takes_the_arguments_of_the_row_and_the_revision_of_today(divide: Healkit) -> None:
    first = divide.execute("divide", arguments={"n": 0})
    assert first.log_id is not None
    divide.vault.patch("divide", FIXED)
    again = divide.rerun(first.log_id, record=True)
    assert (again.value, again.revision, again.arguments) == (0, 2, {"n": 0})
    assert divide.log.get(again.log_id).origin == "rerun"
    (compared,) = [e.result for e in recorded(divide).events if e.event_type == "assert_checked"]
    assert (compared["same"], compared["found"]) == (False, "SUCCESS")
    divide.vault.add("counting", "import time\ndef counting():\n    return time.time()\n")
    for tool, arguments, same in (("divide", {"n": 4}, True), ("counting", {}, False)):
        row = divide.execute(tool, arguments=arguments)
        assert row.log_id is not None
        divide.rerun(row.log_id, record=True)
        (compared,) = [e.result for e in recorded(divide).events if e.event_type == "assert_checked"]
        assert compared == {"expected": "SUCCESS", "found": "SUCCESS", "same": same}
    with pytest.raises(UsageInvalid, match="There is no log row 999"):
        divide.rerun(999)
