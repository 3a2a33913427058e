"""Contract of run folders, feature by feature.

The third seed document and audit C6 list the features. Each is looked up in the files as they are: JSON, read without healkit's own reader.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import healkit
from healkit import __version__

Json = dict[str, Any]

STEP = re.compile(r"step_[1-9][0-9]*")
HASH = re.compile(r"[0-9a-f]{32}")
SHA256 = re.compile(r"[0-9a-f]{64}")
VERSION = re.compile(r"v[1-9][0-9]*")
#: Events of an action, whose signatures say in which state it was done.
ACTION = (
    "action_compiled",
    "preconditions_checked",
    "action_started",
    "action_executed",
    "postconditions_checked",
)
POLICY = ("retries_per_action", "recovery_max", "same_state_revisits", "hard_cap_steps", "backoff_ms")


@dataclasses.dataclass(frozen=True)
class RawRun:
    """Run folder as JSON."""

    folder: Path

    @property
    def manifest(self) -> Json:
        return dict(json.loads((self.folder / "run_manifest.json").read_text()))

    @property
    def evidence(self) -> Json:
        return dict(json.loads((self.folder / "evidence_manifest.json").read_text()))

    @property
    def lines(self) -> list[Json]:
        return [json.loads(line) for line in (self.folder / "trace.jsonl").read_text().splitlines()]


@dataclasses.dataclass(frozen=True)
class Written:
    """Run folders by what wrote them."""

    runs: dict[str, RawRun]

    def events(self, *types: str, of: Iterable[str] = ()) -> list[Json]:
        chosen = [self.runs[name] for name in of] or list(self.runs.values())
        return [line for run in chosen for line in run.lines if not types or line["event_type"] in types]

    def healings(self) -> list[RawRun]:
        return [run for run in self.runs.values() if _profile(run) == "heal"]


def _profile(run: RawRun) -> Any:
    profile = run.manifest["execution_profile"]
    return profile["name"] if isinstance(profile, dict) else profile


def at(value: Any, path: str) -> Any:
    """Return what stands at a dotted path; None where there is nothing."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def every(found: Iterable[Any], holds: Callable[[Any], Any]) -> bool:
    """Return True if there is one, and each of them holds."""
    values = list(found)
    return bool(values) and all(bool(holds(value)) for value in values)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def in_events(event_type: str, path: str, holds: Callable[[Any], Any]) -> Callable[[Written], bool]:
    """Look a field up in all events of a type."""
    return lambda written: every(written.events(event_type), lambda line: holds(at(line, path)))


def in_manifests(path: str, holds: Callable[[Any], Any]) -> Callable[[Written], bool]:
    return lambda written: every(written.runs.values(), lambda run: holds(at(run.manifest, path)))


def in_specs(name: str, holds: Callable[[Any], Any]) -> Callable[[Written], bool]:
    return lambda written: every(
        written.events("action_compiled"), lambda line: holds(at(line, f"action_spec.{name}"))
    )


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)


def is_conditions(value: Any) -> bool:
    return isinstance(value, list) and all(
        set(item) == {"kind", "args", "severity"}
        and item["kind"]
        and isinstance(item["args"], dict)
        and item["severity"] in ("warning", "error", "critical")
        for item in value
    )


def _is_uri_of(written: Written, path: str, event_type: str) -> bool:
    """Return True if the field names a file of the run's evidence in each such event."""
    return every(
        (
            (run, line)
            for run in written.runs.values()
            for line in run.lines
            if line["event_type"] == event_type
        ),
        lambda pair: isinstance(at(pair[1], path), str) and (pair[0].folder / at(pair[1], path)).is_file(),
    )


def _halted_state(written: Written) -> bool:
    """Return True if the state key is that of the observation before, where a state was the reason."""
    return every(
        (
            line
            for line in written.events("policy_halt")
            if at(line, "metadata.policy.reason") == "same_state_revisit"
        ),
        lambda line: at(line, "metadata.policy.state_key") == at(line, "state_signature_after.state_key"),
    )


def _over_the_cap(written: Written) -> bool:
    return every(
        written.events("policy_halt"),
        lambda line: (at(line, "metadata.policy.count") or 0) > (at(line, "metadata.policy.threshold") or 0),
    )


def _step_ids(written: Written) -> bool:
    ids = [line["step_id"] for line in written.events() if line["step_id"] is not None]
    ids += [item["step_id"] for run in written.runs.values() for item in run.evidence["items"]]
    return every([found for found in ids if found is not None], STEP.fullmatch)


def _last_state(written: Written) -> bool:
    """Return True if each run that had a step says in which state it ended."""
    ended = [run for run in written.runs.values() if run.lines[-1]["event_type"] == "run_finished"]
    return every(
        ended, lambda run: HASH.fullmatch(at(run.lines[-1], "state_signature_after.state_key") or "")
    )


def _signed_actions(written: Written) -> bool:
    """Return True if actions hold the state before them, and the state after, in healings too."""
    lines = [line for run in written.healings() for line in run.lines if line["event_type"] in ACTION]
    after = [line for line in lines if line["event_type"] in ("action_executed", "postconditions_checked")]
    return every(lines, lambda line: at(line, "state_signature_before.state_key")) and every(
        after, lambda line: at(line, "state_signature_after.state_key")
    )


def _versions(written: Written) -> bool:
    objects = [run.manifest for run in written.runs.values()] + [
        run.evidence for run in written.runs.values()
    ]
    objects += [line["error"] for line in written.events() if "error" in line]
    names = ("state_signature_before", "state_signature_after")
    objects += [line[name] for line in written.events() for name in names if line[name] is not None]
    return every(objects, lambda found: VERSION.fullmatch(str(found["schema_version"])))


def _one_version(written: Written) -> bool:
    """Return True if the trace and both manifests have one version, later than the first."""
    found = {run.manifest["schema_version"] for run in written.runs.values()}
    found |= {run.evidence["schema_version"] for run in written.runs.values()}
    found |= {line["error"]["schema_version"] for line in written.events() if "error" in line}
    return found == {"v3"}


def _proposals_counted(written: Written) -> bool:
    """Return True if the proposals of each run are numbered from 1."""
    counted = [
        [
            at(line, "metadata.proposal_count")
            for line in run.lines
            if line["event_type"] == "proposal_received"
        ]
        for run in written.runs.values()
    ]
    return every(
        [numbers for numbers in counted if numbers],
        lambda numbers: numbers == list(range(1, len(numbers) + 1)),
    )


def _commit_where_known(written: Written) -> bool:
    """Return True if versions end in the commit of healkit's checkout; without a checkout, in none."""
    root = Path(healkit.__file__).parents[1]
    found = {run.manifest["app_version"] for run in written.runs.values()}
    if not (root / ".git").exists() or shutil.which("git") is None:
        return found == {__version__}
    command = ["git", "-c", "safe.directory=*", "rev-parse", "HEAD"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return found == {f"{__version__}+g{done.stdout[:12]}"}


#: Feature → whether the run folders have it. That the page says which events are written is a test
#: of its own.
FEATURES: dict[str, Callable[[Written], bool]] = {
    "step ids are step_<n>": _step_ids,
    **{
        f"observation_captured.metadata.policy.{name}": in_events("observation_captured", f"metadata.policy.{name}", is_count)
        for name in ("same_state_revisit_count", "same_state_revisit_threshold", "steps_taken", "hard_cap_steps")
    },
    "policy_halt.metadata.policy.reason": lambda written: {
        at(line, "metadata.policy.reason") for line in written.events("policy_halt")
    } >= {"same_state_revisit", "hard_cap_steps"},
    "policy_halt.metadata.policy.state_key": _halted_state,
    "policy_halt.metadata.policy.count": in_events("policy_halt", "metadata.policy.count", is_count),
    "policy_halt.metadata.policy.threshold": _over_the_cap,
    "policy_halt is critical": in_events("policy_halt", "error.severity", lambda found: found == "critical"),
    "run_started.metadata.execution_mode": lambda written: {
        at(line, "metadata.execution_mode") for line in written.events("run_started")
    } == {"live", "dry_run"},
    "run_started.metadata.execution_profile": in_events(
        "run_started", "metadata.execution_profile", lambda found: found and {"name", "parameters"} <= set(found)
    ),
    "run_started.metadata.policy": in_events("run_started", "metadata.policy", lambda found: found and set(found) >= set(POLICY)),
    "run_finished.metadata.status": lambda written: {
        at(line, "metadata.status") for line in written.events("run_finished")
    } >= {"completed", "halted"},
    "run_finished.state_signature_after": _last_state,
    "execution_profile has parameters": lambda written: in_manifests(
        "execution_profile.parameters.timeout_s", lambda found: found and found > 0
    )(written) and every(written.healings(), lambda run: at(run.manifest, "execution_profile.parameters.budget_s")),
    "app_version has the commit": _commit_where_known,
    "redaction_policy has the rule set's version": in_manifests("redaction_policy.rule_set_version", bool),
    "redaction_policy has custom rules": in_manifests("redaction_policy.custom_rules", lambda found: found == ["acme-token"]),
    "action_spec.action_id": lambda written: every(
        written.events("action_compiled"),
        lambda line: at(line, "action_spec.action_id") == f"{line['step_id']}.{line['action_spec']['kind']}",
    ),
    "action_spec.preconditions": in_specs("preconditions", lambda found: found and is_conditions(found)),
    "action_spec.postconditions": in_specs("postconditions", lambda found: found and is_conditions(found)),
    "action_spec.criticality": lambda written: {
        at(line, "action_spec.criticality") for line in written.events("action_compiled")
    } == {"normal", "critical"},
    "action_spec.tags": in_specs("tags", lambda found: is_texts(found) and {"python", "sql"} & set(found)),
    "action_spec.assertions": lambda written: in_specs("assertions", is_conditions)(written)
    and every(
        (line for run in written.healings() for line in run.lines if line["event_type"] == "action_compiled"),
        lambda line: line["action_spec"]["assertions"],
    ),
    "action_spec.schema_version": in_specs("schema_version", lambda found: found == "v3"),
    "conditions say what they are checked against": lambda written: {
        name for spec in written.events("action_compiled") for part in ("preconditions", "postconditions", "assertions")
        for one in spec["action_spec"][part] for name in one["args"]
    } == {"code_hash", "isolation", "limit_bytes", "expected", "check", "origin"},
    "error.details": lambda written: every(
        (line["error"] for line in written.events() if line.get("error")), lambda error: error["details"]
    ),
    "proposal_received.metadata.proposal_source": in_events("proposal_received", "metadata.proposal_source", bool),
    "proposal_received.metadata.proposal_count": _proposals_counted,
    "manifest_uri": lambda written: {
        (line["event_type"], at(line, "metadata.manifest_uri")) for line in written.events("run_started", "evidence_captured")
    } == {("run_started", "run_manifest.json"), ("evidence_captured", "evidence_manifest.json")},
    "proposal_rejected.error has a code": in_events("proposal_rejected", "error.error_code", bool),
    "a healing's actions are signed": _signed_actions,
    "inspection_started.metadata.file_ref": lambda written: _is_uri_of(written, "metadata.file_ref", "inspection_started"),
    "inspection_finished.metadata.status": lambda written: {
        at(line, "metadata.status") for line in written.events("inspection_finished")
    } == {"ok", "failed"},
    "inspection_finished.metadata.finding": lambda written: {
        at(line, "metadata.finding") for line in written.events("inspection_finished")
    } == {"fixable", "not_fixable", "answered", "unanswered"},
    "inspection_finished.metadata.file_ref": lambda written: _is_uri_of(written, "metadata.file_ref", "inspection_finished"),
    "inspection_finished.metadata.doc_hash": in_events(
        "inspection_finished", "metadata.doc_hash", lambda found: SHA256.fullmatch(found or "")
    ),
    "inspection_finished.metadata.criteria_profile": lambda written: {
        at(line, "metadata.criteria_profile") for line in written.events("inspection_finished")
    } == {"failure_catalogue", "person"},
    "inspection_finished.metadata.report_ref": lambda written: _is_uri_of(written, "metadata.report_ref", "inspection_finished"),
    **{f"policy_defaults.{name}": in_manifests(f"policy_defaults.{name}", lambda found: found is not None) for name in POLICY},
    "evidence_refs[].uri": lambda written: every(
        (ref for line in written.events("evidence_captured") for ref in line.get("evidence_refs", [])),
        lambda ref: re.fullmatch(r"evidence/[0-9a-f]{64}\.(json|txt)", ref.get("uri", "")),
    ),
    "schema_version is v<n>": _versions,
    "trace and manifests have one version, one up": _one_version,
}  # fmt: skip
