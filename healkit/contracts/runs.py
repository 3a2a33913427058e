"""Manifests of a run folder, and a run as it is read back.

runs/<run_id>/run_manifest.json       what was to be done, by which healkit, under which policy
              trace.jsonl             what happened, an event a line
              evidence/<sha256>.json  what it looked like, each file named by its content
              evidence_manifest.json  which file is what, of which step
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from healkit import plain_files
from healkit.contracts.audit import AuditHead
from healkit.contracts.events import (
    SCHEMA_VERSION,
    Count,
    EvidenceKind,
    EvidencePath,
    EvidenceRef,
    RunId,
    SchemaVersion,
    Sha256,
    StepId,
    TraceEvent,
    UtcTime,
)
from healkit.errors import EvidenceChanged

TRACE, EVIDENCE = "trace.jsonl", "evidence"
RUN_MANIFEST, EVIDENCE_MANIFEST = "run_manifest.json", "evidence_manifest.json"

ExecutionMode = Literal["live", "dry_run"]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class PolicyDefaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Caps of a run; a run over one of them ends (`healkit.healing.run_policy`).

    same_state_revisits: how often the same failing state may be observed. hard_cap_steps: steps of the run.
    retries_per_action: retries of one action. recovery_max: recoveries of the run. backoff_ms: pauses before the
    first, second and further retries; the last one holds for all that follow. max_identical_errors and max_ping_pong
    hold in a healing only: how often in a row different code may fail the same way, and how many observations may
    alternate between two failing states. retry_side_effects: whether a tool with side effects may be retried too.
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
    """Treatment of payload: `sanitised` or, by explicit opt-in, `raw`; and the size at which it is cut.

    rule_set_version: a hash of the built-in rules, null where none was applied. custom_rules: ids of the user's own.
    """

    payload: Literal["sanitised", "raw"]
    payload_max_bytes: Count
    evidence_max_bytes: Count
    rule_set_version: str | None
    custom_rules: list[str]


class ExecutionProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kind of a run, and its parameters: the limits of its executions and, of a healing, what it was asked for."""

    name: str
    parameters: dict[str, Any]


class RunManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of run_manifest.json: written before the first event, and with another `audit` at the end.

    `allowlist` are the tools that the run may execute, as patterns. `app_version` is healkit's, with `+g` and the
    commit where that is known. `audit` is the head of the audit's chain, where the run is audited: as it began, and
    once it has ended, as it ended.
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
    """Item of evidence; the same file may be several (the same code in two steps).

    `redacted` says that something was hidden in it, `hidden` how much by which rule; `truncated_from` is its size in
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
    """Contents of evidence_manifest.json: replaced as a whole, after the files it names are there."""

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

    A `fault` is damage. Without it, this is only worth knowing: a run that a crash ended, or that still goes on.
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
    """Run folder as it is on disk: all that can be read of it, and `problems` for the rest.

    `lines` are the line numbers of `events` in trace.jsonl. `evidence` is what the evidence manifest lists.
    """

    path: Path
    manifest: RunManifest | None
    events: list[TraceEvent]
    evidence: list[EvidenceItem]
    problems: list[Problem]
    lines: list[int] = dataclasses.field(default_factory=list)

    @property
    def run_id(self) -> str:
        """Id from the manifest, else the folder's name."""
        return self.manifest.run_id if self.manifest is not None else self.path.name

    @property
    def finished(self) -> bool:
        """True if the last event says that the run ended."""
        return bool(self.events) and self.events[-1].event_type == "run_finished"

    def read_evidence(self, item: EvidenceItem | EvidenceRef) -> bytes:
        """Return the content of one item; raise `OSError` where it is gone, and `EvidenceChanged`."""
        return self.read_file(item.path if isinstance(item, EvidenceItem) else item.uri, item.sha256)

    def read_file(self, name: str, sha256: str) -> bytes:
        """Return the content of a file of the folder, such as `outputs/1_chart.png`.

        Raises `OSError` where it is gone, and `EvidenceChanged` where it is a link or has another hash.
        """
        try:
            content = plain_files.read(self.path, name)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._changed(name, error.strerror or str(error)) from None
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise self._changed(name, f"its SHA-256 is {found[:12]}…, and the run says {sha256[:12]}…")
        return content

    def _changed(self, name: str, why: str) -> EvidenceChanged:
        return EvidenceChanged(
            f"The file {name!r} of run {self.run_id!r} is not as the run recorded it: {why}.",
            hint="`healkit trace validate` checks the whole folder.",
        )


@dataclasses.dataclass(frozen=True)
class Difference:
    """Difference between two runs: an event of only one, or a pair with fields that differ.

    `fields` maps a path such as `result.status` to its two values; it is empty where one side has no such event.
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
