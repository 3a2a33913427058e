"""Run folders of schema versions 1 and 2, kept in `old_runs`.

healkit wrote them before the names of trace.jsonl changed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from healkit.contracts.runs import Run
from healkit.rendering import runs, timeline
from healkit.rendering.timeline import story_of
from healkit.rendering.to_html import html_of
from healkit.rendering.to_text import text_of
from healkit.tracing.reader import diff_runs, read_run, validate_run

OLD = Path(__file__).parent / "old_runs"
#: Run → its number of events, and the kinds of its timeline's steps, as the healkit that wrote it told them.
TOLD = {
    "lesson": (
        58,
        "begun executed proposed executed proposed refused refused stumbled observed refused executed executed halted ended",
    ),
    "healing": (42, "begun observed diagnosed checked proposed refused proposed checked proposed checked decided ended"),
    "recovered": (26, "begun observed diagnosed checked proposed checked decided recovered ended"),
    "asked": (39, "begun observed diagnosed checked proposed checked proposed checked diagnosed decided ended"),
    "retried": (26, "begun observed diagnosed checked proposed retried checked decided ended"),
    "killed": (10, "begun executed"),
    "v2_lesson": (
        58,
        "begun executed proposed executed proposed refused refused stumbled observed refused executed executed halted ended",
    ),
    "v2_asked": (41, "begun observed diagnosed checked proposed checked proposed checked diagnosed decided ended"),
}  # fmt: skip


def folder_of(name: str) -> Path:
    (folder,) = (OLD / name).iterdir()
    return folder


@pytest.fixture(params=TOLD)
def old(request: pytest.FixtureRequest) -> Run:
    return validate_run(folder_of(request.param))


def raw(run: Run) -> list[dict]:
    return [msgspec.json.decode(line) for line in (run.path / "trace.jsonl").read_bytes().splitlines()]


@pytest.mark.requirement("RUN-2")
def test_an_old_run_is_read_whole(old: Run) -> None:
    """C6: one schema version up, and old folders are still readable."""
    name = old.path.parent.name
    assert [problem.kind for problem in old.problems] == (["unfinished"] if name == "killed" else [])
    assert old.manifest is not None
    assert old.manifest.schema_version == ("v2" if name.startswith("v2_") else "v1")
    assert len(old.events) == TOLD[name][0]
    assert [event.seq for event in old.events] == [line["seq"] for line in raw(old)]
    assert [event.state_signature_before and event.state_signature_before.state_key for event in old.events] == [
        line["state_signature_before"] and line["state_signature_before"]["state_key"] for line in raw(old)
    ]  # fmt: skip


@pytest.mark.requirement("RUN-8")
def test_an_old_run_is_replayed_step_by_step(old: Run) -> None:
    story = story_of(old)
    assert " ".join(step["kind"] for step in story["steps"]) == TOLD[old.path.parent.name][1]
    assert story["profile"] == ("lesson" if old.path.parent.name.endswith("lesson") else story["profile"])
    for shown in (timeline(story), runs.card(old), runs.listing([old])):
        assert html_of(shown)
        assert text_of(shown)


def test_an_old_run_has_the_names_of_today(old: Run) -> None:
    ids = {event.step_id for event in old.events} | {item.step_id for item in old.evidence}
    assert all(re.fullmatch(r"step_[1-9][0-9]*", step) for step in ids - {None})
    listed = {item.path for item in old.evidence}
    assert {ref.uri for event in old.events for ref in event.evidence_refs} <= listed
    for event in old.events:
        if event.event_type == "observation_captured":
            assert event.metadata["policy"]["same_state_revisit_count"] >= 0
            assert event.metadata["policy"]["hard_cap_steps"] == 60
        if event.event_type == "proposal_rejected":
            assert event.error is not None
        if event.action_spec is not None:
            assert event.action_spec.action_id == f"{event.step_id}.{event.action_spec.kind}"
            if not old.path.parent.name.startswith("v2_"):
                assert event.action_spec.criticality is None  # such a run does not say


def test_conditions_and_inspections_of_version_2_have_the_form_of_today() -> None:
    """C5: version 2 had conditions by name only, and an inspection's finding as its status."""
    lesson, asked = read_run(folder_of("v2_lesson")), read_run(folder_of("v2_asked"))
    specs = [event.action_spec for run in (lesson, asked) for event in run.events if event.action_spec]
    names = {
        one.kind for spec in specs for one in (*spec.preconditions, *spec.postconditions, *spec.assertions)
    }
    assert {"tool_found", "within_limit", "same_ending", "all_passed", "check"} < names
    assert {spec.schema_version for spec in specs} == {"v2"}
    found = [event.metadata for event in asked.events if event.event_type == "inspection_finished"]
    assert [(known["status"], known["finding"]) for known in found] == [("ok", "fixable"), ("ok", "answered")]


@pytest.mark.requirement("RUN-8")
def test_a_run_of_version_2_compares_with_its_copy_and_with_version_1(tmp_path: Path) -> None:
    folder = folder_of("v2_asked")
    assert diff_runs(read_run(folder), read_run(shutil.copytree(folder, tmp_path / "copy"))).differences == []
    found = diff_runs(read_run(folder_of("lesson")), read_run(folder_of("v2_lesson")))
    assert [d for d in found.differences if d.left is None or d.right is None] == []


def test_the_halt_of_an_old_run_names_its_reason() -> None:
    run = read_run(folder_of("lesson"))
    (halt,) = [event for event in run.events if event.event_type == "policy_halt"]
    assert halt.error is not None
    assert halt.state_signature_after is not None
    assert (halt.error.severity, halt.error.details) == ("critical", {})
    assert halt.metadata["policy"] == {
        "reason": "same_state_revisit", "state_key": halt.state_signature_after.state_key, "count": 2, "threshold": 1,
    }  # fmt: skip
    assert (run.events[0].metadata["policy"]["same_state_revisits"], run.events[-1].metadata["status"]) == (
        1,
        "halted",
    )


@pytest.mark.requirement("RUN-8")
def test_an_old_run_is_compared_with_itself_and_with_another(tmp_path: Path) -> None:
    folder = folder_of("healing")
    same = diff_runs(read_run(folder), read_run(shutil.copytree(folder, tmp_path / "copy")))
    assert (same.differences, same.same) == ([], TOLD["healing"][0])
    other = diff_runs(read_run(folder), read_run(folder_of("recovered")))
    assert other.differences
    assert text_of(runs.diff(other))


@pytest.mark.requirement("RUN-2")
def test_a_damaged_line_of_an_old_run_is_named(tmp_path: Path) -> None:
    folder = shutil.copytree(folder_of("healing"), tmp_path / "damaged")
    lines = (folder / "trace.jsonl").read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"evidence_captured"', b'"evidence_lost"')
    lines[5] = lines[5][:40] + b"\n"
    lines[7] = lines[7].replace(b'"outcome"', b'"made_up":1,"outcome"', 1)
    lines[8] = b'{"step_id": {}, "metadata": [], "error": 1, "evidence_refs": {}, "action_spec": 0}\n'
    (folder / "trace.jsonl").write_bytes(b"".join(lines))
    run = validate_run(folder)
    damaged = [(problem.kind, problem.line) for problem in run.problems if problem.kind == "damaged_line"]
    assert damaged == [("damaged_line", 4), ("damaged_line", 6), ("damaged_line", 9)]
    assert len(run.events) == TOLD["healing"][0] - 3


@pytest.mark.parametrize("name", ["lesson", "v2_lesson"])
@pytest.mark.parametrize("damage", [None, b"{", b"[]", b'{"schema_version": 1, "policy_defaults": 3}'])
def test_an_old_trace_is_read_without_its_manifest(tmp_path: Path, damage: bytes | None, name: str) -> None:
    folder = shutil.copytree(folder_of(name), tmp_path / "alone")
    (folder / "run_manifest.json").unlink()
    if damage is not None:
        (folder / "run_manifest.json").write_bytes(damage)
    run = read_run(folder)
    assert [problem.kind for problem in run.problems] == [
        "manifest_missing" if damage is None else "manifest_damaged"
    ]
    assert len(run.events) == TOLD[name][0]
    assert run.events[1].step_id == "step_1"


@pytest.mark.slow
def test_the_commands_take_old_runs() -> None:
    first, second = str(folder_of("healing")), str(folder_of("recovered"))
    for words, code in (["validate", first], 0), (["show", first], 0), (["show", first, "--story"], 0), (["diff", first, second], 1):  # fmt: skip
        done = subprocess.run([sys.executable, "-m", "healkit", "trace", *words], capture_output=True, text=True, check=False)  # fmt: skip
        assert (done.returncode, done.stderr) == (code, "")
        assert done.stdout
