"""Healing in the audit: the same facts as in its run folder."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import msgspec
import pytest
from healing_samples import FIXED, SILENT, WRONG, Idea
from trusted import trusted_copy

from healkit import Config, Healkit
from healkit.errors import RevisionConflict
from healkit.parts.heal.report import HealReport
from healkit.parts.runs.reader import in_order, read_run, validate_run

DECIDE_3 = pytest.mark.requirement("DECIDE-3")


def healed(healing: Healkit) -> HealReport:
    """Heal `ratio` by the third of three patches."""
    report = healing.heal("ratio", advisors=[Idea(WRONG, SILENT, FIXED)], auto=True)
    assert report.outcome == "kept"
    return report


@DECIDE_3
def test_each_check_verdict_and_decision_of_a_healing_is_an_entry_of_its_event(healing: Healkit) -> None:
    report = healed(healing)
    entries = healing.audit.get(report.run_id)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert {(e.execution_type, e.run_id, e.tool_name) for e in entries} == {("heal", report.run_id, "ratio")}
    run = read_run(report.folder)
    events = {event.seq: event for event in run.events}
    for entry in entries:
        event = events[entry.event_seq or 0]
        assert (entry.choice_type, entry.timestamp) == (event.event_type, event.ts_utc)
    for kind in (
        "assert_checked",
        "proposal_received",
        "proposal_accepted",
        "proposal_rejected",
        "run_finished",
    ):
        assert [e.event_seq for e in entries if e.choice_type == kind] == [
            event.seq for event in run.events if event.event_type == kind
        ]
    said = [entry.description for entry in entries]
    assert said[0].startswith("The healing begins after the failure in log row 2, with ")
    assert "Diagnosis: fixable." in said
    assert said.count("A patch was proposed by rule.") == 3
    assert "Verdict: does not fix it." in said
    assert said[-3:] == [
        "Verdict: fixed, no regressions.",
        "The patch was kept as revision 2.",
        "The healing ended: completed, kept.",
    ]
    rejected = next(entry for entry in entries if entry.choice_type == "proposal_rejected")
    assert (rejected.metadata.success, rejected.metadata.error_message) == (False, "PATCH_NOT_CURED")
    assert rejected.metadata.actual_state == {"verdict": "not_cured"}
    checked = next(entry for entry in entries if entry.choice_type == "assert_checked")
    assert checked.tool_params["arguments"] in ({"a": 1, "b": 0}, {"a": 6, "b": 3})


@DECIDE_3
def test_the_manifest_of_a_healing_holds_the_head_of_the_audit(healing: Healkit) -> None:
    first, second = healed(healing), healing.heal("ratio", advisors=[Idea(FIXED)])
    found = healing.audit.verify()
    assert (found.ok, found.anchors) == (True, 2)
    manifest = json.loads((second.folder / "run_manifest.json").read_text())
    assert manifest["audit"] == {"chain": found.head.chain, "entries": found.entries, "hash": found.head.hash}  # type: ignore[union-attr]  # it is ok
    for report in (first, second):
        assert in_order(validate_run(report.folder))
    with contextlib.closing(sqlite3.connect(str(healing.path))) as connection:
        connection.execute("DROP TRIGGER traceauditentry_delete")
        connection.execute("DELETE FROM traceauditentry WHERE id = ?", (found.entries,))
        connection.commit()
    fault = healing.audit.verify().fault
    assert fault is not None
    assert (fault.kind, fault.position) == ("cut_off", found.entries)
    assert repr(second.run_id) in fault.message


def test_a_patch_that_was_declined_is_an_entry(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(FIXED)], confirm=lambda _: False)
    assert report.outcome == "declined"
    *_, decided, _ended = healing.audit.get(report.run_id)
    assert (decided.description, decided.metadata.error_message) == (
        "The patch was declined.", "PATCH_DECLINED",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("word", ["accepted", "declined", "overtaken"])
def test_a_decision_after_the_healing_is_an_entry_of_it(healing: Healkit, word: str) -> None:
    report = healing.heal("ratio", advisors=[Idea(FIXED)])
    assert (report.outcome, report.request_id) == ("pending", 1)
    before = healing.audit.get(report.run_id)
    assert before[-2].description == "The patch is waiting for approval as request 1."
    if word == "overtaken":
        healing.vault.patch("ratio", WRONG)
    for _ in range(2):  # the second time changes nothing
        if word == "declined":
            healing.requests.decline(1)
        else:
            with pytest.raises(RevisionConflict) if word == "overtaken" else contextlib.nullcontext():
                healing.requests.accept(1)
    (decided,) = healing.audit.get(report.run_id)[len(before) :]
    assert decided.description == f"Request 1 was {word}{' as revision 2' if word == 'accepted' else ''}."
    assert (decided.seq, decided.metadata.success) == (len(before) + 1, word == "accepted")
    assert decided.metadata.error_message == {
        "accepted": None, "declined": "PATCH_DECLINED", "overtaken": "REVISION_CONFLICT",
    }[word]  # fmt: skip
    assert healing.audit.verify().ok


def test_a_tool_that_is_kept_off_the_record_leaves_no_arguments_in_the_audit(healing: Healkit) -> None:
    healing.vault.add(
        "ratio_off", "def ratio_off(a, b):\n    return a / b", log=False,
        examples=[{"arguments": {"a": 90_210, "b": 0}, "result": 0.0}],
    )  # fmt: skip
    report = healing.heal(
        "ratio_off", advisors=[Idea("def ratio_off(a, b):\n    return a / b if b else 0.0")]
    )
    entries = healing.audit.get(report.run_id)
    assert any(entry.choice_type == "assert_checked" for entry in entries)
    assert b"90210" not in msgspec.json.encode(entries)


def test_raw_traces_leave_no_secret_in_the_audit(tmp_path: Path, failing_database: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    config = Config(trace_raw=True)
    with Healkit(trusted_copy(failing_database, tmp_path / "healkit.db"), config=config) as healing:
        healing.vault.add("first", "def first(text):\n    return text[9000]")
        healing.execute("first", arguments={"text": secret})
        report = healing.heal("first", advisors=[Idea("def first(text):\n    return text[0]")])
        assert secret in (report.folder / "trace.jsonl").read_text()
        entries = healing.audit.get(report.run_id)
        kept = msgspec.json.encode(entries).decode()
        assert "[REDACTED:" in kept
        assert secret not in kept


def test_a_database_that_takes_no_entries_costs_the_healing_nothing_but_a_note(healing: Healkit) -> None:
    with contextlib.closing(sqlite3.connect(str(healing.path))) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON traceauditentry BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
        connection.commit()
    report = healed(healing)
    assert "could not be added to the audit" in report.notes[-1]
    # The head is the one from before the run.
    assert json.loads((report.folder / "run_manifest.json").read_text())["audit"]["entries"] == 0
    assert healing.audit.verify().entries == 0
