"""Events: the lines of trace.jsonl.

A run is a list of events in the order in which they happened, numbered by `seq` from 1 without a gap. Their times are
for people: a clock may be set back, and `seq` alone gives the order. `None` is null on the wire for the three fields
that every event has (`step_id`, the two signatures); the other optional fields are left out. Runs of earlier
schema versions are read as runs of today: `healkit.tracing.old_runs`.

Payload (what a tool was given, printed, returned or raised) stands in known places only and is redacted there; the rest
is the contract's own words, ids and hashes, and is never changed. `CONTRACT_KEYS` draws that line inside the three open
fields `result`, `metadata` and `error.details`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, get_args

import msgspec

from healkit.contracts.catalogue import is_retryable
from healkit.contracts.signature import StateSignature
from healkit.errors import HealkitError

#: Version of trace.jsonl and of both manifests.
SCHEMA_VERSION = "v3"

EventType = Literal[
    "run_started", "run_finished",
    "observation_captured",
    "proposal_received", "proposal_accepted", "proposal_rejected",
    "action_compiled", "preconditions_checked", "action_started", "action_executed", "postconditions_checked",
    "assert_checked",
    "retry_scheduled", "backoff_applied",
    "recovery_started", "recovery_finished",
    "policy_halt",
    "evidence_captured",
    "error_raised",
    "inspection_started", "inspection_finished",
    "trace.gather_info", "trace.execute_data_op", "trace.execute_output", "trace.finalize", "trace.self_correction",
]  # fmt: skip
EVENT_TYPES: tuple[str, ...] = get_args(EventType)

#: Phase of a step in which something went wrong.
Stage = Literal[
    "observation", "proposal", "preconditions", "action", "postconditions", "policy", "recovery", "evidence",
    "inspection", "run",
]  # fmt: skip
#: A `critical` error ends the run.
Severity = Literal["warning", "error", "critical"]
EvidenceKind = Literal[
    "state_before", "state_after", "code", "proposal", "arguments", "stdout", "stderr", "failure", "outputs", "calls",
    "report", "turn",
]  # fmt: skip

UtcTime = Annotated[datetime, msgspec.Meta(tz=True)]
RunId = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
StepId = Annotated[str, msgspec.Meta(pattern="^step_[1-9][0-9]*$")]
SchemaVersion = Annotated[str, msgspec.Meta(pattern="^v[1-9][0-9]*$")]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
EvidencePath = Annotated[str, msgspec.Meta(pattern=r"^evidence/[0-9a-f]{64}\.(json|txt)$")]
Count = Annotated[int, msgspec.Meta(ge=0)]

#: Keys of `result`, `metadata` and `details` whose values are the contract's own; all others are payload.
CONTRACT_KEYS = frozenset(
    {
        "action", "advisor", "author", "base_code_hash", "base_revision", "calls", "check", "checks", "code",
        "code_hash", "column", "count", "criteria_profile", "doc_hash", "duration_ms", "ename", "execution_mode",
        "execution_profile", "expected", "failures", "file_ref", "finding", "fingerprint", "found", "hidden",
        "isolation", "kind", "line", "log_id", "manifest_uri", "mode", "not_kept", "origin", "outcome", "passed",
        "phase", "policy", "proposal_count", "proposal_source", "report_ref", "request_id", "revision", "rule", "same",
        "state_key", "status", "steps", "think_time_ms", "threshold", "total", "trace_id", "tried", "truncated_from",
        "verdict", "wait_ms", "run_files", "view_files",
    }
)  # fmt: skip


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Condition of an action: the check's name, what it is checked against, and how grave it is where it does not hold.

    `args` holds hashes, limits and words of the contract only, no payload.
    """

    kind: str
    args: dict[str, Any]
    severity: Severity


class ActionSpec(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Resolved action: which code, with which arguments, within which limits.

    `kind` is `run`, `try` (code that no revision holds), `rerun` (arguments from the log) or `validate` (all checks run
    on a patch; its `arguments` are those of the failure). `arguments` is payload. `action_id` is the step's id and the
    kind: the same action of two runs has one id. `preconditions`, `postconditions` and `assertions` are what is
    checked before, after, and against what is known to be right. Evidence of a `critical` action is kept in full; the
    criticality is null in an old run. `tags` are words on the tool: its type, its group, its flags.
    """

    schema_version: SchemaVersion
    action_id: str
    kind: Literal["run", "try", "rerun", "validate"]
    tool_name: str
    persona: str
    revision: int | None
    code_hash: str | None
    arguments: Any
    mode: str
    timeout_s: float
    isolation: str | None
    criticality: Literal["normal", "critical"] | None
    preconditions: list[Condition]
    postconditions: list[Condition]
    assertions: list[Condition]
    tags: list[str]
    grants: dict[str, Any] = {}


class ErrorObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Error with a code of the closed catalogue (`healkit.contracts.catalogue`).

    `retryable`: the same action may be tried again with nothing changed. `message` is payload. `details` holds the
    exception's type, its line, the next step, the numbers behind a refusal: what is known of them.
    """

    schema_version: SchemaVersion
    error_code: str
    stage: Stage
    severity: Severity
    message: str
    retryable: bool
    details: dict[str, Any]
    created_at: UtcTime


class EvidenceRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reference of an event to an item of the evidence manifest; `uri` is relative to the run's folder."""

    kind: EvidenceKind
    uri: EvidencePath
    sha256: Sha256


class TraceEvent(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Event of a run, written at the moment it happened.

    `result` is the outcome; `metadata` what else is known; `evidence_refs` where more of it is stored.
    """

    seq: Annotated[int, msgspec.Meta(ge=1)]
    ts_utc: UtcTime
    run_id: RunId
    event_type: EventType
    step_id: StepId | None
    state_signature_before: StateSignature | None
    state_signature_after: StateSignature | None
    action_spec: ActionSpec | None = None
    result: dict[str, Any] | None = None
    error: ErrorObject | None = None
    evidence_refs: list[EvidenceRef] = []
    metadata: dict[str, Any] = {}


def condition(kind: str, *, severity: Severity = "error", **args: Any) -> Condition:
    """Make a condition; args: what it is checked against."""
    return Condition(kind, args, severity)


def details_of(error: HealkitError) -> dict[str, Any]:
    """Return what one of healkit's own errors tells beside its message: its type, its line, the next step."""
    known = {"ename": type(error).__name__, "line": getattr(error, "lineno", None), "hint": error.hint}
    return {name: value for name, value in known.items() if value}


def error_object(
    code: str,
    stage: Stage,
    message: str,
    created_at: datetime,
    *,
    severity: Severity = "error",
    details: dict[str, Any] | None = None,
    retryable: bool | None = None,
) -> ErrorObject:
    """Make an error object; `retryable` is from the catalogue, unless the caller knows more than the code."""
    again = is_retryable(code) if retryable is None else retryable
    return ErrorObject(SCHEMA_VERSION, code, stage, severity, message, again, details or {}, created_at)
