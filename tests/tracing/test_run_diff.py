"""Two runs, compared with each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_samples import begin, tell, written

from healkit.rendering import runs
from healkit.rendering.to_text import text_of
from healkit.tracing.reader import diff_runs, read_run


@pytest.mark.requirement("RUN-8")
def test_two_equal_runs_do_not_differ_in_times_and_ids(tmp_path: Path) -> None:
    found = diff_runs(read_run(written(tmp_path, "a")), read_run(written(tmp_path, "b")))
    assert found.differences == []
    assert found.same == 8
    assert "✓ no difference, 8 events the same" in text_of(runs.diff(found))


@pytest.mark.requirement("RUN-8")
def test_a_changed_argument_is_named_by_path_with_both_values(tmp_path: Path) -> None:
    found = diff_runs(read_run(written(tmp_path, "a", n=1)), read_run(written(tmp_path, "b", n=2)))
    changed = next(d for d in found.differences if "action_spec.arguments.n" in d.fields)
    assert changed.fields["action_spec.arguments.n"] == (1, 2)
    assert "state_signature_before.arguments" in changed.fields
    assert "state_signature_before.tool" not in changed.fields
    text = text_of(runs.diff(found))
    assert "action_spec.arguments.n: 1 → 2" in text
    assert "state before: arguments differ" in text
    assert "evidence: stdout differ" in text


@pytest.mark.requirement("RUN-8")
def test_an_extra_event_in_the_middle_is_one_difference(tmp_path: Path) -> None:
    plain = read_run(written(tmp_path, "a", steps=3))
    writer = begin(tmp_path, "b")
    tell(writer, 1)
    writer.append("inspection_started", step_id="step_1")
    for step in ("step_2", "step_3"):
        for event in plain.events:
            if event.step_id == step and event.event_type != "evidence_captured":
                writer.append(
                    event.event_type, step_id=step, before=event.state_signature_before,
                    after=event.state_signature_after, action_spec=event.action_spec, error=event.error,
                )  # fmt: skip
            elif event.step_id == step:
                number = step.removeprefix("step_")
                writer.keep(
                    [("stdout", f"step {number}, n = 0"), ("failure", {"ename": "ValueError"})], step_id=step,
                    before=event.state_signature_before, after=event.state_signature_after,
                )  # fmt: skip
    writer.finish({"outcome": "completed", "steps": 3, "failures": 3})
    (only,) = diff_runs(plain, read_run(writer.folder)).differences
    assert only.left is None
    assert only.right is not None
    assert only.right.event_type == "inspection_started"
