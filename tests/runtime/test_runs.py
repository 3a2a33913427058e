"""Executions as the steps of a run: which events each road gives, and that no tool ever notices."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from healkit import Config, Healkit
from healkit.contracts.events import EVENT_TYPES
from healkit.contracts.runs import PolicyDefaults, Run
from healkit.errors import (
    ArgumentsInvalid,
    CodeDoesNotParse,
    ConfigError,
    PolicyHalted,
    RunExists,
    RunFolderError,
    RunNotAllowed,
    ToolNotFound,
    UsageInvalid,
)
from healkit.tracing.validate import validate_run

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
#: What only a loop can do: it retries, waits, recovers and inspects. They come with the healing loop (issue E).
TO_COME = {
    "retry_scheduled", "backoff_applied", "recovery_started", "recovery_finished", "inspection_started",
    "inspection_finished",
}  # fmt: skip

BROKEN = "def divide(n: int):\n    print('dividing', n)\n    return 1 / n\n"
MENDED = "def divide(n: int):\n    return 1 / n if n else 0\n"


@pytest.fixture
def divide(healkit: Healkit) -> Healkit:
    """A vault with a tool that fails for 0."""
    healkit.vault.add("divide", BROKEN)
    return healkit


def recorded(healkit: Healkit) -> Run:
    """The newest run, in order."""
    newest = max(healkit.runs_dir.iterdir(), key=lambda path: (path.name != ".new", path.stat().st_mtime_ns))
    run = validate_run(newest)
    assert [str(problem) for problem in run.problems] == []
    return run


def types(run: Run) -> list[str]:
    return [event.event_type for event in run.events]


def evidence(run: Run, step: str = "s1") -> dict[str, bytes]:
    return {item.kind: run.read_evidence(item) for item in run.evidence if item.step_id == step}


def walk(healkit: Healkit, path: str) -> None:
    """Go down one of the roads above, recorded."""
    match path:
        case "a plain execution that returns":
            assert healkit.execute("divide", arguments={"n": 4}, record=True).value == 0.25
        case "a plain execution that fails":
            assert not healkit.execute("divide", arguments={"n": 0}, record=True).ok
        case "a call that is refused":
            with pytest.raises(ArgumentsInvalid):
                healkit.execute("divide", arguments={"n": "four"}, record=True)
        case "a try that returns":
            assert healkit.try_code("divide", MENDED, {"n": 0}, record=True).value == 0
        case "a try of code that does not parse":
            with pytest.raises(CodeDoesNotParse):
                healkit.try_code("divide", "def divide(n:", {"n": 0}, record=True)
        case "a re-run":
            failed = healkit.execute("divide", arguments={"n": 0})
            assert failed.log_id is not None
            assert not healkit.rerun(failed.log_id, record=True).ok


@pytest.mark.requirement("RUN-2", "RUN-3")
@pytest.mark.parametrize("path", PATHS)
def test_each_road_gives_its_events_in_the_order_in_which_things_happen(divide: Healkit, path: str) -> None:
    walk(divide, path)
    assert types(recorded(divide)) == PATHS[path]


def test_every_event_type_is_given_by_some_road_or_is_known_to_come() -> None:
    given = {event for events in PATHS.values() for event in events} | {"policy_halt"}  # see below
    assert given | TO_COME == set(EVENT_TYPES)
    assert not given & TO_COME


@pytest.mark.requirement("RUN-4", "RUN-7")
def test_a_failure_is_kept_in_full_and_a_success_by_its_state_only(divide: Healkit) -> None:
    with divide.run("lesson") as run:
        divide.execute("divide", arguments={"n": 0})
        divide.execute("divide", arguments={"n": 2})
    read = validate_run(run.folder)
    failed, fine = evidence(read, "s1"), evidence(read, "s2")
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


@pytest.mark.requirement("RUN-5")
def test_signatures_tell_what_changed_between_two_steps(divide: Healkit) -> None:
    with divide.run() as run:
        divide.execute("divide", arguments={"n": 0})
        divide.execute("divide", arguments={"n": 0})
        divide.execute("divide", arguments={"n": 2})
        divide.vault.patch("divide", MENDED)
        divide.execute("divide", arguments={"n": 0})
        divide.vault.revert("divide", 1)
        divide.execute("divide", arguments={"n": 0})
    ends = [event for event in validate_run(run.folder).events if event.event_type == "action_executed"]
    first, again, other, mended, reverted = [event.state_signature_after for event in ends]
    assert None not in (first, again, other, mended, reverted)
    assert first == again == reverted  # a revision's number is no part of the state
    assert (other.tool, other.worker) == (first.tool, first.worker)
    assert len({other.arguments, first.arguments}) == len({other.state_key, first.state_key}) == 2
    assert mended.arguments == first.arguments
    assert mended.tool != first.tool
    assert mended.failure is None
    before = ends[0].state_signature_before
    assert before is not None
    assert (before.failure, before.outputs, before.worker) == (None, None, None)


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
    counts = [e.metadata["same_state_count"] for e in read.events if e.metadata.get("phase") == "after"]
    assert counts == [1, 2, 3]
    (halt,) = [event for event in read.events if event.event_type == "policy_halt"]
    assert halt.error is not None
    assert (halt.error.error_code, halt.error.stage) == ("POLICY_HALT", "policy")
    assert halt.state_signature_after is not None
    assert halt.error.details == {
        "rule": "same_state", "state_key": halt.state_signature_after.state_key, "count": 3, "threshold": 2,
    }  # fmt: skip
    assert read.events[-1].result == {"outcome": "halted", "steps": 3, "failures": 3}
    assert divide.execute("divide", arguments={"n": 2}).ok  # the run is over, healkit is not


@pytest.mark.requirement("RUN-6")
def test_a_run_makes_the_steps_it_may_and_no_more(divide: Healkit) -> None:
    with divide.run(policy=PolicyDefaults(max_steps=2)) as run:
        for _ in range(2):
            assert divide.execute("divide", arguments={"n": 2}).ok
        for _ in range(2):
            with pytest.raises(PolicyHalted, match="max_steps"):
                divide.execute("divide", arguments={"n": 2})
    read = validate_run(run.folder)
    assert read.manifest is not None
    assert read.manifest.policy_defaults.max_steps == 2
    assert types(read).count("policy_halt") == 1
    assert types(read).count("action_started") == 2


def test_a_run_executes_only_the_tools_on_its_list(divide: Healkit) -> None:
    divide.vault.add("other", "def other():\n    return 1\n")
    with divide.run(allow="div*") as run:
        assert divide.execute("divide", arguments={"n": 1}).ok
        with pytest.raises(RunNotAllowed, match="'other' is not on the list"):
            divide.execute("other")
    read = validate_run(run.folder)
    assert read.manifest is not None
    assert read.manifest.allowlist == ["div*"]
    assert types(read).count("action_started") == 1
    assert [event.error.error_code for event in read.events if event.error is not None] == ["RUN_NOT_ALLOWED"]


@pytest.mark.requirement("LOG-1")
def test_a_try_runs_with_the_tools_grants_and_leaves_the_vault_alone(divide: Healkit) -> None:
    failed = divide.try_code(
        "divide", "def divide(n: int, m: int = 2):\n    return n / 0\n", {"n": 1, "m": 3}
    )
    assert failed.failure is not None
    assert failed.failure.tool_frame is not None
    assert failed.failure.tool_frame.filename == "<divide@0>"
    row = divide.log.get(failed.log_id)
    assert (row.origin, row.revision, row.status) == ("try", None, "FAILURE")
    assert len(divide.vault.history("divide")) == 1
    assert divide.vault.history("divide")[0].runs == 0
    with pytest.raises(ArgumentsInvalid, match="`m`"):
        divide.try_code("divide", BROKEN, {"n": 1, "m": 3})
    with pytest.raises(ToolNotFound):
        divide.try_code("nothing", BROKEN)
    divide.vault.add("rows", "SELECT :n AS n", type="sql")
    assert divide.try_code("rows", "SELECT :n + 1 AS n", {"n": 1}).value["rows"] == [[2]]


def test_a_rerun_takes_the_arguments_of_the_row_and_the_revision_of_today(divide: Healkit) -> None:
    first = divide.execute("divide", arguments={"n": 0})
    assert first.log_id is not None
    divide.vault.patch("divide", MENDED)
    again = divide.rerun(first.log_id, record=True)
    assert (again.value, again.revision, again.arguments) == (0, 2, {"n": 0})
    assert divide.log.get(again.log_id).origin == "rerun"
    (compared,) = [e.result for e in recorded(divide).events if e.event_type == "assert_checked"]
    assert compared is not None
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


def test_a_row_whose_arguments_were_cut_cannot_be_run_again(divide: Healkit) -> None:
    row = divide.execute("divide", arguments={"n": 1})
    import sqlite3

    with sqlite3.connect(divide.path) as connection:
        connection.execute('UPDATE executionlog SET arguments = \'"{\\"n\\": 1… cut"\'')
    connection.close()
    assert row.log_id is not None
    with pytest.raises(ArgumentsInvalid, match="were cut"):
        divide.rerun(row.log_id)


def test_steps_from_threads_and_from_async_code_are_steps_of_the_run_they_are_given(divide: Healkit) -> None:
    async def several(run: Any) -> None:
        await asyncio.gather(*(divide.aexecute("divide", arguments={"n": n}, record=run) for n in (1, 2)))

    with divide.run() as run:
        thread = threading.Thread(target=lambda: divide.execute("divide", arguments={"n": 3}, record=run))
        thread.start()
        asyncio.run(several(None))  # inside the block: a task sees the run around it
        thread.join()
        with Healkit(divide.path) as second:
            second.execute("divide", arguments={"n": 9})  # another Healkit's is not this run's
    read = validate_run(run.folder)
    assert read.problems == []
    assert read.events[-1].result == {"outcome": "completed", "steps": 3, "failures": 0}
    assert len(divide.log.query(run=run.run_id).rows) == 3
    with pytest.raises(RunFolderError, match="has ended"):
        divide.execute("divide", arguments={"n": 1}, record=run)


def test_the_block_may_raise_and_the_run_says_so(divide: Healkit) -> None:
    with pytest.raises(KeyError), divide.run() as run:
        raise KeyError("mine")
    (end,) = [event.result for event in validate_run(run.folder).events if event.event_type == "run_finished"]
    assert end == {"outcome": "aborted", "steps": 0, "failures": 0, "reason": "KeyError: 'mine'"}


def test_closing_the_healkit_ends_its_runs(tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db") as healkit:
        folder = healkit.run().folder  # nobody holds it
    read = validate_run(folder)
    assert read.problems == []
    assert read.events[-1].result is not None
    assert read.events[-1].result["outcome"] == "abandoned"


def test_nothing_is_recorded_unless_it_is_asked_for(divide: Healkit, tmp_path: Path) -> None:
    assert divide.execute("divide", arguments={"n": 1}).run_id is None
    assert not divide.runs_dir.exists()
    config = Config(record_runs=True, runs_dir=str(tmp_path / "mine"), start_timeout_s=30)
    with Healkit(divide.path, config=config) as always:
        run_id = always.execute("divide", arguments={"n": 1}).run_id
        assert run_id is not None
        assert (tmp_path / "mine" / run_id / "trace.jsonl").exists()
        assert always.execute("divide", arguments={"n": 1}, record=False).run_id is None


@pytest.mark.requirement("RUN-1")
def test_a_taken_id_and_a_folder_that_cannot_be_made_are_told_to_who_asked(
    divide: Healkit, tmp_path: Path
) -> None:
    with divide.run(run_id="mine"):
        pass
    with pytest.raises(RunExists):
        divide.run(run_id="mine")
    with pytest.raises(RunFolderError, match="cannot be a run's id"):
        divide.run(run_id="../mine")
    (tmp_path / "file").write_text("")
    config = Config(record_runs=True, runs_dir=str(tmp_path / "file" / "runs"), start_timeout_s=30)
    with Healkit(divide.path, config=config) as healkit:
        execution = healkit.execute("divide", arguments={"n": 1})  # nobody asked by name: it runs
        assert execution.value == 1
        assert any("No run can be recorded" in warning for warning in execution.warnings)
        with pytest.raises(RunFolderError, match="No run can be recorded"):
            healkit.execute("divide", arguments={"n": 1}, record=True)


def test_a_folder_that_is_removed_under_a_run_does_not_touch_the_tools_outcome(divide: Healkit) -> None:
    with divide.run() as run:
        assert divide.execute("divide", arguments={"n": 1}).value == 1
        subprocess.run(["rm", "-r", str(run.folder)], check=True)
        execution = divide.execute("divide", arguments={"n": 2})
    assert execution.value == 0.5
    assert any("its folder was removed" in warning for warning in execution.warnings)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a tiny disk takes root; run the tests as root to include this one")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_does_not_touch_the_tools_outcome_either(divide: Healkit, small_disk: Path) -> None:
    config = Config(runs_dir=str(small_disk), start_timeout_s=30)
    with Healkit(divide.path, config=config) as healkit, healkit.run() as run:
        with (small_disk / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 512)
            except OSError:
                pass
        executions = [healkit.execute("divide", arguments={"n": n}) for n in (1, 2, 0, 4)]
    assert [execution.ok for execution in executions] == [True, True, False, True]
    assert any("No space left on device" in warning for warning in executions[-1].warnings)
    events = validate_run(run.folder).events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


def test_no_tool_may_be_granted_the_folder_of_the_runs(divide: Healkit, tmp_path: Path) -> None:
    config = Config(runs_dir=str(tmp_path / "data" / "runs"))
    (tmp_path / "data").mkdir()
    with Healkit(divide.path, config=config) as healkit:
        for path in (tmp_path / "data", tmp_path / "data" / "runs"):
            with pytest.raises(ConfigError, match="what healkit keeps its records in"):
                healkit.vault.set_grants("divide", read=[str(path)])


@pytest.mark.parametrize(
    "value",
    [float("nan"), b"\xff\x00", "a\ud800b", {1: {2: 3}}, {"x": {1, 2}}, "y" * 3_000_000],
    ids=["nan", "bytes", "surrogate", "keys", "set", "3 MB"],
)
def test_arguments_of_any_kind_are_recorded_and_reach_the_tool(healkit: Healkit, value: Any) -> None:
    healkit.vault.add("echo", "def echo(value):\n    raise ValueError(str(value)[:50])\n")
    execution = healkit.execute("echo", arguments={"value": value}, record=True)
    assert execution.failure is not None
    assert execution.failure.ename == "ValueError"
    assert execution.warnings == []
    assert "arguments" in evidence(recorded(healkit))


def test_arguments_of_fifty_megabytes_are_refused_and_the_refusal_is_recorded(healkit: Healkit) -> None:
    healkit.vault.add("echo", "def echo(value):\n    return 1\n")
    with pytest.raises(ArgumentsInvalid):
        healkit.execute("echo", arguments={"value": "x" * 50_000_000}, record=True)
    assert types(recorded(healkit)) == [
        "run_started", "preconditions_checked", "error_raised", "evidence_captured", "observation_captured",
        "run_finished",
    ]  # fmt: skip


@pytest.mark.requirement("RUN-9", "TRACE-2")
def test_no_secret_reaches_the_folder_and_no_hash_or_id_is_mistaken_for_one(healkit: Healkit) -> None:
    key, token = "AKIA" + "QYLPMN5HHHFPZAM2", "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    password, mail = "correct-horse-battery", "ann@example.com"
    code = (
        f"TOKEN = '{token}'\ndef leak(password: str, user: str):\n    print('key', '{key}', user)\n"
        "    raise ValueError('login with password=' + password)\n"
    )
    entry = healkit.vault.add("leak", code)
    execution = healkit.execute("leak", arguments={"password": password, "user": mail}, record=True)
    run = recorded(healkit)
    written = "".join(path.read_text() for path in run.path.rglob("*") if path.is_file())
    assert [secret for secret in (key, token, password, mail) if secret in written] == []
    for kept in (entry.code_hash, execution.trace_id, run.run_id, "TOOL_EXCEPTION", "<leak@1>", "ValueError"):
        assert kept in written
    hidden = {item.kind: item.redacted for item in run.evidence}
    assert hidden == {
        "state_before": False, "state_after": False, "code": True, "arguments": True, "failure": True, "stdout": True,
    }  # fmt: skip
    (compiled,) = [event for event in run.events if event.action_spec is not None]
    assert sum(compiled.metadata["hidden"].values()) == 2


def begun_runs(healkit: Healkit) -> list[Path]:
    return [path for path in healkit.runs_dir.glob("*") if path.name != ".new"]


KILLED = """
import sys
from healkit import Config, Healkit
hk = Healkit(sys.argv[1], config=Config(start_timeout_s=30))
while True:
    with hk.run():
        for n in range(8):
            hk.execute("rows", arguments={"n": n % 3})
            hk.try_code("rows", "SELECT :n / 0 AS n", {"n": n})
"""


@pytest.mark.requirement("RUN-2", "RUN-7")
def test_a_host_killed_at_any_moment_leaves_runs_that_read_and_manifests_that_are_true(
    healkit: Healkit,
) -> None:
    healkit.vault.add("rows", "SELECT :n AS n", type="sql")
    for number in range(8):
        before = len(begun_runs(healkit))
        host = subprocess.Popen([sys.executable, "-c", KILLED, str(healkit.path)])
        give_up = time.monotonic() + 30
        while len(begun_runs(healkit)) <= before and time.monotonic() < give_up:
            time.sleep(0.002)
        time.sleep(0.01 * number)
        host.send_signal(signal.SIGKILL)
        host.wait()
    assert len(begun_runs(healkit)) >= 8
    for folder in begun_runs(healkit):
        run = validate_run(folder)
        assert {problem.kind for problem in run.problems if problem.fault} <= {"torn_line"}
        assert [event.seq for event in run.events] == list(range(1, len(run.events) + 1))
        known = {row.trace_id for row in healkit.log.query(run=run.run_id, limit=100)}
        compiled = [event for event in run.events if event.event_type == "action_started"]
        assert len(known) >= len(compiled)  # the row is written ahead of the event


def test_a_stopped_execution_is_the_end_of_its_step(divide: Healkit) -> None:
    divide.vault.add("sleeper", "import time\ndef sleeper():\n    time.sleep(30)\n")

    async def cancelled() -> None:
        task = asyncio.create_task(divide.aexecute("sleeper", record=True))
        await asyncio.sleep(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    give_up = time.monotonic() + 10
    while divide.log.running() and time.monotonic() < give_up:
        time.sleep(0.05)
    newest = next(path for path in divide.runs_dir.iterdir() if path.name != ".new")
    read = validate_run(newest)
    assert read.problems == []
    assert read.events[-1].result is not None
    assert read.events[-1].result["outcome"] == "aborted"


def test_the_manifest_says_who_wrote_it_under_which_policy(divide: Healkit) -> None:
    with divide.run("lesson\ud800", allow=["\ud800*"]) as odd:
        pass
    assert validate_run(odd.folder).problems == []
    with divide.run("lesson") as run:
        pass
    manifest = validate_run(run.folder).manifest
    assert manifest is not None
    fields = msgspec.to_builtins(manifest)
    assert (fields["run_id"], fields["execution_profile"], fields["execution_mode"]) == (
        run.run_id, "lesson", "live",
    )  # fmt: skip
    assert fields["allowlist"] == ["*"]
    assert fields["redaction_policy"]["payload"] == "sanitised"
    assert set(fields["platform"]) == {"system", "machine", "python"}
    assert dataclasses.is_dataclass(run.halted) is False


def test_a_tool_that_is_kept_off_the_record_is_kept_off_its_runs_too(healkit: Healkit) -> None:
    healkit.vault.add("inner", "def inner(word):\n    return word * 2\n", log=False)
    healkit.vault.add("quiet", "def quiet(word):\n    print(word)\n    raise ValueError(word)\n", log=False)
    healkit.vault.add(
        "outer", "def outer():\n    mcp.vault.inner(word='whisper')\n    raise ValueError('loud')\n"
    )
    quiet = healkit.execute("quiet", arguments={"word": "whisper"}, record=True)
    with healkit.run() as run:
        healkit.execute("outer")
    for folder in (run.folder, healkit.runs_dir / str(quiet.run_id)):
        read = validate_run(folder)
        assert read.problems == []
        kept = b"".join(read.read_evidence(item) for item in read.evidence if item.kind != "code")
        assert b"whisper" not in kept + (folder / "trace.jsonl").read_bytes()
    assert quiet.log_id is not None
    with pytest.raises(ArgumentsInvalid, match="kept off the record"):
        healkit.rerun(quiet.log_id)
