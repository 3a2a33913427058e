"""Run that is audited: entries of its events.

They are there whatever its database does.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading

import pytest

from healkit import Healkit
from healkit.contracts.audit import AuditStep
from healkit.contracts.events import TraceEvent
from healkit.runtime.runs import OpenRun
from healkit.tracing.validate import in_order, validate_run


def step_of(event: TraceEvent) -> AuditStep | None:
    """Make an entry of every event but those that begin something."""
    if event.event_type.endswith("started"):
        return None
    return AuditStep(event.run_id, "notebook", event.event_type, run_id=event.run_id, event_seq=event.seq)


def audited(healkit: Healkit) -> OpenRun:
    """Begin a run that is audited."""
    return healkit.runs.begin("test", audited=step_of)


@pytest.mark.requirement("DECIDE-3")
def test_entries_that_a_locked_database_did_not_take_are_appended_in_order_later(healkit: Healkit) -> None:
    with audited(healkit) as run:
        with contextlib.closing(sqlite3.connect(str(healkit.path), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(3):
                run.append("proposal_accepted")
            assert healkit.audit.get(run.run_id) == []
            assert run.problem.startswith("3 entries could not be added to the audit: ")
            other.execute("ROLLBACK")
        run.append("proposal_rejected")
        assert run.problem == ""
    entries = healkit.audit.get(run.run_id)
    assert [entry.event_seq for entry in entries] == [2, 3, 4, 5, 6]
    assert entries[-1].choice_type == "run_finished"
    assert (healkit.audit.verify().ok, healkit.audit.verify().anchors) == (True, 1)


def test_events_of_many_threads_are_one_chain_and_the_record_stays_in_order(healkit: Healkit) -> None:
    with audited(healkit) as run:
        threads = [
            threading.Thread(target=lambda: [run.append("proposal_accepted") for _ in range(25)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    entries = healkit.audit.get(run.run_id)
    assert sorted(entry.event_seq or 0 for entry in entries) == list(range(2, 103))
    assert healkit.audit.verify().ok
    assert in_order(validate_run(run.folder))


def test_a_run_that_is_abandoned_is_in_the_audit(healkit: Healkit) -> None:
    run = audited(healkit)
    healkit.close()
    with Healkit(healkit.path) as again:
        assert [entry.choice_type for entry in again.audit.get(run.run_id)] == ["run_finished"]
        assert again.audit.verify().anchors == 1


def test_a_run_that_is_not_audited_has_no_head_in_its_manifest(healkit: Healkit) -> None:
    with healkit.run() as run:
        run.append("proposal_accepted")
    assert "audit" not in json.loads((run.folder / "run_manifest.json").read_text())
    assert healkit.audit.verify().entries == 0


def test_a_damaged_manifest_is_passed_over(healkit: Healkit) -> None:
    with audited(healkit):
        pass
    with audited(healkit) as second:
        pass
    (second.folder / "run_manifest.json").write_text("{")
    found = healkit.audit.verify()
    assert (found.ok, found.anchors) == (True, 1)


def test_pruning_the_log_leaves_the_audit_alone(healkit: Healkit) -> None:
    healkit.vault.add("double", "def double(x):\n    return 2 * x")
    for x in range(3):
        healkit.execute("double", arguments={"x": x})
        healkit.audit.append(f"x-{x}", "notebook", "cell", tool_name="double")
    assert healkit.log.prune(keep=1).deleted == 2
    found = healkit.audit.verify()
    assert (found.ok, found.entries) == (True, 3)
