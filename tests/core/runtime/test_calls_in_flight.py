"""Calls under way when their worker or their host ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from trusted import trusted_copy
from waiting import wait_until

from healkit import Execution, Healkit
from healkit.core.contracts import rpc
from healkit.core.contracts.execution import CallRecord, Grants
from healkit.core.runtime.calls import CallContext, CallRouter
from healkit.core.runtime.providers import HostFunctions
from healkit.core.store.models import ExecutionCall

ENDS = {
    "killed": ("os.kill(os.getpid(), 9)", "TOOL_CRASHED"),
    "returned": ("return", None),
    "out of time": ("time.sleep(60)", "TOOL_TIMEOUT"),
}


def tool(call: str, end: str = ENDS["killed"][0]) -> str:
    """Write a tool that ends in that way while one of its threads waits for that call."""
    return (
        "import os, threading, time\n"
        f"def tool():\n    threading.Thread(target=lambda: {call}, daemon=True).start()\n"
        f"    mcp.host.until_begun()\n    {end}\n"
    )


def call_of(healkit: Healkit, execution: Execution) -> ExecutionCall:
    (call,) = [call for call in healkit.log.calls(execution.trace_id) if call.tool != "until_begun"]
    return call


def assert_unanswered(healkit: Healkit, execution: Execution) -> None:
    """It has an ending wherever it is shown: in the log, in what the caller got, in the trace."""
    (told,) = [call for call in execution.calls if call.tool != "until_begun"]
    for call in (call_of(healkit, execution), told):
        assert (call.success, call.error_code) == (False, "CALL_UNANSWERED")
        assert call.error == "its worker ended before it had an answer"
        assert call.duration_ms > 0
    (task,) = [
        task for task in healkit.traces.get(execution.trace_id).task_results if "until" not in task.tool
    ]
    assert (task.success, task.result) == (
        False,
        "CALL_UNANSWERED: its worker ended before it had an answer",
    )


class Slow:
    """Host function that takes until it is let go."""

    def __init__(self, healkit: Healkit) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        healkit.provide(self.slow, "slow")
        healkit.provide(lambda: self.begun.wait(60), "until_begun")

    def slow(self, fails: bool = False) -> str:
        self.begun.set()
        assert self.go.wait(60)
        if fails:
            raise LookupError("nothing there")
        return "done at last"


@pytest.fixture
def slow(healkit: Healkit) -> Any:
    made = Slow(healkit)
    yield made
    made.go.set()


@pytest.mark.requirement("WORK-8", "WORK-10")
@pytest.mark.parametrize(
    ("end", "mode", "came", "kept"),
    [
        ("killed", "worker", "", '"done at last"'),
        ("killed", "subprocess", "", '"done at last"'),
        ("returned", "worker", "fails=True", ""),
        pytest.param("out of time", "worker", "", '"done at last"', marks=pytest.mark.slow),
    ],
)
def test_a_call_fails_with_its_worker_and_gets_its_late_result(
    healkit: Healkit, slow: Slow, end: str, mode: Any, came: str, kept: str
) -> None:
    """C1: its `success` stayed NULL for ever, and what the function returned reached the log with the next start."""
    statement, code = ENDS[end]
    healkit.vault.add("tool", tool(f"mcp.host.slow({came})", statement))
    execution = healkit.execute("tool", timeout=1 if code == "TOOL_TIMEOUT" else 30, mode=mode)
    assert (execution.failure and execution.failure.code) == code
    assert_unanswered(healkit, execution)
    slow.go.set()
    wait_until(lambda: "was dropped" in call_of(healkit, execution).error)
    call = call_of(healkit, execution)
    assert (call.success, call.error_code, call.result_summary) == (False, "CALL_UNANSWERED", kept)
    assert ("LookupError: nothing there" if came else "; its answer came after ") in call.error


def test_an_answer_after_the_healkit_was_closed_is_on_record(tmp_path: Path, empty_database: Path) -> None:
    """C1: it went into a file beside the database, which only another start of healkit brought in."""
    database = trusted_copy(empty_database, tmp_path / "healkit.db")
    with Healkit(database) as healkit:
        slow = Slow(healkit)
        healkit.vault.add("tool", tool("mcp.host.slow()"))
        execution = healkit.execute("tool")
    slow.go.set()
    with Healkit(database) as healkit:
        wait_until(lambda: call_of(healkit, execution).result_summary == '"done at last"')
    assert not list(tmp_path.glob("**/calls-*"))


@pytest.mark.requirement("WORK-9")
def test_a_vault_tool_under_way_when_its_caller_ends_is_recorded_to_its_own_end(
    healkit: Healkit, slow: Slow
) -> None:
    """C1: for a call of another tool."""
    healkit.vault.add("inner", "def inner():\n    return mcp.host.slow()\n")
    healkit.vault.add("tool", tool("mcp.vault.inner()"))
    execution = healkit.execute("tool")
    assert_unanswered(healkit, execution)
    slow.go.set()
    wait_until(lambda: call_of(healkit, execution).result_summary == '"done at last"')
    inner = healkit.log.query(tool="inner").rows[0]
    assert (inner.status, inner.parent_trace_id) == ("SUCCESS", execution.trace_id)


HOST = """
import sys, threading
from healkit import Healkit
healkit = Healkit(sys.argv[1])
def slow():
    print("begun", flush=True)
    threading.Event().wait()
healkit.provide(slow)
healkit.vault.add("tool", "def tool():\\n    mcp.host.slow()\\n")
healkit.execute("tool")
"""


@pytest.mark.slow
@pytest.mark.requirement("LOG-2", "WORK-8")
def test_a_call_under_way_when_its_host_dies_fails_with_it(tmp_path: Path, empty_database: Path) -> None:
    """C1: the next start ended the execution and its trace, and left its call as it was."""
    database = trusted_copy(empty_database, tmp_path / "healkit.db")
    with subprocess.Popen([sys.executable, "-c", HOST, database], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout.readline() == "begun\n"
        host.send_signal(signal.SIGKILL)
    with Healkit(database) as healkit:
        row = healkit.log.query(tool="tool").rows[0]
        (call,) = healkit.log.calls(row.trace_id)
        assert (row.error_code, call.success, call.error_code) == ("HOST_DIED", False, "HOST_DIED")
        (task,) = healkit.traces.get(row.trace_id).task_results
        assert str(task.result).startswith("HOST_DIED: its host died")


def routed(function: Callable[..., Any]) -> tuple[CallRouter, list[CallRecord]]:
    """Make a router for that function; return it with the list of what it puts on record."""
    functions, recorded = HostFunctions(), []
    functions.provide(function, "f")
    context = CallContext("trace", "default", 0, 10.0)
    return CallRouter(context, {"host": functions}, Grants(), recorded.append, 10), recorded


TIMED_OUT = rpc.RpcError("CALL_TIMEOUT", "TimeoutError", "no answer within 1 s")


@pytest.mark.requirement("WORK-10")
@pytest.mark.parametrize("late_first", [False, True])
def test_a_call_that_fails_after_it_timed_out_stays_timed_out(late_first: bool) -> None:
    """C1: its last record said that it had not ended, and so did the trace and the execution."""
    router, recorded = routed(lambda: 1 / 0)
    call = rpc.RpcCall(1, "host", "f", msgspec.Raw(b"{}"))
    result = router.handle(call)
    if late_first:
        router.ended(call, result, late=True)
        router.timed_out(call, TIMED_OUT)
    else:
        router.timed_out(call, TIMED_OUT)
        router.ended(call, result, late=True)
    assert recorded[-1] == router.records.calls[0]
    assert (recorded[-1].success, recorded[-1].error_code) == (False, "CALL_TIMEOUT")
    assert "ZeroDivisionError" in recorded[-1].error
    assert router.records.settled


@pytest.mark.requirement("WORK-10")
def test_a_worker_cannot_hide_the_end_of_a_call_behind_the_next_one_with_its_number() -> None:
    """C1: the number of a call that had timed out, used again, left one of the two without an end."""
    router, _ = routed(lambda: 1)
    first, second = (rpc.RpcCall(1, "host", "f", msgspec.Raw(b"{}")) for _ in range(2))
    answers = [router.handle(call) for call in (first, second)]
    router.timed_out(first, TIMED_OUT)
    router.ended(second, answers[1], late=False)
    router.ended(first, answers[0], late=True)
    assert [call.error_code for call in router.records.calls] == ["CALL_TIMEOUT", None]
    assert router.records.settled


def test_a_call_whose_turn_comes_after_the_end_is_on_record_and_not_performed() -> None:
    """C1: a host function could be called by a worker that had ended."""
    performed = []
    router, recorded = routed(lambda: performed.append(1))
    router.records.settle(0)
    call = rpc.RpcCall(1, "host", "f", msgspec.Raw(b"{}"))
    router.ended(call, router.handle(call), late=False)
    assert performed == []
    assert [record.error_code for record in recorded] == [None, "CALL_UNANSWERED"]
