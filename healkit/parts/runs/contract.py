"""Runs as data: events, state signatures, manifests, policy.

A run is a list of events, the lines of trace.jsonl, in order, numbered by `seq` from 1 without a gap. Their times are
for readers. A clock may be set back, so only `seq` gives the order. `None` is null on the wire for the three fields
that every event has (`step_id`, the two signatures); the other optional fields are left out.

Payload is what a tool took, printed, returned or raised. It is only in known places and is redacted there. Everything
else is the contract's own words, ids and hashes, and is never changed. `CONTRACT_KEYS` separates the two inside the
open fields `result`, `metadata` and `error.details`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from healkit.core import plain_files
from healkit.errors import EvidenceChanged, HealkitError, is_retryable
from healkit.parts.runs.audit_records import AuditHead

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
    """Condition of an action: the check's name, its arguments, and the severity if it is not met.

    `args` contains only hashes, limits and words of the contract, no payload.
    """

    kind: str
    args: dict[str, Any]
    severity: Severity


class ActionSpec(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Resolved action: which code, with which arguments, within which limits.

    `kind` is `run`, `try` (code that no revision has), `rerun` (arguments from the log) or `validate` (all checks run
    on a patch; its `arguments` are those of the failure). `arguments` is payload. `action_id` is the step's id and the
    kind: the same action of two runs has one id. `preconditions`, `postconditions` and `assertions` are checked before,
    after, and against known results. Evidence of a `critical` action is kept in full. `tags` are words about the tool:
    its type, its group, its flags.
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
    criticality: Literal["normal", "critical"]
    preconditions: list[Condition]
    postconditions: list[Condition]
    assertions: list[Condition]
    tags: list[str]
    grants: dict[str, Any] = {}


class ErrorObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Error with a code of the closed catalogue (`healkit.errors`).

    `retryable`: The same action may be tried again unchanged. `message` is payload. `details` contains known facts: the
    exception's type, its line, the next step, the numbers behind a refusal.
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
    """Event of a run, written when it happened.

    `result` is the outcome; `metadata` contains further facts; `evidence_refs` says where more of it is stored.
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


def condition(kind: str, *, severity: Severity = "error", **args: object) -> Condition:
    """Make a condition.

    args: The values for the check.
    """
    return Condition(kind, args, severity)


def details_of(error: HealkitError) -> dict[str, Any]:
    """Return the details of a healkit error other than its message: its type, its line, the next step."""
    details = {"ename": type(error).__name__, "line": getattr(error, "lineno", None), "hint": error.hint}
    return {name: value for name, value in details.items() if value}


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
    """Make an error object; `retryable` is from the catalogue, unless the caller knows more."""
    again = is_retryable(code) if retryable is None else retryable
    return ErrorObject(SCHEMA_VERSION, code, stage, severity, message, again, details or {}, created_at)


# State signatures: the state of a tool's world, as hashes.
#
# A signature has five hashes, each in its own field, so two signatures show *what* differs. They are of the tool (name,
# persona and code), the normalised failure (its fingerprint), the arguments, the outputs, and the worker. `state_key`
# joins the first three: the same code, arguments and failure are the same state, whatever was printed and however
# isolated it was. A revision's number is left out: a revert to a revision's code is back in its state.
#
# A hash is the first 32 hexadecimal digits of the SHA-256 of `<version>:<field>:` and the value as JSON with sorted
# keys. The caller passes values that are already clean: a hash of a short secret can be guessed back.


#: Version of the fields.
SIGNATURE_VERSION = "v1"
#: Version; it changes whenever the same state would get other hashes.
ALGORITHM = "sha256-128/1"

Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_encode = msgspec.json.Encoder(order="deterministic").encode


class StateSignature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Signature of one state; a part that does not exist yet (no failure, no outputs) is null."""

    schema_version: str
    algorithm: str
    tool: Hash
    failure: Hash | None
    arguments: Hash
    outputs: Hash | None
    worker: Hash | None
    state_key: Hash


def sign(
    *,
    tool_name: str,
    persona: str,
    code_hash: str | None,
    arguments: object,
    fingerprint: str | None = None,
    outputs: object = None,
    worker: object = None,
) -> StateSignature:
    """Sign a state given by its parts: JSON values, and a failure's fingerprint or None."""
    tool = digest("tool", [tool_name, persona, code_hash])
    failure = None if fingerprint is None else digest("failure", fingerprint)
    arguments_digest = digest("arguments", arguments)
    return StateSignature(
        SIGNATURE_VERSION,
        ALGORITHM,
        tool=tool,
        failure=failure,
        arguments=arguments_digest,
        outputs=None if outputs is None else digest("outputs", outputs),
        worker=None if worker is None else digest("worker", worker),
        state_key=state_key(tool, failure, arguments_digest),
    )


def state_key(tool: str, failure: str | None, arguments: str) -> str:
    """Return the one hash that two signatures share if they are of the same state."""
    return digest("state", [tool, failure, arguments])


def digest(field: str, value: object) -> str:
    """Hash a JSON value as that field; equal for equal values whatever the order of their keys."""
    try:
        encoded = _encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which JSON's UTF-8 cannot hold
        encoded = repr(value).encode(errors="backslashreplace")
    return hashlib.sha256(f"{ALGORITHM}:{field}:".encode() + encoded).hexdigest()[:32]


# Manifests of a run folder, and a run as it is read back.
#
# runs/<run_id>/run_manifest.json       the plan, the version of healkit, the policy
#               trace.jsonl             what happened, one event per line
#               evidence/<sha256>.json  evidence; each file is named by its content
#               evidence_manifest.json  what each file is, and its step


TRACE, EVIDENCE = "trace.jsonl", "evidence"
RUN_MANIFEST, EVIDENCE_MANIFEST = "run_manifest.json", "evidence_manifest.json"

ExecutionMode = Literal["live", "dry_run"]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class PolicyDefaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Caps of a run; a run over one of them ends (`healkit.parts.runs.run_policy`).

    same_state_revisits: How often the same failing state may be observed.
    hard_cap_steps: Steps of the run.
    retries_per_action: Retries of one action.
    recovery_max: Recoveries of the run.
    backoff_ms: Pauses before the first, second and further retries; the last one applies to all later ones.
    max_identical_errors: Only in a healing: how often in a row different code may fail in the same way.
    max_ping_pong: Only in a healing: how many observations may alternate between two failing states.
    retry_side_effects: Whether a tool with side effects may be retried too.
    """

    same_state_revisits: Positive = 2
    hard_cap_steps: Positive = 60
    retries_per_action: Count = 2
    recovery_max: Count = 3
    backoff_ms: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = (300, 1000, 2000)
    max_identical_errors: Positive = 4
    max_ping_pong: Positive = 6
    retry_side_effects: bool = False


class RedactionPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Treatment of payload: `sanitised` or, by explicit opt-in, `raw`; and the size limit.

    rule_set_version: A hash of the built-in rules, null if none was applied.
    custom_rules: Ids of the user's own.
    """

    payload: Literal["sanitised", "raw"]
    payload_max_bytes: Count
    evidence_max_bytes: Count
    rule_set_version: str | None
    custom_rules: list[str]


class ExecutionProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kind of a run, and its parameters: the limits of its executions and, for a healing, its options."""

    name: str
    parameters: dict[str, Any]


class RunManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of run_manifest.json: written before the first event, and with another `audit` at the end.

    `allowlist` are patterns of the tools that the run may execute. `app_version` is healkit's, with `+g` and the commit
    if it is known. `audit` is the head of the audit's chain, if the run is audited: first the head at its beginning,
    later the head at its end.
    """

    schema_version: SchemaVersion
    run_id: RunId
    started_at: UtcTime
    execution_profile: ExecutionProfile
    execution_mode: ExecutionMode
    policy_defaults: PolicyDefaults
    app_version: str
    platform: dict[str, str]
    allowlist: list[str]
    redaction_policy: RedactionPolicy
    audit: AuditHead | msgspec.UnsetType = msgspec.UNSET


class EvidenceItem(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Item of evidence; several items may share a file (the same code in two steps).

    `redacted` says that something in it was hidden, `hidden` how much by which rule; `truncated_from` is its size in
    bytes before it was cut.
    """

    kind: EvidenceKind
    path: EvidencePath
    sha256: Sha256
    size_bytes: Count
    step_id: StepId | None
    created_at: UtcTime
    redacted: bool
    hidden: dict[str, int] = {}
    truncated_from: int | None = None


class EvidenceManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of evidence_manifest.json: replaced as a whole, after its files are written."""

    schema_version: SchemaVersion
    run_id: RunId
    items: list[EvidenceItem]


#: Problems and notes on a run folder.
ProblemKind = Literal[
    "manifest_missing", "manifest_damaged", "trace_missing", "torn_line", "damaged_line", "unknown_version",
    "seq_gap", "seq_repeated", "wrong_run_id", "wrong_order", "unknown_code", "wrong_signature", "unlisted_reference",
    "evidence_missing", "evidence_changed", "evidence_extra", "leftover", "unfinished", "in_progress", "unchecked",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Problem:
    """Problem of a run folder: in which file, on which line (from 1), and what.

    A `fault` is damage. Without it, the problem is only information: a run that a crash ended, or that is still
    running.
    """

    kind: ProblemKind
    file: str
    line: int | None
    message: str
    fault: bool = True

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{where}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Run:
    """Run folder as it is on disk: everything readable, and `problems` for the rest.

    `lines` are the line numbers of `events` in trace.jsonl. `evidence` are the entries of the evidence manifest.
    """

    path: Path
    manifest: RunManifest | None
    events: list[TraceEvent]
    evidence: list[EvidenceItem]
    problems: list[Problem]
    lines: list[int] = dataclasses.field(default_factory=list)

    @property
    def run_id(self) -> str:
        """Id from the manifest, otherwise the folder's name."""
        return self.manifest.run_id if self.manifest is not None else self.path.name

    @property
    def finished(self) -> bool:
        """True if the last event says that the run ended."""
        return bool(self.events) and self.events[-1].event_type == "run_finished"

    def read_evidence(self, item: EvidenceItem | EvidenceRef) -> bytes:
        """Return the content of one item; raise `OSError` if it does not exist, and `EvidenceChanged`."""
        return self.read_file(item.path if isinstance(item, EvidenceItem) else item.uri, item.sha256)

    def read_file(self, name: str, sha256: str) -> bytes:
        """Return the content of a file of the folder, such as `outputs/1_chart.png`.

        Raises `OSError` if it does not exist, and `EvidenceChanged` if it is a link or has another hash.
        """
        try:
            content = plain_files.read_file(self.path, name)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._changed(name, error.strerror or str(error)) from None
        actual_hash = hashlib.sha256(content).hexdigest()
        if actual_hash != sha256:
            raise self._changed(name, f"its SHA-256 is {actual_hash[:12]}…, but the run says {sha256[:12]}…")
        return content

    def _changed(self, name: str, why: str) -> EvidenceChanged:
        return EvidenceChanged(
            f"The file {name!r} of run {self.run_id!r} has changed since the run recorded it: {why}.",
            hint="`healkit trace validate` checks the whole folder.",
        )


@dataclasses.dataclass(frozen=True)
class Difference:
    """Difference between two runs: an event of only one, or a pair with fields that differ.

    `fields` maps a path such as `result.status` to its two values; it is empty if one side has no such event.
    """

    left: TraceEvent | None
    right: TraceEvent | None
    fields: dict[str, tuple[Any, Any]]


@dataclasses.dataclass(frozen=True)
class RunDiff:
    """Comparison of two runs: the number of equal events, and the differences, in order."""

    left: Run
    right: Run
    same: int
    differences: list[Difference]


def empty_evidence(run_id: str) -> EvidenceManifest:
    """Return the evidence manifest of a run that has no evidence yet."""
    return EvidenceManifest(SCHEMA_VERSION, run_id, [])


# Questions to a run's policy, and its answers.
#
# The policy itself is `healkit.parts.runs.run_policy.RunPolicy`.


@dataclasses.dataclass(frozen=True)
class Observation:
    """State in which a step ended; `failed` is True for a failing state."""

    state_key: str
    failed: bool
    fingerprint: str | None = None


@dataclasses.dataclass(frozen=True)
class Halt:
    """Reason why a run was ended: the cap, in words, its numbers, and the state if one was the reason.

    `rule` is the `reason` of trace.jsonl, such as `same_state_revisit`; `reason` is the sentence.
    """

    rule: str
    reason: str
    count: int
    threshold: int
    state_key: str | None = None


@dataclasses.dataclass(frozen=True)
class PolicyVerdict:
    """Answer of a policy: continue, continue after `wait_ms`, a refusal (`refusal` says why), or the end (`halt`)."""

    halt: Halt | None = None
    refusal: str = ""
    wait_ms: int = 0
    same_state_count: int = 0

    @property
    def granted(self) -> bool:
        """True if the action is allowed."""
        return self.halt is None and not self.refusal
