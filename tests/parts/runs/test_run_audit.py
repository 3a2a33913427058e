"""Run that is audited: entries of its events."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from side_by_side import Meet, at_once

from healkit import Config, Healkit
from healkit.parts.heal.record import heal_steps
from healkit.parts.runs.reader import in_order, read_run, validate_run
from healkit.parts.runs.run_folders import run_folders
from healkit.parts.runs.runs import OpenRun


def audited(healkit: Healkit) -> OpenRun:
    """Begin a run that is audited."""
    return healkit.runs.begin("heal", allow="half", audited=True)


@pytest.mark.requirement("DECIDE-3")
@pytest.mark.sqlite  # the lock of a file
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
    with Healkit(healkit.database.url) as again:
        assert [entry.choice_type for entry in again.audit.get(run.run_id)] == ["run_finished"]
        assert again.audit.verify().anchors == 1


#: Tells which events of the healing are entries.
HEALED = heal_steps("half", contents=True)
KILLED = """
import os, signal, sys
from healkit import Healkit
healkit = Healkit(sys.argv[1])
healkit.vault.add("half", "def half(n):\\n    return n / 0\\n", examples=[{"arguments": {"n": 4}, "result": 2.0}])
from healkit.parts.runs.journal import RunJournal
write, left = RunJournal.append, [int(sys.argv[2])]
def append(self, *args, **known):
    event = write(self, *args, **known)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return event
RunJournal.append = append
healkit.heal("half", auto=True, budget_s=5)
"""


def killed_healing(path: Path | None, after: int) -> str:
    """Kill a healing once so many events are in its folder; return the run's id."""
    assert path is not None
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(after)], timeout=100, check=False)
    assert done.returncode == -9
    (folder,) = run_folders(path.parent / "runs")
    assert len(read_run(folder).events) == after
    return folder.name


def opened(meet: Meet, url: str) -> None:
    meet()
    Healkit(url).close()


@pytest.mark.slow
@pytest.mark.requirement("DECIDE-3", "DATA-7")
@pytest.mark.parametrize(("after", "at_a_time"), [(2, 1), (9, 3), (14, 1)])
def test_each_event_of_a_killed_healing_is_one_entry_once_the_next_healkit_is_opened(
    healkit: Healkit, after: int, at_a_time: int
) -> None:
    """Whether one process opens the database next, or three at once do."""
    run_id = killed_healing(healkit.path, after)
    at_once(opened, *[(healkit.url,)] * at_a_time)
    with Healkit(healkit.database.url) as again:
        events = read_run(again.runs_dir / run_id).events
        told = [event.seq for event in events if HEALED(event) is not None]
        assert [entry.event_seq for entry in again.audit.get(run_id)] == told
        assert told
        assert again.audit.verify().ok


@pytest.mark.requirement("DECIDE-3", "DATA-7")
def test_verify_names_what_was_cut_off_a_run_and_what_goes_beyond_it(healkit: Healkit) -> None:
    healkit.vault.add(
        "half", "def half(n):\n    return n / 0\n", examples=[{"arguments": {"n": 4}, "result": 2.0}]
    )
    report = healkit.heal("half", auto=True, budget_s=5)
    trace = healkit.runs_dir / report.run_id / "trace.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    last = read_run(trace.parent).events[-1]
    further = msgspec.structs.replace(last, seq=last.seq + 1, event_type="policy_halt")
    trace.write_bytes(b"".join(lines) + msgspec.json.encode(further) + b"\n")
    fault = healkit.audit.verify().fault
    assert fault.kind == "cut_off"
    assert f"Event {further.seq} of run {report.run_id!r} (policy_halt) has no entry" in fault.message
    trace.write_bytes(b"".join(lines[:-1]))
    fault = healkit.audit.verify().fault
    assert fault.kind == "file"
    assert (
        f"names event {last.seq} of run {report.run_id!r}, which its trace.jsonl does not have"
        in fault.message
    )
    moved = msgspec.structs.replace(last, ts_utc=last.ts_utc + timedelta(seconds=1))
    trace.write_bytes(b"".join(lines[:-1]) + msgspec.json.encode(moved) + b"\n")
    fault = healkit.audit.verify().fault
    assert "is not the event from which entry" in fault.message


@pytest.mark.requirement("DECIDE-3", "DATA-7")
def test_a_run_that_goes_on_and_one_of_another_database_are_left_alone(
    healkit: Healkit, tmp_path: Path
) -> None:
    config = Config(runs_dir=str(healkit.runs_dir))
    run = audited(healkit)
    run.append("proposal_received", metadata={"author": "rules"})
    with Healkit(healkit.database.url) as beside, Healkit(tmp_path / "another.db", config=config) as another:
        assert beside.audit.get(run.run_id) == another.audit.get(run.run_id) == []
        assert beside.audit.verify().ok
        assert another.audit.verify().ok
    run.finish()
    assert [entry.choice_type for entry in healkit.audit.get(run.run_id)] == [
        "proposal_received",
        "run_finished",
    ]
    assert healkit.audit.verify().ok
