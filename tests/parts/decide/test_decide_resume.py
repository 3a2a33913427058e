"""Decisions that were killed and go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from cli_samples import call

from healkit import Healkit
from healkit.errors import RunLocked, RunNotFound, UsageInvalid, ViewChanged, ViewNotFound
from healkit.parts.decide import Turn
from healkit.parts.decide.decision import Decision
from healkit.parts.runs.run_folders import run_folders

pytestmark = pytest.mark.requirement("DECIDE-1", "DECIDE-3")

FRAME = pd.DataFrame({"region": ["North", "South", "Meta Inc"] * 90, "sales": [1.0, 2.0, 3.0] * 90})
DATA = {"sales": FRAME, "notes": "Sales in the north and in the south.", "more": ["a text", "another text"]}
PICK = {"column": "region", "values": ["North", "South"]}
PLAN: list[dict[str, Any]] = [
    {
        "type": "execute_data_op", "tool": "pick", "params": {"df": "sales", **PICK}, "viewName": "picked",
        "intended": {"entities": ["North", "South"]},
    },
    {"type": "gather_info", "tool": "regions", "params": {"df": "picked"}},
    {
        "type": "execute_data_op", "tool": "pick", "viewName": "one",
        "params": {"df": "picked", "column": "region", "values": ["value#2.1"]},
    },
    {"type": "execute_data_op", "tool": "totals", "params": {"df": "one"}, "viewName": "sums"},
    {"type": "execute_output", "tool": "to_csv", "params": {"df": "sums"}},
    {"type": "finalize", "finalViewName": "sums"},
]  # fmt: skip
TAKEN = Counter(pick=2, totals=1, regions=1, to_csv=1)
TOOLS = ["pick", "totals", "regions", "to_csv"]
KILLED = """
import json, os, signal, sys
from healkit import Healkit
from healkit.parts.decide.choosers import Plan
from healkit.parts.decide.record import DecideRecord
sys.path.insert(0, sys.argv[3])
from test_decide_resume import DATA, PLAN, TOOLS

method, calls, left = sys.argv[4], getattr(DecideRecord, sys.argv[4]), [int(sys.argv[2])]

def counted(self, *given, **known):
    done = calls(self, *given, **known)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

setattr(DecideRecord, method, counted)
healkit = Healkit(sys.argv[1])

@healkit.provide
def end():
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[5:]:
    healkit.decide(resume=sys.argv[5])
else:
    healkit.decide("Which?", DATA, tools=TOOLS, chooser=PLAN, share=["region"])
"""


def killed(healkit: Healkit, after: int, method: str = "finished", *resumed: str) -> str:
    """Kill a decision, or the resumed one, after that many calls of its record; return its id."""
    folder = str(Path(__file__).parent)
    words = [sys.executable, "-c", KILLED, str(healkit.path), str(after), folder, method, *resumed]
    env = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"}
    env["XDG_DATA_HOME"] = os.environ["XDG_DATA_HOME"]
    done = subprocess.run(words, timeout=100, check=False, env=env)
    assert done.returncode == -9
    return run_folders(healkit.runs_dir)[-1].name


def runs_of(healkit: Healkit) -> Counter[str]:
    return Counter(row.tool_name for row in healkit.log.query().rows if row.origin == "decide")


def told(turn: Turn) -> dict[str, Any]:
    """Return a turn without what differs from run to run: how long steps took."""
    plain: dict[str, Any] = msgspec.to_builtins(turn)
    for step in plain["steps"]:
        step.pop("duration_ms")
    return plain


@pytest.fixture(scope="module")
def whole(deciding: Healkit) -> Decision:
    """Make the decision that is not killed."""
    return deciding.decide("Which?", DATA, tools=TOOLS, chooser=PLAN, share=["region"])


@pytest.mark.slow
@pytest.mark.parametrize(("after", "method"), [(1, "finished"), (4, "sent")])
def test_a_killed_plan_goes_on_behind_its_last_step(
    deciding: Healkit, whole: Decision, after: int, method: str
) -> None:
    before = runs_of(deciding)
    run_id = killed(deciding, after, method)
    decision = deciding.decide(resume=run_id)
    assert decision.outcome == "finalized"
    taken = runs_of(deciding)
    taken.subtract(before)
    assert taken == TAKEN  # each tool once, in both runs together
    assert [told(turn) for turn in decision.sent] == [told(turn) for turn in whole.sent]
    result = deciding.views.load(str(decision.raw_data_view_name))
    pd.testing.assert_frame_equal(result, deciding.views.load(str(whole.raw_data_view_name)))
    (file,) = decision.files
    assert file.read_text() == whole.files[0].read_text()
    assert f"continues decision {run_id}" in decision.audit_log[0].description
    assert deciding.audit.verify().ok


@pytest.mark.slow
def test_a_resumed_decision_that_is_killed_too_goes_on_again(deciding: Healkit, whole: Decision) -> None:
    before = runs_of(deciding)
    first = killed(deciding, 1)
    second = killed(deciding, 3, "finished", first)  # the first step once more on record, then two of its own
    assert second != first
    decision = deciding.decide(resume=second)
    taken = runs_of(deciding)
    taken.subtract(before)
    assert (decision.outcome, taken) == ("finalized", TAKEN)
    assert [told(turn) for turn in decision.sent] == [told(turn) for turn in whole.sent]
    assert deciding.audit.verify().ok


@pytest.mark.slow
def test_what_cannot_be_resumed_says_why(deciding: Healkit, whole: Decision) -> None:
    with pytest.raises(
        UsageInvalid, match=r"has ended, so it cannot be resumed: The result is the view sums"
    ):
        deciding.decide(resume=whole.run.run_id)
    with pytest.raises(RunNotFound):
        deciding.decide(resume="20200101T000000Z-00000000")
    with deciding.run() as run, pytest.raises(RunLocked, match="is still running"):
        deciding.decide(resume=run.run_id)
    with pytest.raises(UsageInvalid, match="is not a decision"):
        deciding.decide(resume=run.run_id)
    run_id = killed(deciding, 3)
    with pytest.raises(UsageInvalid, match="already has its question and data"):
        deciding.decide("Which?", {"sales": FRAME}, resume=run_id)
    made = deciding.views.get(f"{run_id}/picked")
    assert made.file is not None
    content = made.file.read_bytes()
    made.file.write_bytes(content[:-1])
    with pytest.raises(ViewChanged, match=f"{run_id}/picked"):
        deciding.decide(resume=run_id)
    made.file.write_bytes(content)
    deciding.views.remove(f"{run_id}/picked")
    with pytest.raises(ViewNotFound, match=f"{run_id}/picked"):
        deciding.decide(resume=run_id)


@pytest.mark.slow
def test_a_tool_with_side_effects_that_was_killed_is_not_run_again(deciding_alone: Healkit) -> None:
    deciding_alone.vault.patch(
        "to_csv", "def to_csv(df):\n    return mcp.host.end()\n", reason="ends its host"
    )
    deciding_alone.vault.set_flags("to_csv", side_effects=True)
    run_id = killed(deciding_alone, 99)
    before = runs_of(deciding_alone)
    with pytest.raises(UsageInvalid, match="while 'to_csv' ran, which has side effects"):
        deciding_alone.decide(resume=run_id)
    assert runs_of(deciding_alone) == before


@pytest.mark.slow
def test_a_person_who_chose_is_asked_for_the_next_choice_on_the_command_line(deciding: Healkit) -> None:
    run_id = killed(deciding, 2)
    answers = "\n".join(json.dumps(choice) for choice in PLAN[2:]) + "\n"
    words = ("decide", "--resume", run_id, "--chooser", "person", "--db", str(deciding.path), "--json")
    done = call(*words, stdin=answers)
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "finalized")
    assert '"number": 3' in done.stderr
    again = call("decide", "--resume", run_id[:-2], "--db", str(deciding.path))
    assert again.returncode == 0
