"""Run folders of schema versions 1 and 2, read as of today.

Each function takes the decoded JSON of a file or line and returns it with today's names. What such a folder does not
say stays absent or null: nothing is made up. docs/run_folder.md lists the changes.
"""

from __future__ import annotations

import re
from typing import Any

from healkit.errors import is_retryable

#: Version that folders of the number 1 are given, and the one after it.
OLD_VERSION, SECOND_VERSION = "v1", "v2"

_OLD_STEP = re.compile(r"s([1-9][0-9]*)")
_CAPS = {
    "same_state_threshold": "same_state_revisits",
    "max_steps": "hard_cap_steps",
    "max_retries": "retries_per_action",
    "max_recoveries": "recovery_max",
}
_REASONS = {
    "same_state": "same_state_revisit",
    "max_steps": "hard_cap_steps",
    "max_recoveries": "recovery_max",
}
#: Status of an inspection in version 2 → today's status and finding.
_INSPECTED = {
    "mendable": ("ok", "fixable"),
    "not_mendable": ("failed", "not_fixable"),
    "answered": ("ok", "answered"),
    "unanswered": ("failed", "unanswered"),
}
_REJECTED = {"declined": "PATCH_DECLINED", "denied": "PATCH_DENIED"}

Json = dict[str, Any]


def as_manifest(old: Json) -> Json:
    """Return an old run_manifest.json with today's names."""
    caps = {_CAPS.get(name, name): value for name, value in old.get("policy_defaults", {}).items()}
    redaction = {"rule_set_version": None, "custom_rules": [], **old.get("redaction_policy", {})}
    profile: Json = {"name": old.get("execution_profile"), "parameters": {}}
    return {
        **old, "schema_version": OLD_VERSION, "execution_profile": profile, "policy_defaults": caps,
        "redaction_policy": redaction,
    }  # fmt: skip


def as_evidence_manifest(old: Json) -> Json:
    """Return an old evidence_manifest.json with today's names."""
    items = [{**item, "step_id": _step(item.get("step_id"))} for item in old.get("items", [])]
    return {**old, "schema_version": OLD_VERSION, "items": items}


def as_event(old: Json, manifest: Json | None, version: str) -> Json:
    """Return an old line with today's names; manifest: the run's own, as `as_manifest` returns it."""
    return _of_second(old if version == SECOND_VERSION else _of_first(old, manifest), version)


def _of_second(event: Json, version: str) -> Json:
    """Return a line of version 2 with today's names: conditions were names, an inspection's status its finding."""
    if "action_spec" in event:
        spec = {"schema_version": version, **event["action_spec"]}
        for name in ("preconditions", "postconditions", "assertions"):
            spec[name] = [_condition(kind) for kind in spec[name]]
        event = {**event, "action_spec": spec}
    known = event.get("metadata", {})
    if event.get("event_type") == "inspection_finished" and known.get("status") in _INSPECTED:
        status, finding = _INSPECTED[known["status"]]
        event = {**event, "metadata": {**known, "status": status, "finding": finding}}
    return event


def _condition(kind: str) -> Json:
    word, _, number = kind.partition("_")
    if word == "check" and number.isdecimal():
        return {"kind": "check", "args": {"check": int(number)}, "severity": "error"}
    return {"kind": kind, "args": {}, "severity": "error"}


def _of_first(old: Json, manifest: Json | None) -> Json:
    event = {**old, "step_id": _step(old.get("step_id"))}
    for name in ("state_signature_before", "state_signature_after", "error"):
        if isinstance(event.get(name), dict):
            event[name] = {**event[name], "schema_version": OLD_VERSION}
    if "evidence_refs" in event:
        event["evidence_refs"] = [_reference(ref) for ref in event["evidence_refs"]]
    if "action_spec" in event:
        spec = event["action_spec"]
        unsaid: Json = {name: [] for name in ("preconditions", "postconditions", "assertions", "tags")}
        event["action_spec"] = {
            "action_id": f"{event['step_id']}.{spec.get('kind')}", "criticality": None, **unsaid, **spec,
        }  # fmt: skip
    change = _CHANGES.get(str(event.get("event_type")))
    return event if change is None else change(event, manifest or {})


def _step(step_id: Any) -> Any:
    found = _OLD_STEP.fullmatch(step_id) if isinstance(step_id, str) else None
    return step_id if found is None else f"step_{found[1]}"


def _reference(ref: Json) -> Json:
    return {"uri" if name == "path" else name: value for name, value in ref.items()}


def _started(event: Json, manifest: Json) -> Json:
    known = {name: manifest[name] for name in ("execution_mode", "execution_profile") if name in manifest}
    caps = {"policy": manifest["policy_defaults"]} if "policy_defaults" in manifest else {}
    return {**event, "metadata": {**known, **caps, **event.get("metadata", {})}}


def _finished(event: Json, _: Json) -> Json:
    outcome = event.get("result", {}).get("outcome")
    known = {} if outcome is None else {"status": outcome}
    return {**event, "metadata": {**known, **event.get("metadata", {})}}


def _observed(event: Json, manifest: Json) -> Json:
    known = dict(event.get("metadata", {}))
    policy = {"same_state_revisit_count": known.pop("same_state_count", None)}
    if caps := manifest.get("policy_defaults"):
        policy["same_state_revisit_threshold"] = caps.get("same_state_revisits")
        policy["hard_cap_steps"] = caps.get("hard_cap_steps")
    return {**event, "metadata": {**known, "policy": policy}}


def _halted(event: Json, _: Json) -> Json:
    error = event.get("error")
    if not isinstance(error, dict):
        return event
    details = dict(error.get("details", {}))
    rule = details.pop("rule", None)
    policy = {"reason": _REASONS.get(rule, rule)}
    policy |= {name: details.pop(name, None) for name in ("state_key", "count", "threshold")}
    return {
        **event, "error": {**error, "severity": "critical", "details": details},
        "metadata": {**event.get("metadata", {}), "policy": policy},
    }  # fmt: skip


def _rejected(event: Json, _: Json) -> Json:
    if event.get("error") is not None:
        return event
    known = event.get("metadata", {})
    code = _REJECTED.get(known.get("action"), "PATCH_NOT_CURED")
    error: Json = {
        "schema_version": OLD_VERSION, "error_code": code, "stage": "policy" if "action" in known else "postconditions",
        "severity": "error", "message": str(known.get("why", "")), "retryable": is_retryable(code), "details": {},
        "created_at": event.get("ts_utc"),
    }  # fmt: skip
    return {**event, "error": error}


_CHANGES = {
    "run_started": _started,
    "run_finished": _finished,
    "observation_captured": _observed,
    "policy_halt": _halted,
    "proposal_rejected": _rejected,
}
