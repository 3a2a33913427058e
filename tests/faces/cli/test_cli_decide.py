"""`healkit decide`: plans, a person, a model; files and views."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from model_server import SECRET_KEY, ModelServer, calls, fails, model_server
from trusted import trusted_copy
from waiting import WITHIN_S

from healkit import Healkit

TOTALS = """import pandas as pd


def totals(df: pd.DataFrame):
    return df.groupby('region', as_index=False)['sales'].sum()
"""
FRAME = pd.DataFrame({"region": ["North", "South", "North"], "sales": [1.0, 2.0, 4.0]})
OP = {"type": "execute_data_op", "tool": "totals", "params": {"df": "sales"}, "viewName": "by_region"}
END = {"type": "finalize", "finalViewName": "by_region"}
QUESTION = ("decide", "Which region sells most?")

pytestmark = pytest.mark.requirement("DECIDE-1", "FACE-2")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
def deciding(cli: Any, environment: dict[str, str], empty_database: Path, tmp_path: Path) -> Any:
    """Return `cli` with a tool in the vault, a file, a view and a plan."""
    trusted_copy(empty_database, environment["HEALKIT_DB"])
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        healkit.vault.add("totals", TOTALS)
        healkit.views.put(FRAME, "kept")
    FRAME.to_csv(tmp_path / "sales.csv", index=False)
    FRAME.to_parquet(tmp_path / "sales.parquet")
    (tmp_path / "plan.json").write_text(json.dumps([OP, END]))
    return cli


def loaded(environment: dict[str, str], name: str) -> pd.DataFrame:
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        found = healkit.views.load(name)
    assert isinstance(found, pd.DataFrame)
    return found


@pytest.mark.slow
def test_a_plan_answers_from_a_file_or_a_view(deciding: Any, environment: dict[str, str]) -> None:
    expected = pd.DataFrame({"region": ["North", "South"], "sales": [5.0, 2.0]})
    for source in ("sales.csv", "sales.parquet", "kept"):
        words = (*QUESTION, "--data", f"sales={source}", "--tools", "totals", "--plan", "plan.json", "--json")
        done = deciding(*words)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert (said["outcome"], said["analysis"]) == ("finalized", "")
        assert [entry["choiceType"] for entry in said["audit_log"]] == [
            "decision_started", "execute_data_op", "finalize", "run_finished",
        ]  # fmt: skip
        pd.testing.assert_frame_equal(loaded(environment, said["raw_data_view_name"]), expected)


@pytest.mark.slow
def test_without_tools_the_operations_answer(deciding: Any, tmp_path: Path) -> None:
    aggregates = {"total": {"column": "sales", "function": "sum"}}
    params = {"data": "sales", "by": ["region"], "aggregates": aggregates}
    op = {"type": "execute_data_op", "tool": "group_rows", "params": params, "viewName": "by_region"}
    (tmp_path / "plan.json").write_text(json.dumps([op, END]))
    done = deciding(*QUESTION, "--data", "sales=sales.csv", "--plan", "plan.json")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_plan_may_come_from_stdin_and_a_failing_one_exits_1(deciding: Any) -> None:
    words = (*QUESTION, "--data", "sales=kept", "--tools", "totals", "--plan", "-")
    done = deciding(*words, stdin=json.dumps([OP, END]))
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0,
        "finalized: The result is the view by_region.",
    )
    assert "Next: healkit views show " in done.stderr
    wrong = deciding(*words, stdin=json.dumps([{**END, "finalViewName": "never"}]))
    assert wrong.returncode == 1
    assert wrong.stdout.startswith("stopped: ")


def test_a_person_is_shown_the_turn_on_stderr_and_types_choices(deciding: Any) -> None:
    words = (*QUESTION, "--data", "sales=sales.csv", "--tools", "totals", "--chooser", "person", "--json")
    done = deciding(*words, stdin=f"no JSON\n{json.dumps(OP)}\n{json.dumps(END)}\n")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "finalized"), done.stderr
    assert '"row_count": 3' in done.stderr
    assert "North" not in done.stderr
    silent = deciding(*words, stdin="")
    assert (silent.returncode, json.loads(silent.stdout)["outcome"]) == (1, "stopped")


def test_the_configured_model_chooses_and_its_absence_is_said(
    deciding: Any, monkeypatch: pytest.MonkeyPatch, server: ModelServer
) -> None:
    words = (*QUESTION, "--data", "sales=sales.csv", "--tools", "totals", "--chooser", "model", "--json")
    none = deciding(*words)
    assert (none.returncode, json.loads(none.stdout)["error"]["code"]) == (2, "USAGE_INVALID")
    assert "HEALKIT_HEAL_MODEL" in none.stderr
    config = server.config()
    monkeypatch.setenv("HEALKIT_HEAL_MODEL", config.heal_model)
    monkeypatch.setenv("HEALKIT_HEAL_MODEL_URL", config.heal_model_url)
    monkeypatch.setenv("HEALKIT_MODEL_KEY", SECRET_KEY)
    server.plan.extend([calls(OP), calls(END), fails(401, {"error": "no"})])
    done = deciding(*words, "--share", "region")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "finalized"), done.stderr
    assert "South" in json.dumps(server.requests[0].body)
    refused = deciding(*words)
    assert (refused.returncode, json.loads(refused.stdout)["outcome"]) == (1, "halted")
    assert "South" not in json.dumps(server.requests[-1].body)


@pytest.mark.slow
def test_ctrl_c_ends_the_decision_and_exits_130_with_what_was_done(
    deciding: Any, environment: dict[str, str], tmp_path: Path
) -> None:
    words = (*QUESTION, "--data", "sales=kept", "--tools", "totals", "--chooser", "person", "--json")
    process = subprocess.Popen([sys.executable, "-m", "healkit", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)  # fmt: skip
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(f"{json.dumps(OP)}\n")
    process.stdin.flush()
    seen = ""
    while '"number": 2' not in seen or not seen.endswith("to stop): "):  # the second prompt
        seen += process.stderr.read(1)
    process.send_signal(signal.SIGINT)
    printed, told = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, told
    assert "Traceback" not in told
    said = json.loads(printed)
    assert (said["outcome"], sorted(said["views"])) == ("stopped", ["by_region", "sales"])
    assert deciding("audit", "verify").returncode == 0


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--plan", "plan.json"), "--data NAME=FILE"),
    (("--data", "sales=kept"), "--plan FILE, or --chooser person"),
    (("--data", "sales=kept", "--plan", "plan.json", "--chooser", "person"), "Leave out the plan, or --chooser person"),
    (("--data", "sales=kept", "--chooser", "cat"), "person or model"),
    (("--data", "sales", "--plan", "plan.json"), "NAME=SOURCE"),
    (("--data", "sales=gone.csv", "--plan", "plan.json"), "Cannot read 'gone.csv'"),
    (("--data", "sales=gone", "--plan", "plan.json"), "gone"),
    (("--data", "sales=kept", "--plan", "gone.json"), "gone.json"),
    (("--data", "sales=kept", "--plan", "sales.csv"), "is not JSON"),
    (("--data", "sales=kept", "--plan", "one.json"), "JSON list"),
    (("--data", "sales=kept", "--plan", "plan.json", "--tools", "nothing"), "nothing"),
]  # fmt: skip


def test_data_are_named_as_the_magic_names_them(deciding: Any) -> None:
    """D6: `sales=sales.csv` was an unexpected argument, and `--data sales.csv` had no name."""
    for data in (["sales=sales.csv"], ["--data", "sales.csv"], ["sales.csv"]):
        done = deciding(*QUESTION, *data, "--plan", "plan.json", "--tools", "totals")
        assert done.returncode == 0, done.stderr


def test_a_wrong_call_exits_2_and_says_the_next_step(deciding: Any, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(END))
    for words, hint in WRONG:
        tools = () if "--tools" in f"{words} {hint}" else ("--tools", "totals")
        done = deciding(*QUESTION, *words, *tools)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert hint in done.stderr
