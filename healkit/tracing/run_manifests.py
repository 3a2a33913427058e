"""Manifest of a run: made as it begins, read for the audit."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from healkit import __version__, plain_files
from healkit.config import Config
from healkit.contracts.audit import AnchoredHead, AuditHead
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.runs import (
    RUN_MANIFEST,
    SCHEMA_VERSION,
    ExecutionMode,
    ExecutionProfile,
    PolicyDefaults,
    RedactionPolicy,
    RunManifest,
)
from healkit.sanitizer.cleaner import Cleaner
from healkit.tracing.run_folders import run_folders

#: Settings that a run's executions depend on, listed with its profile.
_PARAMETERS = ("isolation", "timeout_s", "cpu_s", "memory_mb", "scratch_mb")
#: Digits of a commit's hash; git's own default is shorter, and grows with the repository.
_COMMIT_DIGITS = 12


def manifest_for(
    run_id: str,
    started_at: datetime,
    profile: str,
    config: Config,
    cleaner: Cleaner,
    *,
    mode: ExecutionMode,
    policy: PolicyDefaults,
    allow: Sequence[str],
    parameters: Mapping[str, Any],
) -> RunManifest:
    """Return the manifest of a run; parameters: more of its profile than the limits in `config`."""
    limits = {name: getattr(config, name) for name in _PARAMETERS}
    return RunManifest(
        schema_version=SCHEMA_VERSION,
        run_id=run_id,
        started_at=started_at,
        execution_profile=ExecutionProfile(
            to_jsonable(str(profile))[0], to_jsonable({**limits, **parameters})[0]
        ),
        execution_mode=mode,
        policy_defaults=policy,
        app_version=app_version(),
        platform={
            "system": platform.system(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        },
        allowlist=to_jsonable([str(pattern) for pattern in allow])[0],
        redaction_policy=RedactionPolicy(
            "raw" if config.trace_raw else "sanitised",
            config.payload_max_bytes,
            config.evidence_max_bytes,
            cleaner.rule_set_version,
            list(cleaner.custom_rules),
        ),
    )


class _Anchor(msgspec.Struct):
    """Part of a manifest that the audit is checked against; an older one has none."""

    run_id: str
    audit: AuditHead | None = None


def anchored_heads(runs_dir: Path) -> Iterator[AnchoredHead]:
    """Yield the heads of the audit's chain that the manifests of runs name; damaged manifests are passed over."""
    for folder in run_folders(runs_dir):
        try:
            found = msgspec.json.decode(plain_files.read(folder, RUN_MANIFEST), type=_Anchor)
        except (OSError, msgspec.MsgspecError, ValueError):
            continue
        if found.audit is not None:
            yield AnchoredHead(found.run_id, found.audit)


@functools.cache
def app_version() -> str:
    """Return healkit's version; with `+g` and the commit where it runs from a checkout or was installed from one.

    The commit is read once a process. Changes that are not committed are not seen.
    """
    try:
        commit = _installed_commit() or _checked_out_commit(Path(__file__).parents[2])
    except (OSError, ValueError):
        commit = ""
    return f"{__version__}+g{commit[:_COMMIT_DIGITS]}" if commit else __version__


def _installed_commit() -> str:
    """Return the commit that an installer has noted (PEP 610); empty where it was no repository."""
    try:
        noted = importlib.metadata.distribution("healkit").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return ""
    return str(json.loads(noted or "{}").get("vcs_info", {}).get("commit_id", ""))


def _checked_out_commit(root: Path) -> str:
    """Return the commit at HEAD of the repository at `root`, without git (gitrepository-layout(5)); else empty."""
    git = root / ".git"
    if git.is_file():  # a worktree of another repository
        git = root / git.read_text().removeprefix("gitdir:").strip()
    if not (git / "HEAD").is_file():
        return ""
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head
    ref = head.removeprefix("ref: ")
    common = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
    loose = next((path for path in (git / ref, common / ref) if path.is_file()), None)
    if loose is not None:
        return loose.read_text().strip()
    packed = (common / "packed-refs").read_text().splitlines() if (common / "packed-refs").is_file() else []
    return next((line.split()[0] for line in packed if line.endswith(f" {ref}")), "")
