"""Decisions that are killed, or whose disk is full."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from healkit import Config, Healkit
from healkit.parts.decide import Turn

SOAK = Path(__file__).parents[3] / "benchmarks" / "soak_kills.py"


@pytest.mark.requirement("DECIDE-1", "DECIDE-3")
@pytest.mark.slow
def test_an_output_that_finds_a_full_disk_fails_as_a_step(deciding_alone: Healkit, small_disk: Path) -> None:
    deciding_alone.vault.add("long", "def long(df):\n    return 'x' * 2_000_000\n")
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
    with Healkit(deciding_alone.path, config=config) as healkit:
        decision = healkit.decide("Which?", {"sales": frame}, tools=["long"], chooser=Both())
        assert decision.outcome == "finalized"
        assert [step.error_code for step in decision.sent[-1].steps] == ["OUTPUT_NOT_WRITTEN"]
        assert (decision.files, list((small_disk).rglob("*.partial"))) == ((), [])
        assert healkit.audit.verify().ok


@pytest.mark.requirement("DECIDE-1", "DECIDE-3", "DATA-7")
@pytest.mark.slow
@pytest.mark.timeout(700)  # each host starts anew
def test_healings_and_decisions_that_are_killed_at_random_are_in_the_audit_and_go_on() -> None:
    words = [sys.executable, str(SOAK), "--audited", "--kills", "4", "--hosts", "2", "--seed", "20261125"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["events that are entries"] > 0
