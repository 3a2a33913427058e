"""Manifest of a run: what it says of its healkit.

The commit of the healkit that writes it, and the rules that redact.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from healkit import Config, __version__
from healkit.contracts.runs import ExecutionProfile, PolicyDefaults, RunManifest
from healkit.sanitizer.cleaner import Cleaner, Verbatim
from healkit.sanitizer.sanitizer import Sanitizer
from healkit.tracing import run_folders
from healkit.tracing.run_folders import app_version, manifest_for

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def made(cleaner: Cleaner, config: Config | None = None) -> RunManifest:
    return manifest_for(
        "a", ExecutionProfile("lesson", {"level": 1}), config or Config(), cleaner, mode="live",
        policy=PolicyDefaults(), allow=["*"],
    )  # fmt: skip


def repository(root: Path, layout: str) -> Path:
    """Make a checkout with that commit, as git lays it out in files."""
    git = root / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    match layout:
        case "loose":
            (git / "refs" / "heads" / "main").write_text(f"{COMMIT}\n")
        case "packed":
            (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{'f' * 40} refs/heads/x\n{COMMIT} refs/heads/main\n")  # fmt: skip
        case "detached":
            (git / "HEAD").write_text(f"{COMMIT}\n")
        case "worktree":
            (git / "refs" / "heads" / "side").write_text(f"{COMMIT}\n")
            own = git / "worktrees" / "side"
            own.mkdir(parents=True)
            (own / "HEAD").write_text("ref: refs/heads/side\n")
            (own / "commondir").write_text("../..\n")
            root = root / "side"
            root.mkdir()
            (root / ".git").write_text(f"gitdir: {own}\n")
    return root


@pytest.mark.parametrize("layout", ["loose", "packed", "detached", "worktree"])
def test_the_commit_of_a_checkout_is_read_from_its_files(tmp_path: Path, layout: str) -> None:
    assert run_folders._checked_out_commit(repository(tmp_path, layout)) == COMMIT


@pytest.mark.parametrize("layout", ["no repository", "no commit yet"])
def test_without_a_commit_the_version_stands_alone(tmp_path: Path, layout: str) -> None:
    root = repository(tmp_path, layout) if layout == "no commit yet" else tmp_path
    assert run_folders._checked_out_commit(root) == ""
    assert app_version().partition("+g")[0] == __version__


@pytest.mark.requirement("RUN-1")
def test_the_manifest_names_the_rules_that_redact() -> None:
    """C6: the version of the rule set, and the rules of the user's own."""
    redaction = made(Sanitizer()).redaction_policy
    assert redaction.rule_set_version == made(Sanitizer()).redaction_policy.rule_set_version
    assert redaction.rule_set_version != made(Sanitizer(phone_region="DE")).redaction_policy.rule_set_version
    assert redaction.custom_rules == []
    raw = made(Verbatim(), Config(trace_raw=True)).redaction_policy
    assert (raw.payload, raw.rule_set_version, raw.custom_rules) == ("raw", None, [])


@pytest.mark.requirement("RUN-1")
def test_a_profile_has_the_limits_and_its_own_parameters() -> None:
    profile = made(Verbatim(), Config(timeout_s=7.0)).execution_profile
    assert profile.name == "lesson"
    assert profile.parameters == {
        "isolation": "auto", "timeout_s": 7.0, "cpu_s": 60, "memory_mb": 1024, "scratch_mb": 256, "level": 1,
    }  # fmt: skip
