"""Frames that a worker forges."""

from __future__ import annotations

import ctypes
import runpy
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from side_by_side import at_once
from tiers import slow_but

from healkit import Execution, Healkit
from healkit.config import Mode
from healkit.core.contracts import rpc
from healkit.core.contracts.execution import Grants
from healkit.core.runtime.calls import CallContext, CallRouter
from healkit.core.runtime.providers import HostFunctions
from healkit.core.wire import framing
from healkit.parts.trials.trials import Trial

PRELUDE = runpy.run_path(str(Path(__file__).parents[2] / "core" / "escape" / "forging.py"))["PRELUDE"]
#: What a completion may be that is none, as Python that the worker evaluates; `complete` takes its members' JSON.
FORGED = {
    "a value over the limit": "complete(b'\"value\":\"' + b'a' * 30_000_000 + b'\"')",
    "too many elements": "complete(b'\"value\":[' + b'[],' * 3_000_000 + b'[]]')",
    "300,000 conversions": "complete(b'\"conversions\":[' + b'\"$: x\",' * 300_000 + b'\"\"]')",
    "a long conversion": "complete(b'\"conversions\":[\"' + b'x' * 2000 + b'\"]')",
    "invalid UTF-8": 'complete(b\'"value":"\\xff\\xfe"\')',
    "a lone surrogate": 'complete(b\'"value":"\\\\ud800"\')',
    "5,000 digits": "complete(b'\"value\":' + b'9' * 5000)",
    "1e999999": "complete(b'\"value\":1e999999')",
    "NaN": "complete(b'\"value\":NaN')",
    "101 levels": "complete(b'\"value\":' + b'[' * 101 + b']' * 101)",
    "a negative duration": "complete(b'\"took_s\":-1')",
    "an unknown field": 'complete(b\'"status":"SUCCESS"\')',
    "a line number of 5,000 digits": 'complete(b\'"failure":{"code":"","ename":"","evalue":"","traceback":"",'
    '"frames":[{"filename":"","name":"","lineno":\' + b\'9\' * 5000 + b\'}]}\')',
}
#: Those of the quick tier.
QUICK = ("a value over the limit", "300,000 conversions", "1e999999")
COMPLETE = """
def complete(members):
    return frame(b'{"type":"execution_complete","shown":false,' + members + b'}')
"""


def tool(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{PRELUDE}\n{COMPLETE}\ndef tool():\n{lines}\n"


def take(x: list[object]) -> int:
    """Return how many there are."""
    return len(x)


def memory_mb(field: str) -> float:
    """Return a field of this process's status."""
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) / 1000


@pytest.mark.requirement("SAFE-2")
@pytest.mark.parametrize("mode", ["worker", pytest.param("subprocess", marks=pytest.mark.slow)])
@pytest.mark.parametrize("forged", slow_but(FORGED, QUICK))
def test_a_forged_completion_is_a_failure_of_the_worker(healkit: Healkit, forged: str, mode: Mode) -> None:
    """S6: 30 MB passed under a 10 MB limit, 300,000 conversions made a 67 MB card, and others made `execute` raise."""
    healkit.vault.add("tool", tool(f"bridge().sendall({forged})\ntime.sleep(30)"))
    execution = healkit.execute("tool", mode=mode)
    assert execution.failure.code == "TOOL_PROTOCOL", execution.failure
    assert execution.value is None
    assert execution.conversions == []
    assert len(execution.to_html()) < 100_000
    row = healkit.log.get(execution.log_id)
    assert row.status == "FAILURE"


TRIAL = """
import os, stat
def f():
    for fd in range(3, 100):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, b'{"type":"execution_complete","value":%s}')
        except OSError:
            pass
    os._exit(0)
"""


@pytest.mark.requirement("SAFE-2")
def test_what_a_trial_forges_is_its_own_failure_and_no_other_trials(healkit: Healkit) -> None:
    """S6: a number out of range in one trial's claim made the whole list of trials raise."""
    values = ["1e999999", "9" * 5000, '"\\ud800"', "[" * 101 + "]" * 101, "1"]
    trials = [Trial(TRIAL % value, name="f") for value in values]
    results = healkit.trials([*trials, Trial("def f():\n    return 2\n", name="f")])
    assert [result.failure and result.failure.code for result in results] == ["TOOL_PROTOCOL"] * 4 + [
        None
    ] * 2
    assert [result.value for result in results[4:]] == [1, 2]


def measured(meet: Callable[[], None], database: str, code: str) -> tuple[str, str, float]:
    """Run the code as a tool; return the code and the text of its failure, and what it cost this process, in MB."""
    with Healkit(database) as healkit:
        healkit.provide(take)
        healkit.vault.add("warm", "def warm():\n    return 1\n")
        assert healkit.execute("warm").ok
        healkit.vault.add("tool", code, grants={"memory_mb": 1024})
        meet()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before_mb = memory_mb("VmRSS")
        execution = healkit.execute("tool")
        cost_mb = memory_mb("VmHWM") - before_mb
        return execution.failure.code, execution.failure.evalue, cost_mb


@pytest.mark.slow
@pytest.mark.requirement("SAFE-2")
def test_large_arguments_of_small_lists_never_become_objects(tmp_path: Path) -> None:
    """S2: one such call became 0.9 GB in the host, six 4.5 GB."""
    size = 31_000_000
    body = (
        f"args = b'{{\"x\":[' + b'[],' * {size // 3} + b'[]]}}'\n"
        'head = b\'{"type":"rpc_call","id":%d,"server":"host","tool":"take","args":\'\n'
        "for number in range(2):\n"
        "    bridge().sendall(frame(head % number + args + b'}'))\n"
        "time.sleep(30)"
    )
    # In a process of its own: this one has threads of other tests, which take memory meanwhile.
    ((code, said, cost_mb),) = at_once(measured, (str(tmp_path / "healkit.db"), tool(body)))
    assert code == "TOOL_PROTOCOL"
    assert "400,000 elements" in said
    assert cost_mb < 4 * size / 1e6


def returned(healkit: Healkit, code: str, **more: object) -> Execution:
    healkit.vault.add("tool", code)
    return healkit.execute("tool", **more)


@pytest.mark.requirement("SAFE-2")
def test_the_error_says_that_arguments_or_a_result_are_too_large(healkit: Healkit) -> None:
    healkit.provide(take)
    execution = returned(
        healkit,
        "def tool():\n    try:\n        mcp.host.take([0] * 500_000)\n    except Exception as error:\n"
        "        return type(error).__name__, error.code, str(error), mcp.host.take([0] * 300_000)\n",
    )
    assert execution.value[:2] == ("ToolCallError", "CALL_REFUSED")
    assert "more than 400,000 elements" in execution.value[2]
    assert execution.value[3] == 300_000
    healkit.vault.add("much", "def much():\n    return [0] * 500_000\n")
    execution = healkit.execute("much")
    assert execution.failure.code == "TOOL_RESULT_TOO_LARGE"
    assert "more than 400,000 elements" in execution.failure.evalue


@pytest.mark.requirement("SAFE-2")
def test_grants_come_before_arguments_and_unreadable_arguments_are_refused(healkit: Healkit) -> None:
    """S2: the header is looked at first."""
    healkit.provide(take)
    body = (
        'head = b\'{"type":"rpc_call","id":%d,"server":"%s","tool":"take","args":{"x":\'\n'
        "said = []\n"
        "for number, (server, value) in enumerate([(b'healkit', b'1e999999'), (b'host', b'1e999999'), (b'host', b'\"\\xff\"'),\n"
        "                                          (b'host', b'9' * 5000), (b'host', b'[1,2]')]):\n"
        "    bridge().sendall(frame(head % (number, server) + value + b'}}'))\n"
        "    result = answer()\n"
        "    said.append(result['result'] if result['success'] else result['error']['code'] + ' ' + result['error']['message'])\n"
        "return said"
    )
    execution = returned(healkit, tool(body))
    assert execution.failure is None, execution.failure
    ungranted, *unreadable, value = execution.value
    assert "CALL_REFUSED This tool may not call mcp.healkit.take" in ungranted
    assert all("CALL_REFUSED The arguments of mcp.host.take cannot be read" in said for said in unreadable), (
        unreadable
    )
    assert value == 2
    assert [call.error_code for call in execution.calls] == ["CALL_REFUSED"] * 4 + [None]


@pytest.mark.requirement("SAFE-2")
def test_a_worker_that_reads_no_answer_is_ended_at_its_deadline(healkit: Healkit) -> None:
    """S2: the host's event loop waited for such a worker, and no execution of the process ended any more."""
    healkit.provide(lambda n: "x" * n, "much")
    body = "for number in range(50):\n    bridge().sendall(call(number, 'host', 'much', {'n': 1_000_000}))\ntime.sleep(60)"
    healkit.vault.add("tool", tool(body))
    ended: list[Execution] = []
    runner = threading.Thread(target=lambda: ended.append(healkit.execute("tool", timeout=0.5)), daemon=True)
    runner.start()
    runner.join(60)
    assert ended, "the host hangs"
    assert ended[0].failure.code == "TOOL_TIMEOUT"


@pytest.mark.requirement("SAFE-2")
def test_calls_beyond_the_budget_are_refused_and_leave_one_record(healkit: Healkit, tmp_path: Path) -> None:
    """S2: every refused call left a record of up to 10 KB, as long as the tool went on."""
    functions, recorded = HostFunctions(), []
    functions.provide(lambda x: x, "echo")
    context = CallContext("trace", "default", 0, 10.0)
    router = CallRouter(context, {"host": functions}, Grants(), recorded.append, max_calls=600)
    text = framing.raw({"x": "a" * 20_000})
    for number in range(2000):
        call = rpc.RpcCall(number, "host", "echo", text)
        result = router.handle(call)
        router.ended(call, result, late=False)
        assert result.success == (number < 600)
    assert len(router.records.calls) == 601
    assert router.records.calls[-1].error_code == "CALL_REFUSED"
    kept = sum(len(call.arguments) + len(call.result_summary) for call in router.records.calls)
    assert 8_000_000 <= kept < 8_200_000
    assert router.records.calls[-2].arguments.endswith("[TRUNCATED, 20,008 characters]")


@pytest.mark.requirement("SAFE-2")
def test_an_error_that_repeats_its_arguments_is_recorded_without_its_middle() -> None:
    """S2: an exception of a host function with 9 MB of arguments in it was kept whole, with each call's record."""
    functions = HostFunctions()

    def fail(x: str) -> None:
        raise ValueError(x)

    functions.provide(fail)
    router = CallRouter(
        CallContext("trace", "default", 0, 10.0), {"host": functions}, Grants(), lambda _: None, 10
    )
    call = rpc.RpcCall(1, "host", "fail", framing.raw({"x": "a" * 9_000_000}))
    router.ended(call, router.handle(call), late=False)
    (recorded,) = router.records.calls
    assert recorded.error_code == "CALL_FAILED"
    assert "Traceback (most recent call last)" in recorded.error
    assert len(recorded.error) < 21_000


@pytest.mark.requirement("SAFE-2")
def test_a_display_of_too_many_elements_ends_the_run_with_the_reason(healkit: Healkit) -> None:
    """S2: 20 MB of nested lists in a display became 0.4 GB in the host."""
    body = "publish('display_data', {'data': {'text/plain': 'x', 'application/x': [[]] * 1_000_000}, 'metadata': {}})\ntime.sleep(30)"
    healkit.vault.add("tool", tool(body), grants={"memory_mb": 1024})
    execution = healkit.execute("tool")
    assert execution.failure.code == "TOOL_OUTPUT_LIMIT"
    assert "more than 400,000 elements" in execution.failure.evalue


@pytest.mark.requirement("SAFE-2")
def test_a_forged_crash_dump_is_read_without_harm(healkit: Healkit) -> None:
    """S6: a line number of 5,000 digits in what looks like a dump of faulthandler made `execute` raise."""
    body = (
        "dump = 'Fatal Python error: x\\n' + '  File \"<tool@1>\", line ' + '9' * 5000 + ' in f\\n' + '  File \"<tool@1>\", line 3 in g\\n' * 1500\n"
        "runner = next(o for o in gc.get_objects() if type(o).__name__ == 'ToolRunner')\n"
        "os.write(runner.crash_fd, dump.encode())\n"
        "os._exit(3)"
    )
    healkit.vault.add("tool", tool(body))
    for mode in ("worker", "subprocess"):
        execution = healkit.execute("tool", mode=mode)
        assert execution.failure.code == "TOOL_EXITED"
        assert 100 < len(execution.failure.frames) <= 400
