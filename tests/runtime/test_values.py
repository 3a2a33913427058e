"""Arguments, values and outputs on their way over the border."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from healkit import Config, Healkit
from healkit.errors import ArgumentsInvalid


@pytest.mark.requirement("DATA-1", "LOG-5")
@pytest.mark.parametrize(
    ("expression", "value", "shown"),
    [
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
    ],
)
def test_a_value_arrives_as_it_is_and_is_on_record_in_a_readable_form(
    healkit: Healkit, expression: str, value: Any, shown: Any
) -> None:
    healkit.vault.add("give", f"def give():\n    return {expression}\n")
    execution = healkit.execute("give")
    assert execution.ok, execution.failure
    assert (type(execution.value), repr(execution.value)) == (type(value), repr(value))
    assert json.loads(healkit.log.get(execution.log_id).result_summary) == shown
    assert execution.conversions == []


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
    assert failure is not None
    assert failure.code == "TOOL_RESULT_UNSUPPORTED"
    assert path in failure.evalue
    assert what in failure.evalue


@pytest.mark.requirement("DATA-1", "LOG-5")
def test_hostile_objects_in_a_result_run_no_code_of_theirs(healkit: Healkit) -> None:
    healkit.vault.add(
        "hostile",
        "class Forever:\n    def __repr__(self):\n        while True: pass\n    __str__ = __repr__\n"
        "class Liar(dict):\n    def items(self): return 1 / 0\n"
        "def hostile(which):\n    return [1, {'forever': Forever, 'liar': Liar}[which]()]\n",
    )
    for which, name in [("forever", "Forever"), ("liar", "Liar")]:
        failure = healkit.execute("hostile", arguments={"which": which}).failure
        assert failure is not None
        assert (failure.code, name in failure.evalue) == ("TOOL_RESULT_UNSUPPORTED", True)


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
    """ZeroMQ drops what is over 1,000 waiting messages, in the middle and without a word, unless it is told not to."""
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
from healkit.contracts import rpc

def claims(shows: bool):
    endpoint = next(one for one in gc.get_objects() if type(one).__name__ == "Endpoint")
    endpoint.send(rpc.ExecutionComplete(value=msgspec.Raw(b"1")))
    time.sleep(1.5 if shows else 60)
    print("late")
"""


@pytest.mark.slow
@pytest.mark.requirement("WORK-1")
def test_what_a_slow_worker_displays_after_its_claim_is_shown(healkit: Healkit) -> None:
    healkit.vault.add("claims", CLAIMS)
    execution = healkit.execute("claims", arguments={"shows": True})
    assert [output["text"] for output in execution.outputs] == ["late\n"]
    assert (execution.value, execution.warnings) == (1, [])


@pytest.mark.slow
@pytest.mark.requirement("WORK-1")
def test_outputs_that_a_worker_never_finishes_are_given_up_with_a_warning(
    healkit: Healkit,
) -> None:
    healkit.vault.add("claims", CLAIMS)
    execution = healkit.execute("claims", arguments={"shows": False})
    assert (execution.value, execution.outputs) == (1, [])
    assert execution.warnings == [
        "Some of what the tool displayed may be missing: its worker did not send it in time."
    ]


@pytest.mark.requirement("VAULT-6")
def test_all_three_kinds_of_tool_and_async_ones_run_unchanged(healkit: Healkit) -> None:
    healkit.vault.add(
        "as_class",
        "from healkit import Tool\nclass Add(Tool):\n    def run(self, arguments):\n        return arguments['a'] + 1\n",
    )
    healkit.vault.add(
        "as_function",
        "HELPER = 1\ndef _help(a):\n    return a + HELPER\ndef whatever(a):\n    return _help(a)\n",
    )
    healkit.vault.add("as_script", "result = arguments['a'] + 1\n")
    healkit.vault.add(
        "as_async", "import asyncio\nasync def as_async(a):\n    await asyncio.sleep(0)\n    return a + 1\n"
    )
    healkit.vault.add(
        "runs_loop",
        "import asyncio\nasync def work(a):\n    return a + 1\ndef runs_loop(a):\n    return asyncio.run(work(a))\n",
    )
    healkit.vault.add(
        "dataclassed",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    a: int\n"
        "def dataclassed(a):\n    return P(a + 1)\n",
    )
    for name in ("as_class", "as_function", "as_script", "as_async", "runs_loop"):
        assert healkit.execute_tool(name, arguments={"a": 1}) == 2, name
    assert healkit.execute_tool("dataclassed", arguments={"a": 1}) == {"a": 2}


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
