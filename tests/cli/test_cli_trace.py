"""`healkit run --record` and `healkit trace`: each in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def runs_of(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "runs").iterdir() if path.name != ".new")


@pytest.mark.requirement("RUN-1", "FACE-6")
def test_a_recorded_run_is_listed_and_shown_event_by_event(fibonacci, tmp_path):
    failed = fibonacci("run", "fibonacci", "--args", '{"n": 10}', "--record")
    assert failed.returncode == 1
    (folder,) = runs_of(tmp_path)
    assert f"· run {folder.name} ·" in failed.stderr

    listed = fibonacci("trace", "list")
    assert folder.name in listed.stdout
    assert "completed, 1 step, 1 failed" in listed.stdout

    shown = fibonacci("trace", "show")
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"run {folder.name}: completed, 1 step, 1 failed\n")
    lines = shown.stdout.splitlines()
    (compiled,) = [line for line in lines if "action_compiled" in line]
    assert "run fibonacci@1 {'n': 10}" in compiled
    assert "✓ tool_found ✓ code_hash ✓ arguments ✓ isolation" in shown.stdout
    assert "✗ TOOL_EXCEPTION: ZeroDivisionError: division by zero" in shown.stdout
    assert "run_finished" in lines[-1]  # and no problem below it

    outcome = json.loads(fibonacci("run", "fibonacci", "--args", '{"n": 10}', "--record", "--json").stdout)
    data = json.loads(fibonacci("trace", "show", outcome["run_id"], "--json").stdout)
    assert data["manifest"]["run_id"] == outcome["run_id"]
    assert [event["seq"] for event in data["events"]] == list(range(1, len(data["events"]) + 1))
    assert data["problems"] == []


@pytest.mark.requirement("RUN-2", "RUN-7")
def test_validate_names_the_line_and_the_fault_and_exits_1(fibonacci, tmp_path):
    fibonacci("run", "fibonacci", "--args", '{"n": 10}', "--record")
    (folder,) = runs_of(tmp_path)
    fine = fibonacci("trace", "validate", "last")
    assert fine.returncode == 0
    assert fine.stdout == f"✓ run {folder.name} is in order: 11 events, 6 pieces of evidence\n"

    trace = folder / "trace.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join([*lines[:4], *lines[5:-1], lines[-1][:30]]))
    next((folder / "evidence").iterdir()).write_text("changed")
    broken = fibonacci("trace", "validate", str(folder))
    assert broken.returncode == 1
    assert f"✗ run {folder.name} is damaged: 3 problems" in broken.stdout
    assert "  ✗ trace.jsonl, line 10: ends after 30 bytes without a line end" in broken.stdout
    assert "  ✗ trace.jsonl, line 5: has seq 6, and 5 is missing." in broken.stdout
    assert ": its SHA-256 is " in broken.stdout
    assert "  – trace.jsonl: the run has no run_finished: its process died before it ended." in broken.stdout
    told = json.loads(fibonacci("trace", "validate", folder.name[:12], "--json").stdout)
    assert told["ok"] is False
    assert {problem["kind"] for problem in told["problems"]} == {
        "torn_line", "seq_gap", "evidence_changed", "unfinished",
    }  # fmt: skip
    assert fibonacci("trace", "show").returncode == 0  # the rest is there to be read


@pytest.mark.requirement("RUN-8")
def test_diff_says_where_two_runs_part(fibonacci, tmp_path):
    for n in (1, 1, 2):
        fibonacci("run", "fibonacci", "--args", json.dumps({"n": n}), "--record")
    runs = {
        json.loads((path / "run_manifest.json").read_text())["started_at"]: path.name
        for path in runs_of(tmp_path)
    }
    first, second, third = (runs[when] for when in sorted(runs))
    alike = fibonacci("trace", "diff", first, second)
    assert (alike.returncode, alike.stdout.splitlines()[-1]) == (
        0, "✓ no difference, 11 events alike (times, durations and ids are not compared)",
    )  # fmt: skip
    parted = fibonacci("trace", "diff", second, third)
    assert parted.returncode == 1
    assert "    action_spec.arguments.n: 1 → 2" in parted.stdout
    data = json.loads(fibonacci("trace", "diff", second, third, "--json").stdout)
    assert {"action_spec.arguments.n": [1, 2]}.items() <= {
        path: values for d in data["differences"] for path, values in d["fields"].items()
    }.items()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trace", "show", "nothing"], "There is no run 'nothing'"),
        (["trace", "show", "../runs"], "There is no folder '../runs'"),
        (["trace", "validate"], "There is no run yet"),
        (["trace", "diff", "a", "b"], "There is no run 'a'"),
    ],
)
def test_a_run_that_is_not_there_is_a_wrong_call_with_the_next_step(cli, words, said):
    done = cli(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert cli("trace", "list").stdout == "No runs are recorded here.\n"
