"""Runs to write: a manifest, a writer, and a short story."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from healkit import Healkit
from healkit.core.secrets.cleaner import Cleaned, Cleaner, Verbatim
from healkit.parts.runs.contract import (
    SCHEMA_VERSION,
    ActionSpec,
    ExecutionProfile,
    PolicyDefaults,
    RedactionPolicy,
    Run,
    RunManifest,
    condition,
    error_object,
    sign,
)
from healkit.parts.runs.journal import RunJournal
from healkit.parts.runs.reader import validate_run

NOW = datetime(2025, 3, 1, 14, 2, 11, tzinfo=UTC)


def manifest(run_id: str = "a", evidence_max_bytes: int = 1 << 20) -> RunManifest:
    return RunManifest(
        SCHEMA_VERSION, run_id, NOW, ExecutionProfile("test", {}), "live", PolicyDefaults(), "0.1.0",
        {"system": "Linux"}, ["*"], RedactionPolicy("raw", 10_240, evidence_max_bytes, None, []),
    )  # fmt: skip


def begin(folder: Path, run_id: str = "a", cleaner: Cleaner | None = None, **options: Any) -> RunJournal:
    return RunJournal(folder, manifest(run_id, **options), cleaner or Verbatim())


def tell(writer: RunJournal, steps: int = 1, n: int = 0) -> None:
    """Write one failing step after the other, with evidence, as the executor would tell it."""
    for number in range(1, steps + 1):
        step = f"step_{number}"
        parts: dict[str, Any] = {
            "tool_name": "f", "persona": "default", "code_hash": "c" * 64, "arguments": {"n": n},
        }  # fmt: skip
        before, after = sign(**parts), sign(**parts, fingerprint="v1:0")
        spec = ActionSpec(
            SCHEMA_VERSION, f"{step}.run", "run", "f", "default", 1, "c" * 64, {"n": n}, "worker", 30.0, "namespaces", "normal",
            [condition("tool_found")], [condition("returned")], [], ["python"],
        )  # fmt: skip
        writer.append("action_compiled", step_id=step, before=before, action_spec=spec)
        error = error_object("TOOL_EXCEPTION", "action", "ValueError: bad", NOW, details={"line": 3})
        writer.append("error_raised", step_id=step, before=before, after=after, error=error)
        pieces: list[Any] = [("stdout", f"step {number}, n = {n}"), ("failure", {"ename": "ValueError"})]
        writer.keep(pieces, step_id=step, before=before, after=after)


def written(folder: Path, run_id: str = "a", steps: int = 2, n: int = 0) -> Path:
    """Write a whole run: run_started, three events a step, run_finished."""
    writer = begin(folder, run_id)
    tell(writer, steps, n)
    writer.finish({"outcome": "completed", "steps": steps, "failures": steps})
    assert writer.problem == ""
    return writer.folder


class Blackout(Verbatim):
    """Cleaner that hides everything it is shown: what is left of a run is what it was never shown."""

    def clean(self, value: object, *, limit_bytes: int | None = None) -> Cleaned:
        return Cleaned("[HIDDEN]", {"all": 1})


def checked(folder: Path) -> Run:
    """Return the run, with nothing wrong about it."""
    run = validate_run(folder)
    assert [str(problem) for problem in run.problems] == []
    return run


BROKEN = "def divide(n: int):\n    print('dividing', n)\n    return 1 / n\n"
FIXED = "def divide(n: int):\n    return 1 / n if n else 0\n"


def recorded(healkit: Healkit) -> Run:
    """Return the newest run, in order."""
    newest = max(healkit.runs_dir.iterdir(), key=lambda path: (path.name != ".new", path.stat().st_mtime_ns))
    return checked(newest)


def types(run: Run) -> list[str]:
    return [event.event_type for event in run.events]
