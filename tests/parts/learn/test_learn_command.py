"""`healkit learn` and its subcommands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_samples import call

from healkit import Healkit

DIVIDES = "def divides(n):\n    return 12 / n\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a database in which a tool has failed, and its fix was kept."""
    path = tmp_path_factory.mktemp("learned") / "healkit.db"
    with Healkit(path) as healkit:
        healkit.vault.add("divides", DIVIDES)
        for n in (1, 2, 3, 4, 0):
            ran = healkit.execute("divides", arguments={"n": n})
        fixed = DIVIDES.replace("12 / n", "12 / (n or 1)")
        healkit.vault.patch("divides", fixed, motivating_log_id=ran.log_id)
    return path


def told(*words: str | Path) -> Any:
    done = call("learn", *map(str, words), "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


@pytest.mark.requirement("LEARN-1", "LEARN-5")
def test_what_was_learned_is_shown_learned_again_forgotten_and_taken_elsewhere(
    path: Path, tmp_path: Path
) -> None:
    shown = call("learn", "--db", str(path)).stdout
    assert "Learned from 5 executions." in shown
    assert "expected to succeed at 83%" in shown
    assert "1 kept, 0 against" in shown
    before = told("show", "--db", path)
    assert before["surprising"][0]["td_error"] == pytest.approx(-5 / 6)
    assert call("learn", "rebuild", "--db", str(path)).stdout.strip() == "learned again from 5 executions"
    assert told("show", "--db", path) == before
    fixes = tmp_path / "fixes.json"
    assert told("export", fixes, "--db", path) == {"file": str(fixes), "fixes": len(before["fixes"])}
    assert "divides" not in fixes.read_text()
    other = tmp_path / "other.db"
    with Healkit(other):
        pass
    assert "Nothing was learned yet" in call("learn", "--db", str(other)).stdout
    assert told("import", fixes, "--db", other) == {"file": str(fixes), "fixes": len(before["fixes"])}
    assert len(told("show", "--db", other)["fixes"]) == len(before["fixes"])
    assert told("reset", "--db", other) == {"reset": True}
    assert told("show", "--db", other)["fixes"] == []


@pytest.mark.requirement("LEARN-3")
def test_a_report_of_few_runs_says_that_they_are_few(path: Path) -> None:
    assert told("report", "--db", path) == []
    assert call("learn", "report", "--db", str(path)).stdout.strip()


def test_what_cannot_be_read_or_is_not_there_is_said(path: Path, tmp_path: Path) -> None:
    missing = call("learn", "import", str(tmp_path / "missing.json"), "--db", str(path))
    assert (missing.returncode, "cannot be imported" in missing.stderr) == (2, True)
    unknown = call("learn", "shwo", "--db", str(path))
    assert unknown.returncode == 2
    assert "show" in unknown.stderr
