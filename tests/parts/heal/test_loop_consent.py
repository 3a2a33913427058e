"""Decisions about a patch, and the record of them.

The person decides, or `--auto`, or a request that waits.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from healing_samples import BROKEN, FIXED, SILENT, TREACHEROUS, Idea, events

from healkit import Healkit
from healkit.parts.heal.records import Attempt
from healkit.parts.runs.reader import read_run


@pytest.mark.requirement("HEAL-4")
def test_without_consent_the_patch_waits(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(FIXED)])
    assert report.outcome == "pending"
    assert healing.vault.get("ratio").revision == 1
    (request,) = healing.requests.pending()
    assert (request.id, request.code, request.verdict) == (report.request_id, FIXED, "cured")
    healing.requests.accept(request.id)
    assert healing.execute_tool("ratio", arguments={"a": 1, "b": 0}) == 0.0


@pytest.mark.slow
@pytest.mark.requirement("HEAL-4")
def test_a_declined_patch_does_not_wait_again(healing: Healkit) -> None:
    first = healing.heal("ratio", advisors=[Idea(FIXED)])
    assert first.request_id is not None
    healing.requests.decline(first.request_id, "not like that")
    again = healing.heal("ratio", advisors=[Idea(FIXED)])
    assert (again.outcome, again.request_id) == ("declined", first.request_id)
    assert "already declined" in again.reason


@pytest.mark.slow
@pytest.mark.requirement("HEAL-4")
@pytest.mark.parametrize(
    ("said", "outcome", "revision", "state"),
    [(True, "kept", 2, "accepted"), (False, "declined", 1, "declined"), (None, "pending", 1, "pending")],
)
def test_the_person_is_shown_the_patch_and_decides(
    healing: Healkit, said: bool | None, outcome: str, revision: int, state: str
) -> None:
    seen: list[Attempt] = []

    def confirm(attempt: Attempt) -> bool | None:
        seen.append(attempt)
        return said

    report = healing.heal("ratio", advisors=[Idea(FIXED)], confirm=confirm)
    assert (report.outcome, healing.vault.get("ratio").revision) == (outcome, revision)
    assert [attempt.patch.code for attempt in seen] == [FIXED]
    (request,) = healing.requests.list()
    assert (request.state, request.decided_by) == (state, "" if said is None else "person")


KILLED_WHILE_ASKED = """
import os, signal, sys
from healing_samples import BROKEN, EXAMPLES, FIXED, Idea
from healkit import Healkit
healkit = Healkit(sys.argv[1])
healkit.vault.add("ratio", BROKEN, examples=EXAMPLES)
healkit.heal("ratio", advisors=[Idea(FIXED)], confirm=lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.slow
def test_a_patch_that_waits_for_consent_survives_a_kill(tmp_path: Path) -> None:
    database = tmp_path / "killed.db"
    command = [sys.executable, "-c", KILLED_WHILE_ASKED, str(database)]
    killed = subprocess.run(command, cwd=Path(__file__).parent, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    with Healkit(database) as healkit:
        (request,) = healkit.requests.pending()
        assert request.code == FIXED
        assert healkit.requests.accept(request.id).state == "accepted"
        assert healkit.vault.get("ratio").code == FIXED


@pytest.mark.requirement("HEAL-3", "HEAL-4")
@pytest.mark.parametrize(
    ("code", "verdict"),
    [(BROKEN.replace("a / b", "a * b"), "passes all checks, unverified"), (SILENT, "only hides the error")],
    ids=["no right answer", "silencing"],
)
def test_auto_keeps_no_patch_that_nothing_proves(healing: Healkit, code: str, verdict: str) -> None:
    healing.vault.add("bare", BROKEN.replace("ratio", "bare"))
    healing.execute("bare", arguments={"a": 1, "b": 0})
    report = healing.heal("bare", advisors=[Idea(code.replace("ratio", "bare"))], auto=True)
    assert (report.outcome, report.verdict) == ("pending", verdict)
    assert healing.vault.get("bare").revision == 1


@pytest.mark.requirement("HEAL-1")
def test_a_patch_that_fails_in_use_is_taken_back(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(TREACHEROUS)], confirm=lambda _: True)
    assert report.outcome == "rolled_back"
    assert "ZeroDivisionError" in report.reason
    assert (report.verdict, report.plausible) == ("does not fix it", ())
    assert "it fails when it runs: ZeroDivisionError" in report.attempts[0].why
    assert healing.vault.get("ratio").code == BROKEN
    assert [info.author for info in healing.vault.history("ratio")] == ["person", "rule", "person"]
    assert {"recovery_started", "recovery_finished"} <= set(events(report))


def test_a_concurrent_change_is_not_overwritten(healing: Healkit) -> None:
    def meanwhile(_: Attempt) -> bool:
        healing.vault.patch("ratio", BROKEN + "# somebody was here\n")
        return True

    report = healing.heal("ratio", advisors=[Idea(FIXED)], confirm=meanwhile)
    assert report.outcome == "pending"
    assert healing.vault.get("ratio").code.endswith("# somebody was here\n")
    assert healing.requests.get(report.request_id).code == FIXED


@pytest.mark.requirement("RUN-1")
def test_a_dry_run_shows_the_patch_and_keeps_nothing(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(FIXED)], auto=True, dry_run=True)
    assert (report.outcome, report.verdict) == ("shown", "fixed, no regressions")
    manifest = read_run(report.folder).manifest
    assert manifest is not None
    assert manifest.execution_mode == "dry_run"
    assert healing.vault.get("ratio").revision == 1
    assert healing.requests.pending() == []
