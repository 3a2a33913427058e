"""Rows that end whatever is raised meanwhile (LOG-16).

An error of healkit's own is a failure with healkit's code, which says so; it is never a bare exception, and never a row
that stays RUNNING until its host is taken for dead. What tools give or raise that breaks its reader: test_values.py.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from injection import Injection, injection
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.runtime import background
from healkit.errors import HealkitError

NESTED = "def outer(n):\n    print('hi')\n    return {'n': (n, mcp.vault.inner(n=n))}"
INNER = "def inner(n):\n    return {n, n + 1}"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Healkit]:
    # A start that is broken off is waited for as long as a start may take.
    path = tmp_path_factory.mktemp("rows") / "healkit.db"
    with Healkit(path, config=Config(start_timeout_s=12)) as healkit:
        healkit.vault.add("outer", NESTED)
        healkit.vault.add("inner", INNER)
        healkit.vault.add("rows", "SELECT 1 AS a, :n AS b", type="sql")
        yield healkit


@pytest.fixture(scope="module")
def injected(tools: Healkit) -> Iterator[Injection]:
    """Have healkit's threads start under an injection, and end them afterwards."""
    background.shutdown()
    before = contexts()
    with injection() as made:
        yield made
        background.shutdown()
    # Here, and without waiting for what was never sent: what was broken off leaves its sockets to the collector.
    for context in contexts():
        if not any(context is one for one in before):
            context.destroy(linger=0)
    gc.collect()


def contexts() -> list[zmq.Context]:
    return [one for one in gc.get_objects() if isinstance(one, zmq.Context) and not one.closed]


#: Error codes of an execution in which one of our functions raised. TOOL_PROTOCOL: while the host reads what a worker
#: sent, it cannot distinguish our own error from wrong bytes. WORKER_LOST: the host could not take over a forked process.
_TRUTHFUL = {
    "",
    "INTERNAL_ERROR",
    "TOOL_EXCEPTION",
    "TOOL_PROTOCOL",
    "WORKER_START_FAILED",
    "SQL_ERROR",
    "WORKER_LOST",
}
#: A start that was broken off leaves its socket to the collector, and the bridge's thread ends with what it raised.
leaves_sockets = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)


def outcome_of(healkit: Healkit, tool: str, mode: Any = None) -> str:
    """Run the tool; return its failure's code or its error's, empty for a success. Anything else raised fails."""
    try:
        execution = healkit.execute(tool, arguments={"n": 1}, timeout=10, mode=mode)
    except HealkitError as error:
        return error.code
    return execution.failure.code if execution.failure is not None else ""


#: Step of healkit's own, tried also where so few are that the sample has none.
_OWN_STEP = "core/runtime/outcomes.py:conclude"


def raised_at_each_step(
    healkit: Healkit, injected: Injection, tool: str, mode: Any = None, part: int = 1
) -> None:
    """Raise in each function that an execution enters, or in every so many of them; each time the rows have ended."""
    injected.names.clear()
    for _ in range(2):
        injected.begin()
        assert outcome_of(healkit, tool, mode) == ""
    names = sorted(injected.names)
    assert len(names) > 100
    for name in dict.fromkeys([*names[::part], *([_OWN_STEP] if _OWN_STEP in names else [])]):
        injected.begin(name)
        code = outcome_of(healkit, tool, mode)
        injected.end()
        background.loop.wait_for(_all_others())
        # One that was cancelled has its end recorded by a thread, after its task.
        wait_until(lambda: healkit.log.running() == [])
        # Where the worker's word is lost on its last step, nothing was heard of the tool within its time.
        unheard = {"TOOL_TIMEOUT"} if name.endswith("Worker._post.<locals>.settle") else set()
        assert code in _TRUTHFUL | unheard, f"{name}: {code}"
    assert {row.error_code for row in healkit.log.query(limit=2000, tried=True)} >= {None, "INTERNAL_ERROR"}
    assert healkit.log.query(limit=2000, tried=True, text="HostDied").rows == []


@pytest.mark.requirement("LOG-16")
def test_an_error_at_some_steps_of_a_sql_tool_ends_its_row(tools: Healkit, injected: Injection) -> None:
    raised_at_each_step(tools, injected, "rows", part=4)


@pytest.mark.slow
@leaves_sockets
@pytest.mark.requirement("LOG-16")
def test_an_error_at_some_steps_of_a_nested_call_ends_both_rows(tools: Healkit, injected: Injection) -> None:
    raised_at_each_step(tools, injected, "outer", part=120)


@pytest.mark.slow
@pytest.mark.requirement("LOG-16")
def test_an_error_at_any_step_of_a_sql_tool_ends_its_row(tools: Healkit, injected: Injection) -> None:
    raised_at_each_step(tools, injected, "rows")


@leaves_sockets
@pytest.mark.slow
@pytest.mark.timeout(400)  # a start that is broken off is waited for as long as a start may take
@pytest.mark.requirement("LOG-16")
def test_an_error_at_every_twelfth_step_of_a_nested_call_ends_both_rows(
    tools: Healkit, injected: Injection
) -> None:
    raised_at_each_step(tools, injected, "outer", part=12)


@leaves_sockets
@pytest.mark.slow
@pytest.mark.requirement("LOG-16")
def test_an_error_at_every_fifth_step_without_a_kernel_ends_the_row(
    tools: Healkit, injected: Injection
) -> None:
    raised_at_each_step(tools, injected, "inner", "subprocess", part=5)


@leaves_sockets
@pytest.mark.requirement("LOG-16")
@pytest.mark.parametrize(
    "step",
    [
        "core/runtime/outcomes.py:conclude", "core/runtime/outcomes.py:end_of", "core/store/arguments.py:pack_arguments",
        "core/runtime/recording.py:Recorder.close_row", "core/runtime/collecting.py:LogCleaner.for_log",
        "core/crossing/values.py:readable_json", "core/runtime/executor.py:_init",
    ],
)  # fmt: skip
def test_an_error_of_healkits_own_is_a_failure_that_says_so(
    tools: Healkit, injected: Injection, step: str
) -> None:
    injected.begin(step)
    assert outcome_of(tools, "inner") == "INTERNAL_ERROR"
    injected.end()
    (row,) = tools.log.query(limit=1).rows
    assert (row.status, row.error_code, row.ename) == ("FAILURE", "INTERNAL_ERROR", "InternalError")
    assert "healkit itself failed, with ArithmeticError at line" in (row.evalue or "")
    execution = tools.last_error()
    assert "neither the tool nor the call is to blame" in str(execution.explain())
    assert outcome_of(tools, "inner") == ""


@pytest.mark.requirement("LOG-16")
def test_a_sanitizer_that_fails_ends_the_row_without_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents that could not be cleaned are not written, but the error is on record."""

    word = "xyzzy-1234"

    def fail(*_: object) -> None:
        raise ArithmeticError(word)

    with Healkit(tmp_path / "healkit.db", config=Config(sanitize_log=True)) as healkit:
        healkit.vault.add("echo", "def echo(word):\n    return word")
        with monkeypatch.context() as broken:
            broken.setattr("healkit.core.runtime.collecting.cleaned_record", fail)
            with pytest.raises(HealkitError, match="healkit itself failed"):
                healkit.execute("echo", arguments={"word": word})
        (row,) = healkit.log.query().rows
    assert (row.status, row.error_code) == ("FAILURE", "INTERNAL_ERROR")
    assert "xyzzy" not in json.dumps([row.arguments, row.error_traceback, row.failure])


@pytest.mark.requirement("LOG-16")
def test_a_call_that_is_cancelled_at_any_step_has_an_ended_row(tools: Healkit, injected: Injection) -> None:
    injected.names.clear()
    injected.begin()
    assert outcome_of(tools, "inner") == ""
    names = sorted(injected.names)[::15]

    async def cancelled_at(name: str) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(tools.aexecute("inner", arguments={"n": 1}, timeout=10))
        injected.begin(name, lambda: loop.call_soon_threadsafe(task.cancel) and None)
        await asyncio.wait([task])
        injected.end()

    for name in names:
        asyncio.run(cancelled_at(name))
        background.loop.wait_for(_all_others())
        wait_until(lambda: tools.log.running() == [])


async def _all_others() -> None:
    """Wait for every execution on healkit's loop: one that was cancelled still records its end."""
    while executions := [task for task in asyncio.all_tasks() if "Executor.execute" in repr(task.get_coro())]:
        await asyncio.wait(executions)


@pytest.mark.slow
@pytest.mark.requirement("LOG-16")
def test_an_error_in_one_trial_ends_that_trial_only(tools: Healkit, injected: Injection) -> None:
    codes = [("def one(n):\n    return n", {"n": number}) for number in range(3)]
    tools.trials(codes)
    injected.begin()
    injected._began = True  # trials do not pass through the executor
    injected.target = "core/runtime/outcomes.py:outline_of"
    results = tools.trials(codes, parallel=1)
    injected.end()
    ended = [result.failure.code if result.failure else result.value for result in results]
    assert sorted(map(str, ended)) == ["1", "2", "INTERNAL_ERROR"] or ended.count("INTERNAL_ERROR") == 1
    assert [row.tool_name for row in tools.log.running()] == []
