"""Runs under a full disk, a lost folder, a killed host."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from run_samples import recorded
from waiting import wait_until

from healkit import Config, Healkit
from healkit.errors import (
    ArgumentsInvalid,
    ConfigError,
    RunExists,
    RunFolderError,
)
from healkit.parts.runs.reader import validate_run


def test_the_block_may_raise_and_the_run_says_so(divide: Healkit) -> None:
    with pytest.raises(KeyError), divide.run() as run:
        raise KeyError("mine")
    (end,) = [event.result for event in validate_run(run.folder).events if event.event_type == "run_finished"]
    assert end == {"outcome": "aborted", "steps": 0, "failures": 0, "reason": "KeyError: 'mine'"}


@pytest.mark.requirement("RUN-1")
def test_a_taken_id_and_an_unwritable_folder_are_errors_of_the_call(divide: Healkit, tmp_path: Path) -> None:
    with divide.run(run_id="mine"):
        pass
    with pytest.raises(RunExists):
        divide.run(run_id="mine")
    with pytest.raises(RunFolderError, match="cannot be a run's id"):
        divide.run(run_id="../mine")
    (tmp_path / "file").write_text("")
    config = Config(record_runs=True, runs_dir=str(tmp_path / "file" / "runs"), start_timeout_s=30)
    with Healkit(divide.database.url, config=config) as healkit:
        execution = healkit.execute("divide", arguments={"n": 1})  # without `record=True` the tool still runs
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


def test_a_full_disk_does_not_touch_the_tools_outcome_either(divide: Healkit, small_disk: Path) -> None:
    config = Config(runs_dir=str(small_disk), start_timeout_s=30)
    with Healkit(divide.database.url, config=config) as healkit, healkit.run() as run:
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
    with Healkit(divide.database.url, config=config) as healkit:
        for path in (tmp_path / "data", tmp_path / "data" / "runs"):
            with pytest.raises(ConfigError, match="what healkit keeps its records in"):
                healkit.vault.set_grants("divide", read=[str(path)])


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


@pytest.mark.slow
@pytest.mark.requirement("RUN-2", "RUN-7")
def test_a_host_killed_at_any_moment_leaves_runs_that_read_and_manifests_that_are_true(
    healkit: Healkit,
) -> None:
    healkit.vault.add("rows", "SELECT :n AS n", type="sql")
    for number in range(4):
        before = len(begun_runs(healkit))
        host = subprocess.Popen([sys.executable, "-c", KILLED, str(healkit.path)])
        wait_until(lambda before=before: len(begun_runs(healkit)) > before)
        time.sleep(0.02 * number)  # the moment of the kill is what is tried
        host.send_signal(signal.SIGKILL)
        host.wait()
    assert len(begun_runs(healkit)) >= 4
    for folder in begun_runs(healkit):
        run = validate_run(folder)
        assert {problem.kind for problem in run.problems if problem.fault} <= {"torn_line"}
        assert [event.seq for event in run.events] == list(range(1, len(run.events) + 1))
        known = {row.trace_id for row in healkit.log.query(run=run.run_id, limit=100)}
        compiled = [event for event in run.events if event.event_type == "action_started"]
        assert len(known) >= len(compiled)  # the row is written ahead of the event


def test_a_stopped_execution_is_the_end_of_its_step(divide: Healkit) -> None:
    started = threading.Event()
    divide.provide(started.set, "started")
    divide.vault.add("sleeper", "import time\ndef sleeper():\n    mcp.host.started()\n    time.sleep(30)\n")

    async def cancelled() -> None:
        task = asyncio.create_task(divide.aexecute("sleeper", record=True))
        await asyncio.to_thread(started.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    wait_until(lambda: not divide.log.running())
    newest = next(path for path in divide.runs_dir.iterdir() if path.name != ".new")
    read = validate_run(newest)
    assert read.problems == []
    assert read.events[-1].result["outcome"] == "aborted"


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
