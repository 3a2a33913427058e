"""Contents kept off the record."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

from healkit import Healkit
from healkit.config import Config
from healkit.errors import ArgumentsInvalid, VaultError

pytestmark = pytest.mark.requirement("LOG-12")

SECRET = "corvidae4711"
ECHO = """
def run(word, fail=False):
    print("printed", word)
    square = mcp.vault.helper(word=word)
    trace.decision("word", word, f"word == {word!r}")
    if fail:
        raise ValueError(f"not {word}")
    return [word, square]
"""


def on_disk(folder: Path) -> list[str]:
    """Return the files that hold the secret."""
    return [
        str(file) for file in folder.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()
    ]


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Healkit:
    """Return a vault with a tool and a helper that are both kept off the record."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    healkit = Healkit(tmp_path / "healkit.db", config=Config.from_environment())
    healkit.vault.add("helper", "def run(word): return word * 2", log=False)
    healkit.vault.add("echo", ECHO, log=False)
    return healkit


def test_contents_reach_the_caller_and_nothing_else(private: Healkit, tmp_path: Path) -> None:
    with private:
        good = private.execute("echo", arguments={"word": SECRET}, record=True)
        assert good.value == [SECRET, SECRET * 2]
        assert good.arguments["word"] == good.calls[0].arguments[9:-2] == SECRET
        bad = private.execute("echo", arguments={"word": SECRET, "fail": True})
        assert bad.failure.evalue == f"not {SECRET}"
        with pytest.raises(ArgumentsInvalid, match=SECRET):
            private.execute("echo", arguments={"word": "x", "fail": SECRET, SECRET: 1})
        refused, _, row, _, first = private.log.query()
        assert [r.status for r in (first, row, refused)] == ["SUCCESS", "FAILURE", "FAILURE"]
        assert first.result_summary == '"(not kept)"'
        assert first.arguments == row.arguments == {"…": "(not kept)"}
        assert (row.ename, row.evalue, row.last_output) == ("ValueError", "(not kept)", "")
        assert "raise ValueError(f" in (row.error_traceback or "")
        assert row.revision == 1
        assert row.duration_ms
        (call,) = private.log.calls(row.trace_id)
        assert (call.server, call.tool, call.success, call.arguments) == (
            "vault",
            "helper",
            True,
            {"…": "(not kept)"},
        )
        assert [d.node for d in private.log.decisions(row.trace_id)] == ["word"]
        assert private.traces.get(row.trace_id) is not None
        assert private.log.groups(tool="echo").rows[-1].count == 1
    assert on_disk(tmp_path) == []


def test_what_another_tool_asks_of_it_is_kept_off_that_ones_record_too(
    private: Healkit, tmp_path: Path
) -> None:
    with private:
        private.vault.add(
            "open_tool", "def run(): return len(mcp.vault.helper(word='corvi' + 'dae' + '4711'))"
        )
        private.vault.add("open_helper", "def run(n): return n + 1")
        assert private.execute_tool("open_tool") == 2 * len(SECRET)
        (call,) = private.log.calls(private.log.query(tool="open_tool").rows[0].trace_id)
        assert (call.arguments, call.result_summary) == ({"…": "(not kept)"}, '"(not kept)"')
    assert on_disk(tmp_path) == []


def test_the_switch_can_be_turned_and_says_so_in_the_history_of_the_tool(
    private: Healkit, tmp_path: Path
) -> None:
    with private:
        assert not private.vault.get("helper").logged
        assert private.vault.set_flags("helper", log=True).logged
        private.execute("helper", arguments={"word": SECRET})
        assert private.log.query(tool="helper").rows[0].arguments == {"word": SECRET}
        assert not private.vault.set_flags("helper", log=False).logged
        assert private.vault.patch("helper", "def run(word): return word").logged is False
        with pytest.raises(VaultError, match="loud"):
            private.vault.set_flags("helper", loud=True)
        with pytest.raises(VaultError, match="log=1"):
            private.vault.set_flags("helper", log=1)
    assert on_disk(tmp_path) != []


@pytest.mark.slow
def test_nothing_of_it_is_left_when_the_host_is_killed(private: Healkit, tmp_path: Path) -> None:
    private.vault.add(
        "slow", "import time\ndef run(word):\n    mcp.vault.helper(word=word)\n    time.sleep(60)", log=False
    )
    private.close()
    program = (
        "import sys; from healkit import Healkit\n"
        "if __name__ == '__main__':\n Healkit(sys.argv[1]).execute('slow', arguments={'word': sys.argv[2]}, timeout=60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "healkit.db"), SECRET], env=os.environ
    )
    with Healkit(tmp_path / "healkit.db") as healkit:
        wait_until(lambda: healkit.log.query(tool="helper", status="SUCCESS").rows)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        assert on_disk(tmp_path) == []
    with Healkit(tmp_path / "healkit.db") as healkit:
        (row,) = healkit.log.query(tool="slow")
        assert (row.error_code, row.arguments) == ("HOST_DIED", {"…": "(not kept)"})
        assert healkit.traces.get(row.trace_id) is not None
    assert on_disk(tmp_path) == []
