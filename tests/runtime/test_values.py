"""Arguments, values and outputs on their way across the border."""

from __future__ import annotations

from typing import Any

import pytest

from healkit import Healkit
from healkit.errors import ArgumentsInvalid


@pytest.mark.requirement("LOG-5")
@pytest.mark.parametrize(
    ("expression", "value", "noted"),
    [
        ("{3, 1, 2}", [1, 2, 3], "set"),
        ("(1, (2, 3))", [1, [2, 3]], ""),
        ("2**100", 2**100, ""),
        ("float('nan')", "NaN", "nan"),
        ("[float('inf'), 1.5]", ["Infinity", 1.5], "inf"),
        ("b'abc'", {"base64": "YWJj", "size_bytes": 3}, "bytes"),
        ("{1: 'a', (2, 3): 'b'}", {"1": "a", "(2, 3)": "b"}, "key"),
        ("'\\ud800'", "\\ud800", "surrogate"),
        ("__import__('datetime').date(2026, 1, 2)", "2026-01-02", ""),
        ("__import__('numpy').float32(0.5)", 0.5, ""),
        ("__import__('numpy').arange(4).reshape(2, 2)", [[0, 1], [2, 3]], "array"),
        (
            "__import__('pandas').DataFrame({'a': [1, 2]})",
            {"shape": [2, 1], "columns": ["a"], "rows": [[1], [2]]},
            "DataFrame",
        ),
        pytest.param("__import__('pandas').Series([1, 2])", [1, 2], "Series", marks=pytest.mark.slow),
        ("object", "<class 'object'>", "text"),
    ],
)
def test_a_value_that_json_cannot_hold_arrives_readable_and_says_so(
    healkit: Healkit, expression: str, value: Any, noted: str
) -> None:
    healkit.vault.add("give", f"def give():\n    return {expression}\n")
    execution = healkit.execute("give")
    assert execution.ok, execution.failure
    assert execution.value == value
    assert any(noted in note for note in execution.conversions) if noted else execution.conversions == []


@pytest.mark.requirement("LOG-5")
def test_hostile_objects_neither_fail_nor_delay_the_run(healkit: Healkit) -> None:
    healkit.vault.add(
        "hostile",
        "class Forever:\n    def __repr__(self):\n        while True: pass\n"
        "class Raises:\n    def __repr__(self): raise SystemExit(1)\n"
        "class Liar(dict):\n    def items(self): return 1 / 0\n"
        "class Huge:\n    def __repr__(self): return 'x' * 10**7\n"
        "def hostile():\n    cycle = [1]\n    cycle.append(cycle)\n    deep = []\n"
        "    for _ in range(500): deep = [deep]\n"
        "    return [Forever(), Raises(), Liar(), cycle, Huge(), deep]\n",
    )
    execution = healkit.execute("hostile")
    assert execution.ok, execution.failure
    assert "takes too long" in execution.value[0]
    assert "SystemExit" in execution.value[1]
    assert execution.value[3] == [1, "<cycle>"]
    assert len(execution.value[4]) < 3000


@pytest.mark.requirement("LOG-5")
def test_arguments_of_any_kind_are_stored_readable_and_reach_the_tool(healkit: Healkit) -> None:
    class Stranger:
        def __repr__(self) -> str:
            raise AssertionError("the host must not run a stranger's code")

    healkit.vault.add("echo", "def echo(**given):\n    return given\n")
    given = {"a": {1}, "b": float("nan"), "c": Stranger(), "d": b"x"}
    execution = healkit.execute("echo", arguments=given)
    assert execution.value["a"] == [1]
    assert execution.value["b"] == "NaN"
    assert "Stranger object" in execution.value["c"]
    assert healkit.log.get(execution.log_id).arguments == execution.value
    assert any(note.startswith("argument $.a") for note in execution.conversions)


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
        ({}, "`a` is missing"),
        ({"a": "x"}, "integer"),
        ({"a": 1, "c": 2}, "`c` is unknown"),
    ]:
        with pytest.raises(ArgumentsInvalid, match=said) as caught:
            healkit.execute("add", arguments=arguments)
        row = healkit.log.get(caught.value.log_id)
        assert (row.status, row.error_code, row.arguments) == ("FAILURE", "ARGUMENTS_INVALID", arguments)
    with pytest.raises(ArgumentsInvalid, match="must be a dict"):
        healkit.execute("add", arguments=[1])
    with pytest.raises(ArgumentsInvalid, match="more than"):
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
    healkit.vault.add("failures", "SELECT tool_name FROM executionlog WHERE status = :status", type="sql")
    execution = healkit.execute("failures", arguments={"status": "RUNNING"})
    assert execution.value["rows"] == [["failures"]]
    assert execution.isolation == "read-only connection"
    assert healkit.log.get(execution.log_id).status == "SUCCESS"
    healkit.vault.add("absent", "SELECT * FROM no_such_table", type="sql")
    failed = healkit.execute("absent")
    assert failed.failure.code == "SQL_ERROR"
    assert "no_such_table" in failed.failure.traceback
