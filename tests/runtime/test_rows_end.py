"""Rows that end whatever is raised meanwhile (LOG-16).

An error of healkit's own is a failure with healkit's code, which says so; it is never a bare exception, and never a row
that stays RUNNING until its host is taken for dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from injection import Injection, injection
from waiting import wait_until

from healkit import Config, Healkit
from healkit.errors import ArgumentsInvalid, HealkitError
from healkit.runtime import background

NESTED = "def outer(n):\n    print('hi')\n    return {'n': (n, mcp.vault.inner(n=n))}"
INNER = "def inner(n):\n    return {n, n + 1}"


@pytest.fixture
def injected() -> Iterator[Injection]:
    """Have healkit's threads start under an injection, and end them afterwards."""
    background.shutdown()
    with injection() as made:
        yield made
        background.shutdown()
    gc.collect()  # here, where what was broken off may leave a socket; not in a test that comes later


@pytest.fixture
def tools(tmp_path: Path, empty_database: Path) -> Iterator[Healkit]:
    # A start that is broken off is waited for as long as a start may take.
    database = shutil.copy(empty_database, tmp_path / "healkit.db")
    with Healkit(database, config=Config(start_timeout_s=12)) as healkit:
        healkit.vault.add("outer", NESTED)
        healkit.vault.add("inner", INNER)
        healkit.vault.add("rows", "SELECT 1 AS a, :n AS b", type="sql")
        yield healkit


#: What an execution may say in which one of our functions raised. While what a worker sent is read, a fault of ours cannot
#: be told from bytes that are wrong: TOOL_PROTOCOL.
_TRUTHFUL = {"", "INTERNAL_ERROR", "TOOL_EXCEPTION", "TOOL_PROTOCOL", "WORKER_START_FAILED", "SQL_ERROR"}
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


def raised_at_each_step(
    healkit: Healkit, injected: Injection, tool: str, mode: Any = None, part: int = 1
) -> None:
    """Raise in each function that an execution enters, or in every so many of them; each time the rows have ended."""
    injected.begin()
    assert outcome_of(healkit, tool, mode) == ""
    injected.begin()
    assert outcome_of(healkit, tool, mode) == ""
    names = sorted(injected.names)
    assert len(names) > 100
    for name in names[::part]:
        injected.begin(name)
        code = outcome_of(healkit, tool, mode)
        injected.end()
        background.loop.wait_for(_all_others())
        # One that was cancelled has its end recorded by a thread, after its task.
        wait_until(lambda: healkit.log.running() == [])
        assert code in _TRUTHFUL, f"{name}: {code}"
    assert {row.error_code for row in healkit.log.query(limit=2000, tried=True)} >= {None, "INTERNAL_ERROR"}
    assert healkit.log.query(limit=2000, tried=True, text="HostDied").rows == []


@pytest.mark.requirement("LOG-16")
def test_an_error_at_any_step_of_a_sql_tool_ends_its_row(tools: Healkit, injected: Injection) -> None:
    raised_at_each_step(tools, injected, "rows")


@leaves_sockets
@pytest.mark.requirement("LOG-16")
def test_an_error_at_some_steps_of_a_nested_call_ends_both_rows(tools: Healkit, injected: Injection) -> None:
    raised_at_each_step(tools, injected, "outer", part=40)


@leaves_sockets
@pytest.mark.slow
@pytest.mark.timeout(400)  # a start that is broken off is waited for as long as a start may take
@pytest.mark.requirement("LOG-16")
def test_an_error_at_every_eighth_step_of_a_nested_call_ends_both_rows(
    tools: Healkit, injected: Injection
) -> None:
    raised_at_each_step(tools, injected, "outer", part=8)


@leaves_sockets
@pytest.mark.slow
@pytest.mark.requirement("LOG-16")
def test_an_error_at_any_step_without_a_kernel_ends_the_row(tools: Healkit, injected: Injection) -> None:
    raised_at_each_step(tools, injected, "inner", "subprocess")


@leaves_sockets
@pytest.mark.requirement("LOG-16")
@pytest.mark.parametrize(
    "step",
    [
        "runtime/outcomes.py:conclude", "runtime/outcomes.py:end_of", "store/arguments.py:pack_arguments",
        "runtime/recording.py:Recorder.close_row", "tracing/trace_collector.py:Tracer.for_log",
        "crossing/values.py:readable_json", "runtime/executor.py:_init",
    ],
)  # fmt: skip
def test_an_error_of_healkits_own_is_a_failure_that_says_so(
    tools: Healkit, injected: Injection, step: str
) -> None:
    injected.begin(step)
    assert outcome_of(tools, "inner") == "INTERNAL_ERROR"
    injected.end()
    (row,) = tools.log.query().rows
    assert (row.status, row.error_code, row.ename) == ("FAILURE", "INTERNAL_ERROR", "InternalError")
    assert "healkit itself failed, with ArithmeticError at line" in (row.evalue or "")
    execution = tools.last_error()
    assert execution is not None
    assert "neither the tool nor the call is to blame" in str(execution.explain())
    assert outcome_of(tools, "inner") == ""


@pytest.mark.requirement("LOG-16")
def test_a_sanitizer_that_fails_ends_the_row_without_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents that could not be cleaned are not written; the error is on record all the same."""

    word = "xyzzy-1234"

    def fail(*_: object) -> None:
        raise ArithmeticError(word)

    with Healkit(tmp_path / "healkit.db", config=Config(sanitize_log=True)) as healkit:
        healkit.vault.add("echo", "def echo(word):\n    return word")
        with monkeypatch.context() as broken:
            broken.setattr("healkit.tracing.trace_collector.cleaned_record", fail)
            with pytest.raises(HealkitError, match="healkit itself failed"):
                healkit.execute("echo", arguments={"word": word})
        (row,) = healkit.log.query().rows
    assert (row.status, row.error_code) == ("FAILURE", "INTERNAL_ERROR")
    assert "xyzzy" not in json.dumps([row.arguments, row.error_traceback, row.failure])


@pytest.mark.requirement("LOG-16")
def test_a_call_that_is_cancelled_at_any_step_has_an_ended_row(tools: Healkit, injected: Injection) -> None:
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


@pytest.mark.requirement("LOG-16")
def test_an_error_in_one_trial_ends_that_trial_only(tools: Healkit, injected: Injection) -> None:
    codes = [("def one(n):\n    return n", {"n": number}) for number in range(3)]
    tools.trials(codes)
    injected.begin()
    injected._began = True  # trials do not pass through the executor
    injected.target = "runtime/outcomes.py:outline_of"
    results = tools.trials(codes, parallel=1)
    injected.end()
    ended = [result.failure.code if result.failure else result.value for result in results]
    assert sorted(map(str, ended)) == ["1", "2", "INTERNAL_ERROR"] or ended.count("INTERNAL_ERROR") == 1
    assert [row.tool_name for row in tools.log.running()] == []


BIG = 10**5000
BIG_VALUES = [BIG, -BIG, [BIG, {"a": -BIG}], {BIG: 1}, (BIG,), {BIG, 1}, 10**640, 10**4299, 10**4300, 2**2048]


@pytest.mark.requirement("LOG-16")
@pytest.mark.parametrize("mode", ["worker", "subprocess"])
def test_whole_numbers_of_any_size_cross_both_ways(tools: Healkit, mode: Any) -> None:
    tools.vault.add("same", "def same(v):\n    return v")
    tools.vault.add("passed_on", "def passed_on(v):\n    return mcp.vault.same(v=mcp.host.twice(v=v))")
    tools.provide(lambda v: v, name="twice")
    for value in BIG_VALUES:
        for tool in ("same", "passed_on"):
            execution = tools.execute(tool, arguments={"v": value}, mode=mode)
            assert execution.failure is None
            assert execution.value == value
            assert type(execution.value) is type(value)
            assert execution.to_html()
            assert tools.execution(execution.log_id or 0).arguments == {"v": value}  # type: ignore[union-attr]  # it is there
    assert "int of 5,001 digits" in tools.execute("same", arguments={"v": BIG}, mode=mode).to_text()
    assert [row.tool_name for row in tools.log.running()] == []


@pytest.mark.requirement("LOG-16")
def test_a_whole_number_crosses_where_python_reads_few_digits(tools: Healkit) -> None:
    tools.vault.add(
        "power", "import sys\ndef power(n):\n    sys.set_int_max_str_digits(640)\n    return 10**n"
    )
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        for size in (600, 640, 641, 700, 1200):
            assert tools.execute_tool("power", arguments={"n": size}) == 10**size
    finally:
        sys.set_int_max_str_digits(before)


def test_a_wrong_call_with_a_long_number_says_how_many_digits_it_has(tools: Healkit) -> None:
    tools.vault.add("word", "def word(text: str):\n    return text")
    with pytest.raises(HealkitError, match=r"'text' must be string, got <int of 5,001 digits> \(int\)"):
        tools.execute("word", arguments={"text": BIG})


#: Code of tools whose results, or exceptions, break what reads them; each with how the execution ends.
HOSTILE = {
    "def t():\n    class A:\n        def __repr__(self): raise KeyError('r')\n    return A()": "TOOL_RESULT_UNSUPPORTED",
    "def t():\n    class A(dict):\n        def items(self): raise KeyError('r')\n    return A(a=1)": "TOOL_RESULT_UNSUPPORTED",
    "def t():\n    class A(dict):\n        __iter__ = keys = None\n    return {'a': A(a=1)}": "TOOL_RESULT_UNSUPPORTED",
    "def t():\n    class A:\n        def __reduce__(self): raise KeyError('r')\n    return [A()]": "TOOL_RESULT_UNSUPPORTED",
    "def t():\n    class A:\n        def __eq__(self, o): raise KeyError('e')\n        def __hash__(self): return 1\n    return {A(): 1}": "TOOL_RESULT_UNSUPPORTED",
    "import dataclasses\ndef t():\n    @dataclasses.dataclass\n    class A:\n        x: int\n        def __getattribute__(self, name): raise KeyError(name)\n    return A(1)": "TOOL_EXCEPTION",
    "import enum\ndef t():\n    class E(enum.Enum):\n        A = 1\n        @property\n        def value(self): raise KeyError('v')\n    return E.A": "TOOL_RESULT_UNSUPPORTED",
    "import pathlib\ndef t():\n    class P(type(pathlib.PurePath())):\n        def __str__(self): raise KeyError('p')\n    return P('a')": "TOOL_RESULT_UNSUPPORTED",
    "def t():\n    return type('\\ud800', (), {})()": "TOOL_EXCEPTION",
    "def t():\n    a = []\n    a.append(a)\n    return a": "TOOL_RESULT_UNSUPPORTED",
    "def t():\n    a = []\n    for _ in range(100_000): a = [a]\n    return a": "TOOL_RESULT_UNSUPPORTED",
    "def t():\n    a = {}\n    for _ in range(300): a = {'a': a}\n    return a": "TOOL_RESULT_UNSUPPORTED",
    "def t():\n    return {float('nan'): 1, float('nan'): 2}": "",
    "def t():\n    return {'\\ud800': '\\udfff', '\\x00': '\\u2028'}": "",
    "import sys\ndef t():\n    sys.setrecursionlimit(60)\n    return [[[[[[(1,)]]]]]]": "",
    "import sys\ndef t():\n    sys.settrace(lambda *a: 1 / 0)\n    return {1: 2}": "TOOL_EXCEPTION",
    "def t():\n    raise type('\\ud800', (Exception,), {})('\\udfff')": "TOOL_EXCEPTION",
    "def t():\n    class E(Exception):\n        def __str__(self): raise SystemExit(3)\n    raise E()": "TOOL_EXCEPTION",
    "def t():\n    class E(Exception):\n        __cause__ = property(lambda self: 1 / 0)\n    raise E()": "TOOL_EXCEPTION",
    "def t():\n    class E(Exception):\n        def __getattribute__(self, name): raise KeyError(name)\n    raise E()": "TOOL_EXITED",
    "def t():\n    a, b = ValueError('a'), KeyError('b')\n    a.__context__, b.__context__ = b, a\n    raise a": "TOOL_EXCEPTION",
    "def t():\n    raise ValueError(10**5000)": "TOOL_EXCEPTION",
}  # fmt: skip


@pytest.mark.requirement("LOG-16")
@pytest.mark.parametrize(("code", "ends"), HOSTILE.items(), ids=range(len(HOSTILE)))
def test_a_value_that_breaks_its_reader_ends_the_row(healkit: Healkit, code: str, ends: str) -> None:
    healkit.vault.add("t", code)
    execution = healkit.execute("t", timeout=20)
    assert (execution.failure.code if execution.failure else "") == ends, execution.failure
    assert execution.to_html()
    (row,) = healkit.log.query().rows
    assert (row.status, row.error_code) == ("FAILURE" if ends else "SUCCESS", ends or None)


class _Raises(dict):  # type: ignore[type-arg]  # whatever it holds
    def items(self) -> Any:
        raise KeyError("i")

    def __iter__(self) -> Any:
        raise KeyError("i")


@pytest.mark.requirement("LOG-16")
@pytest.mark.parametrize("value", [_Raises(a=1), {"\ud800": 1}, {float("nan"): 1}, [[]] * 3], ids=range(4))
def test_an_argument_that_breaks_its_reader_ends_the_row(tools: Healkit, value: Any) -> None:
    tools.vault.add("take", "def take(v):\n    return 1")
    with contextlib.suppress(ArgumentsInvalid):
        tools.execute("take", arguments={"v": value})
    assert [(row.status, row.error_code) for row in tools.log.query()] in (
        [("SUCCESS", None)],
        [("FAILURE", "ARGUMENTS_INVALID")],
    )
