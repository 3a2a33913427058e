"""Retries in a run, of what did not answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from cli_samples import call

from healkit import Config, Healkit
from healkit.errors import HealkitError, WorkerStartFailed
from healkit.parts.runs.contract import PolicyDefaults
from healkit.parts.runs.reader import validate_run
from healkit.parts.runs.runs import OpenRun

QUICK = PolicyDefaults(backoff_ms=(1, 2), same_state_revisits=9)
GET = "def get():\n    return mcp.host.fetch()\n"


class Server:
    """Host function that fails so many times before it answers."""

    def __init__(self, failures: int, error: type[Exception] = ConnectionError) -> None:
        self.failures, self.error, self.asked = failures, error, 0

    def fetch(self) -> int:
        self.asked += 1
        if self.asked <= self.failures:
            raise self.error("the server hung up")
        return self.asked


def served(healkit: Healkit, failures: int, error: type[Exception] = ConnectionError, **flags: Any) -> Server:
    server = Server(failures, error)
    healkit.provide(server.fetch, "fetch")
    healkit.vault.add("get", GET, **flags)
    return server


def told(run: OpenRun) -> list[tuple[str | None, str, Any]]:
    read = validate_run(run.folder)
    assert read.problems == []
    return [
        (event.step_id, event.event_type, event.metadata.get("wait_ms"))
        for event in read.events
        if event.event_type in ("retry_scheduled", "backoff_applied")
    ]


@pytest.mark.requirement("RUN-3", "RUN-4")
def test_what_did_not_answer_is_tried_again_as_the_policy_says(healkit: Healkit) -> None:
    """C5: a tool that failed by a passing fault was never retried, whatever the policy said."""
    server = served(healkit, 2)
    with healkit.run(policy=QUICK) as run:
        assert healkit.execute("get").value == 3
    assert server.asked == 3
    assert told(run) == [
        ("step_1", "retry_scheduled", 1),
        ("step_1", "backoff_applied", 1),
        ("step_2", "retry_scheduled", 2),
        ("step_2", "backoff_applied", 2),
    ]
    errors = [event.error for event in validate_run(run.folder).events if event.error is not None]
    assert [error.retryable for error in errors] == [True, True]
    rows = healkit.log.query(tool="get").rows
    assert [row.status for row in rows] == ["SUCCESS", "FAILURE", "FAILURE"]


def test_no_retry_takes_the_outcome_from_its_caller(healkit: Healkit) -> None:
    server = served(healkit, 9)
    with healkit.run(policy=PolicyDefaults(backoff_ms=(1,), hard_cap_steps=1)) as run:
        assert healkit.execute("get").failure is not None
    assert (server.asked, told(run)) == (1, [])


@pytest.mark.requirement("RUN-4")
def test_only_a_passing_fault_without_harm_is_retried(healkit: Healkit) -> None:
    """C5: a first try may have done something, or the failure would be the same again."""
    server = served(healkit, 9, ValueError)
    healkit.vault.add("send", GET.replace("get", "send"), side_effects=True)
    healkit.vault.add("two", "def two():\n    mcp.host.note()\n    return mcp.host.fetch()\n")
    healkit.provide(lambda: None, "note")
    with healkit.run(policy=QUICK) as run:
        healkit.execute("get")
        server.error = ConnectionResetError
        healkit.execute("send")
        healkit.execute("two")
    healkit.execute("get")  # in no run, and no policy is given
    assert server.asked == 4
    assert told(run) == []


@pytest.mark.requirement("RUN-4", "RUN-6")
def test_a_call_outside_of_runs_is_tried_again_where_it_asks_for_it(healkit: Healkit) -> None:
    """C6: without a run, `retryable` meant nothing."""
    server = served(healkit, 2)
    execution = healkit.execute("get", retry=QUICK)
    assert (execution.value, server.asked) == (3, 3)
    rows = healkit.log.query(tool="get").rows
    assert [row.status for row in rows] == ["SUCCESS", "FAILURE", "FAILURE"]
    earlier = ", ".join(str(row.id) for row in reversed(rows[1:]))
    assert [warning for warning in execution.warnings if "Attempt" in warning] == [
        f"Attempt 3; 2 earlier ones failed by a passing fault (log: {earlier})."
    ]
    server.asked, server.failures = 0, 9
    assert healkit.execute("get", retry=QUICK).failure is not None
    assert server.asked == 3
    server.asked, server.error = 0, ValueError
    failed = healkit.execute("get", retry=QUICK)
    assert (server.asked, failed.warnings) == (1, [])
    assert not healkit.runs_dir.exists()


@pytest.mark.requirement("RUN-4")
def test_what_lasts_is_not_called_retryable(healkit: Healkit, tmp_path: Path) -> None:
    """A sandbox without a network, a program that is not there, a granted path that leads away: the same again."""
    healkit.vault.add(
        "look", "def look():\n    import socket\n    socket.create_connection(('127.0.0.1', 9))\n"
    )
    healkit.vault.add("own", "def own():\n    raise ConnectionError('it hung up')\n")
    healkit.vault.add("ask", "def ask():\n    return mcp.gone.what()\n", grants={"calls": ["gone.*"]})
    target = tmp_path / "target"
    target.mkdir()
    (link := tmp_path / "granted").mkdir()
    healkit.vault.add("read", "def read():\n    return 1\n", grants={"read": [str(link)]})
    link.rmdir()
    link.symlink_to(target)
    servers = tmp_path / "mcp.json"
    servers.write_text(json.dumps({"mcpServers": {"gone": {"command": str(tmp_path / "no-such-program")}}}))
    healkit.connect_all(servers)
    retryable = {}
    for name in ("look", "own", "ask", "read"):
        with healkit.run() as run, contextlib.suppress(HealkitError):
            healkit.execute(name)
        errors = [event.error for event in validate_run(run.folder).events if event.error is not None]
        retryable[name] = [error.retryable for error in errors][:1]
    assert retryable == {"look": [False], "own": [True], "ask": [False], "read": [False]}


@pytest.mark.requirement("RUN-4", "FACE-6")
def test_a_plain_run_is_tried_again_by_command(healkit: Healkit) -> None:
    """M14: only Python's face could."""
    healkit.vault.add("own", "def own():\n    raise ConnectionError('it hung up')\n")
    healkit.vault.add("wrong", "def wrong():\n    raise ValueError('no')\n")
    for name in ("own", "wrong"):
        assert call("run", name, "--retry", "--db", str(healkit.path)).returncode == 1
    assert [healkit.log.count(tool=name) for name in ("own", "wrong")] == [3, 1]


@pytest.mark.requirement("RUN-4")
def test_async_code_outside_of_runs_is_tried_again_too(healkit: Healkit) -> None:
    server = served(healkit, 1)
    execution = asyncio.run(healkit.aexecute("get", retry=QUICK))
    assert (execution.value, server.asked) == (2, 2)


@pytest.mark.requirement("RUN-4")
@pytest.mark.parametrize("recorded", [True, False])
def test_side_effects_are_repeated_only_where_the_policy_says_so(healkit: Healkit, recorded: bool) -> None:
    """Its declaration holds for whoever calls the tool, through however many others."""
    sent: list[str] = []
    healkit.provide(lambda: sent.append("mail"), "send")
    fails = "raise ConnectionError('no answer')"
    healkit.vault.add("mail", f"def mail():\n    mcp.host.send()\n    {fails}\n", side_effects=True)
    for name, called in (("inner", "mail"), ("outer", "inner")):
        code = (
            f"def {name}():\n    try:\n        mcp.vault.{called}()\n    except Exception:\n        {fails}\n"
        )
        healkit.vault.add(name, code)
    for tool in ("mail", "inner", "outer"):
        healkit.execute(tool, retry=QUICK, record=recorded)
    assert len(sent) == 3
    allowed = PolicyDefaults(backoff_ms=(1,), same_state_revisits=9, retry_side_effects=True)
    healkit.execute("outer", retry=allowed, record=recorded)
    assert len(sent) == 3 + 3


@pytest.mark.requirement("RUN-4")
@pytest.mark.parametrize("recorded", [True, False])
def test_a_call_that_no_worker_was_there_for_is_tried_again(recorded: bool, tmp_path: Path) -> None:
    """WORKER_START_FAILED is retryable, and was raised at once."""
    with Healkit(
        tmp_path / "slow.db", config=Config(start_timeout_s=0.001, spares=0, fork_server=False)
    ) as healkit:
        healkit.vault.add("one", "def one():\n    return 1\n")
        with pytest.raises(WorkerStartFailed):
            healkit.execute("one", retry=QUICK, record=recorded)
        rows = healkit.log.query(tool="one").rows
        assert [row.error_code for row in rows] == ["WORKER_START_FAILED"] * 3
        with pytest.raises(WorkerStartFailed):
            healkit.execute("one")
        assert healkit.log.count() == 4
