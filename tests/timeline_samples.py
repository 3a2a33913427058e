"""Run folders of healings, written by the real writer.

The writer gets them in the same way as from the loop.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from healkit.core.contracts.execution import utc_now
from healkit.core.secrets.cleaner import Verbatim
from healkit.parts.runs.contract import (
    SCHEMA_VERSION,
    ExecutionProfile,
    PolicyDefaults,
    RedactionPolicy,
    RunManifest,
    error_object,
)
from healkit.parts.runs.journal import RunJournal

BROKEN = '''\
def average_delay(delays: dict, line: str) -> float:
    """Return by how many minutes a bus line is late."""
    total = buses = 0
    for minutes in delays[line]:
        if minutes > 0:
            total += minutes
            buses += 1
    return round(total / buses, 1)
'''
SILENCED = BROKEN.replace(
    "    return round(total / buses, 1)",
    "    try:\n        return round(total / buses, 1)\n    except ZeroDivisionError:\n        return None",
)
WRONG = BROKEN.replace("total = buses = 0", "total = buses = 1")
CURED = BROKEN.replace("buses, 1)", "buses, 1) if buses else 0.0")
FAILING = {"delays": {"4": [2, 0, 5], "7": [0, 0]}, "line": "7"}
PASSING = {"delays": {"4": [2, 0, 5], "7": [0, 0]}, "line": "4"}
FAILURE = {
    "ename": "ZeroDivisionError",
    "evalue": "division by zero",
    "traceback": 'Traceback (most recent call last):\n  File "<average_delay@1>", line 8, in average_delay\n'
    "    return round(total / buses, 1)\nZeroDivisionError: division by zero\n",
}


@dataclasses.dataclass(frozen=True)
class Tried:
    """Patch that was tried: code, proposer, each check's result, verdict and the reason for it."""

    code: str
    advisor: str
    author: str
    reason: str
    results: tuple[dict[str, Any], ...]
    verdict: str
    why: str = ""


def result(outcome: str, origin: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"origin": origin, "outcome": outcome, "arguments": arguments, **more}


PATCHES = (
    Tried(
        SILENCED, "rules", "rule", "Catches the error and returns None.",
        (result("passed", "failing", FAILING, got=None), result("passed", "passing", PASSING, wanted=3.5, got=3.5)),
        "silenced",
    ),
    Tried(
        WRONG, "search", "search", "Begins to count at 1.",
        (result("passed", "failing", FAILING, got=1.0), result("wrong", "passing", PASSING, wanted=3.5, got=2.7)),
        "not_cured", "a recorded run that passed returns 2.7 where 3.5 is right.",
    ),
    Tried(
        CURED, "search", "search", "Returns 0.0 where no bus was late.",
        (result("passed", "failing", FAILING, wanted=0.0, got=0.0), result("passed", "passing", PASSING, wanted=3.5, got=3.5)),
        "cured",
    ),
)  # fmt: skip


def begun(folder: Path, run_id: str = "healing", **manifest: Any) -> RunJournal:
    """Make a run's writer, as `RunJournal` is made for a healing."""
    made = RunManifest(
        SCHEMA_VERSION, run_id, utc_now(), ExecutionProfile(manifest.get("profile", "heal"), {}),
        manifest.get("mode", "live"), PolicyDefaults(), "0.1.0", {"system": "Linux"}, ["average_delay"],
        RedactionPolicy(manifest.get("payload", "sanitised"), 10_240, 1 << 20, None, []),
    )  # fmt: skip
    return RunJournal(folder, made, Verbatim())


def observed(writer: RunJournal, log_id: int | None = 2) -> None:
    """Record what the loop starts from, and how the checks go with the code as it is."""
    writer.append("observation_captured", step_id="step_1", metadata={"phase": "before", "log_id": log_id})
    error = error_object("TOOL_EXCEPTION", "observation", "ZeroDivisionError: division by zero", utc_now())
    writer.append("error_raised", step_id="step_1", error=error)
    state = {"tool_name": "average_delay", "persona": "default", "revision": 1}
    pieces: list[Any] = [
        ("state_before", state),
        ("code", BROKEN),
        ("arguments", FAILING),
        ("failure", FAILURE),
    ]
    writer.keep(pieces, step_id="step_1")
    writer.append("inspection_started", step_id="step_1")
    found = {"kind": "zero", "line": 8, "sentence": "Line 8 divides by buses, which is 0."}
    writer.append("inspection_finished", step_id="step_1", result=found)
    for came in (result("raised", "failing", FAILING, error="ZeroDivisionError: division by zero"),
                 result("passed", "passing", PASSING, wanted=3.5, got=3.5)):  # fmt: skip
        writer.append("assert_checked", step_id="step_1", result=came)


def tried(writer: RunJournal, step: str, patch: Tried) -> None:
    """Record one patch from proposal to verdict."""
    known = {"author": patch.author, "advisor": patch.advisor, "base_revision": 1, "reason": patch.reason}
    writer.append("proposal_received", step_id=step, metadata=known)
    writer.keep([("proposal", patch.code)], step_id=step)
    held = {"code_parses": True, "isolation": True}
    writer.append("preconditions_checked", step_id=step, result={"checks": held})
    writer.append("action_started", step_id=step)
    for came in patch.results:
        writer.append("assert_checked", step_id=step, result=came)
    passed = sum(came["outcome"] == "passed" for came in patch.results)
    total = len(patch.results)
    writer.append(
        "action_executed", step_id=step, result={"passed": passed, "total": total, "duration_ms": 41.5}
    )
    plausible = patch.verdict != "not_cured"
    met = {"checks": {"all_passed": plausible}, "verdict": patch.verdict}
    writer.append("postconditions_checked", step_id=step, result=met)
    event = "proposal_accepted" if plausible else "proposal_rejected"
    writer.append(event, step_id=step, metadata={"verdict": patch.verdict, "why": patch.why})


def healing(folder: Path, run_id: str = "healing", action: str = "kept", log_id: int | None = 2) -> Path:
    """Record a healing of three patches, the last of which is cured; `action` is what was decided about it."""
    writer = begun(folder, run_id)
    observed(writer, log_id)
    for number, patch in enumerate(PATCHES, 2):
        tried(writer, f"step_{number}", patch)
    event = "proposal_rejected" if action in ("declined", "denied") else "proposal_accepted"
    known = {"action": action, "revision": 2} if action == "kept" else {"action": action, "request_id": 7}
    writer.append(event, step_id="step_4", metadata=known)
    reason = f"{action}: average_delay v2 is active: fixed, no regressions."
    writer.finish({"outcome": "completed", "steps": 4, "failures": 1, "reason": reason})
    assert writer.problem == ""
    return writer.folder
