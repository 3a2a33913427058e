"""Heal timeline's half in the kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from timeline_samples import BROKEN, CURED, PATCHES, begun, healing, observed, tried

from healkit import Healkit
from healkit.errors import RunNotFound

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.mark.requirement("RUN-8", "FACE-4")
def test_a_run_is_found_by_its_id_and_by_its_folder(healkit: Healkit, tmp_path: Path) -> None:
    folder = healing(healkit.runs_dir, "by-id")
    state = healkit.timeline("by-id").get_state()
    assert json.loads(json.dumps(state["story"]))["steps"][8]["code"] == CURED
    assert len(json.dumps(state)) < 30_000
    sent = healing(tmp_path / "sent", "elsewhere")
    assert healkit.timeline("by-id").story == healkit.timeline(folder).story
    assert healkit.timeline(sent).story["run_id"] == "elsewhere"
    with pytest.raises(RunNotFound, match="'never'"):
        healkit.timeline("never")


def test_without_a_run_it_plays_the_last_healing_of_its_own_database(
    healkit: Healkit, tmp_path: Path
) -> None:
    """D10: run folders of all databases of a folder lie side by side; that of another one was played."""
    with pytest.raises(RunNotFound, match="This database has no run yet"):
        healkit.timeline()
    reports = {}
    with Healkit(tmp_path / "other.db") as other:
        for one in (healkit, other):
            one.vault.add("mean", "def mean(n: list):\n    return sum(n) / len(m)\n")
            one.execute("mean", arguments={"n": [1]})
            reports[one] = one.heal("mean", advisors=["rules"], budget_s=10)
        healkit.execute("mean", arguments={"n": [1]}, record=True)
        assert other.runs_dir == healkit.runs_dir
        for one, report in reports.items():
            assert one.timeline().story["run_id"] == report.run_id


def test_a_class_is_not_given_the_answers_by_the_card(healkit: Healkit) -> None:
    healing(healkit.runs_dir)
    whole, taught = (healkit.timeline("healing", teach=teach).static_card() for teach in (False, True))
    assert "if buses else 0.0" in whole.html
    for shown in (taught.html, taught.text):
        assert "ZeroDivisionError" in shown
        assert "if buses else 0.0" not in shown
        assert "cured" not in shown
        assert "12 steps; the patches show as the class gets there" in shown


def test_an_edit_is_tried_with_the_arguments_of_the_log_else_with_those_of_the_folder(
    healkit: Healkit,
) -> None:
    healkit.vault.add("average_delay", BROKEN)
    arguments = {"delays": {"7": [0], "8": [3]}, "line": "7"}
    failed = healkit.execute("average_delay", arguments=arguments)
    healing(healkit.runs_dir, "logged", log_id=failed.log_id)
    healing(healkit.runs_dir, "not-logged", log_id=None)
    for run in ("logged", "not-logged"):
        panel = healkit.timeline(run)
        came = panel.operations["try_mine"](CURED)["run"]
        assert (came["label"], came["value"]) == ("Your edit", "0.0")
        failing = panel.operations["try_mine"](BROKEN)["run"]["failure"]
        assert failing["place"] == "line 8 of your edit"
    newest = healkit.executions(limit=3)
    assert arguments in [one.arguments for one in healkit.executions(limit=4)]
    assert {one.origin for one in newest} == {"try"}
    assert len(healkit.vault.history("average_delay")) == 1


def test_a_run_that_was_kept_raw_is_sanitised_on_its_way_to_the_page(healkit: Healkit) -> None:
    writer = begun(healkit.runs_dir, "raw", payload="raw")
    observed(writer)
    patch: Any = PATCHES[2].__class__(
        **{**vars(PATCHES[2]), "reason": f"Uses {SECRET}.", "code": f"{CURED}# {SECRET}\n"}
    )
    tried(writer, "step_2", patch)
    writer.finish({"outcome": "completed"})
    panel = healkit.timeline("raw")
    assert SECRET not in json.dumps(panel.get_state())
    assert SECRET not in panel.static_card().html
    assert "The search proposes patch 1." in panel.static_card().text
