"""Calls through the bridge: proxies, providers, records."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from programs import python
from sqlalchemy import select

from healkit import Config, Healkit
from healkit.core.contracts.execution import Grants
from healkit.core.store.models import TRACES


@pytest.mark.requirement("WORK-7", "WORK-9")
def test_a_host_function_is_a_proxy_with_signature_and_docstring_and_really_runs(healkit: Healkit) -> None:
    seen = []

    def price(product: str, units: int = 1) -> float:
        """Return what so many cost."""
        seen.append(product)
        return 2.5 * units

    healkit.provide(price)
    healkit.vault.add(
        "shop",
        "import inspect\n"
        "def shop():\n"
        "    f = mcp.host.price\n"
        "    return [f('tea', 4), f(product='milk'), str(inspect.signature(f)), f.__doc__, dir(mcp.host), dir(mcp)]\n",
    )
    execution = healkit.execute("shop")
    assert execution.failure is None, execution.failure.traceback
    assert execution.value[:2] == [10.0, 2.5]
    assert execution.value[2] == "(product: str, units: int = 1)"
    assert execution.value[3] == "Return what so many cost."
    assert "price" in execution.value[4]
    assert {"host", "vault"} <= set(execution.value[5])
    assert seen == ["tea", "milk"]


@pytest.mark.requirement("WORK-10", "LOG-1")
def test_every_call_is_recorded_by_the_host_with_arguments_result_and_duration(healkit: Healkit) -> None:
    healkit.provide(lambda x: x + 1, "increment")

    def fail() -> None:
        raise LookupError("nothing there")

    healkit.provide(fail)
    healkit.vault.add(
        "caller",
        "def caller():\n    n = 0\n    for _ in range(5):\n        n = mcp.host.increment(x=n)\n"
        "    try:\n        mcp.host.fail()\n    except Exception as error:\n        return [n, type(error).__name__, str(error)]\n",
    )
    execution = healkit.execute("caller")
    assert execution.value == [5, "ToolCallError", "mcp.host.fail: LookupError: nothing there"]
    stored = healkit.log.calls(execution.trace_id)
    assert [call.task_id for call in stored] == [f"t{n}" for n in range(1, 7)]
    assert [call.success for call in stored] == [True] * 5 + [False]
    assert stored[0].arguments == {"x": 0}
    assert stored[4].result_summary == "5"
    assert "LookupError: nothing there" in stored[5].error
    assert all(call.duration_ms > 0 for call in stored)
    assert [call.task_id for call in execution.calls] == [call.task_id for call in stored]


@pytest.mark.requirement("WORK-10")
def test_a_worker_learns_nothing_of_the_hosts_files_from_a_failed_call(healkit: Healkit) -> None:
    healkit.provide(lambda: 1 / 0, "boom")
    healkit.vault.add("caller", "def caller():\n    mcp.host.boom()\n")
    execution = healkit.execute("caller")
    assert execution.failure.ename == "ToolCallError"
    assert __file__ not in execution.failure.traceback
    assert __file__ in healkit.log.calls(execution.trace_id)[0].error


@pytest.mark.requirement("WORK-8")
def test_several_calls_are_in_flight_from_threads_and_from_async_code(healkit: Healkit) -> None:
    together = threading.Barrier(4, timeout=20)
    healkit.provide(lambda i: (together.wait(), i)[1], "meet")
    healkit.vault.add(
        "threads",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def threads():\n    with ThreadPoolExecutor(4) as pool:\n"
        "        return list(pool.map(lambda i: mcp.host.meet(i=i), range(4)))\n",
    )
    healkit.vault.add(
        "gathered",
        "import asyncio\nasync def gathered():\n"
        "    return await asyncio.gather(*(mcp.host.meet.acall(i=i) for i in range(4)))\n",
    )
    assert healkit.execute_tool("threads") == [0, 1, 2, 3]
    assert healkit.execute_tool("gathered") == [0, 1, 2, 3]


@pytest.mark.requirement("WORK-8")
def test_quick_calls_go_on_while_a_formerly_quick_tool_is_slow(healkit: Healkit) -> None:
    released = threading.Event()

    def maybe(wait: bool) -> bool:
        return released.wait(20) if wait else False

    healkit.provide(maybe)
    healkit.provide(lambda: released.set() or True, "release")
    healkit.vault.add(
        "mixed",
        "import threading\ndef mixed():\n"
        "    for _ in range(20):\n        mcp.host.maybe(wait=False)\n"
        "    got = []\n    slow = threading.Thread(target=lambda: got.append(mcp.host.maybe(wait=True)))\n"
        "    slow.start()\n    mcp.host.release()\n    slow.join()\n    return got\n",
    )
    assert healkit.execute_tool("mixed") == [True]


@pytest.mark.slow
@pytest.mark.requirement("WORK-4", "WORK-8")
def test_a_call_that_takes_too_long_times_out_and_its_late_answer_is_dropped_and_traced(
    tmp_path: Path,
) -> None:
    late = threading.Event()

    def slow() -> str:
        late.wait(30)
        return "too late"

    with Healkit(tmp_path / "x.db", config=Config(rpc_timeout_s=1, start_timeout_s=30)) as healkit:
        healkit.provide(slow)
        healkit.provide(late.set, "answer_it")
        healkit.vault.add(
            "impatient",
            "def impatient():\n    try:\n        mcp.host.slow()\n"
            "    except Exception as error:\n        message = error.code\n"
            # The thread that gives the late answer may be slow to wake; what comes after the execution is not recorded.
            "    mcp.host.answer_it()\n    while not mcp.host.on_record():\n        pass\n    return message\n",
        )

        def on_record() -> bool:
            trace_id = healkit.log.query(tool="impatient").rows[0].trace_id
            return "was dropped" in healkit.log.calls(trace_id)[0].error

        healkit.provide(on_record)
        execution = healkit.execute("impatient")
        assert execution.value == "CALL_TIMEOUT"
        call = healkit.log.calls(execution.trace_id)[0]
        assert (call.success, call.error_code) == (False, "CALL_TIMEOUT")
        assert "was dropped" in call.error


@pytest.mark.requirement("WORK-9")
def test_vault_tools_call_each_other_and_each_call_is_an_execution_with_its_parent(healkit: Healkit) -> None:
    healkit.vault.add("inner", "def inner(n: int):\n    return n * n\n")
    healkit.vault.add("outer", "def outer():\n    return mcp.vault.inner(n=7) + 1\n")
    execution = healkit.execute("outer")
    assert execution.value == 50
    inner = healkit.log.query(tool="inner").rows[0]
    assert inner.parent_trace_id == execution.trace_id
    assert inner.origin == "tool"


@pytest.mark.requirement("WORK-9", "LOG-8")
def test_a_failure_in_a_called_tool_reaches_the_caller_with_both_tracebacks(healkit: Healkit) -> None:
    healkit.vault.add("inner", "def inner():\n    return {}['missing']\n")
    healkit.vault.add("outer", "def outer():\n    return mcp.vault.inner()\n")
    failure = healkit.execute("outer").failure
    assert failure.ename == "ToolCallError"
    assert "<outer@1>" in failure.traceback
    assert "<inner@1>" in failure.traceback
    assert "KeyError: 'missing'" in failure.traceback
    assert healkit.log.query(tool="inner").rows[0].status == "FAILURE"


@pytest.mark.requirement("WORK-9")
def test_a_circle_of_tools_ends_at_the_depth_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("healkit.core.runtime.providers.MAX_DEPTH", 3)
    with Healkit(tmp_path / "x.db", config=Config(start_timeout_s=30)) as healkit:
        healkit.vault.add("again", "def again():\n    return mcp.vault.again()\n")
        failure = healkit.execute("again").failure
        assert "calling each other 3 deep" in failure.traceback
        assert healkit.log.count() == 3


@pytest.mark.requirement("WORK-8", "WORK-10")
def test_the_host_decides_what_may_be_called_and_how_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("healkit.core.runtime.executor.CALLS_MAX", 3)
    ask = (
        "import msgspec\nfrom healkit.core.contracts import rpc\n"
        "def ask(server: str, tool: str) -> str:\n"
        "    endpoint = mcp.vault.__dict__['_proxies']['ask']._endpoint\n"
        "    answer = endpoint.call(server, tool, msgspec.Raw(b'{}'))\n"
        "    return 'done' if answer.success else answer.error.code + ': ' + answer.error.message\n"
    )
    with Healkit(tmp_path / "x.db", config=Config(start_timeout_s=30)) as healkit:
        healkit.vault.add("ask", ask)
        for server, tool, expected in [
            ("healkit", "last_error", "may not call mcp.healkit.last_error"),
            ("nowhere", "x", "No server named 'nowhere'"),
            ("host", "absent", "No function named 'absent'"),
        ]:
            value = healkit.execute_tool("ask", arguments={"server": server, "tool": tool})
            assert value.startswith("CALL_REFUSED")
            assert expected in value
        healkit.provide(lambda: 1, "one")
        healkit.vault.add("many", "def many():\n    return [mcp.host.one() for _ in range(4)]\n")
        assert "used up its 3 calls" in healkit.execute("many").failure.evalue
        healkit.vault.add("nothing", "def nothing():\n    return dir(mcp)\n", grants=Grants(calls=()))
        assert healkit.execute_tool("nothing") == []


@pytest.mark.requirement("WORK-7")
def test_functions_that_could_not_be_written_as_a_proxy_are_refused(healkit: Healkit) -> None:
    from healkit.errors import ConfigError

    for name in ("__class__", "two words", "class"):
        with pytest.raises(ConfigError, match="cannot be provided"):
            healkit.provide(lambda: 1, name)


@pytest.mark.requirement("WORK-7")
def test_the_worker_side_loads_nothing_heavy() -> None:
    code = (
        "import sys, healkit.core.workers.inside.kernel_main, healkit.core.workers.inside.probe_main\n"
        "heavy = {'sqlalchemy', 'sqlmodel', 'pandas', 'ipywidgets', 'mcp', 'rich', 'typer', 'alembic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = python(code)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.requirement("WORK-11", "WORK-10")
def test_the_trace_of_a_thousand_large_calls_stays_under_a_megabyte(healkit: Healkit) -> None:
    """C7: each call takes and returns 6,000 characters, 12 MB in all."""
    healkit.provide(lambda text: text, "echo")
    healkit.vault.add(
        "chatty", "def chatty():\n    for i in range(1000):\n        mcp.host.echo(text=f'{i} ' * 1500)\n"
    )
    execution = healkit.execute("chatty", timeout=100)
    assert len(execution.calls) == 1000
    with healkit.database.engine.connect() as connection:
        (wire,) = connection.execute(
            select(TRACES.c.wire).where(TRACES.c.trace_id == execution.trace_id)
        ).scalars()
    assert 10_000 < len(wire.encode()) <= 1_000_000
