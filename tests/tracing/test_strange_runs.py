"""Runs that hold what no healkit writes.

Where an event cannot be shown, only that event is lost, not the run or the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from run_samples import written

from healkit.contracts.runs import Problem, Run
from healkit.rendering import runs, timeline
from healkit.rendering.to_html import html_of
from healkit.rendering.to_text import text_of
from healkit.tracing import reader
from healkit.tracing.reader import diff_runs, read_run


def changed(folder: Path, number: int, **fields: Any) -> Path:
    """Replace fields of one line of the run."""
    lines = (folder / "trace.jsonl").read_bytes().splitlines()
    lines[number - 1] = msgspec.json.encode({**msgspec.json.decode(lines[number - 1]), **fields})
    (folder / "trace.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return folder


def changed_last(folder: Path, **fields: Any) -> Path:
    return changed(folder, len((folder / "trace.jsonl").read_bytes().splitlines()), **fields)


DAMAGES: dict[str, Callable[[Path], Path]] = {
    "steps are no number": lambda folder: changed_last(folder, result={"outcome": [], "steps": "many", "failures": {}}),
    "checks are no truths": lambda folder: changed(folder, 2, metadata={"checks": {"arguments": [], "isolation": {}}}),
    "a duration without end": lambda folder: changed(folder, 2, metadata={"duration_ms": 1e308}),
    "a moment before all": lambda folder: changed(folder, 1, ts_utc="0001-01-01T00:00:00+14:00"),
    "a moment after all": lambda folder: changed_last(folder, ts_utc="9999-12-31T23:59:59-14:00"),
    "a kind that is a list": lambda folder: changed(folder, 2, event_type="inspection_finished", result={"sentence": {}, "line": 10**15}),
    "a patch by nobody": lambda folder: changed(folder, 2, event_type="proposal_accepted", metadata={"action": [], "verdict": {}, "revision": []}),
}  # fmt: skip


@pytest.mark.requirement("RUN-8")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_strange_event_costs_itself_only(tmp_path: Path, damage: Callable[[Path], Path]) -> None:
    """Audit R2."""
    healthy, strange = written(tmp_path, "healthy"), damage(written(tmp_path, "strange"))
    run = reader.validate_run(read_run(strange))
    other = read_run(healthy)
    documents = (
        runs.card(run),
        runs.listing([run, other]),
        runs.diff(diff_runs(run, other)),
        timeline.card(timeline.story_of(run)),
    )
    for document in documents:
        assert html_of(document)
        assert text_of(document)
    assert "healthy" in text_of(runs.listing([run, other]))
    assert len(timeline.story_of(run)["steps"]) > 0


def test_a_rule_of_the_check_that_raises_is_a_problem_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Audit R2."""

    def broken(run: Run) -> Iterator[Problem]:
        raise RuntimeError(run.run_id)
        yield

    monkeypatch.setattr(reader, "RULES", (broken, *reader.RULES))
    problems = reader.validate_run(changed(written(tmp_path, "a"), 3, seq=40)).problems
    assert {"unchecked", "seq_gap"} <= {problem.kind for problem in problems}
    assert "broken could not be checked to the end: a." in [problem.message for problem in problems]
