"""`healkit run --record` and `healkit trace`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from timeline_samples import healing

from healkit import Healkit


def runs_of(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "runs").iterdir() if path.name != ".new")


@pytest.fixture
def record(tmp_path) -> Iterator[Callable[[int], Path]]:
    """Record a failing execution in this process, without a worker; its run folder."""
    with Healkit(tmp_path / "healkit.db") as healkit:
        healkit.vault.add("rows", "SELECT :n FROM nowhere", type="sql")

        def recorded(n: int) -> Path:
            return healkit.runs_dir / str(healkit.execute("rows", arguments={"n": n}, record=True).run_id)

        yield recorded


@pytest.mark.requirement("RUN-1", "FACE-6")
def test_a_recorded_execution_names_its_run_and_is_shown_event_by_event(fibonacci, tmp_path):
    failed = fibonacci("run", "fibonacci", "--args", '{"n": 10}', "--record", "--json")
    assert failed.returncode == 1
    (folder,) = runs_of(tmp_path)
    assert json.loads(failed.stdout)["run_id"] == folder.name
    shown = fibonacci("trace", "show")
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"run {folder.name}: completed, 1 step, 1 failed\n")
    lines = shown.stdout.splitlines()
    (compiled,) = [line for line in lines if "action_compiled" in line]
    assert "run fibonacci v1 {'n': 10}" in compiled
    assert "✓ tool_found ✓ code_hash ✓ arguments ✓ isolation" in shown.stdout
    assert "✗ TOOL_EXCEPTION: ZeroDivisionError: division by zero" in shown.stdout
    assert "run_finished" in lines[-1]  # and no problem below it


@pytest.mark.requirement("RUN-8", "FACE-6")
def test_trace_show_prints_the_story_of_a_run_step_by_step(cli, tmp_path):
    folder = healing(tmp_path / "sent")
    told = cli("trace", "show", str(folder), "--story")
    assert told.returncode == 0
    assert "The search proposes patch 3." in told.stdout
    assert "✓ Patch 3: fixed, no regressions." in told.stdout
    assert "+    return round(total / buses, 1) if buses else 0.0" in told.stdout
    data = json.loads(cli("trace", "show", str(folder), "--story", "--json").stdout)
    assert data["attempts"][0]["words"] == "only hides the error"


@pytest.mark.requirement("RUN-8")
def test_runs_are_listed_newest_first_and_read_as_json(cli, record):
    first, second = record(1), record(2)
    listed = cli("trace", "list").stdout
    assert listed.index(second.name) < listed.index(first.name)
    assert "completed, 1 step, 1 failed" in listed
    data = json.loads(cli("trace", "show", first.name, "--json").stdout)
    assert data["manifest"]["run_id"] == first.name
    assert [event["seq"] for event in data["events"]] == list(range(1, len(data["events"]) + 1))
    assert data["problems"] == []


@pytest.mark.requirement("RUN-2", "RUN-7")
def test_validate_names_the_line_and_the_fault_and_exits_1(cli, record):
    folder = record(1)
    fine = cli("trace", "validate", "last")
    assert fine.returncode == 0
    assert fine.stdout == f"✓ run {folder.name} is valid: 11 events, 5 pieces of evidence\n"

    trace = folder / "trace.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join([*lines[:4], *lines[5:-1], lines[-1][:30]]))
    next((folder / "evidence").iterdir()).write_text("changed")
    broken = cli("trace", "validate", str(folder))
    assert broken.returncode == 1
    assert f"✗ run {folder.name} is damaged: 3 problems" in broken.stdout
    assert "  ✗ trace.jsonl, line 10: ends after 30 bytes without a line end" in broken.stdout
    assert "  ✗ trace.jsonl, line 5: has seq 6, but 5 is missing." in broken.stdout
    assert ": its SHA-256 is " in broken.stdout
    assert "  – trace.jsonl: the run has no run_finished: its process died before it ended." in broken.stdout
    told = json.loads(cli("trace", "validate", folder.name[:20], "--json").stdout)
    assert told["ok"] is False
    assert {problem["kind"] for problem in told["problems"]} == {
        "torn_line", "seq_gap", "evidence_changed", "unfinished",
    }  # fmt: skip


@pytest.mark.requirement("RUN-8")
def test_diff_says_where_two_runs_part(cli, record):
    first, second, third = (record(n).name for n in (1, 1, 2))
    alike = cli("trace", "diff", first, second)
    assert (alike.returncode, alike.stdout.splitlines()[-1]) == (
        0, "✓ no difference, 11 events the same (times, durations and ids are not compared)",
    )  # fmt: skip
    parted = cli("trace", "diff", second, third)
    assert parted.returncode == 1
    assert "    action_spec.arguments.n: 1 → 2" in parted.stdout
    data = json.loads(cli("trace", "diff", second, "last", "--json").stdout)
    assert {"action_spec.arguments.n": [1, 2]}.items() <= {
        path: values for d in data["differences"] for path, values in d["fields"].items()
    }.items()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trace", "show", "nothing"], "There is no run 'nothing'"),
        (["trace", "show", "../runs"], "There is no folder '../runs'"),
        (["trace", "validate"], "There are no runs yet"),
        (["trace", "diff", "a", "b"], "There is no run 'a'"),
    ],
)
def test_a_run_that_is_not_there_is_a_wrong_call_with_the_next_step(cli, words, said):
    done = cli(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr


@pytest.mark.requirement("RUN-8")
def test_last_is_the_databases_own_last_run(cli, record, tmp_path):
    """Two databases in one folder have their runs in one; `last` was the other's."""
    own = record(1)
    with Healkit(tmp_path / "other.db") as other:
        other.vault.add("rows", "SELECT :n FROM nowhere", type="sql")
        theirs = other.execute("rows", arguments={"n": 2}, record=True).run_id
    assert json.loads(cli("trace", "show", "last", "--json").stdout)["path"] == str(own)
    shown = cli("trace", "show", "last", "--db", str(tmp_path / "other.db"), "--json")
    assert json.loads(shown.stdout)["path"].endswith(str(theirs))
