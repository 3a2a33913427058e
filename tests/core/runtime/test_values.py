"""Arguments, values and outputs on their way over the border."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import decimal
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tables import each

from healkit import Config, Healkit
from healkit.errors import ArgumentsInvalid

#: Expression, its value, and what the record shows.
READABLE: list[tuple[str, Any, Any]] = [
    ("{3, 1, 2}", {1, 2, 3}, [1, 2, 3]),
    ("(1, (2, 3))", (1, (2, 3)), [1, [2, 3]]),
    ("2**100", 2**100, 2**100),
    ("[float('inf'), -0.0]", [math.inf, -0.0], ["Infinity", -0.0]),
    ("b'abc'", b"abc", {"base64": "YWJj", "size_bytes": 3}),
    ("{1: 'a', (2, 3): 'b'}", {1: "a", (2, 3): "b"}, {"1": "a", "(2, 3)": "b"}),
    ("'\\ud800'", "\ud800", "\\ud800"),
    ("__import__('datetime').date(2026, 1, 2)", dt.date(2026, 1, 2), "2026-01-02"),
    ("{'@': ['set', [1]]}", {"@": ["set", [1]]}, {"@": ["set", [1]]}),
    ("__import__('decimal').Decimal('1.10')", decimal.Decimal("1.10"), "1.10"),
]


@pytest.mark.requirement("DATA-1", "LOG-5")
def test_a_value_arrives_as_it_is_and_is_on_record_in_a_readable_form(healkit: Healkit) -> None:
    def check(number: int, expression: str, value: Any, shown: Any) -> None:
        healkit.vault.add(f"give{number}", f"def give{number}():\n    return {expression}\n")
        execution = healkit.execute(f"give{number}")
        assert execution.ok, execution.failure
        assert (type(execution.value), repr(execution.value)) == (type(value), repr(value))
        assert json.loads(healkit.log.get(execution.log_id).result_summary) == shown
        assert execution.conversions == []

    each(check, {row[0]: (number, *row) for number, row in enumerate(READABLE)})


@pytest.mark.requirement("DATA-1", "DATA-2")
@pytest.mark.parametrize("mode", ["worker", "subprocess"])
def test_frames_and_arrays_arrive_as_they_are_both_ways(healkit: Healkit, mode: Any) -> None:
    healkit.vault.add("echo", "def echo(**given):\n    given['df'].loc[0, 'n'] = -1.0\n    return given\n")
    frame = pd.DataFrame({"n": np.arange(50_000.0), "t": ["a", None] * 25_000})
    given = {
        "df": frame,
        "when": pd.Timestamp("2026-01-02", tz="UTC"),
        "grid": np.arange(6, dtype="i2").reshape(2, 3),
    }
    execution = healkit.execute("echo", arguments=given, mode=mode)
    assert execution.ok, execution.failure
    assert frame.loc[0, "n"] == 0  # the tool has its own
    assert execution.value["df"].loc[0, "n"] == -1
    execution.value["df"].loc[0, "n"] = 0.0  # and so has the caller
    pd.testing.assert_frame_equal(execution.value["df"], frame)
    assert execution.value["when"] == given["when"]
    np.testing.assert_array_equal(execution.value["grid"], given["grid"])
    assert execution.value["grid"].dtype == np.int16


@pytest.mark.requirement("DATA-1")
@pytest.mark.parametrize(
    ("value", "path", "what"),
    [
        ("[1, {'model': object()}]", "$[1].model", "holds an object"),
        ("(x for x in 'ab')", "the result is", "a generator"),
        ("(cycle := [1], cycle.append(cycle))[0]", "$[1]", "refers back"),
        ("__import__('pandas').DataFrame({'a': [1], 'b': [object()]})", "$ column 'b'[0]", "object"),
    ],
)
def test_a_result_that_cannot_cross_is_a_failure_that_names_its_place(
    healkit: Healkit, value: str, path: str, what: str
) -> None:
    healkit.vault.add("give", f"def give():\n    return {value}\n")
    failure = healkit.execute("give").failure
    assert failure.code == "TOOL_RESULT_UNSUPPORTED"
    assert path in failure.evalue
    assert what in failure.evalue


@pytest.mark.requirement("DATA-1")
def test_an_argument_that_cannot_cross_is_refused_before_a_worker_is_touched(healkit: Healkit) -> None:
    class Stranger:
        def __repr__(self) -> str:
            raise AssertionError("the host must not run a stranger's code")

    healkit.vault.add("echo", "def echo(**given):\n    return given\n")
    with pytest.raises(ArgumentsInvalid, match=r"c\[0\] holds a value of type .*Stranger") as caught:
        healkit.execute("echo", arguments={"a": {1}, "c": [Stranger()]})
    assert healkit.log.get(caught.value.log_id).error_code == "ARGUMENTS_INVALID"


@pytest.mark.requirement("DATA-1", "LOG-5")
def test_arguments_of_any_kind_come_back_from_the_record_and_run_again(healkit: Healkit) -> None:
    healkit.vault.add("echo", "def echo(**given):\n    return given\n")
    given = {"a": {1}, "b": math.inf, "d": b"x", "e": {(1, 2): dt.date(2026, 1, 2)}, "g": np.arange(3)}
    first = healkit.execute("echo", arguments=given)
    assert repr(first.arguments) == repr(first.value) == repr(given)
    again = healkit.rerun(first.log_id)
    assert repr(again.value) == repr(given)
    assert repr(healkit.history.execution(first.log_id).arguments) == repr(given)


@pytest.mark.requirement("DATA-2")
def test_the_record_of_a_large_frame_is_a_preview_and_says_so_where_its_data_is_not_kept(
    tmp_path: Path,
) -> None:
    healkit = Healkit(tmp_path / "x.db", config=Config(views_mb=0))
    healkit.vault.add("size", "def size(df):\n    return len(df)\n")
    frame = pd.DataFrame({"a": np.arange(10_000), "b": [None, *["x"] * 9_999]})
    execution = healkit.execute("size", arguments={"df": frame})
    assert execution.value == 10_000
    kept = healkit.history.execution(execution.log_id).arguments["df"].shown
    assert (kept["shape"], kept["columns"], kept["nulls"], len(kept["first"])) == (
        [10_000, 2],
        ["a", "b"],
        [0, 1],
        5,
    )
    with pytest.raises(ArgumentsInvalid, match=r"not all there: .*DataFrame 10,000 × 2.*was not kept"):
        healkit.rerun(execution.log_id)
    healkit.close()


@pytest.mark.requirement("DATA-2")
def test_wrong_columns_are_named_before_a_worker_is_touched(healkit: Healkit) -> None:
    code = "import pandas as pd\ndef mean(df: pd.DataFrame, of: str = 'age'):\n    return df[of].mean()\n"
    entry = healkit.vault.add("mean", code)
    assert entry.input_schema["properties"]["df"] == {"type": "object", "format": "dataframe"}
    with pytest.raises(ArgumentsInvalid, match=r"'df' must be a DataFrame, got \{'age'.* \(dict\)\. It"):
        healkit.execute("mean", arguments={"df": {"age": [1, 2]}})
    schema = {
        "type": "object",
        "properties": {"df": {"type": "object", "format": "dataframe", "columns": ["age"]}},
        "required": ["df"],
    }
    healkit.vault.add("older", code.replace("mean(df", "older(df"), input_schema=schema)
    with pytest.raises(ArgumentsInvalid, match="'df' has no column 'age': Did you mean 'Age'"):
        healkit.execute("older", arguments={"df": pd.DataFrame({"Age": [1, 2]})})
    assert healkit.execute("older", arguments={"df": pd.DataFrame({"age": [1, 2]})}).value == 1.5


@pytest.mark.requirement("LOG-6")
def test_a_long_result_is_summarised_with_its_size_and_returned_whole(healkit: Healkit) -> None:
    healkit.vault.add("long", "def long():\n    return 'x' * 50_000\n")
    execution = healkit.execute("long")
    assert len(execution.value) == 50_000
    stored = healkit.log.get(execution.log_id).result_summary
    assert len(stored) == 2000
    assert stored.endswith("[TRUNCATED, 50,002 characters]")


@pytest.mark.slow
@pytest.mark.requirement("VAULT-2", "LOG-1")
def test_wrong_calls_name_the_argument_before_a_worker_is_touched_and_are_on_record(healkit: Healkit) -> None:
    healkit.vault.add("add", "def add(a: int, b: int = 0):\n    return a + b\n")
    for arguments, said in [
        ({}, "'a' is missing"),
        ({"a": "x"}, "integer"),
        ({"a": 1, "c": 2}, "'c' is unknown"),
    ]:
        with pytest.raises(ArgumentsInvalid, match=said) as caught:
            healkit.execute("add", arguments=arguments)
        row = healkit.log.get(caught.value.log_id)
        assert (row.status, row.error_code, row.arguments) == ("FAILURE", "ARGUMENTS_INVALID", arguments)
    with pytest.raises(ArgumentsInvalid, match="must be a dict"):
        healkit.execute("add", arguments=[1])
    with pytest.raises(ArgumentsInvalid, match="are allowed"):
        healkit.execute("add", arguments={"a": "x" * 50_000_000})


@pytest.mark.slow
@pytest.mark.requirement("WORK-1")
def test_rich_outputs_reach_the_caller_as_they_come(healkit: Healkit) -> None:
    healkit.vault.add(
        "shows",
        "import sys\nfrom IPython.display import display, HTML\nimport matplotlib.pyplot as plt\nimport pandas as pd\n"
        "def shows():\n    print('text')\n    print('warned', file=sys.stderr)\n    display(HTML('<b>bold</b>'))\n"
        "    display(pd.DataFrame({'a': [1]}))\n    plt.plot([1, 2])\n    plt.show()\n",
    )
    live: list[dict[str, Any]] = []
    execution = healkit.execute("shows", on_output=live.append)
    assert execution.ok, execution.failure
    kinds = [o["name"] if o["output_type"] == "stream" else max(o["data"]) for o in execution.outputs]
    assert kinds[:2] == ["stdout", "stderr"] or kinds[:2] == ["stderr", "stdout"]
    data = [o["data"] for o in execution.outputs if o["output_type"] == "display_data"]
    assert data[0]["text/html"] == "<b>bold</b>"
    assert "<table" in data[1]["text/html"]
    assert any("image/png" in d for d in data)
    assert [o["output_type"] for o in live].count("display_data") == len(data)


@pytest.mark.slow
@pytest.mark.requirement("WORK-1")
def test_a_tool_that_displays_faster_than_the_host_reads_loses_no_output(healkit: Healkit) -> None:
    """ZeroMQ silently drops messages when more than 1,000 are waiting, unless a setting forbids it."""
    healkit.vault.add(
        "quick",
        "from IPython.display import display\n"
        "def quick():\n    for i in range(4000):\n        display({'text/plain': str(i)}, raw=True)\n",
    )
    waits = iter([4.0])

    def take_long(_output: dict[str, Any]) -> None:
        time.sleep(next(waits, 0.0))

    execution = asyncio.run(healkit.aexecute("quick", on_output=take_long))
    assert [output["data"]["text/plain"] for output in execution.outputs] == [str(i) for i in range(4000)]
    assert execution.warnings == []


#: Says by itself that it is done, as a worker does that is slow to send what it had displayed.
CLAIMS = """
import gc, time
import msgspec
from healkit.core.contracts import rpc

def claims(shows: bool):
    endpoint = next(one for one in gc.get_objects() if type(one).__name__ == "Endpoint")
    endpoint.send(rpc.ExecutionComplete(value=msgspec.Raw(b"1")))
    time.sleep(1.5 if shows else 60)
    print("late")
"""


@pytest.mark.slow
@pytest.mark.requirement("WORK-1")
@pytest.mark.parametrize(
    ("shows", "shown", "warned"),
    [
        (True, ["late\n"], []),
        (False, [], ["Some of what the tool displayed may be missing: its worker did not send it in time."]),
    ],
)
def test_what_a_slow_worker_displays_after_its_claim_is_shown_or_said_to_be_missing(
    healkit: Healkit, shows: bool, shown: list[str], warned: list[str]
) -> None:
    healkit.vault.add("claims", CLAIMS)
    execution = healkit.execute("claims", arguments={"shows": shows})
    assert [output["text"] for output in execution.outputs] == shown
    assert (execution.value, execution.warnings) == (1, warned)


#: Each adds one to `a`.
KINDS = {
    "as_class": "from healkit import Tool\nclass Add(Tool):\n    def run(self, arguments):\n        return arguments['a'] + 1\n",
    "as_function": "HELPER = 1\ndef _help(a):\n    return a + HELPER\ndef whatever(a):\n    return _help(a)\n",
    "as_script": "result = arguments['a'] + 1\n",
    "as_async": "import asyncio\nasync def as_async(a):\n    await asyncio.sleep(0)\n    return a + 1\n",
}


@pytest.mark.requirement("VAULT-6")
def test_all_three_kinds_of_tool_and_async_ones_run_unchanged(healkit: Healkit) -> None:
    for name, code in KINDS.items():
        healkit.vault.add(name, code)
        assert healkit.execute_tool(name, arguments={"a": 1}) == 2, name
    code = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    a: int\n"
        "def made(a):\n    return P(a + 1)\n"
    )
    healkit.vault.add("made", code)
    assert healkit.execute_tool("made", arguments={"a": 1}) == {"a": 2}


@pytest.mark.requirement("VAULT-6")
def test_a_sql_tool_runs_on_a_connection_that_cannot_write_and_is_on_record(healkit: Healkit) -> None:
    code = "SELECT tool_name FROM executionlog WHERE status = :status"
    healkit.vault.add("failures", code, type="sql", grants={"calls": "healkit.*"})
    execution = healkit.execute("failures", arguments={"status": "RUNNING"})
    assert execution.value["rows"] == [["failures"]]
    assert execution.isolation == "read-only connection"
    assert healkit.log.get(execution.log_id).status == "SUCCESS"
    healkit.vault.add("absent", "SELECT * FROM no_such_table", type="sql")
    failed = healkit.execute("absent")
    assert failed.failure.code == "SQL_ERROR"
    assert "no_such_table" in failed.failure.traceback


BIG = 10**5000
BIG_VALUES = [BIG, -BIG, [BIG, {"a": -BIG}], {BIG: 1}, (BIG,), {BIG, 1}, 10**640, 10**4299, 10**4300, 2**2048]


@pytest.mark.requirement("LOG-16")
@pytest.mark.parametrize("mode", ["worker", "subprocess"])
def test_whole_numbers_of_any_size_cross_both_ways(healkit: Healkit, mode: Any) -> None:
    healkit.vault.add("same", "def same(v):\n    return v")
    healkit.vault.add("passed_on", "def passed_on(v):\n    return mcp.vault.same(v=mcp.host.twice(v=v))")
    healkit.provide(lambda v: v, name="twice")
    for tool in ("same", "passed_on"):
        execution = healkit.execute(tool, arguments={"v": BIG_VALUES}, mode=mode)
        assert execution.failure is None
        assert execution.value == BIG_VALUES
        assert [type(value) for value in execution.value] == [type(value) for value in BIG_VALUES]
        assert execution.to_html()
        kept = healkit.execution(execution.log_id or 0)
        assert kept.arguments == {"v": BIG_VALUES}
    assert "int of 5,001 digits" in healkit.execute("same", arguments={"v": BIG}, mode=mode).to_text()
    assert healkit.log.running() == []


@pytest.mark.requirement("LOG-16")
def test_a_whole_number_crosses_where_python_reads_few_digits(healkit: Healkit) -> None:
    code = "import sys\ndef power(n):\n    sys.set_int_max_str_digits(640)\n    return 10**n"
    healkit.vault.add("power", code)
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        for size in (640, 641, 1200):
            assert healkit.execute_tool("power", arguments={"n": size}) == 10**size
    finally:
        sys.set_int_max_str_digits(before)


def test_a_wrong_call_with_a_long_number_says_how_many_digits_it_has(healkit: Healkit) -> None:
    healkit.vault.add("word", "def word(text: str):\n    return text")
    with pytest.raises(ArgumentsInvalid, match=r"'text' must be string, got <int of 5,001 digits> \(int\)"):
        healkit.execute("word", arguments={"text": BIG})


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


@pytest.mark.slow
@pytest.mark.requirement("LOG-16", "LOG-5", "DATA-1")
def test_a_value_that_breaks_its_reader_ends_the_row(healkit: Healkit) -> None:
    def check(number: int, code: str, ends: str) -> None:
        healkit.vault.add(f"t{number}", code.replace("def t(", f"def t{number}("))
        execution = healkit.execute(f"t{number}", timeout=20)
        assert (execution.failure.code if execution.failure else "") == ends, execution.failure
        assert execution.to_html()
        row = healkit.log.get(execution.log_id)
        assert (row.status, row.error_code) == ("FAILURE" if ends else "SUCCESS", ends or None)

    each(check, {code: (number, code, ends) for number, (code, ends) in enumerate(HOSTILE.items())})


class _Raises(dict):  # type: ignore[type-arg]  # whatever it holds
    def items(self) -> Any:
        raise KeyError("i")

    def __iter__(self) -> Any:
        raise KeyError("i")


@pytest.mark.requirement("LOG-16")
def test_an_argument_that_breaks_its_reader_ends_the_row(healkit: Healkit) -> None:
    healkit.vault.add("take", "def take(v):\n    return 1")
    for value in (_Raises(a=1), {"\ud800": 1}, {float("nan"): 1}, [[]] * 3):
        with contextlib.suppress(ArgumentsInvalid):
            healkit.execute("take", arguments={"v": value})
        (row,) = healkit.log.query(limit=1).rows
        assert (row.status, row.error_code) in (("SUCCESS", None), ("FAILURE", "ARGUMENTS_INVALID"))
    assert healkit.log.count() == 4


def test_an_execution_whose_value_cannot_be_written_has_a_repr(healkit: Healkit) -> None:
    """T11: a whole number of more digits than Python writes made `repr(execution)` raise."""
    healkit.vault.add("big", "def big(n):\n    return [10**5000, n]\n")
    execution = healkit.execute("big", arguments={"n": 10**5000})
    assert execution.ok
    assert repr(execution).startswith("Execution(tool_name='big', persona='default', ")
