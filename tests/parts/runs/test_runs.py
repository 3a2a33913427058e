"""Executions as the steps of a run."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from run_samples import BROKEN, FIXED, recorded, types

from healkit import Config, Healkit
from healkit.errors import (
    ArgumentsInvalid,
    CodeDoesNotParse,
    RunFolderError,
)
from healkit.parts.runs.contract import Run
from healkit.parts.runs.reader import validate_run

#: Path → the events it gives, in their order; the first and the last are the run's own.
PATHS: dict[str, list[str]] = {
    "a plain execution that returns": [
        "run_started", "observation_captured", "evidence_captured", "action_compiled", "preconditions_checked",
        "action_started", "action_executed", "postconditions_checked", "evidence_captured", "observation_captured",
        "run_finished",
    ],
    "a plain execution that fails": [
        "run_started", "observation_captured", "evidence_captured", "action_compiled", "preconditions_checked",
        "action_started", "action_executed", "error_raised", "evidence_captured", "observation_captured",
        "run_finished",
    ],
    "a call that is refused": [
        "run_started", "observation_captured", "evidence_captured", "preconditions_checked", "error_raised",
        "evidence_captured", "observation_captured", "run_finished",
    ],
    "a try that returns": [
        "run_started", "proposal_received", "evidence_captured", "proposal_accepted", "observation_captured",
        "evidence_captured", "action_compiled", "preconditions_checked", "evidence_captured", "action_started",
        "action_executed", "postconditions_checked", "evidence_captured", "observation_captured", "run_finished",
    ],
    "a try of code that does not parse": [
        "run_started", "proposal_received", "evidence_captured", "proposal_rejected", "preconditions_checked",
        "error_raised", "evidence_captured", "observation_captured", "run_finished",
    ],
    "a re-run": [
        "run_started", "observation_captured", "evidence_captured", "action_compiled", "preconditions_checked",
        "action_started", "action_executed", "error_raised", "evidence_captured", "assert_checked",
        "observation_captured", "run_finished",
    ],
}  # fmt: skip


def evidence(run: Run, step: str = "step_1") -> dict[str, bytes]:
    return {item.kind: run.read_evidence(item) for item in run.evidence if item.step_id == step}


def walk(healkit: Healkit, path: str) -> None:
    """Take one of the paths above, recorded."""
    match path:
        case "a plain execution that returns":
            assert healkit.execute("divide", arguments={"n": 4}, record=True).value == 0.25
        case "a plain execution that fails":
            assert not healkit.execute("divide", arguments={"n": 0}, record=True).ok
        case "a call that is refused":
            with pytest.raises(ArgumentsInvalid):
                healkit.execute("divide", arguments={"n": "four"}, record=True)
        case "a try that returns":
            assert healkit.try_code("divide", FIXED, {"n": 0}, record=True).value == 0
        case "a try of code that does not parse":
            with pytest.raises(CodeDoesNotParse):
                healkit.try_code("divide", "def divide(n:", {"n": 0}, record=True)
        case "a re-run":
            failed = healkit.execute("divide", arguments={"n": 0})
            assert failed.log_id is not None
            assert not healkit.rerun(failed.log_id, record=True).ok


@pytest.mark.requirement("RUN-2", "RUN-3")
def test_every_way_to_run_gives_its_events_in_order(divide: Healkit) -> None:
    for path, events in PATHS.items():
        walk(divide, path)
        assert types(recorded(divide)) == events, path


@pytest.mark.requirement("RUN-4", "RUN-7")
def test_a_failure_is_kept_in_full_and_a_success_by_its_state_only(divide: Healkit) -> None:
    with divide.run("lesson") as run:
        divide.execute("divide", arguments={"n": 0})
        divide.execute("divide", arguments={"n": 2})
    read = validate_run(run.folder)
    failed, fine = evidence(read, "step_1"), evidence(read, "step_2")
    assert set(failed) == {"state_before", "state_after", "code", "arguments", "failure", "stdout"}
    assert set(fine) == {"state_before", "state_after"}
    assert failed["code"].decode() == BROKEN
    assert json.loads(failed["arguments"]) == {"n": 0}
    assert failed["stdout"] == b"dividing 0\n"
    failure = json.loads(failed["failure"])
    assert (failure["ename"], failure["frames"][-1]["lineno"]) == ("ZeroDivisionError", 3)
    (error,) = [event.error for event in read.events if event.error is not None]
    assert (error.error_code, error.stage, error.retryable) == ("TOOL_EXCEPTION", "action", False)
    assert error.details == {"ename": "ZeroDivisionError", "line": 3}
    assert read.events[-1].result == {"outcome": "completed", "steps": 2, "failures": 1}


@pytest.mark.requirement("RUN-7")
def test_a_critical_action_is_kept_in_full_before_it_is_done(healkit: Healkit) -> None:
    healkit.vault.add("send", "def send():\n    print('sent')\n", side_effects=True)
    healkit.execute("send", record=True)
    run = recorded(healkit)
    assert set(evidence(run)) == {"state_before", "state_after", "code", "arguments", "stdout"}
    kept = [i for i, event in enumerate(run.events) if "code" in {ref.kind for ref in event.evidence_refs}]
    assert kept[0] < types(run).index("action_started")


@pytest.mark.requirement("RUN-7")
def test_rich_outputs_of_a_failure_are_kept(healkit: Healkit) -> None:
    code = (
        "from IPython.display import display, HTML\nimport sys\n"
        "def f():\n    display(HTML('<b>bold</b>'))\n    print('err', file=sys.stderr)\n    raise ValueError('x')\n"
    )
    healkit.vault.add("f", code)
    healkit.execute("f", record=True)
    kept = evidence(recorded(healkit))
    assert "<b>bold</b>" in json.loads(kept["outputs"])[0]["data"]["text/html"]
    assert kept["stderr"] == b"err\n"


@pytest.mark.slow
@pytest.mark.requirement("RUN-5")
def test_signatures_tell_what_changed_between_two_steps(divide: Healkit) -> None:
    with divide.run() as run:
        divide.execute("divide", arguments={"n": 0})
        divide.execute("divide", arguments={"n": 0})
        divide.execute("divide", arguments={"n": 2})
        divide.vault.patch("divide", FIXED)
        divide.execute("divide", arguments={"n": 0})
        divide.vault.revert("divide", 1)
        divide.execute("divide", arguments={"n": 0})
    ends = [event for event in validate_run(run.folder).events if event.event_type == "action_executed"]
    first, again, other, fixed, reverted = [event.state_signature_after for event in ends]
    assert None not in (first, again, other, fixed, reverted)
    assert first == again == reverted  # the state leaves out the revision's number
    assert (other.tool, other.worker) == (first.tool, first.worker)
    assert len({other.arguments, first.arguments}) == len({other.state_key, first.state_key}) == 2
    assert fixed.arguments == first.arguments
    assert fixed.tool != first.tool
    assert fixed.failure is None
    before = ends[0].state_signature_before
    assert (before.failure, before.outputs, before.worker) == (None, None, None)


def test_steps_from_threads_and_from_async_code_are_steps_of_the_run_they_are_given(divide: Healkit) -> None:
    async def several(run: Any) -> None:
        await asyncio.gather(*(divide.aexecute("divide", arguments={"n": n}, record=run) for n in (1, 2)))

    with divide.run() as run:
        thread = threading.Thread(target=lambda: divide.execute("divide", arguments={"n": 3}, record=run))
        thread.start()
        asyncio.run(several(None))  # inside the block: a task sees the run around it
        thread.join()
        with Healkit(divide.database.url) as second:
            second.execute("divide", arguments={"n": 9})  # another Healkit's is not this run's
    read = validate_run(run.folder)
    assert read.problems == []
    assert read.events[-1].result == {"outcome": "completed", "steps": 3, "failures": 0}
    assert len(divide.log.query(run=run.run_id).rows) == 3
    with pytest.raises(RunFolderError, match="has ended"):
        divide.execute("divide", arguments={"n": 1}, record=run)


def test_nothing_is_recorded_unless_it_is_asked_for(divide: Healkit, tmp_path: Path) -> None:
    assert divide.execute("divide", arguments={"n": 1}).run_id is None
    assert not divide.runs_dir.exists()
    config = Config(record_runs=True, runs_dir=str(tmp_path / "mine"), start_timeout_s=30)
    with Healkit(divide.database.url, config=config) as always:
        run_id = always.execute("divide", arguments={"n": 1}).run_id
        assert run_id is not None
        assert (tmp_path / "mine" / run_id / "trace.jsonl").exists()
        assert always.execute("divide", arguments={"n": 1}, record=False).run_id is None


def test_arguments_of_any_kind_are_recorded_and_reach_the_tool(healkit: Healkit) -> None:
    healkit.vault.add("echo", "def echo(value):\n    raise ValueError(str(value)[:50])\n")
    for value in (float("nan"), b"\xff\x00", "a\ud800b", {1: {2: 3}}, {"x": {1, 2}}, "y" * 3_000_000):
        execution = healkit.execute("echo", arguments={"value": value}, record=True)
        assert execution.failure.ename == "ValueError"
        assert execution.warnings == []
        assert "arguments" in evidence(recorded(healkit))
