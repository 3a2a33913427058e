"""Decisions that are killed, or whose disk is full.

They leave a chain that verifies.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from healkit import Config, Healkit
from healkit.decisions import Turn
from healkit.tracing.reader import read_run
from healkit.tracing.run_folders import run_folders

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak_kills.py"
SCRIPT = """
import os, signal, sys
import pandas as pd
from healkit import Healkit

class Killing:
    name = "killing"

    def choose(self, turn):
        if turn.number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        step = {"type": "execute_data_op", "tool": "totals", "params": {"df": "sales"}}
        return {**step, "viewName": f"t{turn.number}"}

frame = pd.DataFrame({"region": ["North", "South"], "sales": [1.0, 2.0]})
Healkit(sys.argv[1]).decide("Which?", {"sales": frame}, tools=["totals"], chooser=Killing())
"""


@pytest.mark.requirement("DECIDE-1", "DECIDE-3")
@pytest.mark.slow
def test_a_kill_between_two_entries_leaves_a_chain_that_verifies(deciding: Healkit) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(deciding.path)], timeout=100, check=False)
    assert done.returncode == -9
    assert deciding.audit.verify().ok
    (folder,) = run_folders(deciding.runs_dir)
    entries = deciding.audit.get(folder.name)
    assert [entry.choice_type for entry in entries] == [
        "decision_started",
        "execute_data_op",
        "execute_data_op",
    ]
    events = {event.seq: event.event_type for event in read_run(folder).events}
    assert [events[entry.event_seq or 0] for entry in entries[1:]] == ["trace.execute_data_op"] * 2
    expected = pd.DataFrame({"region": ["North", "South"], "total": [1.0, 2.0]})
    pd.testing.assert_frame_equal(deciding.views.load(f"{folder.name}/t2"), expected)


@pytest.mark.requirement("DECIDE-1", "DECIDE-3")
@pytest.mark.slow
def test_an_output_that_finds_a_full_disk_fails_as_a_step(deciding: Healkit, small_disk: Path) -> None:
    deciding.vault.add("long", "def long(df):\n    return 'x' * 2_000_000\n")
    plan = [
        {"type": "execute_output", "tool": "long", "params": {"df": "sales"}},
        {"type": "finalize", "finalViewName": "sales"},
    ]
    frame = pd.DataFrame({"region": ["North"], "sales": [1.0]})

    class Both:
        name = "both"

        def choose(self, turn: Turn) -> dict[str, Any]:
            return plan[turn.number - 1]

    config = Config(runs_dir=str(small_disk))
    with Healkit(deciding.path, config=config) as healkit:
        decision = healkit.decide("Which?", {"sales": frame}, tools=["long"], chooser=Both())
        assert decision.outcome == "finalized"
        assert [step.error_code for step in decision.sent[-1].steps] == ["OUTPUT_NOT_WRITTEN"]
        assert (decision.files, list((small_disk).rglob("*.partial"))) == ((), [])
        assert healkit.audit.verify().ok


@pytest.mark.requirement("DECIDE-1", "DECIDE-3", "DATA-7")
@pytest.mark.slow
@pytest.mark.timeout(700)  # each host starts anew
def test_healings_and_decisions_that_are_killed_at_random_are_in_the_audit_and_go_on() -> None:
    words = [sys.executable, str(SOAK), "--audited", "--kills", "8", "--hosts", "2", "--seed", "20261125"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["events that are entries"] > 0
