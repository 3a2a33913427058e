"""Audit on the command line."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from trusted import trusted_copy

from healkit import Healkit


@pytest.fixture
def audited(cli, environment: dict[str, str], empty_database: Path):
    """`cli` with three entries in the audit."""
    trusted_copy(empty_database, environment["HEALKIT_DB"])
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        for choice, success in (("gather_info", True), ("execute_data_op", False), ("finalize", True)):
            metadata = {"success": success, "durationMs": 2.5}
            healkit.audit.append("q-1", "decide", choice, tool_name="join", metadata=metadata)
    return cli


@pytest.mark.requirement("DECIDE-3")
def test_the_audit_is_verified_shown_and_summed_up(audited):
    done = audited("audit", "verify")
    assert (done.returncode, done.stdout) == (
        0,
        "✓ 3 entries, all as written\n",
    )
    header, *rows = audited("audit", "show", "q-1").stdout.splitlines()
    assert header.split() == ["entry", "when", "choice", "tool", "result", "description"]
    assert [row.split()[0] for row in rows] == ["1", "2", "3"]
    assert "✗ failed" in rows[1]
    assert "execute data op with join: failed (2.5 ms)." in rows[1]
    shown = audited("audit", "summary").stdout
    assert "3 of 1 execution" in shown
    assert "1 gather_info, 1 execute_data_op, 1 finalize" in shown
    assert "7.5 ms" in shown
    entries = json.loads(audited("audit", "show", "q-1", "--json").stdout)
    assert [entry["choiceType"] for entry in entries] == ["gather_info", "execute_data_op", "finalize"]
    found = json.loads(audited("audit", "summary", "q-1", "--json").stdout)
    assert (found["executions"], found["byChoice"]["finalize"], found["failures"]) == (1, 1, 1)


@pytest.mark.requirement("DECIDE-3")
def test_a_changed_entry_is_named_and_the_exit_code_is_1(audited, environment: dict[str, str]):
    with contextlib.closing(sqlite3.connect(environment["HEALKIT_DB"])) as connection:
        connection.execute("DROP TRIGGER traceauditentry_update")
        connection.execute("UPDATE traceauditentry SET description = 'all was well' WHERE seq = 2")
        connection.commit()
    done = audited("audit", "verify")
    assert done.returncode == 1
    assert done.stdout == (
        "✗ Entry 2 (number 2 of 'q-1', 'execute_data_op'): it does not match its hash, so it was changed. (changed)\n"
    )
    said = json.loads(audited("audit", "verify", "--json").stdout)
    assert (said["ok"], said["fault"]["kind"], said["fault"]["position"]) == (False, "changed", 2)


@pytest.mark.requirement("DECIDE-3")
def test_a_head_that_was_printed_is_checked_later(audited, environment: dict[str, str]):
    word = audited("audit", "head").stdout.strip()
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        healkit.audit.append("q-2", "decide", "finalize")
    assert audited("audit", "verify", "--head", word).returncode == 0
    chain, entries, _ = word.split(":")
    done = audited("audit", "verify", "--head", f"{chain}:{entries}:{'0' * 64}")
    assert (done.returncode, "the head that was kept elsewhere has another hash" in done.stdout) == (1, True)
    assert (
        "is not the head of an audit. Give the text"
        in audited("audit", "verify", "--head", "nonsense").stderr
    )


def test_an_unknown_execution_exits_2(audited):
    for command in ("show", "summary"):
        done = audited("audit", command, "q-2")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("The audit has no entry of execution 'q-2'.")
    assert json.loads(audited("audit", "show", "q-2", "--json").stdout)["error"]["code"] == "AUDIT_NOT_FOUND"
