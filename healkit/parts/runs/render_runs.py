"""Cards of runs, of their problems, and of differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from healkit.core.rendering import plain
from healkit.core.rendering.document import Card, Code, Facts, Line, Only, Part, Table
from healkit.parts.runs.contract import Difference, Run, RunDiff, TraceEvent

_EVENTS = ("seq", "after", "step", "event", "result")
_RUNS = ("run", "begun", "profile", "events", "outcome")
_MARKS = {True: "✓", False: "✗"}
#: Values longer than this are cut on screen; the folder holds them whole.
_VALUE_MAX_CHARS = 160
#: Fields with hashes: they say that something differs; showing both says no more.
_GROUPED = {
    "state before": "state_signature_before.",
    "state after": "state_signature_after.",
    "evidence": "evidence_refs.",
}
#: Metadata that the facts above the events say, or the evidence.
_UNSHOWN = {"doc_hash", "execution_mode", "execution_profile", "file_ref", "manifest_uri", "report_ref"}
#: Fields that differ because another, named field differs.
_FOLLOWS = {"state_key", "state_before", "state_after"}


def run_card(run: Run) -> Card:
    """Build a run event by event, with times from its beginning, and the faults of the record below."""
    start = run.events[0].ts_utc if run.events else None
    rows = [
        (str(e.seq), _after(start, e.ts_utc), e.step_id or "", e.event_type, plain.spared(_what, e))
        for e in run.events
    ]
    parts: list[Part] = [Facts(list(_facts(run))), Only("text", ""), Table(_EVENTS, rows)]
    if run.problems:
        parts += [Only("text", ""), problem_list(run)]
    return Card(f"run {run.run_id}: {outcome(run)}", tone="info", parts=parts)


def run_list(runs: Sequence[Run]) -> Card:
    """Build the list of runs, in the order given."""
    if not runs:
        return Card(parts=("No runs are recorded here.",))
    rows = []
    for run in runs:
        begun = run.manifest.started_at if run.manifest else None
        profile = run.manifest.execution_profile.name if run.manifest else "–"
        rows.append((run.path.name, plain.moment(begun), profile, f"{len(run.events):,}", outcome(run)))
    return Card(tone="info", parts=(Table(_RUNS, rows),))


def problem_list(run: Run) -> Card:
    """Build a verdict on the record, and each problem with its file and line."""
    faults = [problem for problem in run.problems if problem.fault]
    notes = [problem for problem in run.problems if not problem.fault]
    counted = plain.count(len(run.events), "event") + ", " + plain.count(len(run.evidence), "piece")
    title = f"run {run.run_id} is valid: {counted} of evidence"
    if faults:
        title = f"run {run.run_id} is damaged: {plain.count(len(faults), 'problem')}"
    lines = [Line(f"{'✗' if problem.fault else '–'} {problem}") for problem in [*faults, *notes]]
    return Card(title, "✗" if faults else "✓", "bad" if faults else "good", parts=lines)


def run_diff(found: RunDiff) -> Card:
    """Build the differences of two runs; − stands for the first of them, + for the second."""
    same = f"{plain.count(found.same, 'event')} the same (times, durations and ids are not compared)"
    lines = [f"− {found.left.run_id}", f"+ {found.right.run_id}"]
    lines += [line for difference in found.differences for line in _difference(difference)]
    number = plain.count(len(found.differences), "difference")
    lines.append(f"{number}, {same}" if found.differences else f"✓ no difference, {same}")
    return Card(tone="info", parts=(Code("\n".join(lines)),))


def outcome(run: Run) -> str:
    """Say in a few words how a run ended."""
    if run.finished:
        result = run.events[-1].result or {}
        step_count = result.get("steps", 0)
        steps = (
            plain.count(step_count, "step") if isinstance(step_count, int) else f"{_value(step_count)} steps"
        )
        return f"{_value(result.get('outcome', '–'))}, {steps}, {_value(result.get('failures', 0))} failed"
    if any(problem.kind == "in_progress" for problem in run.problems):
        return "going on"
    return "not ended: its process died, or is still writing it"


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    yield "folder", str(run.path)
    if run.manifest is not None:
        manifest = run.manifest
        yield "begun", f"{plain.moment(manifest.started_at)}, by healkit {manifest.app_version}"
        yield "profile", f"{manifest.execution_profile.name}, {manifest.execution_mode}"
        caps = manifest.policy_defaults
        yield (
            "policy",
            (
                f"same state {caps.same_state_revisits}, steps {caps.hard_cap_steps}, "
                f"retries {caps.retries_per_action}, recoveries {caps.recovery_max}"
            ),
        )
        yield "payload", manifest.redaction_policy.payload


def _after(start: datetime | None, moment: datetime) -> str:
    """Write the time since the run's beginning; negative if a clock was set back."""
    if start is None:
        return ""
    milliseconds = (moment - start).total_seconds() * 1000
    return plain.duration(milliseconds) if milliseconds >= 0 else f"-{plain.duration(-milliseconds)}"


def _what(event: TraceEvent) -> str:
    """Return the most important fact about an event."""
    if event.error is not None:
        again = ", may be retried" if event.error.retryable else ""
        return f"✗ {event.error.error_code}: {plain.one_line(event.error.message, _VALUE_MAX_CHARS)}{again}"
    if event.action_spec is not None:
        spec = event.action_spec
        revision = "" if spec.revision is None else f" v{spec.revision}"
        return f"{spec.kind} {spec.tool_name}{revision} {_value(spec.arguments)}"
    metadata = {} if event.event_type == "run_finished" else event.metadata  # it repeats the result
    parts = [_field(key, value) for key, value in {**(event.result or {}), **metadata}.items()]
    if event.evidence_refs:
        parts.append(", ".join(f"{ref.kind} {ref.sha256[:8]}" for ref in event.evidence_refs))
    return ", ".join(part for part in parts if part)


def _field(key: str, value: object) -> str:
    if value is None or value == "" or key in _UNSHOWN:
        return ""
    if key == "policy" and isinstance(value, dict):
        count = value.get("same_state_revisit_count")
        return "" if count is None else f"same state {_value(count)}"
    if key == "checks" and isinstance(value, dict):
        return " ".join(f"{_MARKS[ok] if isinstance(ok, bool) else '?'} {name}" for name, ok in value.items())
    if key == "duration_ms" and isinstance(value, int | float):
        return plain.duration(float(value))
    if key == "phase":
        return str(value)
    return f"{key} {_value(value)}"


def _value(value: object) -> str:
    return plain.one_line(value if isinstance(value, str) else plain.recorded_text(value), _VALUE_MAX_CHARS)


def _difference(difference: Difference) -> Iterator[str]:
    if difference.left is None or difference.right is None:
        event = difference.left or difference.right
        assert event is not None  # one side has it
        sign = "+" if difference.left is None else "−"
        description = plain.spared(_what, event)
        yield f"{sign} {event.seq} {event.step_id or ''} {event.event_type}  {description}".replace("  ", " ")
        return
    first_event, right = difference.left, difference.right
    numbers = str(first_event.seq) if first_event.seq == right.seq else f"{first_event.seq}/{right.seq}"
    yield f"≠ {numbers} {first_event.step_id or ''} {first_event.event_type}".replace("  ", " ")
    for name, prefix in _GROUPED.items():
        parts = [path.removeprefix(prefix) for path in difference.fields if path.startswith(prefix)]
        if named := [part for part in parts if part not in _FOLLOWS]:
            yield f"    {name}: {', '.join(named)} differ"
    for path, (ours, theirs) in difference.fields.items():
        if not path.startswith(tuple(_GROUPED.values())):
            yield f"    {path}: {_value(ours)} → {_value(theirs)}"
