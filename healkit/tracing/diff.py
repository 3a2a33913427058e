"""Differences between two runs, event by event.

Times, durations, ids and numbers that differ between any two runs of the same thing are left out. The rest is aligned
by what happened in which step (Ratcliff and Obershelp's matching, as in `difflib`), so that one event more in the
middle does not make all later events differ.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import msgspec

from healkit.contracts.runs import Difference, Run, RunDiff, TraceEvent

#: Fields that differ between any two runs, or between two versions of healkit, at any place in an event.
VOLATILE = frozenset(
    {"created_at", "duration_ms", "log_id", "run_id", "schema_version", "seq", "trace_id", "ts_utc"}
)
_ABSENT = None


def diff_runs(left: Run, right: Run) -> RunDiff:
    """Compare two runs: return events that only one has, and pairs with fields that differ, in order."""
    same, differences = 0, list[Difference]()
    matcher = difflib.SequenceMatcher(None, _keys(left), _keys(right), autojunk=False)
    for tag, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        ours, theirs = left.events[left_start:left_end], right.events[right_start:right_end]
        if tag == "equal":
            pairs = [Difference(a, b, differing(a, b)) for a, b in zip(ours, theirs, strict=True)]
            differences += [pair for pair in pairs if pair.fields]
            same += sum(not pair.fields for pair in pairs)
        else:
            differences += [Difference(event, None, {}) for event in ours]
            differences += [Difference(None, event, {}) for event in theirs]
    return RunDiff(left, right, same, differences)


def _keys(run: Run) -> list[tuple[str, str | None]]:
    return [(event.event_type, event.step_id) for event in run.events]


def differing(left: TraceEvent, right: TraceEvent) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which two events differ: path → both values, None for a missing field."""
    ours, theirs = dict(_leaves(left)), dict(_leaves(right))
    return {
        path: (ours.get(path, _ABSENT), theirs.get(path, _ABSENT))
        for path in dict.fromkeys([*ours, *theirs])
        if ours.get(path, _ABSENT) != theirs.get(path, _ABSENT)
    }


def _leaves(event: TraceEvent) -> Iterator[tuple[str, Any]]:
    fields = msgspec.to_builtins(event)
    # By kind: the same evidence in another place of the list is the same evidence.
    fields["evidence_refs"] = {ref["kind"]: ref["sha256"] for ref in fields.get("evidence_refs", [])}
    yield from _walk(fields, "")


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in VOLATILE:
                yield from _walk(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and len(value) <= 100:
        for number, item in enumerate(value):
            yield from _walk(item, f"{path}[{number}]")
    else:
        yield path, value
