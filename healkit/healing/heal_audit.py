"""Audit of a healing: checks, verdicts, decisions as entries.

An entry is made of an event that `heal_record` has written, so that run folder and audit cannot disagree. Its choice is
the event's type. What only prepares something (`action_started`, `evidence_captured`, …) has no entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from healkit.contracts.audit import AuditMetadata, AuditStep
from healkit.contracts.healing import VERDICTS
from healkit.contracts.runs import TraceEvent
from healkit.plain_text import count

#: Facts of a check, a proposal, a decision and an ended run that the entry keeps.
_CHECKED = ("check", "origin", "arguments", "call")
_CONTENTS = {"arguments", "call"}
_PROPOSED = ("author", "advisor", "base_revision", "base_code_hash")
_DECIDED = ("verdict", "action", "revision", "request_id")
_ENDED = ("outcome", "steps", "failures")
#: Decision → what it says.
_ACTIONS = {
    "kept": "The patch was kept as revision {revision}.",
    "pending": "The patch waits for approval as request {request_id}.",
    "declined": "The patch was declined.",
    "denied": "The policy forbids patches of this tool.",
}

#: Parameters, metadata and description of an entry.
Told = tuple[dict[str, Any], AuditMetadata, str]


def heal_steps(tool_name: str, *, contents: bool, is_clean: bool) -> Callable[[TraceEvent], AuditStep | None]:
    """Return what makes the entries of a healing of that tool.

    contents: whether its arguments may be on record. is_clean: whether the events are sanitised.
    """

    def step_of(event: TraceEvent) -> AuditStep | None:
        told = _TOLD.get(event.event_type, _nothing)(event)
        if told is None:
            return None
        params, metadata, description = told
        if not contents:
            params = {name: value for name, value in params.items() if name not in _CONTENTS}
        return AuditStep(
            execution_id=event.run_id,
            execution_type="heal",
            choice_type=event.event_type,
            tool_name=tool_name,
            tool_params={**params, "step": event.step_id} if event.step_id else params,
            metadata=metadata,
            description=description,
            run_id=event.run_id,
            event_seq=event.seq,
            timestamp=event.ts_utc,
            is_clean=is_clean,
        )

    return step_of


def _nothing(_: TraceEvent) -> None:
    return None


def _observed(event: TraceEvent) -> Told | None:
    known = event.metadata
    if known.get("phase") != "before":
        return None
    failure = f" after the failure in log row {known['log_id']}" if known.get("log_id") else ""
    checks = count(known.get("total", 0), "check")
    metadata = AuditMetadata(view_files=known.get("view_files"))
    return {"log_id": known.get("log_id")}, metadata, f"The healing begins{failure}, with {checks}."


def _raised(event: TraceEvent) -> Told:
    code = "" if event.error is None else event.error.error_code
    return {}, AuditMetadata(success=False, error_message=code), f"An error was recorded: {code}."


def _inspected(event: TraceEvent) -> Told:
    found = event.result or {}
    finding = str(event.metadata.get("finding"))
    asked = event.metadata.get("criteria_profile") == "person"
    said = f"{'Question to a person' if asked else 'Diagnosis'}: {finding.replace('_', ' ')}."
    return (
        {"kind": found.get("kind"), "line": found.get("line")},
        AuditMetadata(actual_state={"status": event.metadata.get("status"), "finding": finding}),
        said,
    )


def _checked(event: TraceEvent) -> Told:
    came = event.result or {}
    outcome = came.get("outcome")
    code = "the code as it is" if event.state_signature_after is None else "the patch"
    params: dict[str, Any] = {name: came[name] for name in _CHECKED if name in came}
    metadata = AuditMetadata(
        success=outcome == "passed", intended_state={"outcome": "passed"}, actual_state={"outcome": outcome}
    )
    return params, metadata, f"Check {came.get('check')} ({came.get('origin')}) of {code}: {outcome}."


def _proposed(event: TraceEvent) -> Told:
    params = {name: event.metadata.get(name) for name in _PROPOSED}
    return params, AuditMetadata(), f"A patch was proposed by {params['author']}."


def _executed(event: TraceEvent) -> Told:
    came = event.result or {}
    passed, total = came.get("passed", 0), came.get("total", 0)
    metadata = AuditMetadata(
        duration_ms=came.get("duration_ms"),
        success=passed == total,
        intended_state={"passed": total},
        actual_state={"passed": passed},
    )
    return {}, metadata, f"The patch passes {passed} of {count(total, 'check')}."


def _judged(event: TraceEvent) -> Told:
    known = {name: event.metadata[name] for name in _DECIDED if name in event.metadata}
    code = None if event.error is None else event.error.error_code
    metadata = AuditMetadata(success=code is None, error_message=code, actual_state=known)
    if "action" in known:
        return {}, metadata, _ACTIONS.get(known["action"], "Decision: {action}.").format_map(_Known(known))
    verdict = VERDICTS.get(known.get("verdict", ""))
    return {}, metadata, f"Verdict: {verdict.words if verdict else known.get('verdict')}."


def _recovered(event: TraceEvent) -> Told:
    came = event.result or {}
    metadata = AuditMetadata(success=True, actual_state={"revision": came.get("revision")})
    return {}, metadata, f"The patch was taken back by revision {came.get('revision')}."


def _halted(event: TraceEvent) -> Told:
    policy = dict(event.metadata.get("policy") or {})
    metadata = AuditMetadata(success=False, error_message="POLICY_HALT", actual_state=policy)
    return {}, metadata, f"The policy ended the healing: {policy.get('reason')}."


def _finished(event: TraceEvent) -> Told:
    came = event.result or {}
    state = {name: came[name] for name in _ENDED if name in came}
    word = str(came.get("reason") or "").partition(":")[0]
    return (
        {},
        AuditMetadata(success=came.get("outcome") == "completed", actual_state=state),
        (f"The healing ended: {came.get('outcome')}{f', {word}' if word else ''}."),
    )


class _Known(dict[str, Any]):
    """Facts of a decision; a missing one is written as `?`."""

    def __missing__(self, _: str) -> str:
        return "?"


_TOLD: dict[str, Callable[[TraceEvent], Told | None]] = {
    "observation_captured": _observed,
    "error_raised": _raised,
    "inspection_finished": _inspected,
    "assert_checked": _checked,
    "proposal_received": _proposed,
    "action_executed": _executed,
    "proposal_accepted": _judged,
    "proposal_rejected": _judged,
    "recovery_finished": _recovered,
    "policy_halt": _halted,
    "run_finished": _finished,
}
