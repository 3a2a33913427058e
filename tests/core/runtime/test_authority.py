"""Authority does not grow by being called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from trusted import trusted_copy

from healkit import Config, Healkit
from healkit.core.contracts.execution import Grants

READS = """
def reads(path: str) -> str:
    with open(path) as file:
        return file.read()
"""
#: Asks another tool, and reports what came back, or which error did.
ASKS = """
def asks(tool: str, arguments: dict) -> str:
    try:
        return "got: " + str(getattr(mcp.vault, tool)(**arguments))
    except Exception as error:
        return f"refused: {getattr(error, 'code', '')}: {error}"
"""


@pytest.fixture
def healkit(tmp_path: Path, empty_database: Path) -> Iterator[Healkit]:
    """Return an empty vault and log; a nested call on a busy machine takes longer than its default limit."""
    config = Config(rpc_timeout_s=60, timeout_s=90, start_timeout_s=60)
    with Healkit(trusted_copy(empty_database, tmp_path / "healkit.db"), config=config) as opened:
        yield opened


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file that one tool may read."""
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "secret.txt"
    path.write_text("the secret")
    return path


@pytest.mark.slow
@pytest.mark.requirement("SAFE-1")
def test_what_is_in_force_goes_down_with_every_call(healkit: Healkit, secret: Path) -> None:
    """S1: the grants that count are those in force for the caller, not those that it was given."""
    healkit.vault.add("reads", READS, grants={"read": secret.parent})
    healkit.vault.add("asks", ASKS, grants={"read": secret.parent})
    healkit.vault.add("starts", ASKS.replace("def asks", "def starts"))
    inner = {"tool": "reads", "arguments": {"path": str(secret)}}
    outer = {"tool": "asks", "arguments": inner}
    assert healkit.execute_tool("asks", arguments=inner) == "got: the secret"
    assert "the secret" not in healkit.execute_tool("starts", arguments=outer)
    assert healkit.log.query(tool="reads").rows[0].grants == {}
    healkit.vault.set_grants("starts", read=secret.parent)
    assert healkit.execute_tool("starts", arguments=outer) == "got: got: the secret"


@pytest.mark.requirement("SAFE-1")
def test_a_tool_without_grants_reads_neither_the_log_nor_other_tools_code(healkit: Healkit) -> None:
    """S1: the seeded debug tools served the whole log to any tool that called them."""
    healkit.seed(debug_tools_only=True)
    healkit.vault.add("fails", "def fails(password: str):\n    raise ValueError('no')\n", persona="alice")
    healkit.vault.add("asks", ASKS)
    healkit.execute("fails", "alice", {"password": "plain words"})
    for tool, arguments in [
        ("get_last_error", {}),
        ("list_executions", {}),
        ("list_tools", {}),
        ("inspect_tool", {"tool_name": "fails", "persona": "alice"}),
    ]:
        said = healkit.execute_tool("asks", arguments={"tool": tool, "arguments": arguments})
        assert said.startswith("refused: ")
        assert "plain words" not in said
        assert "ValueError" not in said
    assert not any(entry.grants.own_grants for entry in healkit.vault.list())


#: Reads all that `mcp.healkit` shows, as far as one may.
LOOKS = """
def looks(persona: str) -> dict:
    def said(tool, **arguments):
        try:
            return str(getattr(mcp.healkit, tool)(**arguments))
        except Exception as error:
            return str(error)
    return {
        "error": said("last_error"),
        "named": said("last_error", tool_name="fails"),
        "nearly": said("last_error", tool_name="fail"),
        "rows": said("executions"),
        "tried": said("executions", tried=True),
        "tools": said("tools"),
        "code": said("inspect", tool_name="fails"),
        "their tools": said("tools", persona=persona),
        "their code": said("inspect", tool_name="fails", persona=persona),
    }
"""


@pytest.mark.requirement("SAFE-1")
def test_a_tool_that_reads_the_log_reads_the_rows_of_its_own_persona(healkit: Healkit) -> None:
    """S1: another persona's failing arguments came back from `get_last_error`."""
    healkit.seed(debug_tools_only=True)
    code = "def fails(word: str):\n    raise ValueError(word)\n"
    healkit.vault.add("fails", code, persona="alice")
    healkit.vault.add("breaks", code)
    healkit.vault.add("looks", LOOKS, grants=Grants(calls=("healkit.*",)))
    healkit.execute("fails", "alice", {"word": "alices"})
    for persona in ("default", "bob"):
        seen = healkit.execute_tool("looks", persona, {"persona": "alice"})
        assert {"No errors found"} == {seen[name][:15] for name in ("error", "named", "nearly")}
        assert "sees no tools of 'alice'" in seen["their tools"]
        assert "sees no tools of 'alice'" in seen["their code"]
        assert "fails" not in seen["rows"] + seen["tools"] + seen["nearly"].replace("'fail'", "")
        assert "alices" not in str(seen)
    seen = healkit.execute_tool("looks", "alice", {"persona": "alice"})
    assert "alices" in seen["error"]
    assert "fails" in seen["rows"]
    assert "raise ValueError(word)" in seen["code"]

    healkit.execute("breaks", "bob", {"word": "bobs"})  # a default tool, and bob's row
    assert "bobs" in healkit.execute_tool("get_last_error", "bob")
    assert "alices" in healkit.execute_tool("get_last_error", "alice")
    assert healkit.execute_tool("get_last_error") == "No errors found."
    assert {run.persona for run in healkit.executions()} == {"alice", "bob", "default"}  # the user sees all
    assert healkit.last_error().arguments == {"word": "bobs"}


@pytest.mark.requirement("SAFE-1")
def test_a_sql_tool_reads_no_table_of_healkits_own_but_its_personas_rows_where_it_may(
    healkit: Healkit,
) -> None:
    """S1: a SQL tool without grants read the whole log and the code of every tool."""
    healkit.vault.add("fails", "def fails(word: str):\n    raise ValueError(word)\n")
    for persona in ("alice", "o'hara", "default"):
        healkit.execute("fails", persona, {"word": f"{persona}s"})
    healkit.vault.add("theirs", "SELECT arguments FROM executionlog", type="sql")
    assert healkit.execute("theirs").failure.code == "SQL_NOT_ALLOWED"

    code = "SELECT persona, arguments FROM executionlog WHERE tool_name = 'fails'"
    healkit.vault.add("mine", code, type="sql", grants={"calls": ["healkit.*"]})
    healkit.vault.add("asks", ASKS)
    for persona in ("alice", "o'hara", "default"):
        rows = healkit.execute_tool("mine", persona)["rows"]
        assert [row[0] for row in rows] == [persona]
        asked = healkit.execute_tool("asks", persona, {"tool": "mine", "arguments": {}})
        assert asked.startswith("refused: SQL_NOT_ALLOWED")


@pytest.mark.slow
@pytest.mark.requirement("SAFE-1")
def test_the_processor_time_of_nested_calls_is_their_callers(healkit: Healkit) -> None:
    """S1: a tool had the processor time of all that it called, each with a limit of its own."""
    healkit.vault.add("burns", BURNS)
    healkit.vault.add("asks", ASKS_OFTEN, grants={"cpu_s": 1})
    said = healkit.execute("asks", arguments={"seconds": [0.6, 0.6, 0.1]}).value
    assert said[:2] == ["burnt", "burnt"]
    assert "used up its processor time" in said[2]
    rows = healkit.log.query(tool="burns").rows
    assert [row.error_code for row in rows] == ["CALL_REFUSED", None, None]
    assert [row.grants["cpu_s"] for row in rows[1:]] == [1, 1]


BURNS = """
import time

def burns(seconds: float) -> str:
    while time.process_time() < seconds:
        pass
    return "burnt"
"""
ASKS_OFTEN = """
def asks(seconds: list) -> list:
    said = []
    for each in seconds:
        try:
            said.append(mcp.vault.burns(seconds=each))
        except Exception as error:
            said.append(str(error))
    return said
"""


@pytest.mark.requirement("SAFE-1")
def test_a_tool_hears_of_no_tools_of_another_persona(healkit: Healkit) -> None:
    """S1: for a name that is not there, near names of other personas' tools came back."""
    healkit.vault.add("payroll", "def payroll():\n    return 1\n", persona="alice")
    healkit.vault.add("pays", "def pays():\n    return 1\n")
    code = """
import msgspec
def asks():
    endpoint = mcp.vault.__dict__["_endpoint"]
    tools = ("payrol", "payroll", "pay")
    return [endpoint.call("vault", tool, msgspec.Raw(b"{}")).error.message for tool in tools]
"""
    healkit.vault.add("asks", code)
    said = healkit.execute_tool("asks")
    assert not any("'payroll'" in text.replace("no vault tool 'payroll'", "") for text in said)
    assert "alice" not in str(said)
    assert "'pays'" in said[2]


@pytest.mark.slow
@pytest.mark.requirement("SAFE-1")
def test_repeating_a_nested_call_gives_it_no_more_than_it_had(healkit: Healkit, secret: Path) -> None:
    """S1: a re-run and a healing ran a nested failure's arguments, the caller's choice, with all of the tool's grants."""
    reads = READS.replace("file.read()", "file.read() + 1")
    healkit.vault.add("reads", reads, grants={"write": secret.parent})
    healkit.vault.add("asks", ASKS)
    healkit.execute_tool("asks", "alice", {"tool": "reads", "arguments": {"path": str(secret)}})
    failed = healkit.last_error("reads")
    assert failed.failure.ename in {"FileNotFoundError", "PermissionError"}

    again = healkit.rerun(failed.log_id)
    assert again.failure.ename == failed.failure.ename
    assert again.grants == Grants()
    healkit.heal("reads", advisors=["rules"], log_id=failed.log_id, auto=True)
    tried = healkit.executions(tool="reads", tried=True)
    assert {run.origin for run in tried} > {"tool", "rerun"}
    assert {(run.persona, run.grants) for run in tried} == {("alice", Grants())}
    assert healkit.execute("reads", arguments={"path": str(secret)}).failure.ename == "TypeError"
