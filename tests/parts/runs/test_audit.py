"""Audit: numbered, chained, append-only; tampering is found."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from audit_samples import audit_of, filled, head_at, unguarded
from hypothesis import given
from hypothesis import strategies as st
from side_by_side import Forked, Meet, at_once
from trusted import trusted_copy
from waiting import wait_until

from healkit import Healkit
from healkit.core.store.database import Database
from healkit.core.store.vault import Vault
from healkit.errors import AuditEntryInvalid, DatabaseError
from healkit.parts.heal.requests import Requests
from healkit.parts.runs.audit import COLUMNS, Audit, ChainWalk
from healkit.parts.runs.audit_records import (
    AnchoredHead,
    AuditHead,
    AuditMetadata,
    AuditStep,
)
from healkit.parts.sanitizer.sanitizer import Sanitizer

DECIDE_3 = pytest.mark.requirement("DECIDE-3")


@pytest.fixture
def audit(database: Database) -> Iterator[Audit]:
    """Open an empty audit."""
    with contextlib.closing(audit_of(database)) as opened:
        yield opened


@DECIDE_3
def test_entries_are_numbered_for_each_execution_and_chained_over_all(audit: Audit) -> None:
    entries = filled(audit, "one", "two", "one", "one", "two")
    assert [(entry.execution_id, entry.seq, entry.position) for entry in entries] == [
        ("one", 1, 1), ("two", 1, 2), ("one", 2, 3), ("one", 3, 4), ("two", 2, 5),
    ]  # fmt: skip
    assert [entry.previous_hash for entry in entries] == [audit.head().chain, *(e.hash for e in entries[:-1])]
    assert audit.get("one") == [entry for entry in entries if entry.execution_id == "one"]
    assert audit.get("three") == []
    assert audit.head() == AuditHead(audit.head().chain, 5, entries[-1].hash)
    found = audit.verify()
    assert (found.ok, found.entries, found.head) == (True, 5, audit.head())


def test_the_newest_executions_come_by_pages_and_each_names_its_last_entry(
    audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(audit, "one", "two", "one", "three", "two")
    audit.append("healed", "heal", "proposal_received")
    newest, older = audit.begun("decide", limit=2)
    assert ([entry.execution_id for entry in newest], older) == (["three", "two"], 2)
    assert [entry.execution_id for entry in audit.begun("decide", limit=2, before=older)[0]] == ["one"]
    assert audit.begun("decide", limit=2, before=older)[1] is None
    assert [entry.seq for one in ("one", "two", "three") if (entry := audit.last(one))] == [2, 2, 1]
    assert audit.last("four") is None
    # One call looks through so many entries, and says where to go on.
    monkeypatch.setattr("healkit.parts.runs.audit._SEARCHED", 2)
    assert audit.begun("decide", limit=2) == ([], 5)
    assert [entry.execution_id for entry in audit.begun("decide", limit=2, before=5)[0]] == ["three"]


@DECIDE_3
def test_an_entry_has_the_names_of_the_contract_on_the_wire(audit: Audit) -> None:
    before = datetime.now(UTC)
    entry = audit.append(
        "run-1", "decide", "execute_data_op", tool_name="join", tool_params={"left": "sales"},
        metadata={
            "rowCount": 3120, "columnCount": 4, "uniqueValues": {"region": 5}, "errorMessage": "COLUMN_MISSING: region",
            "durationMs": 12.5, "success": False, "intendedState": {"rows": 5}, "actualState": {"rows": 4},
            "correctionApplied": False,
        },
        description="join of sales", run_id="run-1", event_seq=7,
    )  # fmt: skip
    wire: dict[str, Any] = msgspec.to_builtins(entry)
    assert set(wire) == {
        "executionId", "executionType", "seq", "timestamp", "choiceType", "toolName", "toolParams", "metadata",
        "description", "runId", "eventSeq", "previousHash", "hash", "position",
    }  # fmt: skip
    assert set(wire["metadata"]) == {
        "rowCount", "columnCount", "uniqueValues", "errorMessage", "durationMs", "success", "intendedState",
        "actualState", "correctionApplied",
    }  # fmt: skip
    assert before <= entry.timestamp <= datetime.now(UTC)
    assert audit.get("run-1") == [entry]


def test_secrets_are_hidden_and_long_parameters_cut(database: Database) -> None:
    with contextlib.closing(Audit(database, Sanitizer)) as audit:
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        entry = audit.append(
            "a", "decide", "gather_info",
            tool_params={"password": "hunter2hunter2", "text": f"token {secret}"},
            metadata={"errorMessage": f"no {secret}", "intendedState": {"entities": [secret]}},
            description=f"looked for {secret}",
        )  # fmt: skip
        assert secret not in json.dumps(msgspec.to_builtins(entry))
        assert "hunter2" not in str(entry.tool_params)
        long = audit.append(
            "a", "decide", "gather_info", tool_params={"rows": "x y " * 50_000}, description="d" * 5000,
            metadata={"uniqueValues": {f"column {n} {'n' * 2000}": n for n in range(10_000)}},
        )  # fmt: skip
        assert len(msgspec.json.encode(long)) < 60_000
        assert list((long.metadata.unique_values or {}).values()) == list(range(100))
        assert audit.verify().ok


WRONG: list[dict[str, Any]] = [
    {"execution_type": "train"}, {"choice_type": "Drop Table"}, {"choice_type": "x" * 41}, {"execution_id": ""},
    {"execution_id": "../a"}, {"execution_id": "a" * 129}, {"event_seq": 0}, {"event_seq": 2**40},
    {"tool_name": 5}, {"metadata": {"rows": 1}}, {"metadata": {"rowCount": -1}}, {"metadata": [1]},
    {"metadata": AuditMetadata(row_count=-1)}, {"metadata": AuditMetadata(unique_values={"a": "b"})},  # type: ignore[dict-item]  # the point
]  # fmt: skip


ODD: list[Any] = [
    {"__proto__": {"x": 1}}, {"n" * 2000: 1}, {"text": "nul \x00, surrogate \ud800, line \u2028"},
    {"big": 10**40, "nan": float("nan")}, {1: 2, None: 3}, [1, "two"], "text", 5, False, "", {},
    {"deep": [[[[[[[[[[1]]]]]]]]]]}, {"set": {1}, "bytes": b"\xff"}, pd.DataFrame({"a": [1]}),
]  # fmt: skip


def test_a_wrong_entry_is_refused_and_nothing_is_appended(audit: Audit) -> None:
    for wrong in WRONG:
        given = {"execution_id": "a", "execution_type": "decide", "choice_type": "gather_info", **wrong}
        with pytest.raises(AuditEntryInvalid, match=r"This is not an audit entry: .*Nothing was appended"):
            audit.append(**given)
        assert audit.verify().entries == 0, wrong


def test_odd_parameters_are_kept_as_json_and_verify(audit: Audit) -> None:
    entries = [
        audit.append(
            "a",
            "notebook",
            "cell",
            tool_name="nul \x00 \ud800",
            tool_params=params,
            description="\x00 \udfff é",
        )
        for params in ODD
    ]
    assert audit.get("a") == entries
    assert audit.verify().ok


def test_several_entries_are_appended_all_or_none(audit: Audit) -> None:
    good = AuditStep("a", "heal", "proposal_received")
    with pytest.raises(AuditEntryInvalid):
        audit.extend([good, AuditStep("a", "heal", "No Choice")])
    assert audit.extend([]) == []
    entries = audit.extend([good, good, AuditStep("b", "heal", "x"), good])
    assert [entry.seq for entry in entries] == [1, 2, 1, 3]
    assert audit.verify().ok


REST = "tool_name, tool_params, metadata, description, run_id, event_seq, previous_hash, hash FROM traceauditentry WHERE id"


FORBIDDEN = [
    "UPDATE traceauditentry SET description = 'other' WHERE id = 2", "DELETE FROM traceauditentry WHERE id = 3",
    "DELETE FROM traceauditentry", "UPDATE traceauditchain SET chain = 'other'", "DELETE FROM traceauditchain",
    "INSERT INTO traceauditchain VALUES ('other')",
    f"INSERT INTO traceauditentry SELECT id + 4, execution_id, execution_type, seq + 3, timestamp, choice_type, {REST} = 3",
    f"INSERT INTO traceauditentry SELECT id + 1, execution_id, execution_type, seq + 2, timestamp, choice_type, {REST} = 3",
]  # fmt: skip


@DECIDE_3
def test_the_database_refuses_to_change_or_remove_entries(audit: Audit, database: Database) -> None:
    entries = filled(audit, "a", "a", "a")
    for statement in (*FORBIDDEN, *([] if database.path else ["TRUNCATE traceauditentry"])):
        with pytest.raises(DatabaseError, match="append-only"), database.write() as session:
            session.connection().exec_driver_sql(statement)
        assert audit.get("a") == entries, statement
    assert audit.verify().ok


def test_sqlites_insert_or_replace_removes_nothing(sqlite_database: Database) -> None:
    audit = audit_of(sqlite_database)
    filled(audit, "a", "a", "a")
    columns = "execution_id, execution_type, seq, timestamp, choice_type, tool_name, tool_params, metadata, description"
    rest = "run_id, event_seq, previous_hash, hash FROM traceauditentry WHERE id = 2"
    with contextlib.closing(sqlite3.connect(str(sqlite_database.path))) as connection:
        for place in ("id", "4"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(
                    f"INSERT OR REPLACE INTO traceauditentry SELECT {place}, {columns}, {rest}"
                )
            connection.rollback()
    assert audit.verify().entries == 3
    audit.close()


def append_many(meet: Meet, url: str, count: int) -> list[int]:
    """Append entries to one execution beside others that do; return their numbers."""
    with contextlib.closing(Database(url, wait_s=30)) as database:
        audit = audit_of(database)
        meet()
        numbers = [entry.seq for _ in range(count) for entry in filled(audit, "shared")]
        audit.close()
        return numbers


@DECIDE_3
@pytest.mark.slow
def test_processes_that_append_to_one_execution_leave_no_gap(database: Database) -> None:
    numbers = at_once(append_many, *[(database.url, 40)] * 3)
    assert sorted(seq for of_one in numbers for seq in of_one) == list(range(1, 121))
    assert all(of_one == sorted(of_one) for of_one in numbers)
    found = audit_of(database).verify()
    assert (found.ok, found.entries) == (True, 120)


def append_for_ever(url: str) -> None:
    """Append one entry after the other until killed."""
    audit = audit_of(Database(url, wait_s=30))
    while True:
        audit.extend([AuditStep("killed", "decide", "gather_info")] * 3)


@DECIDE_3
@pytest.mark.slow
def test_a_process_killed_between_entries_leaves_a_chain_that_verifies(database: Database) -> None:
    audit = audit_of(database)
    for _ in range(2):
        before = audit.head().entries
        process = Forked(append_for_ever, database.url)
        wait_until(lambda: audit.head().entries > before + 5, 30)  # noqa: B023 - called at once
        process.send_signal(9)
        process.wait()
        found = audit.verify()
        assert found.ok
        assert found.entries % 3 == 0
    assert [entry.seq for entry in audit.get("killed")] == list(range(1, audit.head().entries + 1))
    assert filled(audit, "killed")[0].seq == audit.head().entries
    audit.close()


@DECIDE_3
def test_an_accepted_request_and_its_entry_are_one_transaction(audit: Audit, database: Database) -> None:
    Vault(database).add("share", "def share(n):\n    return 1 / n")
    requests = Requests(database, audit)
    for code in ("def share(n):\n    return 1", "def share(n):\n    return 2"):
        requests.add("share", code, author="search", run_id="run-1")
    filled(audit, "run-1")
    assert requests.accept(1).revision == 2
    with unguarded(database) as connection:
        connection.execute("DROP TABLE traceauditentry")
    with pytest.raises(DatabaseError):
        requests.decline(2)
    assert [request.state for request in requests.list()] == ["pending", "accepted"]


@DECIDE_3
def test_a_summary_counts_choices_corrections_failures_duration_and_tools(audit: Audit) -> None:
    assert audit.summary().entries == 0
    for choice, tool, known in (
        ("gather_info", "schema_of", {"success": True, "durationMs": 1.5}),
        ("execute_data_op", "join", {"success": False, "durationMs": 2.25}),
        ("self_correction", "near_matches", {"success": True, "correctionApplied": True}),
        ("self_correction", "near_matches", {"success": False, "correctionApplied": False}),
    ):
        audit.append("one", "decide", choice, tool_name=tool, metadata=known)
    last = filled(audit, "two")[0]
    found = audit.summary("one")
    assert (found.executions, found.entries) == (1, 4)
    assert found.by_choice == {"self_correction": 2, "gather_info": 1, "execute_data_op": 1}
    assert (found.corrections, found.failed_corrections, found.failures, found.duration_ms) == (1, 1, 2, 3.75)
    assert found.tools == ["join", "near_matches", "schema_of"]
    everything = audit.summary()
    assert (everything.executions, everything.entries, everything.last) == (2, 5, last.timestamp)


@DECIDE_3
@pytest.mark.parametrize(
    ("statement", "kind", "position"),
    [
        ("UPDATE traceauditentry SET description = 'other' WHERE id = 2", "changed", 2),
        ("UPDATE traceauditentry SET timestamp = '2001-01-01' WHERE id = 3", "changed", 3),
        ("DELETE FROM traceauditentry WHERE id = 2", "missing", 2),
        ("DELETE FROM traceauditentry WHERE id = 3", "cut_off", 3),
    ],
)
def test_a_changed_entry_is_found_by_the_chain_and_a_cut_off_tail_by_a_manifest(
    audit: Audit, database: Database, statement: str, kind: str, position: int
) -> None:
    entries = filled(audit, "one", "two", "two")
    anchor = AnchoredHead("two", head_at(audit, entries, 3))
    with unguarded(database) as connection:
        connection.execute(statement)
    found = audit_of(database, anchor).verify()
    fault = found.fault
    assert (fault.kind, fault.position) == (kind, position)
    assert str(found) == f"✗ {fault.message}"
    assert audit.verify().ok == (kind == "cut_off")
    if kind == "cut_off":
        assert str(audit.verify()) == "✓ No entry was changed or removed. Entries: 2, manifests: 0"
        assert fault.message == (
            "The audit has 2 entries, but the manifest of run 'two' says 3: the last ones were removed."
        )


@DECIDE_3
def test_a_chain_that_was_written_anew_is_found_by_a_manifest(audit: Audit, database: Database) -> None:
    anchor = AnchoredHead("one", head_at(audit, filled(audit, "one", "two"), 2))
    chain = anchor.head.chain
    with unguarded(database) as connection:
        connection.execute("DELETE FROM traceauditentry")
    filled(audit, "one", "three", "four")
    assert audit.verify().ok
    fault = audit_of(database, anchor).verify().fault
    assert (fault.kind, fault.position, fault.execution_id) == ("rewritten", 2, "three")
    assert "the manifest of run 'one' has another hash for it" in fault.message
    other = AnchoredHead("one", AuditHead(chain[::-1], 1, "0" * 64))  # of a chain with another id
    fault = audit_of(database, other).verify().fault
    assert (fault.kind, fault.position) == ("rewritten", 1)


def test_manifests_of_another_database_are_left_out(audit: Audit, database: Database, tmp_path: Any) -> None:
    entries = filled(audit, "one")
    with contextlib.closing(Database(tmp_path / "other.db")) as another:
        other = AnchoredHead("elsewhere", audit_of(another).head())
    found = audit_of(database, other, AnchoredHead("one", head_at(audit, entries, 1))).verify()
    assert (found.ok, found.anchors, found.foreign) == (True, 1, 1)


@pytest.mark.requirement("DECIDE-3")
def test_an_agents_swarm_tree_or_chat_appends_its_own_entries(healkit: Healkit) -> None:
    for seq, kind in enumerate(("swarm", "tree", "chat"), 1):
        entry = healkit.audit.append("agents-1", kind, "gather_info", tool_name="lookup")
        assert (entry.execution_type, entry.seq) == (kind, seq)
    assert healkit.audit.verify().ok


EXECUTIONS = ("one", "two", "one", "three", "two", "one", "two", "three", "one", "one")
MANY = len(EXECUTIONS)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(COLUMNS, TEXTS),
    "seq": st.integers(-5, 20),
    "event_seq": st.integers(-5, 20),
    "timestamp": st.datetimes().map(lambda moment: f"{moment:%Y-%m-%d %H:%M:%S.%f}"),
    "hash": st.text("0123456789abcdef", min_size=64, max_size=64),
}
PLACES = st.sets(st.integers(1, MANY), min_size=1)
Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> tuple[Rows, AnchoredHead]:
    """Fill an audit; return its rows, and the head that a manifest has."""
    path = trusted_copy(empty_database, tmp_path_factory.mktemp("chain") / "healkit.db")
    with contextlib.closing(Database(path)) as database, contextlib.closing(audit_of(database)) as audit:
        entries = filled(audit, *EXECUTIONS)
        anchor = AnchoredHead("one", head_at(audit, entries, MANY))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM traceauditentry ORDER BY id"
        ).fetchall(), anchor


def walked(chain: tuple[Rows, AnchoredHead], rows: Rows) -> tuple[str, int]:
    """Walk along rows in the place of those of the chain; return kind and place of the first that is wrong."""
    walk = ChainWalk(chain[1].head.chain, [chain[1]])
    fault = walk.step(rows) or walk.end()
    return fault.kind, fault.position


@DECIDE_3
@given(place=st.integers(1, MANY), column=st.sampled_from(COLUMNS[1:]), data=st.data())
def test_a_changed_entry_is_named(
    chain: tuple[Rows, AnchoredHead], place: int, column: str, data: st.DataObject
) -> None:
    rows, at = list(chain[0]), COLUMNS.index(column)
    row = list(rows[place - 1])
    row[at] = data.draw(VALUES[column].filter(lambda value: value != row[at]))
    rows[place - 1] = tuple(row)
    assert walked(chain, rows) == ("changed", place)


@DECIDE_3
@given(places=PLACES)
def test_removed_entries_are_missed_also_where_the_rest_was_numbered_anew(
    chain: tuple[Rows, AnchoredHead], places: set[int]
) -> None:
    rows = [row for row in chain[0] if row[0] not in places]
    is_end = min(places) > MANY - len(places)
    assert walked(chain, rows) == ("cut_off" if is_end else "missing", min(places))
    anew = [(place, *row[1:]) for place, row in enumerate(rows, 1)]
    assert walked(chain, anew)[1] == min(places)


@DECIDE_3
@given(order=st.permutations(range(MANY)).filter(lambda order: list(order) != list(range(MANY))))
def test_reordered_entries_are_found(chain: tuple[Rows, AnchoredHead], order: list[int]) -> None:
    rows = [(place, *chain[0][old][1:]) for place, old in enumerate(order, 1)]
    first_moved = next(place for place, old in enumerate(order, 1) if place != old + 1)
    assert walked(chain, rows) == ("reordered", first_moved)


@DECIDE_3
def test_what_no_program_would_write_is_found(tmp_path: Path, empty_database: Path) -> None:
    for number, (statement, kind) in enumerate((
        ("UPDATE traceauditentry SET description = CAST(x'ff00fe' AS TEXT) WHERE id = 4", "changed"),
        ("UPDATE traceauditentry SET tool_params = x'7b7d' WHERE id = 4", "changed"),
        ("UPDATE traceauditentry SET id = -4 WHERE id = 4", "reordered"),
        ("UPDATE traceauditchain SET chain = 'other'", "reordered"),
        ("DELETE FROM traceauditchain", "reordered"),
    )):  # fmt: skip
        with contextlib.closing(
            Database(trusted_copy(empty_database, tmp_path / f"{number}.db"))
        ) as database:
            filled(audit_of(database), *EXECUTIONS)
            with unguarded(database) as connection:
                for event in ("update", "delete"):
                    connection.execute(f"DROP TRIGGER traceauditchain_{event}")
                connection.execute(statement)
            assert audit_of(database).verify().fault.kind == kind, statement


@DECIDE_3
def test_a_head_that_was_kept_elsewhere_finds_a_chain_that_was_written_anew(
    sqlite_database: Database,
) -> None:
    audit = audit_of(sqlite_database)
    filled(audit, "one", "two")
    kept = audit.head()
    filled(audit, "three")
    assert audit.verify(kept).ok
    assert audit.verify(kept).anchors == 0
    longer = msgspec.structs.replace(kept, entries=9)
    fault = audit.verify(longer).fault
    assert (fault.kind, "the head that was kept elsewhere says 9" in fault.message) == ("cut_off", True)
    other = msgspec.structs.replace(kept, hash="0" * 64)
    fault = audit.verify(other).fault
    assert (fault.kind, fault.position) == ("rewritten", 2)
    fault = audit.verify(msgspec.structs.replace(kept, chain="0" * 64)).fault
    assert fault.kind == "rewritten"
    audit.close()
