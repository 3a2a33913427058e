"""Renamed and removed tools at work."""

from __future__ import annotations

import pytest

from healkit import Healkit
from healkit.errors import ToolExecutionError, ToolRemoved

HALF = "def run(n):\n    return 1 / (n - 2)\n"


@pytest.mark.requirement("VAULT-3")
def test_runs_and_calls_by_the_former_name_reach_the_renamed_tool(healkit: Healkit) -> None:
    """C4: callers are not rewritten, and do not break."""
    healkit.vault.add("half", "def run(n):\n    return n / 2\n")
    healkit.vault.add("caller", "def run(n):\n    return mcp.vault.half(n=n) + mcp.vault.halve(n=n)\n")
    healkit.vault.add(
        "granted", "def run(n):\n    return mcp.vault.half(n=n)\n", grants={"calls": ["vault.half"]}
    )
    healkit.vault.rename("half", "halve")
    execution = healkit.execute("half", arguments={"n": 6})
    assert (execution.value, execution.tool_name) == (3.0, "halve")
    assert [healkit.execute_tool(name, arguments={"n": 6}) for name in ("caller", "granted")] == [6.0, 3.0]
    assert {row.tool_name for row in healkit.log.query(tool="halve").rows} == {"halve"}
    assert healkit.log.query(tool="half").rows == []


@pytest.mark.requirement("LOG-11")
def test_rows_of_the_former_name_count_for_the_renamed_tool(healkit: Healkit) -> None:
    """C4: its failures, their cure and its history are those of one tool."""
    healkit.vault.add("half", HALF)
    failed = healkit.execute("half", arguments={"n": 2})
    healkit.vault.rename("half", "halve")
    healkit.vault.patch("halve", HALF.replace("(n - 2)", "(n - 2 or 1)"))
    for name in ("half", "halve"):
        found = healkit.last_error(name)
        assert found.log_id == failed.log_id
    assert healkit.rerun(failed.log_id).value == 1.0
    runs = [
        (revision.number, revision.runs, revision.failures) for revision in healkit.vault.history("halve")
    ]
    assert runs == [(1, 1, 1), (2, 1, 0)]
    blame = healkit.vault.blame("half")
    assert (blame.first_failed, blame.last_cured_by) == (1, 2)
    (group,) = healkit.log.groups()
    assert (group.tool_name, group.cured_by) == ("half", 2)


@pytest.mark.requirement("VAULT-2")
def test_a_removed_tool_is_refused_on_record(healkit: Healkit) -> None:
    """C4: what called it learns why, and what may not be on record is not."""
    healkit.vault.add("pin", "def run(code):\n    return len(code)\n", log=False)
    healkit.vault.add("caller", "def run(code):\n    return mcp.vault.pin(code=code)\n", log=False)
    before = healkit.execute("pin", arguments={"code": "1234"})
    healkit.vault.remove("pin")
    with pytest.raises(ToolRemoved, match="removed") as refused:
        healkit.execute("pin", arguments={"code": "98765"})
    row = healkit.log.get(refused.value.log_id or 0)
    assert (row.status, row.error_code, row.tool_name) == ("FAILURE", "TOOL_REMOVED", "pin")
    with pytest.raises(ToolExecutionError):
        healkit.execute_tool("caller", arguments={"code": "98765"})
    rows = healkit.log.query().rows
    assert "98765" not in str([(row.arguments, row.error_traceback, row.failure) for row in rows])
    assert "98765" not in str([call.arguments for row in rows for call in healkit.log.calls(row.trace_id)])
    assert healkit.execution(before.log_id).revision == 1
    healkit.vault.restore("pin")
    assert healkit.execute_tool("pin", arguments={"code": "1234"}) == 4


@pytest.mark.requirement("VAULT-7")
def test_seeding_leaves_removed_and_renamed_tools_alone(healkit: Healkit) -> None:
    """C4: only a reset brings a removed sample back."""
    healkit.seed()
    healkit.vault.remove("factorial")
    healkit.vault.rename("fibonacci", "fib")
    names = healkit.vault.names()
    assert healkit.seed().tools_added == ()
    assert healkit.vault.names() == names
    assert "factorial" not in names
    healkit.seed(reset=True)
    assert {*healkit.vault.names()} == {*names, "factorial"}
