"""`healkit decide`: plans, a person, a model; files and views."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from model_server import SECRET_KEY, ModelServer, calls, fails, model_server
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
    shutil.copy(empty_database, environment["HEALKIT_DB"])
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


@pytest.mark.parametrize("source", ["sales.csv", "sales.parquet", "kept"])
def test_a_plan_answers_from_a_file_or_a_view(
    deciding: Any, environment: dict[str, str], source: str
) -> None:
    words = (*QUESTION, "--data", f"sales={source}", "--tools", "totals", "--plan", "plan.json", "--json")
    done = deciding(*words)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["outcome"], said["analysis"]) == ("finalized", "")
    assert [entry["choiceType"] for entry in said["audit_log"]] == [
        "decision_started", "execute_data_op", "finalize", "run_finished",
    ]  # fmt: skip
    expected = pd.DataFrame({"region": ["North", "South"], "sales": [5.0, 2.0]})
    pd.testing.assert_frame_equal(loaded(environment, said["raw_data_view_name"]), expected)


def test_without_tools_the_operations_answer(deciding: Any, tmp_path: Path) -> None:
    aggregates = {"total": {"column": "sales", "function": "sum"}}
    params = {"data": "sales", "by": ["region"], "aggregates": aggregates}
    op = {"type": "execute_data_op", "tool": "group_rows", "params": params, "viewName": "by_region"}
    (tmp_path / "plan.json").write_text(json.dumps([op, END]))
    done = deciding(*QUESTION, "--data", "sales=sales.csv", "--plan", "plan.json")
    assert done.returncode == 0, done.stderr


def test_a_file_of_text_is_a_text_that_tools_read(
    deciding: Any, environment: dict[str, str], tmp_path: Path
) -> None:
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        healkit.vault.add(
            "shout", "def shout(texts: list[str]):\n    return [text.upper() for text in texts]\n"
        )
    (tmp_path / "letter.txt").write_text("hello")
    op = {"type": "execute_data_op", "tool": "shout", "params": {"texts": "letter"}, "viewName": "loud"}
    (tmp_path / "plan.json").write_text(json.dumps([op, {**END, "finalViewName": "loud"}]))
    words = ("--data", "letter=letter.txt", "--tools", "shout", "--plan", "plan.json", "--json")
    done = deciding("decide", "How loud?", *words)
    assert done.returncode == 0, done.stdout
    assert loaded(environment, json.loads(done.stdout)["raw_data_view_name"])["text"].tolist() == ["HELLO"]


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
@pytest.mark.requirement("DECIDE-4")
def test_an_alias_resolves_what_the_plan_calls_otherwise_and_a_failing_tool_is_healed(
    deciding: Any, environment: dict[str, str], tmp_path: Path
) -> None:
    pick = "import pandas as pd\n\n\ndef pick(df: pd.DataFrame, values: list):\n"
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        healkit.vault.add("pick", f"{pick}    return df[df['region'].isin(values)]\n")
        example = {
            "arguments": {"df": FRAME, "values": ["North"]},
            "result": FRAME[FRAME["region"] == "North"],
        }
        healkit.vault.add(
            "mistyped",
            f"{pick}    return df[df['region'].isin(value)]\n".replace("pick", "mistyped"),
            examples=[example],
        )
    op = {
        "type": "execute_data_op",
        "tool": "pick",
        "params": {"df": "sales", "values": ["Nord"]},
        "viewName": "some",
    }
    wanted = {"entities": {"region": ["Nord"]}}
    (tmp_path / "plan.json").write_text(
        json.dumps([{**op, "intended": wanted}, {**END, "finalViewName": "some"}])
    )
    words = (*QUESTION, "--data", "sales=sales.csv", "--plan", "plan.json", "--json")
    done = deciding(*words, "--tools", "pick", "--alias", "North=Nord, Norden")
    assert done.returncode == 0, done.stderr
    applied = [entry["metadata"].get("correctionApplied") for entry in json.loads(done.stdout)["audit_log"]]
    assert applied.count(True) == 1
    (tmp_path / "plan.json").write_text(
        json.dumps([{**op, "tool": "mistyped"}, {**END, "finalViewName": "some"}])
    )
    healed = deciding(*words, "--tools", "mistyped", "--heal")
    assert healed.returncode == 0, healed.stdout
    assert deciding(*words, "--tools", "pick", "--alias", "North").returncode == 2


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


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no data": (("--plan", "plan.json"), "--data NAME=FILE"),
    "no chooser": (("--data", "sales=kept"), "--plan FILE, or --chooser person"),
    "two choosers": (("--data", "sales=kept", "--plan", "plan.json", "--chooser", "person"), "Leave out the plan, or --chooser person"),
    "an unknown chooser": (("--data", "sales=kept", "--chooser", "cat"), "person or model"),
    "data without a name": (("--data", "sales", "--plan", "plan.json"), "NAME=SOURCE"),
    "a file that is not there": (("--data", "sales=gone.csv", "--plan", "plan.json"), "Cannot read 'gone.csv'"),
    "a view that is not there": (("--data", "sales=gone", "--plan", "plan.json"), "gone"),
    "a plan that is not there": (("--data", "sales=kept", "--plan", "gone.json"), "gone.json"),
    "a plan that is no JSON": (("--data", "sales=kept", "--plan", "sales.csv"), "is not JSON"),
    "a plan that is no list": (("--data", "sales=kept", "--plan", "one.json"), "JSON list"),
    "an unknown tool": (("--data", "sales=kept", "--plan", "plan.json", "--tools", "nothing"), "nothing"),
}  # fmt: skip


def test_data_are_named_as_the_magic_names_them(deciding: Any) -> None:
    """D6: `sales=sales.csv` was an unexpected argument, and `--data sales.csv` had no name."""
    for data in (["sales=sales.csv"], ["--data", "sales.csv"], ["sales.csv"]):
        done = deciding(*QUESTION, *data, "--plan", "plan.json", "--tools", "totals")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("words", "hint"), WRONG.values(), ids=WRONG)
def test_a_wrong_call_exits_2_and_says_the_next_step(
    deciding: Any, tmp_path: Path, words: tuple[str, ...], hint: str
) -> None:
    (tmp_path / "one.json").write_text(json.dumps(END))
    tools = () if "--tools" in f"{words} {hint}" else ("--tools", "totals")
    done = deciding(*QUESTION, *words, *tools)
    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr
